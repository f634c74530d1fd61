"""The keys of each part of a recipe, as tables, and what their texts may hold: values in braces, lines of shell.

A rule is a shape of `TEXTS`, a list of them `[shape]`, a mapping `{shape: shape}`, choices `a|b`, or `?` for a flag.

`{cuda}` is the release of a component of the answer; a form behind a dot changes how it is written: `{cuda.minor}`,
`{cuda.minor.dashed}`. Beside components there are the fixed names of `FIXED` and, in provisions, `{component}` and
`{version}`.

A line of shell is one command that stays one line wherever it is put. It ends up in a heredoc or between `; \\` of a
RUN instruction, so what would reach beyond its end is refused: open quotes, a backslash or operator at the end, a
comment, a heredoc, control characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from toolmatrix.recipes import model
from toolmatrix.value import Value

NAMED = re.compile(r"(?<!\$)\{([a-z][a-z0-9_.-]*)\}")
"""A value in braces; `${name}` is the shell's."""

FIXED: Mapping[str, str] = {
    "component": "the component of the provision",
    "version": "its release",
    "built": "pip requirements for what the recipe builds, separated by blanks",
    "target": "x86, arm or amd",
    "accelerator": "none, cuda or rocm",
    "from": "source or wheel",
    "machine": "the machine as the kernel calls it",
    "debian_arch": "the machine as Debian and Docker call it",
    "bazel_arch": "the machine as Bazel's files call it",
    "cuda_arch": "the machine as NVIDIA's repositories call it",
    "family": "the family of the distribution",
    "codename": "the code name of the distribution's release",
    "os": "ID in /etc/os-release",
    "os_version": "VERSION_ID in /etc/os-release",
    "snapshot": "the time of a snapshot, as 20261120T000000Z",
    "archs_sm": "CUDA codegen archs by name, separated by commas",
    "archs_cuda": "CUDA codegen archs as capabilities, separated by commas",
    "archs_torch": "the same as PyTorch reads them, separated by semicolons",
    "archs_cmake": "the same as CMake reads them, separated by semicolons",
    "archs_numbers": "only the numbers, separated by semicolons",
    "archs_gfx": "ROCm codegen archs, separated by commas",
    "archs_hip": "the same as CMake reads them, separated by semicolons",
    "cflags": "flags for C, separated by blanks",
    "cxxflags": "flags for C++, separated by blanks",
    "nvcc_flags": "flags for nvcc, separated by blanks",
    "hipcc_flags": "flags for hipcc, separated by blanks",
    "option_words": "the words of the options that are switched on, separated by blanks",
    "value": "the value of an option",
}
"""Every fixed name and its meaning."""

LISTS = frozenset(
    (
        *("built", "option_words", "archs_torch", "archs_cmake", "archs_numbers", "archs_hip"),
        *("cflags", "cxxflags", "nvcc_flags", "hipcc_flags"),
    )
)
"""Values that contain blanks or semicolons: a line of shell has to quote them."""

MACHINES: Mapping[str, Mapping[str, str]] = {
    "x86_64": {"debian_arch": "amd64", "bazel_arch": "x86_64", "cuda_arch": "x86_64"},
    # NVIDIA's repositories keep packages for ARM servers under `sbsa`; `arm64` and `aarch64` are for Jetson.
    "aarch64": {"debian_arch": "arm64", "bazel_arch": "arm64", "cuda_arch": "sbsa"},
}


def _first(count: int) -> Callable[[str], str]:
    return lambda version: ".".join(version.split(".")[:count])


def _short(version: str) -> str:
    # AMD publishes the first release of a series without its zero: 5.1.0 as 5.1.
    numbers = version.split(".")
    return ".".join(numbers[:-1]) if len(numbers) > 2 and numbers[-1] == "0" else version


FORMS: Mapping[str, Callable[[str], str]] = {
    "major": _first(1),
    "minor": _first(2),
    "patch": _first(3),
    "short": _short,
    "dashed": lambda version: version.replace(".", "-"),
    "joined": lambda version: version.replace(".", ""),
    # Only this word distinguishes NVIDIA's images for building from those for running.
    "runtime": lambda image: image.replace("-devel", "-runtime"),
}


def names(text: str) -> Iterator[tuple[str, str]]:
    """Each value that a text names: its name, and the forms behind it."""
    for match in NAMED.finditer(text):
        name, _, forms = match[1].partition(".")
        yield name, forms


def unknown(text: str, components: Mapping[str, object]) -> str:
    """The first unknown name or form in a text, or nothing."""
    for name, forms in names(text):
        if name not in FIXED and name not in components:
            return name
        for form in forms.split(".") if forms else ():
            if form not in FORMS:
                return f"{name}.{form}"
    return ""


def fill(text: str, values: Mapping[str, str]) -> str:
    """A text with its values filled in; raises KeyError with the name of a missing one."""

    def value(match: re.Match[str]) -> str:
        name, *forms = match[1].split(".")
        written = values[name]
        for form in forms:
            written = FORMS[form](written)
        return written

    return NAMED.sub(value, text)


END = "EOF"
"""The word that ends the heredocs of the Dockerfiles."""

# Behind these a shell reads on in the next line.
_OPEN_ENDS = (";", "&", "|", "\\")


def shell_fault(line: str) -> str:
    """Why a line of shell cannot be used, or nothing."""
    if not line.strip() or line != line.strip():
        return "it is empty or has leading or trailing blanks"
    if not line.isprintable():
        return "it contains a control character or a line break"
    if line == END:
        return f"`{END}` would end the script"
    if line.endswith(_OPEN_ENDS):
        return f"it ends with `{line[-1]}`, so that a shell continues on the next line"
    return _scan(line)


def _scan(line: str) -> str:
    # Unquoted, a value with blanks or semicolons would become several words, or end the command.
    lists = {match.start() for match in NAMED.finditer(line) if match[1] in LISTS}
    quote, skip, before = "", False, " "
    for index, letter in enumerate(line):
        if skip:
            skip = False
        # Between single quotes a backslash is a letter like any other.
        elif letter == "\\" and quote != "'":
            skip = True
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        # Inside of a word it is a letter (POSIX, Shell Command Language, 2.3).
        elif letter == "#" and before in " ;(":
            return "it contains a comment"
        elif line.startswith("<<", index):
            return "it contains a heredoc"
        elif index in lists:
            return f"`{line[index:].partition('}')[0]}}}` is a list and must be quoted"
        before = letter
    return f"the quote {quote} is not closed" if quote else ""


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
            "the name of a package, optionally with a version; a `*` at its end matches any ending",
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
        (
            "suite",
            r"/|[A-Za-z0-9][A-Za-z0-9._+-]*",
            "one word, or `/` for a repository without suites",
        ),
        ("variable", r"[A-Za-z_][A-Za-z0-9_]*", "the name of a variable"),
        ("flag", r"-[A-Za-z0-9*?=+_.-]+", "a compiler flag; `*` matches anything"),
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
    """The expected and the actual text if a text does not have its shape, else two empty ones."""
    if shape == "shell":
        problem = shell_fault(text)
        return ("one command of shell on one line", problem) if problem else ("", "")
    pattern, expected = TEXTS[shape]
    # A value in braces counts as one digit; the renderer checks the actual value against its own pattern.
    return ("", "") if pattern.fullmatch(NAMED.sub("0", text)) else (expected, "")


class Shape(Value):
    """A mapping: the class it is read into, its plain fields by rule, its lists of parts by shape."""

    kind: type[model.RecipeEntry]
    fields: Mapping[str, str]
    lists: Mapping[str, str]

    @property
    def required(self) -> tuple[str, ...]:
        """The keys that a mapping must have: those of fields without a default."""
        mandatory = (name for name in self.kind._fields if name not in self.kind._defaults)
        return (*(("when",) if self.kind.conditional else ()), *mandatory)


def _shape(kind: type[model.RecipeEntry]) -> Shape:
    """The shape of a class, by the annotations of its fields."""
    names = {part: name for name, part in _PARTS.items()}
    rules, lists = {}, {}
    for field, hint in get_type_hints(kind, include_extras=True).items():
        inner = next(iter(get_args(hint)), None)
        if inner in names:
            lists[field] = names[inner]
        elif rule := _rule(hint):
            rules[field] = f"[{rule}]" if field == kind.spread else rule
    return Shape(kind=kind, fields=rules, lists=lists)


def _rule(hint: Any) -> str:
    """The rule of a field, "" where it is no key."""
    if hint is bool:
        return "?"
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return inner[1] if isinstance(inner[1], str) else "|".join(inner[1])
    rules = [_rule(element) for element in inner if element is not ...]
    if origin is tuple and rules[0]:
        return f"[{rules[0]}]"
    return f"{{{rules[0]}: {rules[1]}}}" if origin is Mapping and all(rules) else ""


_PARTS: Mapping[str, type[model.Part]] = {
    "distro": model.Distro,
    "compiler": model.Compiler,
    "effect": model.Effect,
    "mirror": model.MirrorSetting,
    "snapshot": model.ArchiveSnapshot,
    "installer": model.Installer,
    "provision": model.Provision,
    "repository": model.Repository,
    "download": model.Download,
    "probe": model.Probe,
    "step": model.BuildStep,
    "refusal": model.Refusal,
    "option": model.RecipeOption,
}

BOOK, RECIPE = _shape(model.Book), _shape(model.Recipe)
SHAPES = {name: _shape(part) for name, part in _PARTS.items()}
"""The parts by the name under which `lists` mention them."""
