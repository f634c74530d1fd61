"""Names as users write them: components, releases, builds, devices and archs, checked against what the matrix knows.

Raises UsageError for what cannot be understood and NothingMatched, naming the nearest, for what is unknown.
"""

from __future__ import annotations

from toolmatrix.errors import (
    BeyondMatrix,
    NothingMatched,
    ReleasedLater,
    ToolmatrixError,
    UsageError,
)
from toolmatrix.factbase.versions import Scale, SelectorError
from toolmatrix.solve.parts import union
from toolmatrix.solve.request import Ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.records import ComponentFacts


OPERATORS = "=<>!~"
LONGEST = 400
"""Letters of a word of a request: comparing a longer one with all names takes long."""
NEWEST = ("latest", "newest", "stable")
"""Words that people write for the release that is taken anyway."""


# Letters of a longer one that are shown.
_EXCERPT = 40


class Names:
    """The components of an index with their releases, for reading and checking what a user typed."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.components = index.header["components"]
        self.scale = index.scale

    def asks(self, text: str, option: str = "") -> list[Ask]:
        """One `name`, `name==1.2`, `name>=1,<2`: checked against what is known; two where it names a build."""
        name, selector = self.split(text)
        # A plain name, as most are, is read without the module of builds.
        plain = name.replace("_", "-")
        named = self.components.get(plain)
        # In the names of flags and of builds a plus is a letter like any other.
        if "[" in name or named is None or ("+" in selector and named["scheme"] != "names"):
            builds = build_asks(self, name, selector, text, option)
            if builds:
                return builds
        component = self.component(name, selector)
        selector = self.as_listed(component, selector or "*")
        self.check(component, selector, text)
        return [Ask(component=component, selector=selector, text=text, option=option)]

    def known_asks(self, text: str) -> list[Ask]:
        """The lines of a word of a request, none where the matrix does not know it."""
        try:
            return self.asks(text)
        except ToolmatrixError:
            return []

    def split(self, text: str) -> tuple[str, str]:
        """The name and the selector of one word; `latest` is any release, and the newest is chosen."""
        check_length(text)
        # An operator or a blank ends the name: `gcc>=11`, `tensorflow 2.6.5`.
        cut = next(
            (i for i, letter in enumerate(text) if letter in OPERATORS or letter.isspace()),
            len(text),
        )
        name, selector = text[:cut].strip().lower(), text[cut:].strip()
        if not name:
            raise UsageError(
                "a request needs a component", expected="`name==version`", found=f"`{text}`"
            )
        return name, "*" if selector.lstrip("=@ ").lower() in NEWEST else selector

    def as_listed(self, component: str, selector: str) -> str:
        """One version as the release that it names; other selectors stay as they are."""
        version = selector.removeprefix("==")
        if version == selector or "," in version:
            return selector
        if component == "distro" and not set(version) & set(" |*"):
            from toolmatrix.request import spelling

            return f"=={spelling.distro(self, version) or version}"
        scale = self.scale(component)
        try:
            admitted = scale.select(selector)
            below = 0 if admitted else scale.select(f"<{version}")
        except SelectorError:
            return selector
        # Named in full it is that release, and none that is finer.
        if scale.bit(version) not in (0, admitted):
            return scale.exact(version)
        # An unlisted one is the listed one below it: facts about drivers are floors at listed releases, and it
        # satisfies the same.
        if not self.components[component]["open"] or not below:
            return selector
        return f"=={scale.versions[below.bit_length() - 2]}"

    def component(self, name: str, selector: str = "") -> str:
        """The component of that name; underscores are read as hyphens, as package names are."""
        component = self.called(name)
        if not component:
            from toolmatrix.request import spelling

            raise spelling.unknown(self, name, selector)
        return component

    def called(self, name: str) -> str:
        """The component of that name, alias or package; nothing if there is none."""
        plain = name.lower().replace("_", "-")
        header = self.index.header
        return (
            plain
            if plain in self.components
            else str(header["aliases"].get(plain) or header["packages"].get(plain, ""))
        )

    def check(self, component: str, selector: str, text: str) -> int:
        """The mask of a selector; refuses one that cannot be read, can never hold, or matches no known release."""
        scale = self.scale(component)
        try:
            mask = scale.select(selector)
        except SelectorError as error:
            from toolmatrix.request import spelling

            raise spelling.unreadable(self, component, selector, text, error) from None
        if mask:
            return mask
        if not scale.versions:
            raise NothingMatched(f"the matrix knows no release of {component}", found=f"`{text}`")
        if self.never(component, selector):
            raise UsageError(
                f"`{text}` matches nothing",
                expected="bounds that a version can satisfy",
                found=f"`{text}`",
            )
        beyond = self._beyond(component, selector)
        raise (BeyondMatrix if beyond else NothingMatched)(
            beyond or f"the matrix knows no release of {component} that matches `{text}`",
            expected=self.near(component, selector),
            found=f"`{text}`",
            help=f"`toolmatrix matrix --rows {component}` lists its releases"
            + (", and `--matrix FILE` adds others" if beyond else ""),
        )

    def _beyond(self, component: str, selector: str) -> str:
        """What is known instead of releases that are all older or all newer than those of the matrix, if they are."""
        from toolmatrix.solve import worlds

        versions = self.scale(component).versions
        day = self.index.header["date"]
        if worlds.later(self.index, component, selector):
            return f"the matrix of {day} knows {component} up to {versions[-1]}; later releases are unknown"
        older = worlds.earlier(self.index, component, [selector])
        if older and worlds.begins_later(self.index, component):
            return (
                f"the matrix knows {component} from {versions[0]} on; earlier releases are unknown"
            )
        return ""

    def known_at(self, ask: Ask, day: str) -> None:
        """Refuse a request that only releases after a day satisfy; one without a date counts as known.

        Raises ReleasedLater, and BeyondMatrix where releases before the first known one may satisfy it.
        """
        facts = self.index.component(ask.component)
        mask = self.scale(ask.component).select(ask.selector)
        # An empty date comes before every day, so that one release without a date is enough.
        dates = [date for position, date in enumerate(facts.dates) if mask >> position + 1 & 1]
        if not dates or min(dates) <= day:
            return
        from toolmatrix.solve import worlds

        released = f"released on {min(dates)}"
        if worlds.earlier(self.index, ask.component, [ask.selector]) and worlds.begins_later(
            self.index, ask.component
        ):
            raise BeyondMatrix(
                f"the matrix knows {ask.component} from {facts.versions[0]} on; "
                f"its newest release on {day} is unknown",
                found=f"`{ask.text}`; its first known release was {released}",
                help="choose a later day for `--at`; `--matrix FILE` adds earlier releases",
            )
        raise ReleasedLater(
            f"`{ask.text}` was not yet released on {day}",
            expected=f"a release of {ask.component} from {day} or before",
            found=released,
            help="choose a later day for `--at`, or another release",
        )

    def never(self, component: str, selector: str) -> bool:
        """True if the clauses contradict each other whatever is released: no bound of theirs satisfies them all."""
        if self.components[component]["scheme"] == "names" or "," not in selector:
            return False
        # Bounds that leave room leave it at one of them, just above one, or below all: a few versions represent all.
        parsed = self.scale(component).parse(selector)
        tried = {"0", "99999"}
        for clause in (clause for clauses in parsed for clause in clauses):
            if clause.version is not None:
                numbers, phase, count = clause.version
                release = ".".join(map(str, numbers))
                tried |= {release + more for more in ("", ".0.1", ".1", ".9999")}
                # Between `rc1` and `rc3` there is `rc2` alone.
                if phase:
                    tried |= {clause.text, f"{clause.text.rstrip('0123456789')}{count + 1}"}
        return not Scale("pep440", sorted(tried)).mask(parsed)

    def near(self, component: str, selector: str) -> str:
        """The known releases nearest to what was asked for."""
        scale = self.scale(component)
        clauses = selector.replace(",", " ").split()
        wanted = clauses[0].lstrip(OPERATORS).removesuffix(".*")
        if self.components[component]["scheme"] == "names":
            from toolmatrix.request import spelling

            return spelling.nearest(wanted, scale.versions)
        below = scale.select(f"<{wanted}")
        # What is asked for is unknown: the next is a post-release of it where there is one.
        above = scale.select(f">={wanted}")
        neighbours = []
        if below:
            neighbours.append(scale.versions[below.bit_length() - 2])
        if above:
            neighbours.append(scale.versions[(above & -above).bit_length() - 2])
        return "the nearest: " + " and ".join(neighbours)

    def subject(self, text: str) -> tuple[str, bool]:
        """The component to be explained, and whether a release or a build of it is named, which is asked for too."""
        name, selector = self.split(text)
        if "[" in name or (selector and selector != "*"):
            return self.asks(text)[0].component, True
        return self.component(name), False

    def device(self, name: str) -> str:
        """A device by compute capability, gfx name, or the name of a product that has it, as tools print it too."""
        from toolmatrix.request import spelling

        return spelling.device(self, name)


def check_length(text: str) -> None:
    """Refuse a word that is too long to be a name or a request. Raises UsageError."""
    if len(text) > LONGEST:
        raise UsageError(
            "a word is too long",
            expected=f"at most {LONGEST} characters",
            found=f"{len(text)}: `{text[:_EXCERPT]}...`",
        )


def is_piece(word: str) -> bool:
    """True if a word is a version, or a bound, without the name of a component."""
    # Tags of releases are written `v2.6.5`, while names may begin with a v and a digit as well.
    first, second = word[:1], word[1:2]
    tagged = first == "v" and second.isdigit() and "." in word
    return first.isdigit() or first in (*OPERATORS,) or tagged


def joined(line: Sequence[str]) -> list[str]:
    """A request as it was meant: pieces of a specifier that stand apart, put together again."""
    words: list[str] = []
    for word in line:
        before = words[-1] if words else ""
        open_end, bound = before[-1:] in (*OPERATORS,), word[:1] in (*OPERATORS,)
        bounded = any(letter in OPERATORS for letter in before)
        # `gcc >= 11` and `gcc >=11`
        if before and (open_end or (bound and not bounded)):
            words[-1] += word
        # `gcc>=11 <13`
        elif before and bound:
            words[-1] += f",{word}"
        # `tensorflow v2.6.5`
        elif before and is_piece(word) and not bounded:
            words[-1] += f"=={word.removeprefix('v')}"
        else:
            words.append(word)
    return words


# What people write as an extra where they mean an accelerator.
_ACCELERATORS = {"cpu": "none", "gpu": "cuda", "cuda": "cuda", "rocm": "rocm"}


def build_asks(names: Names, package: str, selector: str, text: str, option: str) -> list[Ask]:
    """The component and the builds of it that a package, its extras or a local version name; nothing if none does."""
    base, _, rest = package.partition("[")
    plain = base.replace("_", "-")
    extras = [extra.strip() for extra in rest.rstrip("]").split(",") if extra.strip()]
    release, plus, line = selector.partition("+")
    component = names.component(base, release)
    # `onnxruntime-gpu` is the package of some builds of `onnxruntime`.
    is_package = component != plain and plain in names.index.header["packages"]
    if not (extras or plus or is_package):
        return []
    variant = names.index.builds_of(component)
    if not variant:
        raise NothingMatched(
            f"the matrix does not distinguish builds of {component}",
            expected=f"`{component}{release}`",
            found=f"`{text}`",
        )
    facts = names.index.component(variant)
    wanted = names.as_listed(component, release or "*")
    own = builds = _of(facts, component, names.check(component, wanted, text))
    if is_package:
        builds &= _installed(facts, lambda name: name.partition("[")[0] == plain)
    for extra in extras:
        builds &= _extra(names, facts, extra)
    # The name of a build is `2.6.0+cu124@default/x86_64`; people write no more than its line.
    if plus:
        builds &= names.scale(variant).select(f"*+{line}@*")
    if not builds:
        raise NothingMatched(
            f"the matrix knows no build of {component} for `{text}`",
            expected=_known(facts, own, component, plus),
            found=f"`{text}`",
        )
    build_selector = " ".join(names.scale(variant).named(builds))
    return [
        Ask(component=component, selector=wanted, text=text, option=option),
        Ask(component=variant, selector=build_selector, text=text, option=option),
    ]


def _installed(facts: ComponentFacts, fits: Callable[[str], bool]) -> int:
    return union(mask for package, mask in facts.packages.items() if fits(package))


def _extra(names: Names, facts: ComponentFacts, extra: str) -> int:
    # An extra is known by its own name, or else by the accelerator that it is named after.
    builds = _installed(facts, lambda name: extra in name.partition("[")[2].rstrip("]").split(","))
    accelerator = _ACCELERATORS.get(extra, "")
    if builds or not accelerator:
        return builds
    bit, none = (names.scale("accelerator").bit(name) for name in (accelerator, "none"))
    for binding in facts.about("accelerator", -1):
        # A build for CUDA also runs without one: it is that of no accelerator only where it can have no other.
        if binding.kind == "limits" and binding.allowed & ~1 & ~none == bit & ~none:
            builds |= binding.mask
    return builds


def _of(facts: ComponentFacts, component: str, releases: int) -> int:
    # Bit 0 of a mask is the absence of a component, and no build.
    builds: int = (2 << len(facts.versions)) - 2
    for binding in facts.about(component, -1):
        # Which release a build is of is a claim like any other, without conditions.
        if not binding.conditions and not binding.allowed & releases:
            builds &= ~binding.mask
    return builds


def _known(facts: ComponentFacts, own: int, component: str, by_line: str) -> str:
    packages = [name for name, mask in facts.packages.items() if mask & own]
    if not by_line and packages != [component]:
        return "one of " + ", ".join(packages)
    names = Scale("names", facts.versions).named(own)
    lines = dict.fromkeys(name.partition("+")[2].partition("@")[0] for name in names)
    if by_line or not names:
        return "one of the lines " + ", ".join(lines)
    return (
        f"one of the lines {', '.join(lines)}, as in `{component}=={names[-1].partition('@')[0]}`"
    )


def builds_installed_from(index: Index, variants: str, address: str) -> list[str]:
    """The builds whose own command names the address, as a list of wheels for one framework and toolkit."""
    numbers = (
        (name, index.number(f"{variants}=={name}")) for name in index.component(variants).versions
    )
    installs = ((name, index.release(number).attributes["install"]) for name, number in numbers)
    return [name for name, install in installs if address in install.split()]
