"""`toolmatrix plan`."""

from __future__ import annotations

from functools import partial

from toolmatrix.api import Report, split_words
from toolmatrix.api.arguments import words
from toolmatrix.api.requests import read_request, with_online_packages
from toolmatrix.command import PRINTED, command
from toolmatrix.command.options import ONLINE
from toolmatrix.errors import CannotSay, UsageError
from toolmatrix.request.names import Names
from toolmatrix.solve import arch_plans
from toolmatrix.solve.pairs import RequestFacts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import Unpack

    from toolmatrix.api import Wanted
    from toolmatrix.api.requests import RequestOptions
    from toolmatrix.facts.index import Index
    from toolmatrix.report.arch_plan import Framework, Planned
    from toolmatrix.solve.arch_plans import Runs
    from toolmatrix.solve.request import Request

    Reader = Callable[[Sequence[str], str], Request]
    """The request that is made for some devices, with where frameworks come from."""


@command(
    group="Explore the matrix",
    order=5,
    usage="[REQUEST...]",
    completer="release",
    formats=PRINTED,
    examples=(
        "toolmatrix plan --device A100,H100,'RTX 5090'",
        "toolmatrix plan torch==2.7.1 --device 'GTX 1080 Ti',H100",
        "toolmatrix plan cuda==12.4 --device A100,'RTX 5090'",
    ),
)
def plan(
    *wanted: Wanted,
    online: bool = ONLINE,
    everything: bool = False,
    **options: Unpack[RequestOptions],
) -> Report:
    """Find the fewest codegen archs for some devices.

    The plans are those for the devices of `device`, with the releases of the toolkit that know them. A release of the
    toolkit in the request narrows them; a framework is shown with the releases of the toolkit that go with it, and with
    its builds that run on all of the devices. Raises UsageError without a device, and CannotSay for one of which no
    fact says what it runs.
    """
    named = words(*wanted)
    index = with_online_packages(named, options, online=online).index

    def read(devices: Sequence[str], way: str) -> Request:
        changed: RequestOptions = {**options, "device": devices, "from_": way}
        return read_request(("arch", *named), changed, varied=("arch",))[1]

    if options.get("arch"):
        raise _no_archs()
    return _plan(index, read, split_words(options.get("device", ())), everything=everything)


def _plan(index: Index, read: Reader, devices: Sequence[str], *, everything: bool) -> Report:
    from toolmatrix.report import arch_plan as report

    if not devices:
        raise UsageError(
            "no device to plan for",
            expected="`--device`",
            help="`toolmatrix plan --device A100,H100,'RTX 5090'`",
        )
    names = Names(index)
    # A device that is named twice, as a product and by its capability, is one device.
    asked = {names.device(name): name for name in devices}
    # Devices of two makers have two toolkits, and a board with a CPU has a target of its own: each has its own plans.
    groups: dict[tuple[str, tuple[str, ...]], list[Runs]] = {}
    for device, said in asked.items():
        runs = arch_plans.runs(index, device)
        toolkit = arch_plans.toolkit_of(index, runs) if runs else ""
        if runs is None or not toolkit:
            raise CannotSay(
                f"no fact names the code that {device} runs, or a toolkit that makes it",
                expected="a device with facts about codegen archs",
                found=f"`--device {said}`",
            )
        groups.setdefault((toolkit, read([said], "source").targets), []).append(runs)
    several = len({targets for _, targets in groups}) > 1
    found = [
        _planned(index, read, toolkit, held, asked).replace(
            target=",".join(targets) if several else ""
        )
        for (toolkit, targets), held in groups.items()
    ]
    document = report.document(index, found)
    return Report(
        words=partial(report.text, index, document, everything=everything),
        document=lambda: document,
        # A sure no outweighs what nobody can say, and that a yes; the codes themselves have another order.
        exit_code=max(map(_exit_code, found), key=(0, CannotSay.exit_code, 1).index),
    )


def _exit_code(found: Planned) -> int:
    if found.plans:
        return 0
    # Where no fact keeps a release from making the code it may do so: nobody says no.
    return CannotSay.exit_code if any(one.open for one in found.missing) else 1


def _no_archs() -> UsageError:
    return UsageError(
        "`plan` chooses the codegen archs",
        expected="`--device` without `--arch`",
        found="`--arch`",
        help="`toolmatrix matrix --rows cuda --cols arch` shows the archs of each toolkit",
    )


def _planned(
    index: Index, read: Reader, toolkit: str, devices: Sequence[Runs], asked: dict[str, str]
) -> Planned:
    from toolmatrix.report.arch_plan import Planned

    names = [device.device for device in devices]
    words = [asked[name] for name in names]
    # Archs are chosen where code is compiled: the plan is that of a build, and wheels are looked at as they are.
    request = read(words, "source")
    plans, missing = arch_plans.Planner(index, request, toolkit, devices).plans()
    frameworks = dict.fromkeys(
        ask.component
        for ask in request.asks
        if not ask.option and index.header["components"][ask.component]["framework"]
    )
    return Planned(
        toolkit=toolkit,
        devices=tuple((name, asked[name]) for name in names),
        plans=tuple(plans),
        missing=tuple(missing),
        frameworks=tuple(
            _framework(index, request, read(words, "wheel"), name, toolkit, devices)
            for name in frameworks
        ),
    )


def _framework(
    index: Index,
    source: Request,
    wheel: Request,
    name: str,
    toolkit: str,
    devices: Sequence[Runs],
) -> Framework:
    from toolmatrix.report.arch_plan import Framework

    way, variant = RequestFacts(index, source, name), index.builds_of(name)
    own = RequestFacts(index, wheel, variant) if variant else None
    if own is not None:
        # Builds of the releases that were asked for.
        for binding in index.component(variant).about(name, -1):
            if not binding.allowed & way.asked:
                own.mask &= ~binding.mask
    return Framework(
        component=name,
        toolkit=way.partner(toolkit),
        builds=None if own is None else arch_plans.builds(index, own, devices),
    )
