"""The keys of each part of a recipe, as tables: what `read` takes, and what the schema must say.

A rule is a shape of `shapes`, a list of them `[shape]`, a mapping `{shape: shape}`, words `a|b`, or `?` for a flag.
"""

from __future__ import annotations

from toolmatrix.recipes import model
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PROVISIONS_NAME = "provisions"


class Shape(Value):
    """A mapping: what it makes, its plain fields by rule, its lists of parts by shape.

    What is a `part` may have conditions; what is `sourced` needs a source, its inner parts do not. A list under the key
    `spread` makes one part of each of its items.
    """

    noun: str
    kind: type[Value]
    fields: Mapping[str, str]
    lists: Mapping[str, str] = {}
    required: tuple[str, ...] = ()
    part: bool = True
    sourced: bool = False
    spread: str = ""


_BOOK = {
    "distros": "distro",
    "compilers": "compiler",
    "provisions": "provision",
    "effects": "effect",
}

BOOK = Shape(noun="the recipe", kind=model.Book, fields={}, lists=_BOOK, part=False)

RECIPE = Shape(
    noun="the recipe",
    kind=model.Recipe,
    fields={
        "name": "name",
        "about": "line",
        "builds": "component",
        "targets": "[name]",
        "needs": "[component]",
        "artifacts": "[path]",
    },
    lists={
        **_BOOK,
        "steps": "step",
        "probes": "probe",
        "refuses": "refusal",
        "options": "option",
    },
    required=("name", "about"),
    part=False,
)

SHAPES: Mapping[str, Shape] = {
    "distro": Shape(
        noun="a distribution",
        kind=model.Distro,
        fields={
            "family": "name",
            "manager": "|".join(model.MANAGERS),
            "codename": "word",
            "os": "word",
            "os_version": "word",
            "ends": "date",
        },
        required=("when", "family", "manager", "os", "os_version"),
        sourced=True,
    ),
    "compiler": Shape(
        noun="a compiler",
        kind=model.Compiler,
        fields={"cc": "path", "cxx": "path"},
        required=("cc", "cxx"),
        sourced=True,
    ),
    "effect": Shape(
        noun="an effect",
        kind=model.Effect,
        fields={
            "flag": "flag",
            "name": "name",
            "expected": "word",
            "otherwise": "word",
            "holds": "condition",
        },
        required=("flag", "name", "expected", "otherwise", "holds"),
        sourced=True,
    ),
    "provision": Shape(
        noun="a provision",
        kind=model.Provision,
        fields={
            "component": "[component]",
            "packages": "[package]",
            "runtime": "[package]",
            "areas": "[name]",
            "pip": "[requirement]",
            "run": "[shell]",
            "links": "{path: path}",
            "path": "[path]",
            "env": "{variable: value}",
            "in_base": "?",
            "runtime_base": "value",
            "because": "line",
        },
        lists={"repositories": "repository", "downloads": "download", "probes": "probe"},
        required=("component",),
        sourced=True,
        spread="component",
    ),
    "repository": Shape(
        noun="a repository",
        kind=model.Repository,
        fields={
            "name": "name",
            "key_url": "url",
            "fingerprint": "fingerprint",
            "uri": "url",
            "suite": "word",
            "components": "[word]",
            "origin": "word",
        },
        required=("name", "key_url", "fingerprint", "uri", "suite"),
    ),
    "download": Shape(
        noun="a download",
        kind=model.Download,
        fields={
            "of": "component",
            "url": "url",
            "to": "path",
            "sha256": "{word: sha256}",
            "checksum": "id",
            "mode": "mode",
            "unpack": "?",
        },
        required=("url", "to"),
    ),
    "probe": Shape(
        noun="a probe",
        kind=model.Probe,
        fields={
            "run": "[line]",
            "after": "before",
            "wanted": "word",
            "match": "|".join(model.MATCHES),
            "runtime": "?",
        },
        required=("run",),
    ),
    "step": Shape(
        noun="a step",
        kind=model.BuildStep,
        fields={
            "name": "name",
            "stage": "|".join(model.STAGES),
            "run": "[shell]",
            "env": "{variable: value}",
            "packages": "[package]",
            "runtime": "[package]",
            "workdir": "path",
        },
        lists={"downloads": "download"},
        required=("name", "stage"),
        sourced=True,
    ),
    "refusal": Shape(
        noun="a refusal",
        kind=model.Refusal,
        fields={"because": "line"},
        required=("when", "because"),
        sourced=True,
    ),
    "option": Shape(
        noun="an option",
        kind=model.RecipeOption,
        fields={"name": "name", "about": "line", "env": "{variable: value}"},
        required=("name", "about", "env"),
        sourced=True,
    ),
}
"""The parts by the name under which `lists` mention them."""
