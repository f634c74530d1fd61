"""From fields to a request: what was written, read with the names the matrix knows, and defaults where it is silent.

Raises UsageError for what cannot be understood and NothingMatched, naming the nearest, for what is unknown.

Where a request does not say how to get frameworks, one rule holds for every command. What has one way alone comes that
way, and so does a named build. A named build tool or codegen arch means building. A named device or driver, and a
package that requires a framework or its releases, get wheels where the frameworks have some for the target. So does
what is no framework and of which facts know wheels alone. All others build, unless their wheels alone are known, which
the search finds out.
"""

from __future__ import annotations

from toolmatrix.errors import ToolmatrixError, UsageError
from toolmatrix.factbase.evidence import UNKNOWN
from toolmatrix.request.fields import Fields, parse_arguments, settled
from toolmatrix.request.names import OPERATORS, Names, is_piece, joined
from toolmatrix.solve.parts import SEVERAL, union
from toolmatrix.solve.preferences import known_as_wheels, limiting, limits, stands_on
from toolmatrix.solve.request import Ask, Request, allowed_accelerators
from toolmatrix.solve.resolve import Resolution, attempt, possible
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.solve.repair import Repair
    from toolmatrix.solve.request import Policy, PreferredReleases, Stipulation
    from toolmatrix.solve.resolve import Unsatisfiable


def default(
    asks: Sequence[Ask],
    names: Names,
    fields: Fields,
    targets: Sequence[str],
    devices: Sequence[str],
    computing: Callable[[str, str], str],
) -> str:
    """The way of a request; `computing` is the accelerator of a target by the way."""
    if fields.recipe:
        from toolmatrix.request import recipes

        # A build that is named then is one to build against.
        if recipes.recipe(fields.recipe, names.index).builds:
            return "source"
    # `--with` counts like what is wanted: it makes no difference to how a component is installed.
    named = [(ask, names.components[ask.component]) for ask in asks if ask.option != "recipe"]
    # A named tool is for building, and a driver for running.
    methods = {head["way"] for _, head in named}
    if any(head["variant_of"] for _, head in named):
        return "wheel"
    if not all(admits(ask, "from", "source", names, {}) for ask, _ in named):
        return "wheel"
    wheels = all(admits(ask, "from", "wheel", names, {}) for ask, _ in named)
    if fields.arch or "source" in methods or not wheels:
        return "source"
    frameworks = [ask for ask, head in named if head["framework"]]
    standing = any(
        stands_on(names.index, ask.component, [framework.component for framework in frameworks])
        for ask, head in named
        if not head["framework"] and head["scheme"] == "pep440" and head["way"] != "source"
    )
    runs = bool(frameworks) and (bool(devices) or "wheel" in methods)
    if not standing and not runs:
        # Of a package that is no framework, facts about wheels alone say that nobody builds it.
        frameworks = [] if frameworks else known_as_wheels(names.index, [ask for ask, _ in named])
        if not frameworks:
            return "source"
    # One framework without a wheel is built, and the others with it: wheels bring toolkits of their own.
    published = all(
        _published(ask, target, names, devices, computing)
        for ask in frameworks
        for target in targets
    )
    return "wheel" if published else "source"


def _published(
    ask: Ask,
    target: str,
    names: Names,
    devices: Sequence[str],
    computing: Callable[[str, str], str],
) -> bool:
    """True if wheels of what is asked for compute on a target as a build would, and hold code for the devices."""
    computes = computing(target, "wheel")
    fixed = {
        "from": "wheel",
        "machine": names.index.header["targets"][target]["context"]["machine"],
        "accelerator": computes,
    }
    facts = names.index.component(ask.component)
    wheel = names.scale("from").bit("wheel")
    spoken = any(
        group.conditions.get("from", 0) & wheel
        and group.component in fixed
        and group.evidence != UNKNOWN
        for group in facts.binding_groups
    )
    # Where no fact covers wheels, none are known.
    if not spoken or computes != computing(target, "source"):
        return False
    left = _left(names, ask.component, names.scale(ask.component).select(ask.selector), fixed)
    builds, build_mask = _built(names, ask.component, left, fixed)
    if not builds or not devices or not left:
        return bool(left)
    return bool(running(names.index, builds, build_mask, devices))


def published(
    names: Names, component: str, release: str, fixed: Mapping[str, str]
) -> tuple[str, int]:
    """The component of the builds of a component, and those of a release that go with what is given, as a mask."""
    return _built(names, component, names.scale(component).bit(release), fixed)


def _built(names: Names, component: str, left: int, fixed: Mapping[str, str]) -> tuple[str, int]:
    builds = names.index.builds_of(component)
    if not builds:
        return "", 0
    bindings = names.index.component(builds).about(component, -1)
    matching = union(binding.mask for binding in bindings if binding.allowed & left)
    return builds, _left(names, builds, matching, fixed)


def running(index: Index, builds: str, left: int, devices: Sequence[str]) -> int:
    """Of some builds those that are known to hold code which every device runs."""
    for device in devices:
        itself = index.scale("device").bit(device)
        fit = 0
        # Of a framework it is known for which archs its builds are, of others for which devices.
        for about, runs in ("arch", limits(index, "device", "arch", itself)), ("device", itself):
            for mask, allowed in limiting(index, builds, about):
                fit |= mask if allowed & runs & ~1 else 0
        left &= fit
    return left


def _left(names: Names, component: str, left: int, fixed: Mapping[str, str]) -> int:
    """The releases of a component that go with all that is given, by its own facts."""
    for about in fixed:
        left = _fitting(names, component, left, about, fixed)
    return left


def _fitting(names: Names, component: str, left: int, about: str, fixed: Mapping[str, str]) -> int:
    # Its own facts alone are asked, which takes no solving: this runs before every answer.
    wanted = names.scale(about).bit(fixed[about])
    for binding in names.index.component(component).about(about, left):
        holds = all(
            name in fixed and mask & names.scale(name).bit(fixed[name])
            for name, mask in binding.conditions.items()
        )
        if holds and not binding.allowed & wanted:
            left &= ~binding.mask
    return left


def admits(ask: Ask, component: str, release: str, names: Names, fixed: Mapping[str, str]) -> bool:
    """True if some release that a line admits goes with one of a component where others are given."""
    left = names.scale(ask.component).select(ask.selector)
    # What is given is a condition here: whether it can be is another question.
    return bool(_fitting(names, ask.component, left, component, {**fixed, component: release}))


def read(
    index: Index,
    fields: Fields,
    *,
    keep: PreferredReleases = (),
    varied: Sequence[str] = (),
    first: Sequence[Ask] = (),
) -> Request:
    """The request that fields make; `keep` are releases to prefer, `varied` the components that a grid goes through.

    Its lines come behind the `first`. Raises UsageError, NothingMatched, and CannotSay for a word that no fact covers.
    """
    names, fields = Names(index), settled(fields, index)
    asks = [*first, *_read_asks(names, fields, varied)]
    named = {ask.component for ask in asks}
    # Each default rests on those before: a device has an accelerator, which has a target; a wheel, what it computes on.
    archs, devices, products = _codegen(names, fields)
    boards, owner = (devices, "") if devices or "device" in varied else _boards(names, asks)
    codegen = codegen_accelerator(names, archs, boards) if archs or boards else ""
    computes = codegen or fields.accelerator.removeprefix("none")
    targets = tuple(dict.fromkeys(fields.target)) or (
        _target(asks, names, computes, boards, products),
    )
    # Beside nothing but the boards there is no code.
    devices = devices or (_on(names, fields, boards, targets) if len(named) > 1 else ())
    # A device of one of several targets says nothing of the others.
    default_codegen = "" if len(targets) > 1 else codegen
    contexts = {target: context(target, fields, index) for target in targets}

    def computing(target: str, origin: str) -> str:
        return fields.accelerator or _accelerator(target, asks, origin, names, default_codegen)

    from_ = fields.from_ or default(asks, names, fields, targets, devices, computing)
    for target in () if "accelerator" in named else targets:
        accelerator = computing(target, from_)
        chosen = option("accelerator", accelerator, target, implied=not fields.accelerator)
        contexts[target].append(chosen)
    aligned, unaligned = _aligned(fields, names, contexts)
    request = Request(
        asks=_lines(asks, contexts, names, fields, from_),
        targets=targets,
        align=aligned,
        unaligned=unaligned,
        archs=archs,
        devices=devices,
        products=products,
        boards=owner,
        cpu=_cpu(fields.cpu, targets, index) if fields.cpu else "",
        prefer=fields.prefer,
        # Nothing is known less than `unknown`: without a minimum no answer is judged before the search ends.
        min_evidence="" if fields.min_evidence == UNKNOWN else fields.min_evidence,
        at=fields.at,
        keep=keep,
        # A policy is a flag of the compiler, and a wheel was compiled already.
        policies=_policies(targets, fields.cpu, names) if from_ == "source" else (),
        recipe=fields.recipe,
        stipulations=_stipulations(fields.recipe, index),
        or_wheels=from_ == "source" and _is_open(asks, names, fields),
    )
    return request.replace(unavailable=_unavailable(request, names)) if targets[1:] else request


def _is_open(asks: Sequence[Ask], names: Names, fields: Fields) -> bool:
    """Whether a request for frameworks leaves open how to get them: a tool, an arch or a recipe is for building."""
    heads = [names.components[ask.component] for ask in asks]
    named = {head["way"] for head in heads} | {ask.component for ask in asks}
    fixed = fields.from_ or fields.recipe or fields.arch or fields.prefer == "newest"
    return not (fixed or named & {"source", "from"}) and any(head["framework"] for head in heads)


def _lines(
    asks: Sequence[Ask],
    contexts: Mapping[str, list[Ask]],
    names: Names,
    fields: Fields,
    from_: str,
) -> tuple[Ask, ...]:
    """All lines of a request: those of its words, of the targets, and of what a framework comes from."""
    lines = [line for ask in asks for line in _placed(ask, contexts, names)]
    lines += [ask for context in contexts.values() for ask in context]
    if all(ask.component != "from" for ask in asks):
        lines.append(option("from", from_, implied=not fields.from_))
    if fields.distro:
        lines.append(_distro(fields, names))
    # A repeated line would be in every reason twice.
    return tuple(dict.fromkeys(lines))


def _aligned(
    fields: Fields, names: Names, contexts: Mapping[str, list[Ask]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The components that have to be equal on all targets, and those that at most one of the targets can have."""
    components = dict.fromkeys(names.component(name) for name in fields.align)
    unaligned = tuple(
        name
        for name in components
        if len(contexts) > 1 and len(_having(name, contexts, names.index)) <= 1
    )
    return tuple(name for name in components if name not in unaligned), unaligned


def _read_asks(names: Names, fields: Fields, varied: Sequence[str]) -> Iterator[Ask]:
    for line in (fields.wanted, *([text] for text in fields.with_)):
        _check_forms(line, names)
    wanted = [ask for text in fields.wanted for ask in names.asks(text)]
    present = [ask for text in fields.with_ for ask in names.asks(text, "with")]
    components = dict.fromkeys(ask.component for ask in (*wanted, *present))
    needed = [*_needed(names, fields.recipe, components)]
    # A grid may go through archs, machines or devices, which an answer takes from the request.
    _check_words([ask for ask in (*wanted, *present) if ask.component not in varied], names.index)
    if not varied:
        _check_shown(wanted, names.index)
    if fields.at:
        for ask in (*wanted, *present):
            names.known_at(ask, fields.at)
    yield from wanted
    yield from present
    yield from (ask for ask in needed if ask.component not in components)
    if fields.device:
        from toolmatrix.request import spelling

        yield from spelling.kind_of_gpu(names, fields.device)


def _needed(names: Names, recipe: str, components: Iterable[str]) -> Iterator[Ask]:
    if recipe:
        from toolmatrix.request import recipes

        loaded = recipes.recipe(recipe, names.index)
        for name in recipes.needs(loaded, components, names.index):
            yield Ask(component=name, selector="*", text=f"--recipe {recipe}", option="recipe")
        for name, selector in recipes.origins(loaded, names.index):
            yield Ask(component=name, selector=selector, text=f"--recipe {recipe}", option="recipe")


def _stipulations(recipe: str, index: Index) -> tuple[Stipulation, ...]:
    if not recipe:
        return ()
    from toolmatrix.request import recipes

    return recipes.stipulations(recipes.recipe(recipe, index), index)


def _codegen(
    names: Names, fields: Fields
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[tuple[str, str], ...]]:
    if not (fields.arch or fields.device):
        return (), (), ()
    from toolmatrix.request import spelling

    devices = [(spelling.device(names, word), word) for word in dict.fromkeys(fields.device)]
    return (
        tuple(spelling.arch(names, arch) for arch in dict.fromkeys(fields.arch)),
        tuple(device for device, _ in devices),
        tuple((device, word) for device, word in devices if device != word),
    )


def option(option: str, value: str, target: str = "", *, implied: bool = False) -> Ask:
    """The line that an option makes of a request."""
    text = f"--{option} {value}"
    return Ask(
        component=option, selector=value, text=text, option=option, target=target, implied=implied
    )


def _distro(fields: Fields, names: Names) -> Ask:
    from toolmatrix.request import spelling

    text = fields.distro
    name = spelling.distro(names, text)
    if not name:
        raise spelling.no_distro(names, text)
    # It is solved by the name that the matrix has for it, and said as it was written.
    ask = option("distro", name).replace(text=f"--distro {text}")
    if fields.at:
        names.known_at(ask, fields.at)
    return ask


def _check_forms(line: Sequence[str], names: Names) -> None:
    """Refuse a version apart from its component, and several components in one word, with the form that is read."""
    right = joined(line)
    piece = next((word for word in line if is_piece(word)), "")
    # A bound that stands first and alone, such as `>=2`, has nothing that it could be joined to: `split` refuses it.
    if piece and (right != [*line] or not piece.startswith(tuple(OPERATORS))):
        suggestion = " ".join(right) if right != [*line] else "NAME==VERSION"
        raise UsageError(
            f"`{piece}` is not a component",
            expected="`name==version` in one word",
            found=f"`{' '.join(line)}`",
            help=f"did you mean `{suggestion}`?",
        )
    for word in line:
        bounds = [bound.strip() for bound in word.split(",")]
        # A comma joins bounds of one component: `numpy>=1.19,<2` is one word.
        named = [bound for bound in bounds[1:] if bound[:1].isalpha()]
        if named and all(names.split(bound)[0] for bound in bounds):
            raise UsageError(
                f"`{word}` names several components",
                expected="one word each",
                found=f"`{word}`",
                help=f"did you mean `{' '.join(bounds)}`?",
            )


def _check_words(asks: Sequence[Ask], index: Index) -> None:
    # Where the result runs is said by an option; it is no component to choose.
    for ask in asks:
        if index.header["components"][ask.component]["given"] or ask.component in SEVERAL:
            option = "target" if ask.component == "machine" else ask.component
            raise UsageError(
                f"`{ask.text}` is not part of an answer",
                expected=f"the option `--{option}`",
                found=f"`{ask.text}`",
                help=f"`toolmatrix help resolve` shows what `--{option}` takes",
            )


def _check_shown(asks: Sequence[Ask], index: Index) -> None:
    # Answers do not show flags as components, nor the libraries behind a distribution.
    heads = [index.header["components"][ask.component] for ask in asks]
    if asks and all(head["flag"] or head["hidden"] for head in heads):
        raise UsageError(
            f"`{asks[0].text}` alone is not enough for an answer",
            expected="a component that an answer shows, such as `tensorflow` or `gcc`",
            found=f"`{asks[0].text}`",
            help=f"name it in `--with {asks[0].text}`",
        )


def context(target: str, fields: Fields, index: Index) -> list[Ask]:
    """What a target says of where the result runs."""
    return [
        Ask(
            component=name,
            selector=value,
            text=f"--target {target}",
            option="target",
            target=target,
            implied=target not in fields.target,
        )
        for name, value in index.header["targets"][target]["context"].items()
    ]


def _target(
    asks: Sequence[Ask],
    names: Names,
    computes: str,
    devices: Sequence[str],
    products: Sequence[tuple[str, str]],
) -> str:
    """The default target: the first that has the machine of the devices, and what all that is asked for computes on."""
    targets = names.index.header["targets"]
    wanted = [accelerators for ask in asks if (accelerators := _accelerators(ask, names))]
    # Where components have nothing in common there is no answer on any target: the first is as good to say why.
    shared = {computes} if computes else set.intersection(*wanted) if wanted else set()
    fitting = [name for name, head in targets.items() if head["accelerator"] in shared]
    order = [*fitting, *targets]
    machines = device_machines(names, devices, products) if devices else -1
    scale = names.scale("machine")
    suited = (name for name in order if machines & scale.bit(targets[name]["context"]["machine"]))
    return next(suited, order[0])


def _boards(names: Names, asks: Sequence[Ask]) -> tuple[tuple[str, ...], str]:
    """The devices of a line whose devices are all in one kind of machine alone, such as a JetPack, and its text."""
    if "device" not in names.components:
        return (), ""
    scale = names.scale("device")
    for ask in asks:
        # Of several releases the newest is preferred, and bit 0 is for its absence.
        releases = names.scale(ask.component).select(ask.selector) & ~1
        admitted = _device_limits(names, ask.component, 1 << releases.bit_length() >> 1)
        devices = () if admitted == -1 else scale.named(admitted & ~1)
        machines = [limits(names.index, "device", "machine", scale.bit(name)) for name in devices]
        if machines and -1 not in machines:
            return tuple(devices), ask.text
    return (), ""


def _on(
    names: Names, fields: Fields, boards: tuple[str, ...], targets: Sequence[str]
) -> tuple[str, ...]:
    """The boards whose code is asked for: on the one target that has them, with the accelerator, and with no arch."""
    if fields.arch or fields.accelerator == "none" or len(targets) > 1:
        return ()
    machine = names.index.header["targets"][targets[0]]["context"]["machine"]
    return (
        boards if device_machines(names, boards, ()) & names.scale("machine").bit(machine) else ()
    )


def _device_limits(names: Names, component: str, release: int) -> int:
    """The devices that a release and the parts it is displayed with are limited to, as a mask."""
    admitted = limits(names.index, component, "device", release)
    for group in names.index.component(component).binding_groups:
        is_part = group.component and names.components[group.component]["under"] == component
        if group.kind == "requires" and is_part and not group.conditions:
            for binding in group.of(release):
                newest = 1 << binding.allowed.bit_length() >> 1
                admitted &= _device_limits(names, group.component, newest)
    return admitted


def device_machines(
    names: Names, devices: Sequence[str], products: Sequence[tuple[str, str]]
) -> int:
    """The machines that can have all of some devices, as a mask: a board with a CPU is one kind of machine."""
    machines = -1
    for device in devices:
        machines &= limits(names.index, "device", "machine", names.scale("device").bit(device))
    if products:
        from toolmatrix.request import spelling

        for _, name in products:
            machine = spelling.common(product.machine for product in spelling.sold_as(names, name))
            machines &= names.scale("machine").bit(machine) if machine else -1
    return machines


def _accelerator(target: str, asks: Sequence[Ask], from_: str, names: Names, codegen: str) -> str:
    """The default accelerator: the target's own where something asked for has it, or that of a build or device."""
    bit = names.scale("accelerator").bit(codegen) if codegen else 0
    if bit and allowed_accelerators(names.index, target) & bit:
        return codegen
    own = names.index.header["targets"][target]["accelerator"]
    for ask in asks:
        # That a recipe needs some build names none.
        if names.components[ask.component]["variant_of"] and ask.option != "recipe":
            # A build that is named brings its own.
            named = _accelerators(ask, names)
            order = (own, *names.scale("accelerator").versions)
            return next((name for name in order if name in named), "none")
    # A target made for ROCm implies it, while on the others most things run without an accelerator.
    if own in ("none", "rocm"):
        return own
    # A wheel may not compute on what its source does, and what is for another kind of hardware has no use for it.
    computes = any(own in names.components[ask.component]["accelerators"] for ask in asks)
    admitted = (admits(ask, "accelerator", own, names, {"from": from_}) for ask in asks)
    return own if computes and all(admitted) else "none"


def _accelerators(ask: Ask, names: Names) -> set[str]:
    """The accelerators that something asked for computes on; of builds their own."""
    head = names.components[ask.component]
    if not head["variant_of"]:
        return set(head["accelerators"])
    scale = names.scale("accelerator")
    wanted = names.scale(ask.component).select(ask.selector)
    bindings = names.index.component(ask.component).about("accelerator", wanted)
    # That a build also runs without its accelerator is no reason to ask for none.
    return {*scale.named(union(binding.allowed for binding in bindings))} - {"none"}


def codegen_accelerator(names: Names, archs: Sequence[str], devices: Sequence[str]) -> str:
    """The accelerator of codegen archs and devices, as the toolkit has it that makes their code; empty if not one."""
    mask = union(map(names.scale("arch").bit, archs))
    for device in devices:
        bit = names.scale("device").bit(device)
        for binding in names.index.component("device").about("arch", bit):
            if binding.kind == "limits":
                mask |= binding.allowed
    accelerators: set[str] = set()
    for group in names.index.component("arch").binding_groups:
        if group.kind == "requires" and group.releases & mask:
            accelerators |= set(names.components[group.component]["accelerators"])
    return accelerators.pop() if len(accelerators) == 1 else ""


def _unavailable(request: Request, names: Names) -> tuple[tuple[str, str], ...]:
    # Of several targets some may not have a codegen arch or device which another one can: it is meant for that one.
    # What is wanted beside it is another question: it may keep a target from an answer, and gives it no codegen arch.
    contexts = {
        target: [
            ask
            for ask in request.asks
            if ask.target == target and names.components[ask.component]["given"]
        ]
        for target in request.targets
    }
    unavailable = []
    empty = Request(asks=(), targets=())
    requests = [(name, empty.replace(archs=(name,))) for name in request.archs]
    requests += [(name, empty.replace(devices=(name,))) for name in request.devices]
    for name, single in requests:
        there = _where(single, contexts, names.index)
        unavailable += [(target, name) for target in request.targets if target not in there]
    return tuple(unavailable)


def _where(request: Request, contexts: Mapping[str, Sequence[Ask]], index: Index) -> Sequence[str]:
    """The targets that can have what a request asks for; all of them where none can, for the refusal to explain.

    Solving with a target alone asks the facts, which know more of a device or a package than its accelerator.
    """
    there = []
    for target, context in contexts.items():
        # What is a default of the whole request is none of this question.
        asks = (*(ask.replace(implied=False) for ask in context), *request.asks)
        if possible(index, request.replace(asks=asks, targets=(target,))):
            there.append(target)
    return there or [*contexts]


def _placed(ask: Ask, contexts: Mapping[str, Sequence[Ask]], names: Names) -> list[Ask]:
    # What is requested is requested of every target: a yes is a yes for each. What the user has, or a recipe needs,
    # is there on the targets that can have it, if any do.
    head = names.components[ask.component]
    # A distribution is where each of them runs, as `--distro` says it.
    everywhere = not ask.option or head["framework"] or ask.component == "distro"
    if everywhere or len(contexts) == 1:
        return [ask]
    having = _where(Request(asks=(ask,), targets=()), contexts, names.index)
    return [ask] if len(having) == len(contexts) else [ask.replace(target=name) for name in having]


def _having(component: str, contexts: Mapping[str, Sequence[Ask]], index: Index) -> list[str]:
    accelerators = index.header["components"][component]["accelerators"]
    return [
        target
        for target, context in contexts.items()
        if not accelerators
        or any(ask.component == "accelerator" and ask.selector in accelerators for ask in context)
    ]


def _policies(targets: Sequence[str], cpu: str, names: Names) -> tuple[Policy, ...]:
    chosen = []
    for target in targets:
        policies = names.index.header["targets"][target]["policies"]
        for component, release in dict(policies).items():
            wanted = [release]
            # A CPU that is named comes before the one that a target is made for.
            if component == "cpu-flag" and cpu:
                wanted[:0] = [f"-mcpu={cpu}+crc", f"-mcpu={cpu}"]
            known = [name for name in wanted if name in names.scale(component).versions]
            if known:
                chosen.append((target, component, tuple(known)))
    return tuple(chosen)


def _cpu(name: str, targets: Sequence[str], index: Index) -> str:
    from toolmatrix.request import spelling

    return spelling.cpu(name, targets, index)


class RequestContext(Value):
    """The place where a command is pasted: the matrix, and the fields that are set there without its words.

    `carried` are the further options that it needs there, and `keep` the releases that these say to prefer.
    """

    index: Index
    fields: Fields = Fields()
    carried: tuple[str, ...] = ()
    keep: PreferredReleases = ()

    def read(self, words: Sequence[str]) -> Request:
        """The request that words make here. Raises ToolmatrixError."""
        return read(self.index, self.fields.replace(**parse_arguments(words)), keep=self.keep)

    def answered(self, words: Sequence[str]) -> Resolution | None:
        """The answer to words that are pasted here, None if they have no answer."""
        # What is set at the place where words are pasted may contradict them.
        try:
            answer = attempt(self.index, self.read(words))
        except ToolmatrixError:
            return None
        return answer if isinstance(answer, Resolution) and not answer.unread else None


def offers(context: RequestContext, refusal: Unsatisfiable) -> list[Repair]:
    """The repairs of a refusal whose words resolve where they would be pasted, with what these answer."""
    from toolmatrix.solve.repair import repairs

    offered = []
    for repair in repairs(context.index, refusal):
        request = _spell_out(context.index, repair.request)
        # A changed request may have another default accelerator than the one it was solved with.
        for spoken in (request, _explicit(request, "accelerator")):
            resolution = context.answered(spoken.arguments())
            if resolution is not None:
                offered.append(repair.replace(request=spoken, resolution=resolution))
                break
    return offered


def _spell_out(index: Index, request: Request) -> Request:
    # The first target is the default, and would be noise in a command that is to be pasted.
    if request.targets != (next(iter(index.header["targets"])),):
        request = _explicit(request, "target")
    return request.replace(
        asks=tuple(
            ask.replace(text=f"--distro {ask.selector}") if ask.option == "distro" else ask
            for ask in request.asks
        )
    )


def _explicit(request: Request, option: str) -> Request:
    return request.replace(
        asks=tuple(
            ask.replace(implied=False) if ask.option == option else ask for ask in request.asks
        )
    )
