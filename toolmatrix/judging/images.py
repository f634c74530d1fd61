"""An inventory of an image checked against expectations: one verdict for each, in their order.

Only what a user gets who just calls a program or imports a package counts; other versions present are reported.
A witness that is coarser than what is wanted does not decide, and what could not be seen is a skip with its reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from toolmatrix.factbase.index import Index
from toolmatrix.finding import EVIDENCE, FAIL, PASS, SKIP, UNKNOWN, WARN, Verdict
from toolmatrix.inspection import python, secrets, toolkits
from toolmatrix.inspection.model import (
    BROKEN,
    BY_VARIABLE,
    CONTRADICTED,
    DEFAULT_PLACE,
    DRIVER,
    FOREIGN_PROGRAM,
    GONE,
    IMPORTED,
    NO_INTERPRETER,
    OLDER,
    OTHER_PYTHON,
    OTHER_SONAME,
    OWN_DRIVER,
    RAN,
    RUNNING,
    STUB,
    UNIMPORTED,
    UNKEPT,
    UNREACHED,
    WHICH,
    WHICH_PACKAGES,
    Inventory,
    Seen,
    Soname,
)
from toolmatrix.judging.expectations import (
    BASE,
    COMPONENTS,
    DIGEST,
    Expectation,
    admits,
    compared,
)
from toolmatrix.logs import signatures
from toolmatrix.processors import architecture
from toolmatrix.value import Value

EFFECTS = {"-fsigned-char": ("char", "signed"), "-funsigned-char": ("char", "unsigned")}
"""What a flag does that debug information shows: a feature, and the value that the flag gives it (GCC manual)."""
_ABSENT = re.compile(r"\bModuleNotFoundError\b")
# Features that name a component no file can name.
_WITNESSES = {"base-image": "label:" + BASE}
_SONAME = re.compile(r"(?P<stem>.+)\.so\.(?P<major>[\w.]+)|(?P<old>.+)-(?P<number>[\d.]+)\.so")
# Files that a warning names beside the first: a warning about a whole package would list thousands.
_MOST_OTHERS = 8
# Values of a feature that say that it is not there.
_NO = ("no", "false", "absent")
_FLAGS = "set it in CFLAGS and CXXFLAGS of the image, as a rendered Dockerfile does"
_RECORD = "compile with -frecord-gcc-switches or -g, which record the flags in each file"
_SET = {
    "label": "build from the Dockerfile that `toolmatrix render` writes; `--only` checks the rest of another image",
    "env": "set it in the image with ENV",
    "feature": "compile for a processor that has it",
}


class Subject(Value):
    """An inventory to be judged, with the matrix in force."""

    inventory: Inventory
    index: Index

    def skipped(self, *names: str) -> str:
        """The reason why something could not be seen; empty where nothing was skipped."""
        return next((entry.reason for entry in self.inventory.skipped if entry.what in names), "")

    def sightings(self, name: str) -> tuple[Seen, ...]:
        """The sightings of a component, the best witness first."""
        declared = self.declared()
        # A label is about the last stage alone, which may start from another image than the one that builds.
        witness = _WITNESSES.get(name, "") if not declared or name in declared else ""
        sightings = self.inventory.components.get(name)
        return tuple(sightings or self.inventory.features.get(witness, ()))

    def hidden(self, name: str, sightings: Iterable[Seen]) -> str:
        """The reason why it is unknown which of the sightings a user gets; empty where one of them is the default."""
        if any(sighting.default for sighting in sightings):
            return ""
        # A package of Python is had by the Python that a user gets.
        packaged = any(sighting.seen_by in python.RECORDS for sighting in sightings)
        by_python = self.skipped(f"{WHICH}python", WHICH_PACKAGES) if packaged else ""
        return self.skipped(f"{WHICH}{name}") or by_python

    def feature(self, kind: str, name: str) -> Seen | None:
        """The first sighting of a feature about a component."""
        return next(iter(self.inventory.features.get(f"{kind}:{name}", ())), None)

    def declared(self) -> tuple[str, ...]:
        """The components that the image says it holds, nothing where it does not say."""
        labels = self.inventory.features.get("label:" + COMPONENTS, ())
        return tuple(labels[0].version.split()) if labels else ()


def judge(inventory: Inventory, expectations: Iterable[Expectation], index: Index) -> list[Verdict]:
    """The verdicts, with one more for each component that answers otherwise when run than when read, or not at all."""
    subject = Subject(inventory=inventory, index=index)
    verdicts: list[Verdict] = []
    for expectation in expectations:
        verdicts += _JUDGES[expectation.kind](subject, expectation)
    verdicts += [*_compare_run_and_read(subject), *_unconfirmed(subject)]
    # One fault is reported once.
    failed = {check.name for check in verdicts if check.kind == "soname" and check.word == FAIL}
    verdicts += [warning for warning in _warnings(inventory) if warning.name not in failed]
    history = dict(inventory.history)
    return [_with_layer(verdict, history) for verdict in verdicts]


def _with_layer(verdict: Verdict, history: Mapping[str, str]) -> Verdict:
    """A verdict with the instruction that made its layer; what is wrong is corrected where it came in."""
    instruction = history.get(verdict.layer, "") if verdict.layer else ""
    help = verdict.help
    if verdict.word == FAIL and not help:
        came = f"`{instruction}`" if instruction else verdict.layer and f"layer {verdict.layer}"
        # What a program answers is corrected in what its command starts: the command may be a wrapper.
        ran = f"the program that `{verdict.where}` starts"
        source = ran if verdict.seen_by == RAN else verdict.where
        help = f"{verdict.found} came in with {came}" if came else f"correct {source}"
    return verdict.replace(made_by=instruction, help=help)


_RUN = "run it: use `docker:NAME`, without `--no-run`"


def _component(subject: Subject, expectation: Expectation) -> Iterator[Verdict]:
    sightings = subject.sightings(expectation.name)
    if not sightings:
        yield _absent(subject, expectation)
        return
    hidden = subject.hidden(expectation.name, sightings)
    if hidden:
        yield expectation.verdict(UNKNOWN, reason=hidden, help=_RUN, others=sightings)
        return
    disputed = _disputed(subject, expectation, sightings)
    if disputed is not None:
        yield disputed
        return
    decided = next((sighting for sighting in sightings if sighting.default), sightings[0])
    outcome, reason = compared(subject.index, expectation, decided)
    if outcome == FAIL and (chain := subject.feature(IMPORTED, expectation.name)):
        reason = chain.version
    # A sighting with fewer numbers gives way to one of the same version with more.
    if outcome == UNKNOWN:
        for finer in sightings:
            if finer is not decided and admits(f"=={decided.version}", finer.version):
                again = compared(subject.index, expectation, finer)
                if again[0] != UNKNOWN:
                    decided, (outcome, reason) = finer, again
                    break
    settle = "use more precise evidence, such as the package's own record, or `--expect` with fewer numbers"
    others: dict[str, Seen] = {}
    for sighting in sightings:
        if sighting.version != decided.version:
            others.setdefault(sighting.version, sighting)
    yield expectation.verdict(
        outcome,
        decided,
        "TM401",
        reason=reason,
        help=settle if outcome == UNKNOWN else "",
        others=others.values(),
    )


# Faults that no version makes good: their codes and what helps, by the beginning of features.
_FAULTS = {
    UNIMPORTED: (
        "TM420",
        "install it for the Python that the image starts, or put its directory on the import path",
    ),
    BROKEN: (
        "TM422",
        "install the package again, for the Python, processor and C library of this image",
    ),
    CONTRADICTED: (
        "TM421",
        "remove one of the two: install the package again, and keep other copies off the path",
    ),
}


def _disputed(
    subject: Subject, expectation: Expectation, sightings: Sequence[Seen]
) -> Verdict | None:
    """The verdict about a component that is not usable, or of which two defaults disagree; None for others."""
    for kind, (code, help) in _FAULTS.items():
        fault = subject.feature(kind, expectation.name)
        others = any(entry.default or entry.seen_by not in python.RECORDS for entry in sightings)
        if fault is None or (kind == UNIMPORTED and others):
            continue
        # Another version than the wanted one is what is wrong, whatever a second witness says.
        if kind == CONTRADICTED and subject.feature(IMPORTED, expectation.name):
            outcome = compared(subject.index, expectation, sightings[0])[0]
            if outcome == FAIL:
                continue
        sighting = fault.replace(version=sightings[0].version)
        return expectation.verdict(FAIL, sighting, code, reason=fault.version, help=help)
    # An answer of a program is compared with what was read by itself.
    read = [sighting for sighting in sightings if sighting.default and sighting.seen_by != RAN]
    outcomes = [compared(subject.index, expectation, sighting)[0] for sighting in read]
    if FAIL in outcomes[1:] and outcomes[0] != FAIL:
        odd = read[outcomes.index(FAIL)]
        reason = f"{odd.where} has {odd.version}, and {read[0].where} has {read[0].version}"
        help = "let all of them lead to one version"
        return expectation.verdict(FAIL, odd, "TM421", reason=reason, help=help, others=read[:1])
    return None


def _absent(subject: Subject, expectation: Expectation) -> Verdict:
    reason = subject.skipped(expectation.name, f"{WHICH}{expectation.name}")
    declared = subject.declared()
    # An image for running lists less than one for building from the same lock; what a user names must be there.
    optional = expectation.name not in declared and not expectation.required
    if not reason and expectation.evidence and declared and optional:
        reason = "the image does not declare it"
    excused = expectation.excused if optional else ""
    if reason or excused or expectation.name in _WITNESSES:
        why = reason or excused or "nothing in the image names it"
        return expectation.verdict(SKIP, reason=why)
    # Where Python finds packages that were not seen, nothing says that one is missing.
    name, index = expectation.name, subject.index
    known = index.packages().values()
    is_package = name in known or name not in index.header["components"]
    if is_package and (unseen := subject.skipped(WHICH_PACKAGES)):
        return expectation.verdict(UNKNOWN, reason=unseen, help=_RUN)
    help = f"install {name} in the image"
    return expectation.verdict(FAIL, code="TM402", help=help)


def _compare_run_and_read(subject: Subject) -> Iterator[Verdict]:
    for name, sightings in subject.inventory.components.items():
        ran = next((sighting for sighting in sightings if sighting.seen_by == RAN), None)
        others = (sighting for sighting in sightings if sighting.seen_by != RAN)
        read = next((sighting for sighting in others if sighting.default), None)
        if ran and read and not _agree(ran.version, read.version):
            check = Expectation(kind="component", name=name, wanted=f"=={read.version}")
            yield check.verdict(
                FAIL,
                ran,
                "TM409",
                reason=f"reading {read.where} gives {read.version}",
                help="look for a wrapper, an earlier directory of PATH, or a variable such as PYTHONPATH or LD_PRELOAD",
                others=(read,),
            )


def _unconfirmed(subject: Subject) -> Iterator[Verdict]:
    # Reading alone gave these a verdict; that running did not confirm it is said, and fails nothing: a container of
    # toolmatrix has no GPU and no network. A module that is not there is missing with them as well.
    for entry in subject.inventory.skipped:
        if entry.what.startswith(RUNNING):
            check = Expectation(kind="component", name=entry.what.removeprefix(RUNNING))
            is_absent = _ABSENT.search(entry.reason) is not None
            word, code = (FAIL, "TM409") if is_absent else (SKIP, "")
            help = "look at PATH and the import path of the image" if is_absent else ""
            yield check.verdict(word, code=code, reason=entry.reason, help=help)


def _agree(first: str, second: str) -> bool:
    # A version may be the coarser one on either side: a file may say `11.2` where the program says `11.2.152`.
    return admits(f"=={first}", second) or admits(f"=={second}", first)


def _arch(subject: Subject, expectation: Expectation) -> Iterator[Verdict]:
    # Every witness of the platform must agree: configuration, index, files, and each where it is taken unasked.
    inventory = subject.inventory
    configured = Seen(version=inventory.platform, seen_by="configuration", where="platform")
    foreign = inventory.features.get("foreign-arch", ())
    # A file for another processor does no harm where nothing starts it by itself, such as the payload of an installer.
    loaded = (sighting for sighting in foreign if sighting.seen_by == DEFAULT_PLACE)
    witnesses = (configured, *inventory.features.get("arch", ()), *loaded)
    sightings = [sighting for sighting in witnesses if sighting.version]
    if not sightings:
        reason = subject.skipped("arch", "platform") or "the architecture is unknown"
        yield expectation.verdict(SKIP, reason=reason)
        return
    wanted = architecture(expectation.wanted)
    agreeing = [arch for arch in sightings if architecture(arch.version) == wanted]
    odd = next((arch for arch in sightings if arch not in agreeing), None)
    if odd is None:
        yield expectation.verdict(PASS, sightings[0])
        return
    help = "build it with `--platform`, or use the image for that platform from the index"
    if odd.seen_by == DEFAULT_PLACE:
        help = "use the file for the right platform, or keep it where nothing runs or loads it"
    yield expectation.verdict(FAIL, odd, "TM403", help=help, others=agreeing[:1])


def _flag(subject: Subject, expectation: Expectation) -> Iterator[Verdict]:
    """A flag is there where a command line, the configuration or a file carries it, or its effect is seen."""
    features = subject.inventory.features
    sightings = features.get("flag:" + expectation.name, ())
    locations = {sighting.where for sighting in sightings}
    # A variable that should carry it and is set to something else says more than what some file was compiled with:
    # it is what the next compilation gets.
    for name in expectation.variables:
        for sighting in features.get("env:" + name, ()):
            if sighting.where not in locations:
                yield expectation.verdict(FAIL, sighting, "TM404", help=_FLAGS)
                return
    if sightings:
        yield expectation.verdict(PASS, sightings[0], found=expectation.name)
        return
    feature, value = EFFECTS.get(expectation.name, ("", ""))
    effect = features.get(feature, ())
    if effect:
        outcome = PASS if effect[0].version == value else FAIL
        yield expectation.verdict(outcome, effect[0], "TM404", help=_FLAGS)
        return
    reason = subject.skipped("flags", "flag:" + expectation.name)
    if reason:
        yield expectation.verdict(SKIP, reason=reason)
    elif any(name.startswith(("flag:", "env:")) for name in features):
        yield expectation.verdict(FAIL, code="TM404", reason="no file has it", help=_FLAGS)
    else:
        reason = "neither flags nor settings were recorded"
        yield expectation.verdict(UNKNOWN, reason=reason, help=_RECORD)


def _codegen(subject: Subject, expectation: Expectation) -> Iterator[Verdict]:
    sightings = subject.inventory.features.get("codegen", ())
    match = next((sighting for sighting in sightings if sighting.version == expectation.name), None)
    if match:
        yield expectation.verdict(PASS, match)
    elif sightings:
        archs = ", ".join(sorted({sighting.version for sighting in sightings}))
        help = "compile for it, or use libraries with code for it"
        yield expectation.verdict(FAIL, sightings[0], "TM408", found=archs, help=help)
    else:
        reason = subject.skipped("codegen") or expectation.excused or "no device code was seen"
        yield expectation.verdict(SKIP, reason=reason)


def _property(subject: Subject, expectation: Expectation) -> Iterator[Verdict]:
    # That it is there, and its value where one is wanted.
    kind = expectation.kind
    key = expectation.name if kind == "feature" else f"{kind}:{expectation.name}"
    code = "TM407" if kind == "label" else "TM410"
    sightings = subject.inventory.features.get(key, ())
    if not sightings:
        reason = subject.skipped(key, kind)
        if key == "char":
            nothing = "neither debug information nor a compiler shows it"
            yield expectation.verdict(UNKNOWN, reason=reason or nothing, help=_RECORD)
        elif reason:
            yield expectation.verdict(SKIP, reason=reason)
        else:
            reason = f"there is no such {kind}"
            yield expectation.verdict(FAIL, code=code, reason=reason, help=_SET[kind])
        return
    # Secrets are masked when an image is observed: what is left says nothing about the value.
    if expectation.wanted and secrets.MASK in sightings[0].version:
        reason = "it contains a secret, which is never compared"
        yield expectation.verdict(UNKNOWN, reason=reason)
        return
    actual = sightings[0].version
    wrong = actual != expectation.wanted if expectation.wanted else actual in _NO
    help = _FLAGS if key == "char" else _SET[kind]
    yield expectation.verdict(FAIL if wrong else PASS, sightings[0], code, help=help)


def _lock(subject: Subject, expectation: Expectation) -> Iterator[Verdict]:
    features = subject.inventory.features
    label = [sighting.version for sighting in features.get("label:" + DIGEST, ())]
    for sighting in features.get("lock", ()):
        if sighting.version == expectation.wanted:
            yield expectation.verdict(PASS, sighting)
        # The label is checked by itself; one fault is one failure.
        elif sighting.version not in label:
            yield expectation.verdict(FAIL, sighting, "TM411")


def _soname(subject: Subject, expectation: Expectation) -> Iterator[Verdict]:
    """One library by its soname; `*` is every one that a file needs."""
    sonames, name = subject.inventory.sonames, expectation.name
    there = subject.inventory.features.get("soname:" + name, ())
    check = expectation.replace(name="sonames") if name == "*" else expectation
    if there:
        yield check.verdict(PASS, there[0])
    elif not sonames:
        reason = subject.skipped("sonames", "soname") or "no file that needs libraries was found"
        yield check.verdict(SKIP, reason=reason)
    elif name != "*":
        named = (soname for soname in sonames if soname.name == name)
        yield _judge_soname(subject, check, next(named, None))
    else:
        bad = [soname for soname in sonames if not soname.found]
        for soname in bad:
            yield _judge_soname(subject, Expectation(kind="soname", name=soname.name), soname)
        yield from _wrong_libraries(subject)
        if len(bad) < len(sonames):
            yield check.verdict(PASS, found=f"{len(sonames) - len(bad)} found")


def _wrong_libraries(subject: Subject) -> Iterator[Verdict]:
    # Of other libraries, a link by another name may be on purpose: that is a warning.
    for feature, sightings in subject.inventory.features.items():
        kind, _, name = feature.partition(":")
        if kind in (STUB, OWN_DRIVER) or (kind == OTHER_SONAME and toolkits.component_of(name)):
            code, reason, help = _WARNINGS[kind]
            check = Expectation(kind="soname", name=name)
            yield check.verdict(FAIL, sightings[0], code, reason=reason, help=help)


def _judge_soname(subject: Subject, expectation: Expectation, soname: Soname | None) -> Verdict:
    if soname and soname.found:
        return expectation.verdict(PASS, found=soname.found)
    if away := subject.inventory.features.get(f"{UNREACHED}:{expectation.name}"):
        _, reason, help = _WARNINGS[UNREACHED]
        return expectation.verdict(FAIL, away[0], "TM405", reason=reason, help=help)
    by = "nothing provides it"
    if soname and soname.needed_by:
        by = f"needed by {soname.needed_by[0]}"
    # The container runtime mounts the libraries of the driver when it starts a container with GPUs.
    if expectation.name.startswith(DRIVER):
        return expectation.verdict(SKIP, reason="the driver of the host provides it")
    package = provider(subject.inventory, expectation.name)
    if soname and soname.others:
        others = ", ".join(soname.others)
        help = f"{others} has another major version: use a build for it, or install {package}"
        return expectation.verdict(FAIL, code="TM406", found=others, reason=by, help=help)
    return expectation.verdict(FAIL, code="TM405", reason=by, help=f"install {package}")


# By the beginning of features: the code of a warning, its reason and its help.
_WARNINGS = {
    FOREIGN_PROGRAM: (
        "TM412",
        "a program for another processor",
        "use the program for the platform of the image, or remove it",
    ),
    UNKEPT: (
        "TM413",
        "compiled without the flags in the variables of the image",
        "build it again with the flags, or remove the flags from the variables",
    ),
    GONE: (
        "TM414",
        "the files on its record are missing",
        "install the package again, or remove it with its package manager",
    ),
    BY_VARIABLE: (
        "TM415",
        "found only through LD_LIBRARY_PATH",
        "list its directory in /etc/ld.so.conf.d and run ldconfig: a process without the variable does not start",
    ),
    UNREACHED: (
        "TM417",
        "a program needs it, but its loader does not search there",
        "list its directory in /etc/ld.so.conf.d and run ldconfig, unless a script starts the program with a variable",
    ),
    OLDER: (
        "TM418",
        "a file needs symbol versions that it does not have",
        "use a build of the file for this system, or a base image as new as the one it was built on",
    ),
    STUB: (
        "TM424",
        "a stub of the driver, which the loader finds before the driver",
        "remove the directory of stubs from LD_LIBRARY_PATH and ld.so.conf: it is to link with, by LIBRARY_PATH",
    ),
    OWN_DRIVER: (
        "TM425",
        "a library of the driver in the image, which belongs to the machine",
        "remove it: the container runtime mounts the driver of the machine, and both must be of one version",
    ),
    OTHER_SONAME: (
        "TM426",
        "a library with another soname has this name",
        "install the library that the program is linked to, and remove the link or the copy of the other",
    ),
    OTHER_PYTHON: (
        "TM423",
        "another name of Python imports another version",
        "let `python` and `python3` start one interpreter, or install one version for both",
    ),
    NO_INTERPRETER: (
        "TM419",
        "a script on PATH needs it, but it is missing",
        "put it at the path in the script, or create the environment again in the directory that it has in the image",
    ),
    secrets.FEATURE: (
        "TM416",
        "a secret that everybody with the image can read",
        "revoke it, and build with `RUN --mount=type=secret`, which leaves nothing behind",
    ),
}
# Features whose values are warnings of their own: another package, another secret.
_EACH = (GONE, secrets.FEATURE)


def _warnings(inventory: Inventory) -> Iterator[Verdict]:
    # These break no promise. What is the same in many files is one warning.
    for kind, (code, reason, help) in _WARNINGS.items():
        for feature, several in inventory.features.items():
            name, _, about = feature.partition(":")
            if name == kind:
                alike: dict[str, list[Seen]] = {}
                for sighting in several:
                    alike.setdefault(sighting.version if kind in _EACH else "", []).append(sighting)
                check = Expectation(kind=EVIDENCE, name=about or name)
                for first, *others in alike.values():
                    more = others[:_MOST_OTHERS]
                    yield check.verdict(WARN, first, code, reason=reason, help=help, others=more)


def provider(inventory: Inventory, soname: str) -> str:
    """The package that provides a soname, in the words of the image's package manager as far as that is known."""
    if soname.startswith("/"):
        return f"a build of it for the C library of this image, or what has {soname}"
    # The vendors' packages are the table `parts` of matrix/signatures.yaml.
    library = signatures.provider_of(signatures.parts(), soname)
    providers = [library.providers(soname)] if library is not None else []
    # Of distributions, rpm and apk find packages by soname, and Debian names them after it.
    managers = {name.partition(":")[0] for name in inventory.features}
    if "rpm" in managers:
        providers.append(f"`dnf install '{soname}()(64bit)'`")
    elif "apk" in managers:
        providers.append(f"`apk add so:{soname}`")
    elif "dpkg" in managers and not providers and (package := debian_package(soname)):
        providers.append(
            f"{package} of the distribution; to check the name: `apt-file search {soname}`"
        )
    return ", or ".join(providers) or f"the package that provides {soname}"


def debian_package(soname: str) -> str:
    """The name of Debian's package of a soname, by its policy, section 8.1; empty for a name that is not a soname."""
    match = _SONAME.fullmatch(soname)
    if match is None:
        return ""
    stem, version = match["stem"] or match["old"], match["major"] or match["number"]
    dash = "-" if match["old"] or stem[-1].isdigit() else ""
    return f"{stem}{dash}{version}".lower().replace("_", "-")


_JUDGES: dict[str, Callable[[Subject, Expectation], Iterator[Verdict]]] = {
    "component": _component,
    "arch": _arch,
    "flag": _flag,
    "codegen": _codegen,
    "env": _property,
    "label": _property,
    "lock": _lock,
    "feature": _property,
    "soname": _soname,
}
