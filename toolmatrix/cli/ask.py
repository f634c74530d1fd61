"""From options and arguments to a request: reads the words of the user with the names the matrix knows.

Raises UsageError for what cannot be understood and NothingMatched, naming the nearest, for what nobody knows.
"""

from __future__ import annotations

from toolmatrix.cli import defaults, vocabulary, words
from toolmatrix.errors import NothingMatched, ReleasedLater, UsageError
from toolmatrix.facts.versions import Scale, SelectorError
from toolmatrix.solve.request import Ask, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolmatrix.cli.context import Context
    from toolmatrix.cli.options import Options
    from toolmatrix.facts.index import Index


class Names:
    """The components of an index with their releases, for reading and checking what a user typed."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.components = index.header["components"]
        self.scale = index.scale

    def asks(self, text: str, option: str = "") -> list[Ask]:
        """One `name`, `name==1.2`, `name>=1,<2`: checked against what is known; two where it names a build."""
        name, selector = self.split(text)
        plain = name.replace("_", "-")
        named = self.components.get(plain)
        if "[" in name or named is None or ("+" in selector and not named["variant_of"]):
            from toolmatrix.cli import builds

            found = builds.asks(self, name, selector, text, option)
            if found:
                return found
        component = self.component(name)
        selector = self.listed(component, selector or "*")
        self.check(component, selector, text)
        return [Ask(component=component, selector=selector, text=text, option=option)]

    def split(self, text: str) -> tuple[str, str]:
        """The name and the selector of one word; `latest` is any release, of which the newest is taken."""
        cut = next(
            (
                place
                for place, letter in enumerate(text)
                if letter in words.OPERATORS or letter.isspace()
            ),
            len(text),
        )
        name, selector = text[:cut].strip().lower(), text[cut:].strip()
        if not name:
            raise UsageError(
                "a request needs a component", expected="`name==version`", found=f"`{text}`"
            )
        return name, "*" if selector.lstrip("=@ ").lower() in words.NEWEST else selector

    def listed(self, component: str, selector: str) -> str:
        """One version as the release that it names.

        Named in full it is that release, and none that is finer. One that nobody listed, of a component of which such
        exist, is the listed one below it: facts about drivers are floors at listed releases, and it satisfies the same.
        """
        version = selector.removeprefix("==")
        if version == selector or "," in version:
            return selector
        if component == "distro" and not set(version) & set(" |*"):
            return f"=={words.distro(self, version) or version}"
        scale = self.scale(component)
        try:
            admitted = scale.select(selector)
            below = 0 if admitted else scale.select(f"<{version}")
        except SelectorError:
            return selector
        if scale.bit(version) not in (0, admitted):
            return scale.alone(version)
        if not self.components[component]["open"] or not below:
            return selector
        return f"=={scale.versions[below.bit_length() - 2]}"

    def component(self, name: str) -> str:
        """The component of that name; underscores are read as hyphens, as package names are."""
        found = self.called(name)
        if not found:
            raise words.unknown(self, name)
        return found

    def called(self, name: str) -> str:
        """The component that is called so by itself, by people, or as a package; nothing if none is."""
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
            raise words.unreadable(self, component, selector, text, error) from None
        if mask:
            return mask
        if not scale.versions:
            raise NothingMatched(f"the matrix knows no release of {component}", found=f"`{text}`")
        if self.never(component, selector):
            raise UsageError(
                f"`{text}` can never hold",
                expected="bounds that leave something between them",
                found=f"`{text}`",
            )
        raise NothingMatched(
            f"the matrix knows no release of {component} that matches `{text}`",
            expected=self.near(component, selector),
            found=f"`{text}`",
            help=f"`toolmatrix matrix --rows {component}` lists its releases",
        )

    def known_at(self, ask: Ask, day: str) -> None:
        """Refuse a request that only releases after a day satisfy; one without a date counts as known."""
        part = self.index.component(ask.component)
        mask = self.scale(ask.component).select(ask.selector)
        dates = [date for place, date in enumerate(part.dates) if mask >> place + 1 & 1]
        if dates and min(dates) > day:
            raise ReleasedLater(
                f"`{ask.text}` was not out on {day}",
                expected=f"a release of {ask.component} from {day} or before",
                found=f"released on {min(dates)}",
                help="choose a later day for `--at`, or another release",
            )

    def never(self, component: str, selector: str) -> bool:
        """Whether the clauses contradict each other whatever is released: no bound of theirs satisfies them all."""
        if self.components[component]["scheme"] == "names" or "," not in selector:
            return False
        parsed = self.scale(component).parse(selector)
        tried = {"0", "99999"}
        for clause in (clause for part in parsed for clause in part):
            if clause.version is not None:
                numbers, phase, count = clause.version
                release = ".".join(map(str, numbers))
                tried |= {release + more for more in ("", ".0.1", ".1", ".9999")}
                if phase:
                    tried |= {clause.text, f"{clause.text.rstrip('0123456789')}{count + 1}"}
        return not Scale("pep440", sorted(tried)).mask(parsed)

    def near(self, component: str, selector: str) -> str:
        """The known releases nearest to what was asked for."""
        scale = self.scale(component)
        clauses = selector.replace(",", " ").split()
        wanted = clauses[0].lstrip(words.OPERATORS).removesuffix(".*")
        if self.components[component]["scheme"] == "names":
            return words.nearest(wanted, scale.versions)
        below = scale.select(f"<{wanted}")
        above = scale.select(f">{wanted}")
        found = []
        if below:
            found.append(scale.versions[below.bit_length() - 2])
        if above:
            found.append(scale.versions[(above & -above).bit_length() - 2])
        return "the nearest: " + " and ".join(found)

    def name(self, component: str, name: str, option: str) -> str:
        """A release of a component of names (a codegen arch, distro...), or NothingMatched with the nearest."""
        if name in self.scale(component).versions:
            return name
        raise NothingMatched(
            f"`{option} {name}`: no {self.components[component]['title']} is called that",
            expected=words.nearest(name, self.scale(component).versions),
            found=f"`{name}`",
        )

    def device(self, name: str) -> str:
        """A device by compute capability, gfx name, or the name of a product that has it, as tools print it too."""
        return words.device(self, name)


def build(
    context: Context,
    index: Index,
    arguments: Sequence[str] | None = None,
    *,
    varied: Sequence[str] = (),
) -> Request:
    """The request of a run: positional arguments and every request option; `varied` are the sides of a grid."""
    names = Names(index)
    options = vocabulary.settled(context, index)
    wanted = context.arguments if arguments is None else arguments
    for line in (wanted, *([text] for text in options.with_)):
        _check_forms(line, names)
    asks = [part for text in wanted for part in names.asks(text)]
    held = [part for text in options.with_ for part in names.asks(text, "with")]
    _check_words([ask for ask in (*asks, *held) if ask.component not in varied], index)
    if not varied:
        _check_shown(asks, index)
    named = {ask.component for ask in (*asks, *held)}
    if options.at:
        for ask in (*asks, *held):
            names.known_at(ask, options.at)
    archs = tuple(words.arch(names, arch) for arch in dict.fromkeys(options.arch))
    devices = tuple(names.device(device) for device in dict.fromkeys(options.device))
    codegen = defaults.codegen(names, archs, devices) if archs or devices else ""
    asked = [*asks, *held]
    computes = codegen or options.accelerator.removeprefix("none")
    targets = tuple(dict.fromkeys(options.target)) or defaults.target(asked, names, computes)
    from_ = options.from_ or defaults.from_(asks, names)
    several = len(targets) > 1
    contexts = {
        target: _context(target, asked, options, from_, index, named, "" if several else codegen)
        for target in targets
    }
    lines = [part for ask in asked for part in _placed(ask, contexts, index)]
    lines += [ask for context in contexts.values() for ask in context]
    lines += _said(options, from_, named, names)
    aligned = tuple(names.component(name) for name in options.align)
    lone = tuple(name for name in aligned if several and len(_having(name, contexts, index)) <= 1)
    request = Request(
        asks=tuple(lines),
        targets=targets,
        align=tuple(name for name in aligned if name not in lone),
        lone=lone,
        archs=archs,
        devices=devices,
        cpu=_cpu(options.cpu, targets, index) if options.cpu else "",
        prefer=options.prefer,
        min_evidence="" if options.min_evidence == "unknown" else options.min_evidence,
        at=options.at,
        keep=_kept(context) if options.keep else (),
        policies=_policies(targets, options.cpu, index, names) if from_ == "source" else (),
    )
    return request.replace(apart=defaults.apart(request, names)) if several else request


def _said(options: Options, from_: str, named: set[str], names: Names) -> Iterator[Ask]:
    """How a framework gets there, by option or default, and the distribution."""
    if "from" not in named:
        yield Ask(
            component="from",
            selector=from_,
            text=f"--from {from_}",
            option="from",
            implied=not options.from_,
        )
    if options.distro:
        distro = words.distro(names, options.distro)
        if not distro:
            raise words.no_distro(names, options.distro)
        text = f"--distro {options.distro}"
        yield Ask(component="distro", selector=distro, text=text, option="distro")


def _check_forms(line: Sequence[str], names: Names) -> None:
    """Refuse a version apart from its component, and several components in one word, with the form that is read."""
    right = words.joined(line)
    piece = next((word for word in line if words.is_piece(word)), "")
    if piece and (right != [*line] or not piece.startswith(tuple(words.OPERATORS))):
        meant = " ".join(right) if right != [*line] else "NAME==VERSION"
        raise UsageError(
            f"`{piece}` is no component",
            expected="`name==version` in one word",
            found=f"`{' '.join(line)}`",
            help=f"did you mean `{meant}`?",
        )
    for word in line:
        parts = [part.strip() for part in word.split(",")]
        named = [part for part in parts[1:] if part[:1].isalpha()]
        if named and all(names.split(part)[0] for part in parts):
            raise UsageError(
                f"`{word}` names several components",
                expected="one word each",
                found=f"`{word}`",
                help=f"did you mean `{' '.join(parts)}`?",
            )


def _check_words(asks: Sequence[Ask], index: Index) -> None:
    """Refuse what an option says: where the result runs is no component to choose."""
    for ask in asks:
        if index.header["components"][ask.component]["given"] or ask.component == "device":
            option = "target" if ask.component == "machine" else ask.component
            raise UsageError(
                f"`{ask.text}` is no part of an answer",
                expected=f"the option `--{option}`",
                found=f"`{ask.text}`",
                help=f"`toolmatrix help resolve` shows what `--{option}` takes",
            )


def _check_shown(asks: Sequence[Ask], index: Index) -> None:
    """Refuse a request for nothing but what answers do not show: flags, and libraries behind a distro."""
    parts = [index.header["components"][ask.component] for ask in asks]
    if asks and all(part["flag"] or part["hidden"] for part in parts):
        raise UsageError(
            f"`{asks[0].text}` alone makes no answer",
            expected="a component that an answer shows, such as `tensorflow` or `gcc`",
            found=f"`{asks[0].text}`",
            help=f"name it in `--with {asks[0].text}`",
        )


def _context(
    target: str,
    asks: Sequence[Ask],
    options: Options,
    from_: str,
    index: Index,
    named: set[str],
    codegen: str,
) -> list[Ask]:
    """What a target fixes (machine, itself) and the accelerator, asked for or by default."""
    part = index.header["targets"][target]
    said = target in options.target
    found = [
        Ask(
            component=name,
            selector=value,
            text=f"--target {target}",
            option="target",
            target=target,
            implied=not said,
        )
        for name, value in part["context"].items()
    ]
    if "accelerator" not in named:
        accelerator = options.accelerator or defaults.accelerator(
            target, asks, from_, Names(index), codegen
        )
        found.append(
            Ask(
                component="accelerator",
                selector=accelerator,
                text=f"--accelerator {accelerator}",
                option="accelerator",
                target=target,
                implied=not options.accelerator,
            )
        )
    return found


def _placed(ask: Ask, contexts: Mapping[str, Sequence[Ask]], index: Index) -> list[Ask]:
    """A component of one accelerator is asked for on the targets that compute on it, if any do."""
    having = _having(ask.component, contexts, index)
    if index.header["components"][ask.component]["framework"] or not having:
        return [ask]
    return [ask] if len(having) == len(contexts) else [ask.replace(target=name) for name in having]


def _having(component: str, contexts: Mapping[str, Sequence[Ask]], index: Index) -> list[str]:
    """The targets that can have a component: one of an accelerator is for those that compute on it."""
    accelerators = index.header["components"][component]["accelerators"]
    return [
        target
        for target, context in contexts.items()
        if not accelerators
        or any(
            part.component == "accelerator" and part.selector in accelerators for part in context
        )
    ]


def _policies(
    targets: Sequence[str], cpu: str, index: Index, names: Names
) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    found = []
    for target in targets:
        policies = dict(index.header["targets"][target]["policies"])
        for component, release in policies.items():
            wanted = [release]
            if component == "cpu-flag" and cpu:
                wanted[:0] = [f"-mcpu={cpu}+crc", f"-mcpu={cpu}"]
            known = [name for name in wanted if name in names.scale(component).versions]
            if known:
                found.append((target, component, tuple(known)))
    return tuple(found)


def _cpu(name: str, targets: Sequence[str], index: Index) -> str:
    from toolmatrix.solve import flags

    known = flags.cpu_names()
    spelled = [
        release[len("-mcpu=") :]
        for release in index.component("cpu-flag").versions
        if release.startswith("-mcpu=")
    ]
    if name.replace("-", "_") in known or name in known or name in spelled:
        machines = [index.header["targets"][target]["context"]["machine"] for target in targets]
        family = flags.family(name)
        if family and family not in machines:
            raise UsageError(
                f"`--cpu {name}` is no CPU of {' or '.join(dict.fromkeys(machines))}",
                expected=f"a CPU of {' or '.join(dict.fromkeys(machines))}, or another `--target`",
                found=f"`{name}`, which is {family}",
            )
        return name
    raise NothingMatched(
        f"`--cpu {name}`: nobody knows this CPU",
        expected=words.nearest(name, [*spelled, *known]),
        found=f"`{name}`",
        help="names are those of archspec and of -mcpu",
    )


def _kept(context: Context) -> tuple[tuple[str, str, str], ...]:
    from toolmatrix.lock import read

    path = context.options.keep
    held = read.read(path)
    if held.environments and not held.targets:
        raise UsageError(
            f"{path} holds several environments, and none is for a request by itself",
            expected="a lock of one environment, or with one called `default`",
            found=", ".join(sorted(held.environments)),
        )
    return tuple(
        (target, component, release)
        for target, parts in held.targets.items()
        for component, release in parts.chosen.items()
    )


def standing_request(context: Context, words: Sequence[str]) -> Sequence[str]:
    """The words of a request: those given, else the standing request of the configuration."""
    if words or context.configured_request:
        return words or context.configured_request
    raise UsageError(
        "no request to answer",
        expected="a request after the name, or `request` in toolmatrix.toml",
        found="neither",
        help=f"`toolmatrix {context.command.name} cuda tensorflow==2.6.5`",
    )
