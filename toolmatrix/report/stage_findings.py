"""Findings about plans in words, and which devices run what a plan makes."""

from __future__ import annotations

from toolmatrix.finding import SEVERITIES
from toolmatrix.report import claims, terminal
from toolmatrix.report.findings import place, reasons

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import Any

    from toolmatrix.facts.index import Index
    from toolmatrix.finding import Finding
    from toolmatrix.report.terminal import Terminal

DEVICES = ("TM220", "TM221", "TM222", "TM223")
_ANSWERS = {"TM220": "no", "TM221": "yes", "TM222": "yes", "TM223": "unknown"}
_COLOURS = {"error": "error", "warning": "partial", "info": "unknown"}


def document(index: Index, findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """The findings as JSON values, in the shape of `toolmatrix.findings/1` with `plan` and `stage`."""
    return [
        {
            "code": finding.code,
            "severity": finding.severity,
            "plan": finding.plan,
            "stage": finding.stage,
            "component": finding.component or None,
            "releases": list(finding.releases),
            "ways": [],
            "names": list(finding.names),
            "expected": finding.expected or None,
            "actual": finding.actual or None,
            "where": place(finding.where),
            "text": what(index, finding),
            "because": reasons(index, finding),
            "help": help_of(finding),
            "facts": list(finding.facts),
        }
        for finding in findings
    ]


def text(index: Index, findings: Sequence[Finding], screen: Terminal) -> str:
    """Everything in words: what is worst first, then the devices, then the sources; empty where nothing was found."""
    notes = claims.Notes(index)
    judged = sorted(
        (finding for finding in findings if finding.code not in DEVICES),
        key=lambda one: (SEVERITIES.index(one.severity), one.plan or 0, one.code),
    )
    lines = [line for finding in judged for line in _lines(index, finding, notes, screen)]
    devices = _devices(index, findings, notes, screen)
    if devices:
        lines += [*([""] if lines else []), *devices]
    if notes.numbers:
        lines += ["", *notes.lines(screen.width)]
    return "".join(line + "\n" for line in lines)


def _lines(index: Index, finding: Finding, notes: claims.Notes, screen: Terminal) -> Iterator[str]:
    head = screen.style(f"{finding.severity}[{finding.code}]", _COLOURS[finding.severity])
    yield from terminal.wrap(
        f"{head}: {what(index, finding)}{_marks(index, finding, notes)}",
        screen.width,
        indent="  ",
        first="",
    )
    if finding.where is not None:
        stage = "" if finding.stage is None else f" (stage {finding.stage + 1})"
        yield f"  --> {finding.where}{stage}"
    if help_of(finding):
        yield from terminal.wrap(
            f"help: {help_of(finding)}", screen.width, indent="        ", first="  "
        )


def _marks(index: Index, finding: Finding, notes: claims.Notes) -> str:
    """How well the facts behind a finding are known, and the numbers of their sources."""
    from toolmatrix.facts import evidence as words

    ids = index.ids
    records = [index.record(ids[name]) for name in finding.facts if name in ids]
    if not records:
        return ""
    worst = records[0].evidence
    for record in records:
        worst = words.weaker(worst, record.evidence)
    return f" ({worst}) {notes.mark(record.source for record in records)}"


# devices


def _devices(
    index: Index, findings: Sequence[Finding], notes: claims.Notes, screen: Terminal
) -> list[str]:
    """A paragraph for each device, with what several plans say where there are any; the last line carries the point."""
    held = [finding for finding in findings if finding.code in DEVICES]
    lines: list[str] = []
    decided: list[Finding] = []
    longest = max((len(finding.names[0]) for finding in held), default=0)
    for device in dict.fromkeys(finding.names[0] for finding in held):
        mine = [one for one in held if one.names[0] == device]
        total = next((one for one in mine if one.plan is None), None)
        decided.append(total or mine[0])
        answer = _ANSWERS[decided[-1].code]
        head = f"device {device:<{longest}}  {terminal.pad(screen.style(answer, answer), 9)}"
        blank = " " * len(terminal.visible(head))
        for sentence in _told(index, total, [one for one in mine if one is not total], notes):
            lines += terminal.wrap(sentence, screen.width, indent=blank, first=head)
            head = blank
    return [*lines, "", _closing(decided)] if decided else []


def _told(
    index: Index, total: Finding | None, own: Sequence[Finding], notes: claims.Notes
) -> Iterator[str]:
    """What is said of one device: of all plans, then of each, those that say the same together."""
    if total:
        yield what(index, total)
    same: dict[str, list[str]] = {}
    for one in own:
        sentence = what(index, one) + _marks(index, one, notes)
        same.setdefault(sentence, []).append(str((one.plan or 0) + 1))
    for sentence, numbers in same.items():
        several = "s" * (len(numbers) > 1)
        where = f"invocation{several} {terminal.listing(numbers)}: " if total else ""
        yield where + sentence


def _closing(decided: Sequence[Finding]) -> str:
    named: dict[str, list[str]] = {}
    for finding in decided:
        named.setdefault(_ANSWERS[finding.code], []).append(finding.names[0])
    words = (("yes", "runs on"), ("no", "not on"), ("unknown", "not known for"))
    return ", ".join(
        f"{verb} {terminal.listing(named[answer])}" for answer, verb in words if answer in named
    )


# sentences


def what(index: Index, finding: Finding) -> str:
    """A finding in one sentence."""
    return _SENTENCES[finding.code](index, finding)


def help_of(finding: Finding) -> str:
    """What to do next."""
    made = _HELP[finding.code]
    return made if isinstance(made, str) else made(finding)


def _tool(finding: Finding) -> str:
    """The toolkit of a finding: `cuda 13.0.1`, or its component where no release is known."""
    named = " to ".join(finding.releases[:1] + finding.releases[-1:] * (len(finding.releases) > 1))
    return f"{finding.component} {named}" if named else "this toolkit"


def _listed(names: Sequence[str]) -> str:
    return terminal.listing([f"`{name}`" for name in names])


def _refused(_: Index, finding: Finding) -> str:
    arch, standing, first, last, rocm = finding.names
    said = f"{_tool(finding)} does not take the arch `{arch}`"
    if standing == "unknown":
        return f"{said}, and nobody knows it"
    if rocm:
        return f"{said}; code for it needs rocm {rocm}"
    told = {
        "dropped": f" any more: nvcc {last} was the last that did",
        "new": f" yet: nvcc {first} was the first",
    }
    return said + told.get(standing, f"; nvcc {first} to {last} did" if first else "")


def _unasked(_: Index, finding: Finding) -> str:
    arch, how = finding.names
    said = {
        "native": "`-arch=native` found no GPU, so the code is made for the default",
        "silent": "no arch was asked for, so the code is made for the default",
        "perhaps": "the only arch is the default of this toolkit: was it asked for?",
    }[how]
    return f"{said} (`{arch}`)" if how == "perhaps" else f"{said}, `{arch}`"


def _covered(_: Index, finding: Finding) -> str:
    pairs = zip(finding.names[::2], finding.names[1::2], strict=True)
    return "code that may be left out, for its devices run other code that is here: " + ", ".join(
        f"`{arch}` (`{other}`)" for arch, other in pairs
    )


def _host(_: Index, finding: Finding) -> str:
    compiler, version, how = finding.names
    named = f"{compiler} {version} as host compiler"
    if how == "disputed":
        return f"sources disagree whether {_tool(finding)} takes {named}"
    tail = "; the check is switched off" if how else ""
    return f"{_tool(finding)} does not take {named}, only {finding.expected}{tail}"


def _leak(_: Index, finding: Finding) -> str:
    name, *foreign = finding.names
    if not foreign:
        return f"`{name}` is set: nvcc adds {finding.actual} to its command line"
    return f"the variable `{name}` of the caller adds {_listed(foreign)} to the commands"


def _idle(_: Index, finding: Finding) -> str:
    count = len(finding.actual.split())
    verb = "writes" if count == 1 else "write"
    return f"{terminal.plural(count, 'stage')} ({terminal.listing(finding.names)}) {verb} what nobody reads"


def _half(_: Index, finding: Finding) -> str:
    if finding.names == ("compile",):
        return (
            "device code is compiled for link-time optimization, and the device link does without"
        )
    return "the device link asks for link-time optimization, and nothing is compiled for it"


def _kind_of(path: str) -> str:
    """What a file that a driver is given is, by its name."""
    return next((kind for kind, ends in _INPUTS.items() if path.endswith(ends)), "source")


_INPUTS = {
    "object": (".o", ".obj"),
    "library": (".a", ".lib", ".so"),
    "device code": (".ptx", ".cubin", ".fatbin", ".bc"),
}

_WHY = {
    "major": "is for another major version",
    "minor": "is for a higher minor version",
    "newer": "is PTX for a newer device",
    "own": "is tied to one device",
    "family": "is tied to one family of devices",
    "tegra": "does not go between Tegra and other devices",
    "other": "is for another device",
    "features": "wants other features of the device",
    "link": "is intermediate code for a link",
    "tile": "is tile intermediate, of which nothing is known here",
    "optix": "is for OptiX alone",
    "unknown": "is in no table",
    "device": "is a device that nobody knows",
    "outside": "is not made here",
}


def _runs_not(_: Index, finding: Finding) -> str:
    return _counted(finding) or f"no code for it: {_reasons(finding)}"


def _cannot_say(_: Index, finding: Finding) -> str:
    return _counted(finding) or f"nobody can say: {_reasons(finding)}"


def _by_ptx(_: Index, finding: Finding) -> str:
    if finding.plan is None:
        return _counted(finding)
    image, driver = finding.names[1:]
    series = ".".join(finding.releases[0].split(".")[:2]) if finding.releases else ""
    of = f"{finding.component} {series}" if series else "this toolkit"
    came = f", with which {driver} came" if driver else ""
    return (
        f"by PTX `{image}`, which the driver compiles when it is loaded: "
        f"it needs a driver of {of} or later{came}{_later(finding)}"
    )


def _by_code(_: Index, finding: Finding) -> str:
    if finding.plan is None:
        return _counted(finding)
    device, image = finding.names
    features = "" if ":" in device or ":" not in image else ", where it has these features"
    return f"by the code for `{image}`{features}{_later(finding)}"


def _later(finding: Finding) -> str:
    return ", once a device link has taken it" if finding.expected else ""


def _counted(finding: Finding) -> str:
    if finding.plan is not None:
        return ""
    _, count, runs = finding.names
    if count == "0":
        return "nothing here holds code that a device could load"
    return f"{runs} of {terminal.plural(int(count), 'invocation')} with device code run on it"


def _reasons(finding: Finding) -> str:
    """Why not, images with one reason together."""
    by_reason: dict[str, list[str]] = {}
    for image, why in zip(finding.names[1::2], finding.names[2::2], strict=True):
        by_reason.setdefault(why, []).append(image)
    return "; ".join(
        f"{_listed(images)} {_agree(_WHY[why], images)}" for why, images in by_reason.items()
    )


_PLURAL = {"is": "are", "does": "do", "wants": "want"}


def _agree(words: str, several: Sequence[str]) -> str:
    """What is said of one thing, said of several."""
    verb, _, rest = words.partition(" ")
    return words if len(several) == 1 else f"{_PLURAL[verb]} {rest}"


_SENTENCES: Mapping[str, Callable[[Index, Finding], str]] = {
    "TM201": _refused,
    "TM202": lambda _, one: f"{_tool(one)} will drop {_listed(one.names)}",
    "TM203": _unasked,
    "TM204": lambda _, one: (
        f"no PTX beside {_listed(one.names)}: no device of a later major version runs this code"
    ),
    "TM205": lambda _, one: (
        f"the newest PTX is `{one.names[0]}`, older than the cubin for `{one.names[1]}`"
    ),
    "TM206": lambda _, one: f"the only PTX is {_listed(one.names)}, which no later device runs",
    "TM207": lambda _, one: f"the same arch more than once: {_listed(one.names)}",
    "TM208": _covered,
    "TM209": lambda _, one: (
        f"PTX for every arch ({_listed(one.names)}), where `{one.expected}` alone would do"
    ),
    "TM210": _host,
    "TM211": lambda _, one: f"the program `{one.names[0]}` is not found",
    "TM212": lambda _, one: f"the {_kind_of(one.names[0])} `{one.names[0]}` is not there",
    "TM213": _leak,
    "TM214": lambda _, one: f"the shell expands `{one.names[0]}` before the program sees it",
    "TM215": lambda *_: "`-G` switches off `-lineinfo`",
    "TM216": lambda *_: "relocatable device code is linked without a device link",
    "TM217": _half,
    "TM218": _idle,
    "TM220": _runs_not,
    "TM221": _by_ptx,
    "TM222": _by_code,
    "TM223": _cannot_say,
}


def _help_refused(finding: Finding) -> str:
    _, standing, first, last, _ = finding.names
    if standing == "dropped" and last:
        return f"leave the arch out, or take a toolkit that has nvcc {last}"
    if standing == "new" and first:
        return f"take a toolkit that has nvcc {first}, or PTX of an arch that this one takes"
    return "take an arch that the toolkit takes"


def _help_host(finding: Finding) -> str:
    option = "--allow-unsupported-compiler" if finding.names[2] == "" else ""
    other = f", or switch the check off with `{option}`" if option else ""
    return f"name another with `-ccbin` ({finding.expected}){other}"


def _help_leak(finding: Finding) -> str:
    return "" if len(finding.names) == 1 else f"unset `{finding.names[0]}` before nvcc is called"


def _ptx_option(arch: str) -> str:
    """The option that adds PTX which later devices run too: that of `a` and `f` archs goes nowhere else."""
    number = arch.rpartition("_")[2].rstrip("af")
    return f"`-gencode arch=compute_{number},code=compute_{number}`"


_HELP: Mapping[str, str | Callable[[Finding], str]] = {
    "TM201": _help_refused,
    "TM202": "leave it out, or keep PTX of it for old devices as long as the toolkit takes it",
    "TM203": "name the arch: `-arch=sm_NN` with nvcc, `--offload-arch=gfxNNN` with hipcc",
    "TM204": lambda one: f"add {_ptx_option(one.names[-1])}",
    "TM205": lambda one: f"add {_ptx_option(one.names[1])}",
    "TM206": lambda one: f"add {_ptx_option(one.names[-1])}",
    "TM207": "name each arch once",
    "TM208": "leave the later ones out to save time and size, or keep them for code tuned to each device",
    "TM209": lambda one: f"keep the PTX of `{one.expected}` alone",
    "TM210": _help_host,
    "TM211": "install it, or put its directory on PATH",
    "TM212": "look at the name and the working directory",
    "TM213": _help_leak,
    "TM214": "take the name or value without `$` and backquote; nvcc cannot quote it",
    "TM215": "take one of the two",
    "TM216": "link with nvcc and without `-nodlink`, or with `-fgpu-rdc --hip-link`",
    "TM217": "give `-dlto` to both halves",
    "TM218": "",
    "TM220": "make code for it, or keep PTX of an arch that is not newer",
    "TM221": "",
    "TM222": "",
    "TM223": "look at the objects themselves: `cuobjdump --list-elf --list-ptx`, `roc-obj-ls`",
}
