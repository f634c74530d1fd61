"""Kind `wheels`: the contents of the wheels of a package on an index, of one wheel for each release and machine.

Each wheel gives a row about its build, or about its release if that has no builds. The row names the file, its sha256
and the members that were read. Members are read as data: assigned literals in the syntax tree of Python files, and the
headers of libraries. Everything is limited in size, and a stream ends at the first match. Raises HarvestRefused for a
member that does not fit its rule, and MatrixError for an invalid rule.
"""

from __future__ import annotations

import ast
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Protocol

from toolmatrix.errors import HarvestRefused, Position
from toolmatrix.factbase import pieces, variants
from toolmatrix.factbase.yamlfile import YamlNode
from toolmatrix.harvest import families, project
from toolmatrix.harvest.families import Family, HarvestContext
from toolmatrix.harvest.project import MACHINES, PublishedRelease, Wheel
from toolmatrix.harvest.wheel import RemoteWheel
from toolmatrix.inspection import elf
from toolmatrix.value import Value

if TYPE_CHECKING:

    class Archive(Protocol):
        """A wheel, as `RemoteWheel` and files are."""

        name: str

        def names(self) -> list[str]:
            """The names of its members."""

        def size(self, name: str) -> int:
            """Bytes of a member, unpacked."""

        def read(self, name: str, limit: int) -> bytes:
            """A whole member."""

        def stream(self, name: str) -> Iterator[bytes]:
            """A member from its beginning."""


LARGEST_TEXT = 1 << 20
"""Bytes of a member that is read as text; the largest known has 60 kB."""
MEBIBYTE = 1 << 20
_BUDGET = 32
"""MiB of a member that are read by default."""
_MOST_MEMBERS = 200
"""Members of a wheel that one rule reads."""
# Bytes that are searched again with the next piece, so that no match is cut in two.
_OVERLAP = 4 << 10
_LONGEST = 400
# Characters that a cell of facts may have: numbers, `sm_90a`, versions, words.
_VALUE = re.compile(r"[\w.+:*<>=,!| -]*")
_PYTORCH_ARCH = re.compile(r"(\d+)\.(\d)([af]?)(\+PTX)?")
_TENSORFLOW_ARCH = re.compile(r"(sm_|compute_)?(\d+)\.?(\d)([af]?)")


class Rule(Value):
    """How to fill one cell: the members to read, and how to read them."""

    cell: str
    # A pattern of names of members, "" for the names themselves.
    member: str
    how: str
    # The argument of `how`: a name, a path into JSON, a regular expression.
    what: str
    # A regular expression for the part of a text to use; `form` may refer to its groups (`\\1.\\2`).
    match: str
    form: str
    mebibytes: int
    node: YamlNode


class WheelCell(Value):
    """The value of a cell; `partly` if the members were not read completely, so that there may be more."""

    text: str
    members: tuple[str, ...]
    partly: bool = False


def rules(nodes: Iterable[YamlNode]) -> list[Rule]:
    """The rules under `inside:` of a family."""
    return [_rule(node) for node in nodes]


def _rule(node: YamlNode) -> Rule:
    known = ("cell", "member", "match", "form", "mebibytes", *_READERS)
    fields = node.only("a rule", known, ("cell",))
    named = [reader for reader in _READERS if reader in fields]
    if len(named) != 1 or ("member" in fields) == (named == ["names"]):
        others = ", ".join(name for name in _READERS if name != "names")
        node.fail(
            "a rule does not say what it reads",
            expected=f"`member:` and one of {others}, or `names:` alone",
            found=", ".join(fields),
        )
    rule = Rule(
        cell=pieces.text(fields, "cell"),
        member=pieces.text(fields, "member"),
        how=named[0],
        what=pieces.text(fields, named[0]),
        match=pieces.text(fields, "match"),
        form=pieces.text(fields, "form"),
        mebibytes=fields["mebibytes"].integer("mebibytes") if "mebibytes" in fields else _BUDGET,
        node=node,
    )
    for key in ("match", *(key for key in named if key in _PATTERNS)):
        _check_pattern(pieces.text(fields, key), fields.get(key, node))
    if rule.form and rule.form not in _FORMS:
        pattern = rule.what if rule.how == "names" else rule.match
        # The alternative matches the empty text, to check that the groups exist.
        _check_pattern(f"(?:{pattern})|", fields["form"], rule.form)
    return rule


def _check_pattern(pattern: str, node: YamlNode, form: str = "") -> None:
    try:
        re.sub(pattern, form, "")
    except (re.error, IndexError) as error:
        node.fail(
            "a pattern cannot be read",
            expected="a regular expression, and a form of its groups",
            found=str(error),
        )


def read_cells(wheel: Archive, wanted: Sequence[Rule]) -> dict[str, WheelCell]:
    """The cells of a wheel; of several rules for one cell the first that finds something wins."""
    cells: dict[str, WheelCell] = {}
    names = wheel.names()
    for rule in wanted:
        if rule.cell not in cells:
            cell = _READERS[rule.how](wheel, rule, names)
            if cell is None or not cell.text:
                continue
            # Wheels are untrusted: validate a value before it gets into a file of facts.
            if len(cell.text) > _LONGEST or not _VALUE.fullmatch(cell.text):
                raise _refusal(wheel, rule, "a value of a fact", repr(cell.text[:80]))
            cells[rule.cell] = cell
    return cells


def _refusal(wheel: Archive, rule: Rule, expected: str, found: str) -> HarvestRefused:
    return HarvestRefused(
        f"a wheel does not have `{rule.cell}` in the form that its family describes",
        where=Position(f"{wheel.name}:{rule.member}" if rule.member else wheel.name),
        expected=expected,
        found=found,
        help=f"the rule is at {rule.node.where}",
    )


def _members(rule: Rule, names: Sequence[str]) -> list[str]:
    return [name for name in names if fnmatchcase(name, rule.member)][:_MOST_MEMBERS]


def _extract(rule: Rule, texts: Iterable[str]) -> str:
    """The distinct values of a rule in the texts that it reads."""
    values: dict[str, None] = {}
    for text in texts:
        if rule.form in _FORMS:
            values |= dict.fromkeys(_FORMS[rule.form](text))
        elif not rule.match:
            values[text] = None
        else:
            values |= dict.fromkeys(_expand(rule, match) for match in re.finditer(rule.match, text))
    return " ".join(value for value in values if value)


def _expand(rule: Rule, match: re.Match[str]) -> str:
    if rule.form:
        return match.expand(rule.form)
    return match[1] or "" if match.re.groups else match[0]


def _pytorch_archs(text: str) -> Iterator[str]:
    """The archs of TORCH_CUDA_ARCH_LIST, as torch.utils.cpp_extension reads it: PTX only with `+PTX`."""
    for major, minor, letter, ptx in _PYTORCH_ARCH.findall(text):
        yield f"sm_{major}{minor}{letter}"
        if ptx:
            yield f"compute_{major}{minor}{letter}"


def _tensorflow_archs(text: str) -> Iterator[str]:
    """The archs of TF_CUDA_COMPUTE_CAPABILITIES, as TensorFlow's configure.py reads it.

    `sm_80` is machine code, `compute_80` and `8.0` are machine code and PTX.
    """
    for kind, major, minor, letter in _TENSORFLOW_ARCH.findall(text):
        yield f"sm_{major}{minor}{letter}"
        if kind != "sm_":
            yield f"compute_{major}{minor}{letter}"


# Lists of archs in the syntax of build systems.
_FORMS = {"torch-archs": _pytorch_archs, "tensorflow-archs": _tensorflow_archs}


def _texts(wheel: Archive, rule: Rule, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in _members(rule, names):
        if wheel.size(name) > LARGEST_TEXT:
            raise _refusal(
                wheel, rule, f"at most {LARGEST_TEXT} bytes", f"{wheel.size(name)} bytes"
            )
        yield name, wheel.read(name, LARGEST_TEXT).decode("utf-8", "replace")


def _assigned(wheel: Archive, rule: Rule, names: Sequence[str]) -> WheelCell | None:
    """A literal that a Python file assigns to a name, or a key of it: `build_info.cuda_version`."""
    name, *path = rule.what.split(".")
    for member, text in _texts(wheel, rule, names):
        try:
            value = _literal(ast.parse(text), name)
        # Deep nesting makes the parser of Python raise three of these.
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            raise _refusal(
                wheel, rule, f"a literal assigned to `{name}`", type(error).__name__
            ) from None
        return _of_document(rule, member, value, path)
    return None


def _literal(tree: ast.Module, name: str) -> Any:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if value is None or not any(
            isinstance(target, ast.Name) and target.id == name for target in targets
        ):
            continue
        # An OrderedDict of a list of pairs is read as a dict of the pairs, without calling anything.
        if isinstance(value, ast.Call) and getattr(value.func, "attr", "") == "OrderedDict":
            return dict(ast.literal_eval(value.args[0]))
        return ast.literal_eval(value)
    return None


def _json(wheel: Archive, rule: Rule, names: Sequence[str]) -> WheelCell | None:
    """A value of a JSON document, by its keys: `version.torch`."""
    for member, text in _texts(wheel, rule, names):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _refusal(wheel, rule, "a JSON document", str(error)[:80]) from None
        return _of_document(rule, member, value, rule.what.split("."))
    return None


def _of_document(rule: Rule, member: str, value: Any, path: Sequence[str]) -> WheelCell | None:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    values = value if isinstance(value, list) else [value]
    texts = [f"{entry}" for entry in values if isinstance(entry, (str, int, float)) and entry != ""]
    return WheelCell(text=_extract(rule, texts), members=(member,)) if texts else None


def _text(wheel: Archive, rule: Rule, names: Sequence[str]) -> WheelCell | None:
    """The first match of a regular expression in a member, text or not."""
    pattern = re.compile(rule.what.encode())
    for name in _members(rule, names):
        match = _first(pattern, _within(wheel.stream(name), rule.mebibytes * MEBIBYTE))
        if match is not None:
            matched = match[1] if pattern.groups else match[0]
            return WheelCell(
                text=_extract(rule, [matched.decode("utf-8", "replace")]), members=(name,)
            )
    return None


def _first(pattern: re.Pattern[bytes], pieces: Iterable[bytes]) -> re.Match[bytes] | None:
    buffer = b""
    for piece in pieces:
        buffer = buffer[-_OVERLAP:] + piece
        match = pattern.search(buffer)
        # A match at the end of the piece may continue in the next one.
        if match is not None and match.end() < len(buffer):
            return match
    return pattern.search(buffer)


def _within(stream: Iterable[bytes], budget: int) -> Iterator[bytes]:
    for piece in stream:
        yield piece
        budget -= len(piece)
        if budget <= 0:
            return


def _names(_wheel: Archive, rule: Rule, names: Sequence[str]) -> WheelCell | None:
    """Matches of a regular expression in names of members."""
    # bitsandbytes has a library for each toolkit, and only its name says which.
    fitting = [name for name in names if re.search(rule.what, name)][:_MOST_MEMBERS]
    text = _extract(rule.replace(match=rule.what), sorted(fitting))
    return WheelCell(text=text, members=tuple(fitting[:1])) if fitting else None


def _archs(wheel: Archive, rule: Rule, names: Sequence[str]) -> WheelCell | None:
    """The codegen archs of the device code in the first MiB of members."""
    archs: set[str] = set()
    read = _members(rule, names)
    partly = False
    for name in read:
        # Most libraries have all archs near their beginning, but some kernels are for one arch only: `_moe_C` of vllm
        # has sm_120f at 7.9 MB, and seven others before 1.3. So a partial result is a lower bound.
        scan = elf.Scan()
        count = 0
        for piece in _within(wheel.stream(name), rule.mebibytes * MEBIBYTE):
            scan.add(piece)
            count += len(piece)
        scan.finish()
        archs |= scan.archs
        partly = partly or count < wheel.size(name) or bool(scan.unread)
    if not archs:
        return None
    return WheelCell(
        text=" ".join(sorted(archs, key=_arch_order)), members=tuple(read), partly=partly
    )


def _arch_order(arch: str) -> tuple[bool, int, str]:
    digits = re.search(r"\d+", arch)
    return arch.startswith("compute_"), int(digits[0]) if digits else 0, arch


def _needed(wheel: Archive, rule: Rule, names: Sequence[str]) -> WheelCell | None:
    """Matches of a regular expression in the sonames that libraries need."""
    return _library(wheel, rule, names, lambda _data, library: library.dynamic.needed)


def _wants(wheel: Archive, rule: Rule, names: Sequence[str]) -> WheelCell | None:
    """The newest version of a family of symbols (`GLIBC`) that libraries need."""
    family = rule.what

    def versions(data: bytes, _elf: elf.Elf) -> Iterator[str]:
        matches = re.findall(
            rb"\0" + re.escape(family.encode()) + rb"_(\d{1,3}(?:\.\d{1,3})*)(?=\0)", data
        )
        # By number: as text, `2.9` comes after `2.17`.
        if matches:
            yield max((match.decode() for match in matches), key=_numbers)

    cell = _library(wheel, rule, names, versions)
    return cell and cell.replace(text=max(cell.text.split(), key=_numbers, default=""))


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def _compilers(wheel: Archive, rule: Rule, names: Sequence[str]) -> WheelCell | None:
    """Versions in the section `.comment`, where each compiler of a library leaves its name."""

    def named(data: bytes, _elf: elf.Elf) -> Iterator[str]:
        from elftools.common.exceptions import ELFError
        from elftools.elf.elffile import ELFFile

        try:
            # It includes the compilers of static libraries, so the pattern decides which one counts.
            section = ELFFile(io.BytesIO(data)).get_section_by_name(".comment")
        except (ELFError, ValueError, KeyError, OverflowError):
            return
        comment = section.data()[:MEBIBYTE] if section is not None else b""
        for text in comment.split(b"\0"):
            yield from re.findall(rule.what, text.decode("utf-8", "replace"))

    return _library(wheel, rule, names, named)


def _library(
    wheel: Archive,
    rule: Rule,
    names: Sequence[str],
    values: Callable[[bytes, elf.Elf], Iterable[str]],
) -> WheelCell | None:
    texts: dict[str, None] = {}
    # The data for the loader is often at the end, so a library is read whole, or not at all.
    limit = rule.mebibytes * MEBIBYTE
    read = [name for name in _members(rule, names) if wheel.size(name) <= limit]
    for name in read:
        data = wheel.read(name, limit)
        if not data.startswith(elf.MAGIC):
            raise _refusal(wheel, rule, "a library (ELF)", f"{name} begins with {data[:4]!r}")
        library = elf.read(data, io.BytesIO(), len(data), None, debug=False)
        if library.damaged:
            raise _refusal(wheel, rule, "a library (ELF)", f"{name}: {library.damaged}")
        texts |= dict.fromkeys(values(data, library))
    matching = rule if rule.how != "needed" else rule.replace(match=rule.what)
    return WheelCell(text=_extract(matching, texts), members=tuple(read)) if texts else None


_READERS: Mapping[str, Callable[[Archive, Rule, Sequence[str]], WheelCell | None]] = {
    "assigned": _assigned,
    "json": _json,
    "text": _text,
    "names": _names,
    "archs": _archs,
    "needed": _needed,
    "wants": _wants,
    "compilers": _compilers,
}
_PATTERNS = ("text", "names", "needed", "compilers")


_NEEDED = ("package", "component", "of", "columns", "inside")
_OPTIONAL = ("since", "before", "channel", "line", "extends", "machines", "by-name")
_OF = ("builds", "releases")
# Digits of a sha256 that name a file.
_DIGITS = 16


def harvest(family: Family, context: HarvestContext) -> dict[str, Any]:
    """The facts about the contents of the wheels of a package. Raises ToolmatrixError."""
    fields = family.only(_NEEDED, _OPTIONAL)
    package, component = (fields[name].string(name) for name in ("package", "component"))
    wanted = rules(fields["inside"].sequence("rules"))
    urls = families.index_urls(context)
    since, before = (pieces.text(fields, name) for name in ("since", "before"))
    releases = project.between(project.releases(context.session, urls, package), since, before)
    machines = [node.string("a machine") for node in pieces.items(fields, "machines")] or MACHINES
    selected = [
        (release, machine, wheel)
        for release in releases
        for machine in machines
        if (wheel := _wheel(release, machine)) is not None
    ]
    read = families.run_parallel(
        lambda wheel: read_cells(RemoteWheel(context.session, wheel.url, wheel.sha256), wanted),
        [wheel for *_, wheel in selected],
        context.progress,
    )
    by_build = fields["of"].choice("of", _OF) == "builds"
    key = variants.name(component) if by_build else component
    source = f"pypi-{package}-contents"
    # Whatever its toolkit, where all builds of a release and machine are of this package.
    line = pieces.text(fields, "line", "*" if by_build else "")
    published = f"+{line}@{pieces.text(fields, 'channel', 'default')}"
    rows = [
        _row(family.name, key, published if by_build else "", *selection, cells)
        for selection, cells in zip(selected, read, strict=True)
        if cells
    ]
    columns = {
        name: families.plain_value(node)
        for name, node in fields["columns"].mapping("columns").items()
    }
    present = {column for row in rows for column in row}
    table = {
        "id": family.name,
        "about": family.about.splitlines()[0],
        "source": source,
        "evidence": "artifact",
        "key": key,
        **({"extends": True} if pieces.flag(fields, "extends") else {}),
        "columns": {name: meaning for name, meaning in columns.items() if name in present},
        "rows": rows,
    }
    ends = [releases[-1].version, releases[0].version] if releases else ["", ""]
    title = f"Python package index, {package}: members of its wheels, read by ranges"
    at = f"package {package}, final releases {ends[0]} to {ends[1]}, one wheel for each release and machine"
    return {
        "sources": {source: {"title": title, "at": at, "read": context.day.isoformat()}},
        "tables": [table],
    }


def _wheel(release: PublishedRelease, machine: str) -> Wheel | None:
    """The wheel of a machine for the newest Python."""
    # One is enough: wheels rarely differ between Pythons, and may have hundreds of MiB.
    fit = [
        (tag.major, tag.minor, wheel.name, wheel)
        for wheel in release.wheels
        for tag in wheel.serves
        if tag.machine == machine
    ]
    return max(fit, key=lambda candidate: candidate[:3])[3] if fit else None


def _row(
    table: str,
    key: str,
    published: str,
    release: PublishedRelease,
    machine: str,
    wheel: Wheel,
    cells: Mapping[str, WheelCell],
) -> dict[str, Any]:
    members = dict.fromkeys(name for cell in cells.values() for name in cell.members)
    subject = f"{release.version}{published}/{machine}" if published else release.version
    digest = f", sha256 {wheel.sha256[:_DIGITS]}" if wheel.sha256 else ""
    return {
        "id": f"{table}/{release.version}-{machine}",
        key: subject,
        **({} if published else {"machine": machine}),
        **dict(_cells(cells)),
        "where": f"{wheel.name}{digest}: " + ", ".join([*members][:_MOST_NAMED]),
    }


# Members that a row names.
_MOST_NAMED = 4


def _cells(cells: Mapping[str, WheelCell]) -> Iterator[tuple[str, Any]]:
    for name, cell in cells.items():
        # A partial list of archs must not refuse devices that the rest is for.
        yield name, {"is": cell.text, "at-least": True} if cell.partly else cell.text
