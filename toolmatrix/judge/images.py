"""An inventory of an image checked against expectations: one verdict for each, in their order.

Only what a user gets who just calls a program or imports a package counts; other versions present are reported.
A witness that is coarser than what is wanted does not decide, and what could not be seen is a skip with its reason.
"""

from __future__ import annotations

import re

from toolmatrix.finding import FAIL, PASS, SKIP, UNKNOWN, Verdict
from toolmatrix.images.platforms import architecture
from toolmatrix.inventory import python, secrets
from toolmatrix.inventory.model import DEFAULT_PLACE, DRIVER, RAN, RUNNING, WHICH, Seen
from toolmatrix.judge import evidence
from toolmatrix.judge.expectations import BASE, COMPONENTS, DIGEST, Expectation
from toolmatrix.judge.precision import admits, compared
from toolmatrix.logs import signatures
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.inventory.model import Inventory, Soname

EFFECTS = {"-fsigned-char": ("char", "signed"), "-funsigned-char": ("char", "unsigned")}
"""What a flag does that debug information shows: a feature, and the value that the flag gives it (GCC manual)."""
# Features that name a component no file can name.
_WITNESSES = {"base-image": "label:" + BASE}

_SETTLE = (
    "a finer witness settles it, such as the package's own record or `--expect` with fewer numbers"
)


_SONAME = re.compile(r"(?P<stem>.+)\.so\.(?P<major>[\w.]+)|(?P<old>.+)-(?P<number>[\d.]+)\.so")
_ASK = "let it be run: as `docker:NAME`, without `--no-run`"


class Subject(Value):
    """An inventory to be judged, with the matrix in force."""

    inventory: Inventory
    index: Index

    def made_by(self, seen: Seen) -> str:
        """The instruction that made the layer of a sighting, as far as history tells."""
        return dict(self.inventory.history).get(seen.layer, "") if seen.layer else ""

    def skipped(self, *names: str) -> str:
        """The reason why something could not be seen; empty where nothing was skipped."""
        return next((one.reason for one in self.inventory.skipped if one.what in names), "")

    def sightings(self, name: str) -> tuple[Seen, ...]:
        """The sightings of a component, the best witness first.

        A label speaks of the last stage alone, which may start from another image than the one that builds.
        """
        found = tuple(self.inventory.components.get(name, ()))
        listed = self.listed()
        witness = _WITNESSES.get(name, "") if not listed or name in listed else ""
        return found or tuple(self.inventory.features.get(witness, ()))

    def hidden(self, name: str, seen: Iterable[Seen]) -> str:
        """The reason why nobody can tell which of the sightings a user gets; empty where one of them is the default."""
        witnesses = {one.seen_by for one in seen if not one.default}
        if any(one.default for one in seen):
            return ""
        by_python = self.skipped(f"{WHICH}python") if witnesses & {*python.RECORDS} else ""
        return self.skipped(f"{WHICH}{name}") or by_python

    def listed(self) -> tuple[str, ...]:
        """The components that the image says it holds, nothing where it does not say."""
        labels = self.inventory.features.get("label:" + COMPONENTS, ())
        return tuple(labels[0].version.split()) if labels else ()


def judge(inventory: Inventory, expectations: Iterable[Expectation], index: Index) -> list[Verdict]:
    """The verdicts, with one more for each component that answers otherwise when run than when read, or not at all."""
    subject = Subject(inventory=inventory, index=index)
    found: list[Verdict] = []
    for expectation in expectations:
        found += _JUDGES[expectation.kind](subject, expectation)
    return [*found, *_differing(subject), *_silent(subject), *evidence.warnings(inventory)]


def _component(subject: Subject, expectation: Expectation) -> Iterator[Verdict]:
    seen = subject.sightings(expectation.name)
    if not seen:
        yield _absent(subject, expectation)
        return
    hidden = subject.hidden(expectation.name, seen)
    if hidden:
        yield expectation.verdict(UNKNOWN, reason=hidden, help=_ASK, others=seen)
        return
    defaults = [one for one in seen if one.default] or [seen[0]]
    decided = defaults[0]
    word, reason = compared(subject.index, expectation, decided)
    # A sighting with fewer numbers gives way to one of the same version with more.
    if word == UNKNOWN:
        for finer in seen:
            if finer is not decided and admits(f"=={decided.version}", finer.version):
                again = compared(subject.index, expectation, finer)
                if again[0] != UNKNOWN:
                    decided, (word, reason) = finer, again
                    break
    yield _seen(
        subject,
        expectation,
        word,
        decided,
        "TM401",
        reason=reason,
        help=_SETTLE if word == UNKNOWN else "",
        others=_besides(seen, decided),
    )


def _absent(subject: Subject, expectation: Expectation) -> Verdict:
    reason = subject.skipped(expectation.name, f"{WHICH}{expectation.name}")
    listed = subject.listed()
    if not reason and listed and expectation.name not in listed:
        reason = "the image does not say that it holds it"
    excused = expectation.excused if expectation.name not in listed else ""
    if reason or excused or expectation.name in _WITNESSES:
        return expectation.verdict(
            SKIP,
            reason=reason or excused or "nothing in the image names it",
        )
    return expectation.verdict(FAIL, "TM402", help=f"install {expectation.name} in the image")


def _besides(seen: Sequence[Seen], decided: Seen) -> tuple[Seen, ...]:
    """The other versions present, each where it was first seen."""
    found: dict[str, Seen] = {}
    for one in seen:
        if one.version != decided.version:
            found.setdefault(one.version, one)
    return tuple(found.values())


def _differing(subject: Subject) -> Iterator[Verdict]:
    """Components of which running tells another version than reading."""
    for name, seen in subject.inventory.components.items():
        ran = next((one for one in seen if one.seen_by == RAN), None)
        read = next((one for one in seen if one.seen_by != RAN and one.default), None)
        if ran and read and not _agree(ran.version, read.version):
            yield _seen(
                subject,
                Expectation(kind="component", name=name, wanted=f"=={read.version}"),
                FAIL,
                ran,
                "TM409",
                reason=f"reading {read.where} gives {read.version}",
                help=_BETWEEN,
                others=(read,),
            )


_BETWEEN = "look for a wrapper, an earlier directory of PATH, or a variable such as PYTHONPATH or LD_PRELOAD"


def _silent(subject: Subject) -> Iterator[Verdict]:
    """Components that were read and did not answer when they were run: nobody can say that both agree."""
    for one in subject.inventory.skipped:
        if one.what.startswith(RUNNING):
            name = one.what.removeprefix(RUNNING)
            expectation = Expectation(kind="component", name=name)
            yield expectation.verdict(SKIP, reason=one.reason)


def _agree(one: str, other: str) -> bool:
    """True if two versions are the same, or one begins the other."""
    return admits(f"=={one}", other) or admits(f"=={other}", one)


def _arch(subject: Subject, expectation: Expectation) -> Iterator[Verdict]:
    """Every witness of the platform must agree: configuration, index, files, and each where it is taken unasked."""
    inventory = subject.inventory
    said = Seen(version=inventory.platform, seen_by="configuration", where="platform")
    foreign = inventory.features.get("foreign-arch", ())
    # A file for another processor does no harm where nothing starts it by itself, such as the payload of an installer.
    taken = (one for one in foreign if one.seen_by == DEFAULT_PLACE)
    seen = [one for one in (said, *inventory.features.get("arch", ()), *taken) if one.version]
    if not seen:
        reason = subject.skipped("arch", "platform") or "nothing tells the architecture"
        yield expectation.verdict(SKIP, reason=reason)
        return
    wanted = architecture(expectation.wanted)
    agreeing = tuple(one for one in seen if architecture(one.version) == wanted)[:1]
    odd = next((one for one in seen if architecture(one.version) != wanted), None)
    if odd is None:
        yield _seen(subject, expectation, PASS, seen[0])
        return
    help = _FOREIGN if odd.seen_by == DEFAULT_PLACE else _PLATFORM
    yield _seen(subject, expectation, FAIL, odd, "TM403", help=help, others=agreeing)


_PLATFORM = "build it with `--platform`, or take the image of that platform from the index"
_FOREIGN = "take the file of the right platform, or keep it where nothing runs or loads it"


def _flag(subject: Subject, expectation: Expectation) -> Iterator[Verdict]:
    """A flag is there where a command line, the configuration or a file carries it, or its effect is seen.

    A variable that should carry it and is set to something else says more than what some file was compiled with.
    """
    features = subject.inventory.features
    seen = features.get("flag:" + expectation.name, ())
    places = {one.where for one in seen}
    # A variable decides before any file: it is what the next compilation gets.
    for name in expectation.variables:
        for one in features.get("env:" + name, ()):
            if one.where not in places:
                yield _seen(subject, expectation, FAIL, one, "TM404", help=_FLAGS)
                return
    if seen:
        yield _seen(subject, expectation, PASS, seen[0].replace(version=expectation.name))
        return
    feature, value = EFFECTS.get(expectation.name, ("", ""))
    effect = features.get(feature, ())
    if effect:
        word = PASS if effect[0].version == value else FAIL
        yield _seen(subject, expectation, word, effect[0], "TM404", help=_FLAGS)
        return
    reason = subject.skipped("flags", "flag:" + expectation.name)
    if reason:
        yield expectation.verdict(SKIP, reason=reason)
    elif any(name.startswith(("flag:", "env:")) for name in features):
        yield expectation.verdict(FAIL, "TM404", reason="nothing carries it", help=_FLAGS)
    else:
        reason = "neither flags nor settings were recorded"
        yield expectation.verdict(UNKNOWN, reason=reason, help=_RECORD)


_FLAGS = "set it in CFLAGS and CXXFLAGS of the image, as a rendered Dockerfile does"
_RECORD = "compile with -frecord-gcc-switches or -g, and a file tells its own flags"


def _codegen(subject: Subject, expectation: Expectation) -> Iterator[Verdict]:
    seen = subject.inventory.features.get("codegen", ())
    hit = next((one for one in seen if one.version == expectation.name), None)
    if hit:
        yield _seen(subject, expectation, PASS, hit)
    elif seen:
        held = seen[0].replace(version=", ".join(sorted({one.version for one in seen})))
        help = "compile for it, or take libraries that hold code for it"
        yield _seen(subject, expectation, FAIL, held, "TM408", help=help)
    else:
        reason = subject.skipped("codegen") or expectation.excused or "no device code was seen"
        yield expectation.verdict(SKIP, reason=reason)


def _property(subject: Subject, expectation: Expectation) -> Iterator[Verdict]:
    """A label, a variable or another feature: that it is there, and its value where one is wanted."""
    kind = expectation.kind
    key = expectation.name if kind == "feature" else f"{kind}:{expectation.name}"
    code = "TM407" if kind == "label" else "TM410"
    seen = subject.inventory.features.get(key, ())
    if not seen:
        reason = subject.skipped(key, kind)
        if key == "char":
            yield expectation.verdict(UNKNOWN, reason=reason or _NO_CHAR, help=_RECORD)
        elif reason:
            yield expectation.verdict(SKIP, reason=reason)
        else:
            yield expectation.verdict(
                FAIL, code, reason=f"there is no such {kind}", help=_SET[kind]
            )
        return
    # Secrets are masked when an image is observed: what is left says nothing about the value.
    if expectation.wanted and secrets.MASK in seen[0].version:
        yield expectation.verdict(
            UNKNOWN,
            reason="it holds a secret, which is compared with nothing",
        )
        return
    wrong = seen[0].version != expectation.wanted if expectation.wanted else seen[0].version in _NO
    if wrong:
        help = _FLAGS if key == "char" else _SET[kind]
        yield _seen(subject, expectation, FAIL, seen[0], code, help=help)
    else:
        yield _seen(subject, expectation, PASS, seen[0])


_NO_CHAR = "neither debug information nor a compiler tells it"
_NO = ("no", "false", "absent")
_SET = {
    "label": "build from the Dockerfile that `toolmatrix render` writes; `--only` checks the rest of another image",
    "env": "set it in the image with ENV",
    "feature": "compile for a processor that has it",
}


def _lock(subject: Subject, expectation: Expectation) -> Iterator[Verdict]:
    """The lock inside the image, where there is one; what its label says as well is left to the label."""
    features = subject.inventory.features
    label = [one.version for one in features.get("label:" + DIGEST, ())]
    for one in features.get("lock", ()):
        if one.version == expectation.wanted:
            yield _seen(subject, expectation, PASS, one)
        # The label is checked by itself; one fault is one failure.
        elif one.version not in label:
            yield _seen(subject, expectation, FAIL, one, "TM411")


def _soname(subject: Subject, expectation: Expectation) -> Iterator[Verdict]:
    """One library by its soname; `*` stands for every one that a file needs."""
    held = subject.inventory.sonames
    if expectation.name != "*":
        mine = [one for one in held if one.name == expectation.name]
        there = subject.inventory.features.get("soname:" + expectation.name, ())
        if there:
            yield _seen(subject, expectation, PASS, there[0])
        elif mine or held:
            yield _loaded(subject, expectation, mine[0] if mine else None)
        else:
            yield _unseen_sonames(subject, expectation)
        return
    if not held:
        yield _unseen_sonames(subject, expectation.replace(name="sonames"))
        return
    bad = [one for one in held if not one.found]
    for one in bad:
        yield _loaded(subject, Expectation(kind="soname", name=one.name), one)
    good = len(held) - len(bad)
    if good:
        yield Expectation(kind="soname", name="sonames").verdict(PASS, found=f"{good} found")


def _unseen_sonames(subject: Subject, expectation: Expectation) -> Verdict:
    reason = subject.skipped("sonames", "soname") or "no file that needs libraries was read"
    return expectation.verdict(SKIP, reason=reason)


def _loaded(subject: Subject, expectation: Expectation, one: Soname | None) -> Verdict:
    """The verdict of the loader on one soname."""
    if one and one.found:
        return expectation.verdict(PASS, found=one.found)
    by = f"needed by {one.needed_by[0]}" if one and one.needed_by else "nothing brings it"
    # The container runtime mounts the libraries of the driver when it starts a container with GPUs.
    if expectation.name.startswith(DRIVER):
        return expectation.verdict(SKIP, reason="the driver of the host brings it")
    package = provider(subject.inventory, expectation.name)
    if one and one.others:
        others = ", ".join(one.others)
        help = f"{others} is of another major: take what was built for it, or install {package}"
        return expectation.verdict(FAIL, "TM406", found=others, reason=by, help=help)
    return expectation.verdict(FAIL, "TM405", reason=by, help=f"install {package}")


def _seen(
    subject: Subject,
    expectation: Expectation,
    word: str,
    seen: Seen,
    code: str = "",
    *,
    reason: str = "",
    help: str = "",
    others: tuple[Seen, ...] = (),
) -> Verdict:
    """A verdict by a sighting, with the instruction that brought it; what is wrong is corrected where it came in."""
    made_by = subject.made_by(seen)
    if word == FAIL and not help:
        came = f"`{made_by}`" if made_by else seen.layer and f"layer {seen.layer}"
        help = f"{seen.version} came in with {came}" if came else f"correct {_place(seen)}"
    return expectation.verdict(
        word, code, seen, reason=reason, help=help, made_by=made_by, others=others
    )


def _place(seen: Seen) -> str:
    """The thing to correct: a file, or what a command starts."""
    return f"what `{seen.where}` starts" if seen.seen_by == RAN else seen.where


def provider(inventory: Inventory, soname: str) -> str:
    """The package that provides a soname, in the words of the image's package manager as far as that is known.

    The vendors' packages are the table `parts` of matrix/signatures.yaml. Of distributions, rpm and apk find packages
    by soname, and Debian names them after it.
    """
    if soname.startswith("/"):
        return f"a build of it for the C library of this image, or what has {soname}"
    part = signatures.part(signatures.parts(), soname)
    found = [part.providers(soname)] if part is not None else []
    managers = {name.partition(":")[0] for name in inventory.features}
    if "rpm" in managers:
        found.append(f"`dnf install '{soname}()(64bit)'`")
    elif "apk" in managers:
        found.append(f"`apk add so:{soname}`")
    elif "dpkg" in managers and not found and (package := debian_package(soname)):
        found.append(
            f"{package} of the distribution, if it is called so: `apt-file search {soname}`"
        )
    return ", or ".join(found) or f"the package that brings {soname}"


def debian_package(soname: str) -> str:
    """The name of Debian's package of a soname, by its policy, section 8.1; empty for a name that is not a soname."""
    found = _SONAME.fullmatch(soname)
    if found is None:
        return ""
    stem, number = found["stem"] or found["old"], found["major"] or found["number"]
    dash = "-" if found["old"] or stem[-1].isdigit() else ""
    return f"{stem}{dash}{number}".lower().replace("_", "-")


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
