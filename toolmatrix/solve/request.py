"""A request: wanted and given components, targets and devices, and how to choose. No wording, no I/O.

Defaults are part of the search: where no accelerator gives no answer, one that the target can have may, and where
nothing is known of a build, a wheel may do.
"""

from __future__ import annotations

from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolmatrix.factbase.index import Index

    PreferredReleases = tuple[tuple[str, str, str], ...]
    """Releases to rank above all others, as (target, component, release)."""
    Policy = tuple[str, str, tuple[str, ...]]
    """Target, component, releases in order of preference: it takes the first that it can, or stays absent."""

REQUIREMENT = "requirement"
"""The option of lines that the solver adds: parts of an answer require the component, and installers bring it."""
BEST_EVIDENCE = "best-evidence"
"""The preference among several answers where none is named."""


class Ask(Value):
    """One line of a request: a component (or context component) and the selector it must satisfy.

    `text` is how the user said it (`tensorflow==2.6.5`, `--target amd`), so that a repair can say what to change;
    `option` is the long option it came from, empty for a positional request. `target` narrows it to one target.
    """

    component: str
    selector: str
    text: str
    option: str = ""
    target: str = ""
    implied: bool = False


class Stipulation(Value):
    """A condition that something beside the facts sets to an answer, as a recipe does.

    Where all conditions of `when` hold, all those of one of `one_of` must; where there is none, nothing may hold them.
    Conditions are pairs of component and selector. With `brought` it will do as well that a build brings the subject.
    `text` is what a refusal says of it, `at` the places where it stands, `source` where that was read.
    """

    subject: str
    when: tuple[tuple[str, str], ...] = ()
    one_of: tuple[tuple[tuple[str, str], ...], ...] = ()
    or_in_build: bool = False
    text: str
    at: tuple[str, ...]
    source: str = ""


class Request(Value):
    """A whole request, one or several targets solved together.

    `recipe` is what the answer is built by, which sets the `stipulations`; empty where none is named.
    `oldest` are components whose older releases are preferred, and `first` is one that is chosen before all others.
    `apart` are (target, codegen arch or device) that mean another of several targets. `products` are (device, product)
    of devices that were named by a product, and `boards` is the line that they follow from where none was named. `lone`
    were to be aligned, and at most one target can have them. With `or_wheels` building is the default alone, and wheels
    that are known come before a build that is not.
    """

    asks: tuple[Ask, ...]
    targets: tuple[str, ...]
    align: tuple[str, ...] = ()
    unaligned: tuple[str, ...] = ()
    archs: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    products: tuple[tuple[str, str], ...] = ()
    boards: str = ""
    cpu: str = ""
    prefer: str = BEST_EVIDENCE
    unavailable: tuple[tuple[str, str], ...] = ()
    oldest: tuple[str, ...] = ()
    first: str = ""
    min_evidence: str = ""
    at: str = ""
    keep: PreferredReleases = ()
    policies: tuple[Policy, ...] = ()
    recipe: str = ""
    stipulations: tuple[Stipulation, ...] = ()
    or_wheels: bool = False

    @property
    def wanted(self) -> tuple[str, ...]:
        """The components named by the request itself, in its order."""
        return tuple(dict.fromkeys(ask.component for ask in self.asks if not ask.option))

    @property
    def leading(self) -> tuple[str, ...]:
        """The components that are chosen first: those wanted, then those that are there at whatever release."""
        having = (
            ask.component for ask in self.asks if ask.option == "with" and ask.selector == "*"
        )
        return tuple(dict.fromkeys((*self.wanted, *having)))

    def named(self, device: str) -> str:
        """How the request named a device."""
        return dict(self.products).get(device, device)

    def arguments(self) -> tuple[str, ...]:
        """The arguments that repeat the request: read where nothing else is set, they make the same one.

        Defaults are left out, to be chosen again; so is `keep`, which has no argument.
        """
        # A build that is named is two lines of one text, and a component may be asked for on each of several targets.
        arguments = [*dict.fromkeys(ask.text for ask in self.asks if not ask.option)]
        for text in dict.fromkeys(ask.text for ask in self.asks if ask.option == "with"):
            arguments += "--with", text
        # What is a default is left out: a repair may change it.
        by_option = {ask.option: ask for ask in self.asks if ask.option and not ask.implied}
        if "target" in by_option:
            arguments += "--target", ",".join(self.targets)
        for option in ("from", "accelerator", "distro"):
            if option in by_option:
                arguments += f"--{option}", by_option[option].text.removeprefix(f"--{option} ")
        # What could not be aligned was asked to be.
        devices = tuple(map(self.named, self.devices))
        lists = {"arch": self.archs, "device": devices, "align": (*self.align, *self.unaligned)}
        prefer = "" if self.prefer == BEST_EVIDENCE else self.prefer
        options = {option: ",".join(names) for option, names in lists.items()}
        options |= {"cpu": self.cpu, "prefer": prefer, "min-evidence": self.min_evidence}
        options |= {"at": self.at, "recipe": self.recipe}
        for option, value in options.items():
            if value:
                arguments += f"--{option}", value
        return tuple(arguments)


_NONE = "none"
_WHEEL = "wheel"


def with_default_accelerators(index: Index, request: Request) -> Iterator[Request]:
    """The request, then the same with accelerators on targets without a named one, the fewest first.

    A named accelerator is never dropped: `--accelerator none` has to be requested.
    """
    yield request
    alternatives = [(ask, *_others(index, ask)) for ask in request.asks]
    # Most requests have one way, and what combines several takes longer to import than these to read.
    if all(len(choices) == 1 for choices in alternatives):
        return
    from itertools import product

    changed = sorted(
        list(product(*alternatives))[1:],
        key=lambda asks: sum(new != other for new, other in zip(asks, request.asks, strict=True)),
    )
    for asks in changed:
        moved = {
            ask.target: ask.selector
            for old, ask in zip(request.asks, asks, strict=True)
            if old is not ask
        }
        variant = request.replace(asks=(*asks, *_having(index, asks, moved)))
        # By default such a target computed on nothing, and a codegen arch or device was meant for others.
        there = tuple(pair for pair in request.unavailable if pair[0] not in moved)
        if there != request.unavailable:
            yield variant.replace(unavailable=there)
        yield variant


def as_wheels(request: Request) -> Request:
    """The same request with wheels instead of a build."""
    asks = tuple(
        ask.replace(selector=_WHEEL, text=f"--from {_WHEEL}") if ask.option == "from" else ask
        for ask in request.asks
    )
    # A policy is a flag of the compiler.
    return request.replace(asks=asks, policies=(), or_wheels=False)


def _having(index: Index, asks: Sequence[Ask], accelerators: Mapping[str, str]) -> Iterator[Ask]:
    """What the user has on other targets alone that computes on the new accelerators, by target, of these."""
    for ask in asks:
        computes = index.header["components"][ask.component]["accelerators"]
        for target, accelerator in accelerators.items() if ask.option == "with" else ():
            here = ask.replace(target=target)
            if ask.target and accelerator in computes and here not in asks:
                yield here


def allowed_accelerators(index: Index, target: str) -> int:
    """The accelerators that a target can have, as a mask."""
    allowed, bit = -1, index.scale("target").bit(target)
    for binding in index.component("target").about("accelerator", bit):
        allowed &= binding.allowed
    return allowed


def _others(index: Index, ask: Ask) -> Iterator[Ask]:
    if ask.component != "accelerator" or not ask.implied or ask.selector != _NONE:
        return
    # What the target cannot have would only be refused once more.
    names, able = index.scale("accelerator"), allowed_accelerators(index, ask.target)
    for name in names.versions:
        if name != _NONE and able & names.bit(name):
            yield ask.replace(selector=name, text=f"--accelerator {name}")
