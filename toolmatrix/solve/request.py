"""What is asked: wanted and held components, where the result runs, and how to choose. No wording, no I/O."""

from __future__ import annotations

from toolmatrix.value import Value

TYPE_CHECKING = False


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


class Request(Value):
    """A whole request, one or several targets solved together.

    `keep` are (target, component, release) ranked above all others. `policies` are (target, component,
    releases in order of preference): the component takes the first it can, or stays absent. `oldest`
    are components whose older releases are preferred. `apart` are (target, codegen arch or device)
    that mean another of several targets. `lone` were to be aligned, and at most one target can have them.
    """

    asks: tuple[Ask, ...]
    targets: tuple[str, ...]
    align: tuple[str, ...] = ()
    lone: tuple[str, ...] = ()
    archs: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    cpu: str = ""
    prefer: str = "best-evidence"
    apart: tuple[tuple[str, str], ...] = ()
    oldest: tuple[str, ...] = ()
    min_evidence: str = ""
    at: str = ""
    keep: tuple[tuple[str, str, str], ...] = ()
    policies: tuple[tuple[str, str, tuple[str, ...]], ...] = ()

    @property
    def wanted(self) -> tuple[str, ...]:
        """The components named by the request itself, in its order."""
        return tuple(dict.fromkeys(ask.component for ask in self.asks if not ask.option))
