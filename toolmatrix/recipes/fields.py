"""The keys of each part of a recipe, as tables: what `read` takes, and what the schema must say.

A rule is a shape of `TEXTS`, a list of them `[shape]`, a mapping `{shape: shape}`, words `a|b`, or `?` for a flag.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from toolmatrix.recipes import model, shell, variables
from toolmatrix.value import Value

# Of the files among the recipes this one is no recipe.
PROVISIONS_NAME = "provisions"

TEXTS: Mapping[str, tuple[re.Pattern[str], str]] = {
    name: (re.compile(pattern, re.ASCII), expected)
    for name, pattern, expected in (
        ("name", r"[a-z][a-z0-9_-]*", "a name such as `bazel-dist`"),
        ("component", r"[a-z0-9][a-z0-9._-]*", "the name of a component"),
        (
            "package",
            r"[a-z0-9][a-zA-Z0-9+._:~=-]*\*?",
            "the name of a package, perhaps with a version; `*` ends one that may go on",
        ),
        (
            "requirement",
            (
                r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[a-z0-9,_-]+\])?"
                r"(@https://[A-Za-z0-9.-]+(/[A-Za-z0-9._~+%=-]+)+\.whl"
                r"|[=<>!~]=?[A-Za-z0-9.*+!_-]+(,[=<>!~]=?[A-Za-z0-9.*+!_-]+)*)?"
            ),
            "a requirement of pip such as `numpy=={numpy}`",
        ),
        (
            "url",
            r"https?://[A-Za-z0-9.-]+(:[0-9]+)?(/[A-Za-z0-9._~+%@=&?,-]*)*",
            "an address (http or https)",
        ),
        ("path", r"/[A-Za-z0-9._+@/-]*[A-Za-z0-9._+@-]", "an absolute path"),
        ("mode", r"0[0-7]{3}", "a mode such as `0755`"),
        ("sha256", r"[0-9a-f]{64}", "64 hexadecimal digits"),
        ("fingerprint", r"[0-9A-F]{40}", "40 hexadecimal digits in capitals"),
        ("word", r"[A-Za-z0-9][A-Za-z0-9._+-]*", "one word"),
        ("variable", r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable"),
        ("flag", r"-[A-Za-z0-9*?=+_.-]+", "a compiler flag; `*` stands for anything"),
        (
            "condition",
            r"[A-Za-z0-9_()!&|<>= ]+",
            "a condition of the preprocessor",
        ),
        ("id", r"[a-z0-9][A-Za-z0-9._/-]*", "the id of a row of the matrix"),
        ("line", r"[^\x00-\x1f\x7f]+", "text on one line"),
        ("value", r"[^\x00-\x1f\x7f\\]*", "text on one line without a backslash"),
        ("before", r'[A-Za-z0-9 ":=_@-]*', "letters, digits, blanks and a little punctuation"),
        ("date", r"\d{4}-\d\d-\d\d", "YYYY-MM-DD"),
    )
}
"""For each shape of a text the pattern it must have once its values are put in, and what is expected."""


def fault(shape: str, text: str) -> tuple[str, str]:
    """The expected and the found text where a text does not have its shape, or twice nothing."""
    if shape == "shell":
        found = shell.fault(text)
        return ("one command of shell on one line", found) if found else ("", "")
    pattern, expected = TEXTS[shape]
    # A value in braces counts as one digit; what an answer puts there is held to its own pattern by the renderer.
    return ("", "") if pattern.fullmatch(variables.NAMED.sub("0", text)) else (expected, "")


class Shape(Value):
    """A mapping: what it makes, its plain fields by rule, its lists of parts by shape.

    What is a `part` may have conditions, and what is `conditional` must; what is `sourced` needs a source, its inner
    parts do not. A list under the key `spread` makes one part of each of its items.
    """

    noun: str
    kind: type[Value]
    fields: Mapping[str, str]
    lists: Mapping[str, str] = {}
    part: bool = True
    conditional: bool = False
    sourced: bool = False
    spread: str = ""

    @property
    def required(self) -> tuple[str, ...]:
        """The keys that a mapping must have: those of fields without a default."""
        given = (name for name in self.kind._fields if name not in self.kind._defaults)
        return (*(("when",) if self.conditional else ()), *given)


# A recipe may say all that the built-in provisions say, and is asked before them.
_BOOK = {
    "distros": "distro",
    "compilers": "compiler",
    "provisions": "provision",
    "effects": "effect",
    "mirrors": "mirror",
    "snapshots": "snapshot",
    "installers": "installer",
}

BOOK = Shape(noun="the recipe", kind=model.Book, fields={}, lists=_BOOK, part=False)

RECIPE = Shape(
    noun="the recipe",
    kind=model.Recipe,
    fields={
        "name": "name",
        "about": "line",
        "builds": "[component]",
        "targets": "[name]",
        "needs": "[component]",
        "tools": "[component]",
        "artifacts": "[path]",
        "carries": "[path]",
        "imports": "?",
        "runs": "?",
    },
    lists={
        **_BOOK,
        "steps": "step",
        "probes": "probe",
        "refuses": "refusal",
        "options": "option",
    },
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
        conditional=True,
        sourced=True,
    ),
    "compiler": Shape(
        noun="a compiler",
        kind=model.Compiler,
        fields={"cc": "path", "cxx": "path"},
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
        sourced=True,
    ),
    "mirror": Shape(
        noun="the setting of a mirror",
        kind=model.MirrorSetting,
        fields={
            "to": "path",
            "package": "package",
            "head": "line",
            "each": "line",
            "folder": "line",
        },
        sourced=True,
    ),
    "snapshot": Shape(
        noun="a snapshot",
        kind=model.ArchiveSnapshot,
        fields={
            "lines": "[line]",
            "origin": "word",
            "replaces": "[path]",
            "since": "date",
            "options": "[line]",
        },
        conditional=True,
        sourced=True,
    ),
    "installer": Shape(
        noun="an installer",
        kind=model.Installer,
        fields={"version": "word", "sha256": "sha256"},
        conditional=True,
        sourced=True,
    ),
    "provision": Shape(
        noun="a provision",
        kind=model.Provision,
        fields={
            "component": "[component]",
            "packages": "[package]",
            "runtime": "[package]",
            "building": "[package]",
            "areas": "[name]",
            "pip": "[requirement]",
            "run": "[shell]",
            "links": "{path: path}",
            "path": "[path]",
            "env": "{variable: value}",
            "in_base": "?",
            "harvested": "?",
            "runtime_base": "value",
            "because": "line",
        },
        lists={"repositories": "repository", "downloads": "download", "probes": "probe"},
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
        sourced=True,
    ),
    "refusal": Shape(
        noun="a refusal",
        kind=model.Refusal,
        fields={"because": "line"},
        conditional=True,
        sourced=True,
    ),
    "option": Shape(
        noun="an option",
        kind=model.RecipeOption,
        fields={"name": "name", "about": "line", "env": "{variable: value}"},
        sourced=True,
    ),
}
"""The parts by the name under which `lists` mention them."""
