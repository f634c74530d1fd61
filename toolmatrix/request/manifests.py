"""What a manifest asks for, as lines of a request: components and selectors by the names that the matrix has.

What the matrix does not know, and what a file leaves open, becomes no line: it is reported apart.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

from toolmatrix.errors import ToolmatrixError
from toolmatrix.factbase.index import Index
from toolmatrix.factbase.pulling import BASE
from toolmatrix.factbase.records import ChannelRecord
from toolmatrix.factbase.versions import SelectorError
from toolmatrix.manifests import names as called
from toolmatrix.manifests.model import (
    CHANNEL,
    CONDA,
    IMAGE,
    MACHINE,
    PIP,
    PLATFORM,
    PYTHON,
    REMOVED,
    SYSTEM,
    VARIABLE,
    Item,
    ManifestEnvironment,
    NotRead,
    Traced,
    too_long,
)
from toolmatrix.processors import MACHINES, architecture, processor
from toolmatrix.request import spelling
from toolmatrix.request.images import NamedImage, named_image
from toolmatrix.request.judgement import (
    ARCH,
    DEVICE,
    RUNTIME,
    MissingRelease,
    RequestedPart,
    RequestedParts,
    exact,
    is_file,
    local_version,
    missing,
    missing_of_conda,
    not_at_indexes,
    older,
    requirements_of,
)
from toolmatrix.request.machine import device_accelerator, device_targets
from toolmatrix.request.names import Names, builds_installed_from
from toolmatrix.solve.parts import SEVERAL
from toolmatrix.solve.request import Ask

_CARRIED = ("cuda", "cudnn", "rocm", "distro")
TOOLKIT = (*_CARRIED, ARCH, "nccl", "gcc", "clang")
"""What lies in an image beside the packages of Python."""


def requested_parts(
    index: Index, environment: ManifestEnvironment, machine: Sequence[Item] = ()
) -> RequestedParts:
    """The lines of a request that an environment makes on a machine with some items."""
    reader = _Reader(Names(index))
    named = {item.name for item in machine}
    for item in environment.items:
        # A machine that is named takes the place of a pasted one.
        runs_there = item.name in named or (item.name in RUNTIME and named & {*RUNTIME})
        if item.kind != MACHINE or not runs_there:
            reader.take(item)
    reader.interpreter(environment.items)
    contained = any(item.kind == IMAGE for item in environment.items)
    own = {part.component for part in reader.parts}
    for item in machine:
        # An image, or an environment with a Python of its own, has the rest from elsewhere.
        if item.name in RUNTIME or not (contained or item.name in own):
            reader.take(item)
    return RequestedParts(
        name=environment.name,
        parts=tuple(reader.effective()),
        machine=reader.machine,
        unknown=(*reader.unknown, *not_at_indexes(environment.items)),
        missing=tuple(reader.missing),
        images=tuple(reader.images),
        unread=tuple(reader.unread),
        written=tuple(reader.parts),
        items=environment.items,
    )


def as_asks(part: RequestedPart) -> Iterator[Ask]:
    """The lines of a part, as a request has them: a distribution is no component to choose."""
    for ask in part.asks:
        yield ask.replace(option="distro") if ask.component == "distro" else ask


def plain(reference: str) -> str:
    """An image without the registry that is meant when none is named, and without a digest."""
    reference = reference.partition("@")[0]
    for prefix in ("docker.io/", "index.docker.io/", "library/"):
        reference = reference.removeprefix(prefix)
    return reference


def unread_bounds(index: Index, parts: Sequence[RequestedPart]) -> set[str]:
    """The independent packages among some parts that others may require at releases that were not read.

    They stay what they would be without their row: packages of which no fact speaks.
    """
    names = {part.component for part in parts}
    independent = {name for name in names if index.is_independent(name)}
    if not independent:
        return independent
    users = [name for name in names if name in index.header["components"]]
    return independent & {name for user in users for name in index.component(user).unbounded}


class _Reader:
    def __init__(self, names: Names) -> None:
        self.names = names
        self.components = names.components
        self.parts: list[RequestedPart] = []
        self.unknown: list[NotRead] = []
        self.missing: list[MissingRelease] = []
        self.images: list[NamedImage] = []
        # Components whose releases a line limits to what the matrix does not know.
        self.unread: set[str] = set()
        self.machine = ""
        self.removed: set[int] = set()

    def take(self, item: Item) -> None:
        """Read one item."""
        if (longer := too_long(item.text)) is not None:
            self.unknown.append(longer)
            return
        reader = {
            IMAGE: self.image,
            PIP: self.package,
            CONDA: self.package,
            SYSTEM: self.system,
            VARIABLE: self.variable,
            PLATFORM: self.platform,
            MACHINE: self.machine_part,
            REMOVED: self.remove,
            CHANNEL: self.channel,
        }.get(item.kind, self.component)
        reader(item)

    def channel(self, item: Item) -> None:
        """A channel of conda, whose builds may be others than those that facts are about."""
        if not called.is_known_channel(item.name):
            why = "the packages of this channel of conda were not read"
            self.unknown.append(NotRead(text=item.text, why=why, decides=True))

    def effective(self) -> Iterator[RequestedPart]:
        """The parts that hold in the end: what is installed later takes the place of what was there."""
        named: dict[str, list[RequestedPart]] = {}
        for part in self.parts:
            if part.component not in SEVERAL and id(part) not in self.removed:
                named.setdefault(part.component, []).append(part)
        required = self.required()
        left = {
            id(part) for name, parts in named.items() for part in self.last(name, parts, required)
        }
        apart = unread_bounds(self.names.index, self.parts)
        for part in self.parts:
            if part.component in SEVERAL or (id(part) in left and part.component not in apart):
                yield part

    def remove(self, item: Item) -> None:
        """Take away what was installed until then."""
        component = self.names.called(item.name)
        self.removed |= {
            id(part) for part in self.parts if part.component == component and not part.item.bounds
        }

    def last(
        self, component: str, parts: Sequence[RequestedPart], required: Collection[str]
    ) -> Sequence[RequestedPart]:
        """The parts of a component that hold together: of the last command, and what bounds it there."""
        requirements = [part for part in parts if not part.item.bounds]
        overrides = [part for part in parts if part.item.overrides]
        if not requirements and component not in required:
            return ()
        if overrides or not requirements:
            return _tightest(self.names, overrides or parts)
        item = requirements[-1].item
        if item.kind not in (PIP, CONDA):
            return requirements[-1:]
        same = [part for part in parts if _installation(part.item) == _installation(item)]
        return _tightest(self.names, same)

    def required(self) -> set[str]:
        """The components that what is asked for requires, as far as a constraint is about any."""
        index = self.names.index
        if not any(part.item.bounds for part in self.parts):
            return set()
        return {
            name
            for part in self.parts
            if not part.item.bounds and part.component not in SEVERAL
            for name in requirements_of(index, part)
        }

    def add(
        self,
        component: str,
        selector: str,
        item: Item,
        text: str = "",
        version: Traced | None = None,
        *,
        carried: bool = False,
    ) -> None:
        """A part about a component with releases, reported as unknown where the matrix has none of them."""
        # A matrix of one's own may have none of it.
        if component not in self.components:
            return
        text = text or f"{component}{selector if selector[:1] in '<>=!~' else f' {selector}'}"
        try:
            admitted = self.names.scale(component).select(selector or "*")
        except SelectorError:
            admitted = 0
        if not admitted:
            self.unread.add(component)
            self.unknown.append(NotRead(text=item.text, why=self.lacking(component, selector)))
            return
        ask = Ask(component=component, selector=selector or "*", text=text)
        self.parts.append(
            RequestedPart(
                component=component,
                asks=(ask,),
                text=text,
                item=item,
                version=version,
                carried=carried,
                older=older(self.names.index, component, ask.selector),
            )
        )

    def lacking(self, component: str, selector: str) -> str:
        versions = self.names.scale(component).versions
        named = self.components[component]["scheme"] == "names" or not versions
        known = "" if named else f"; its releases are {versions[0]} to {versions[-1]}"
        return f"the matrix knows no {component} {selector}{known}"

    def image(self, item: Item) -> None:
        """A base image: by what facts say of its name, else by its tag."""
        name = plain(item.name)
        match = called.image(name)
        image = named_image(self.names.index, item, name)
        self.images += [image] if image else []
        groups = called.contents(match) if match else {}
        carried = {component: match[group] for component, group in groups.items()} if match else {}
        start = item.name.find(name)
        spans = {key: item.text[start:].group(match, groups[key]) for key in carried if match}
        known = self.names.scale(BASE).versions if BASE in self.components else ()
        if same := next((tag for tag in (name, called.alike(name)) if tag in known), ""):
            carried |= dict(self.carried(same))
        elif not match and not (image and image.availability.pulls == "no"):
            self.unknown.append(
                NotRead(text=item.text, why="the contents of this image are unknown")
            )
        for component, value in carried.items():
            span = spans.get(component)
            if component in ("codename", "distro"):
                if "distro" not in self.components:
                    continue
                distro = spelling.distro(self.names, value)
                if distro:
                    text = f"distro {distro} of {name}"
                    self.add("distro", distro, item, text, span, carried=True)
            else:
                text = f"{component} {value} of {name}"
                self.add(component, f"=={value}", item, text, span, carried=True)

    def carried(self, name: str) -> Iterator[tuple[str, str]]:
        """The components that facts say an image has, with their releases as they were printed."""
        index, bit = self.names.index, self.names.scale(BASE).bit(name)
        for component in _CARRIED:
            for binding in index.component(BASE).about(component, bit):
                cites = [
                    cite
                    for cite in index.cites(binding.cites)
                    if binding.kind == "requires" and binding.mask & bit and cite.touches(bit)
                ]
                if cites and not binding.conditions:
                    yield component, index.claim(cites[0].record).selector.removeprefix("==")
                    break

    def package(self, item: Item) -> None:
        """A package of the index or of conda."""
        name = called.package_name(item.name)
        known = called.of_conda(name) if item.kind == CONDA else ""
        # `arch` and `cuda` are packages of the index too, and none of what the matrix calls so.
        is_package = name in self.names.index.packages()
        component = known or (self.names.called(name) if is_package else "")
        # Most packages are no components of the matrix, and are not reported.
        if component not in self.components:
            return
        if component == "python":
            self.component(item)
            return
        package = name if not known else component
        # Tables have `*` where a requirement has no specifier.
        selector = item.specifier.replace(" ", "").removeprefix("*")
        if " | " in item.specifier:
            selector = item.specifier
        if self.names.index.is_independent(component) and not self.lists(component, selector):
            return
        if item.kind == CONDA or "===" in selector:
            self.add(component, selector, item, item.text.text, item.version)
            # A release that the matrix does not know was not added.
            added = bool(self.parts) and self.parts[-1].item is item
            if item.kind == CONDA and added and (absent := missing_of_conda(self.parts[-1])):
                self.missing.append(absent)
                del self.parts[-1]
            return
        self.build(item, component, package, exact(self.names.scale(component), selector))

    def lists(self, component: str, selector: str) -> bool:
        """True if the matrix knows releases that a selector admits."""
        try:
            return bool(self.names.scale(component).select(selector or "*"))
        except SelectorError:
            return False

    def build(self, item: Item, component: str, package: str, selector: str) -> None:
        """A package that may name one of several builds, by its name, an extra, a local version or an index."""
        text = item.text.text
        # A table of a project has the name before the version.
        if item.version is not None and len(item.version) == len(item.text):
            text = f"{item.name} {text}"
        variants = self.names.index.builds_of(component)
        extras = f"[{','.join(item.extras)}]" if item.extras and variants else ""
        # An extra that no build is known by brings other packages.
        spellings = dict.fromkeys((f"{package}{extras}{selector}", f"{package}{selector}"))
        asks: list[Ask] = next(filter(None, map(self.names.known_asks, spellings)), [])
        if not asks:
            self.lack(item, component, package, selector, self.lacking(component, selector))
            return
        local = bool(local_version(item))
        if local and not self.came_from_elsewhere(component):
            self.lack(item, component, package, selector, "", asks)
            return
        index = self.names.index
        if variants and (address := _without_builds(index, item, variants)):
            why = f"the matrix knows no builds at {address}"
            self.lack(item, component, package, selector, why, decides=True)
            return
        known, limits = indexed(index, item, variants) if variants else (not item.indexes, "")
        # The address of a wheel leads to that build alone, which its local version names.
        if variants and len(asks) > 1 and is_file(item):
            known, limits = True, ""
            text = text.rpartition("/")[2]
        # A local version is of an index that nothing names.
        if (item.installed or local) and "+" in selector:
            limits = ""
        # A package with a source distribution may be built for whatever is there.
        if limits and component in called.wheels_alone():
            own = self.packaged(asks, variants, limits, package, item)
            if len(asks) > 1 and not own:
                why = f"the matrix knows no build of {text} on the indexes of the file"
                self.lack(item, component, package, selector, why)
                return
            if own:
                asks = [asks[0], Ask(component=variants, selector=own, text=text)]
        self.parts.append(
            RequestedPart(
                component=component,
                asks=tuple(ask.replace(text=text) for ask in asks),
                text=text,
                item=item,
                version=item.version,
                open=not known,
                older=older(self.names.index, component, asks[0].selector),
            )
        )

    def came_from_elsewhere(self, component: str) -> bool:
        """True if what was there before a line may be a build of an index of its own."""
        return any(
            part.component == component and (part.item.indexes or part.item.kind != PIP)
            for part in self.parts
        )

    def lack(
        self,
        item: Item,
        component: str,
        package: str,
        selector: str,
        why: str,
        asks: Sequence[Ask] = (),
        *,
        decides: bool = False,
    ) -> None:
        """Record a release that the matrix does not know, or knows not to exist where the file looks for it."""
        text = item.text.text
        named = tuple(asks) or (Ask(component=component, selector=selector, text=text),)
        part = RequestedPart(
            component=component, asks=named, text=text, item=item, version=item.version
        )
        self.unread.add(component)
        if release := missing(self.names.index, part, package):
            self.missing.append(release)
        else:
            self.unknown.append(NotRead(text=item.text, why=why, decides=decides))

    def packaged(
        self, asks: Sequence[Ask], variants: str, limits: str, package: str, item: Item
    ) -> str:
        """A selector of the builds on some indexes that a package with its extras installs; empty where none is."""
        facts, scale = self.names.index.component(variants), self.names.scale(variants)
        available, own = scale.select(limits), 0
        for ask in asks[1:]:
            available &= scale.select(ask.selector)
        # `onnxruntime` and `onnxruntime-gpu` are packages of one component, each with builds of its own.
        for name, mask in facts.packages.items():
            base, _, bracketed = name.rstrip("]").partition("[")
            if base == package and {*filter(None, bracketed.split(","))} <= {*item.extras}:
                own |= mask
        beside = scale.select("*@default/*") if item.indexes and not item.alone else 0
        admitted = self.names.scale(asks[0].component).select(asks[0].selector) if beside else -1
        releases: dict[int, int] = {}
        for binding in facts.about(asks[0].component, available):
            if binding.allowed & admitted:
                left = releases.get(binding.allowed, 0)
                releases[binding.allowed] = left | binding.mask & available
        # Of a release whose builds have no such package any of them may be meant.
        left = sum(
            self.sorted_first(variants, mask & own or mask, beside) for mask in releases.values()
        )
        if left == available and len(asks) == 1:
            return limits if available else ""
        return " ".join(scale.named(left))

    def sorted_first(self, variants: str, builds: int, default: int) -> int:
        """The builds of a release that pip takes: with a local version it is newer than on the default index."""
        machines = self.names.scale("machine")
        for machine in machines.versions if builds & default and builds & ~default else ():
            own = builds
            for binding in self.names.index.component(variants).about("machine", builds):
                if not binding.conditions and not binding.allowed & machines.bit(machine):
                    own &= ~binding.mask
            if own & ~default:
                builds &= ~(own & default)
        return builds

    def system(self, item: Item) -> None:
        """A package of the distribution."""
        match = called.system(item.name)
        for component, value in match.groupdict().items() if match else ():
            # That a Python is installed does not say which of several is used.
            if value and component != "python":
                version = value.replace("-", ".")
                span = item.text.group(match, component) if match else None
                self.add(
                    component, f"=={version}", item, f"{component} {version} of {item.name}", span
                )

    def component(self, item: Item) -> None:
        """A component by its own name."""
        if item.kind not in self.components and item.kind not in (PYTHON, CONDA):
            return
        text = item.text.text
        if item.name == "python":
            text = text if text.startswith("python") else f"python {item.specifier}"
            self.add("python", _series(item.specifier), item, text, item.version)
        else:
            self.add(item.name, item.specifier, item, f"{item.name} {text}", item.version)

    def machine_part(self, item: Item) -> None:
        """A component that the machine has."""
        text, selector = item.text.text, item.specifier
        if item.installed:
            selector = self.printed(item)
            text = text if item.name == DEVICE else f"{item.name} {text}"
        elif item.name != DEVICE:
            selector = self.names.as_listed(item.name, selector)
        if item.name != DEVICE:
            if selector:
                self.add(item.name, selector, item, text if item.name in text else "")
            return
        # Of several devices code has to run on each.
        ask = Ask(component=DEVICE, selector=selector, text=text, option=DEVICE)
        others = [part.asks[0] for part in self.parts if part.component == DEVICE]
        accelerator = partial(device_accelerator, self.names.index)
        if others and selector and accelerator(others) != accelerator((ask,)):
            why = f"packages are judged for {others[0].text}, which is of another kind"
            self.unknown.append(NotRead(text=item.text, why=why))
        elif selector and selector not in [other.selector for other in others]:
            self.parts.append(RequestedPart(component=DEVICE, asks=(ask,), text=text, item=item))

    def printed(self, item: Item) -> str:
        """What a tool prints of a machine, by the name of the matrix; nothing for what that does not know."""
        if item.name not in self.components:
            return ""
        name = item.specifier.removeprefix("==")
        selector = item.specifier
        if item.name == DEVICE:
            with suppress(ToolmatrixError):
                return spelling.device(self.names, name)
            selector = ""
        elif item.name == "distro":
            selector = spelling.distro(self.names, name)
        elif item.name in ("driver", "glibc"):
            # Facts are floors: an unlisted one is the listed one below it.
            scale = self.names.scale(item.name)
            below = scale.select(f"<={name}")
            selector = f"=={scale.versions[below.bit_length() - 2]}" if below else ""
        if not selector:
            why = f"the matrix knows no such {item.name}"
            self.unknown.append(NotRead(text=item.text, why=why))
        return selector

    def variable(self, item: Item) -> None:
        """Codegen archs that a variable lists."""
        syntax = called.variables()[item.name]
        if ARCH not in self.components:
            return
        for match in re.finditer(r"[^\s;,]+", item.specifier):
            archs = [
                arch
                for arch in _archs(syntax["words"], match[0])
                if arch in self.names.scale(ARCH).versions
            ]
            if not archs:
                why = "the matrix knows no such codegen arch"
                self.unknown.append(NotRead(text=item.text.group(match, 0), why=why))
                continue
            span = item.text.group(match, 0) if len(item.text) == len(item.specifier) else None
            text = f"arch {match[0]} of {item.name}"
            own = item.replace(text=span) if span else item
            for arch in archs:
                ask = Ask(component=ARCH, selector=arch, text=text, option=ARCH)
                self.parts.append(
                    RequestedPart(component=ARCH, asks=(ask,), text=text, item=own, version=span)
                )

    def platform(self, item: Item) -> None:
        """The machine of a platform such as `linux/arm64`."""
        machine = processor(architecture(item.name)).kernel
        # Of an image for a browser or a mainframe nothing is known: it is judged as one for any machine.
        self.machine = machine if machine in MACHINES else self.machine

    def interpreter(self, items: Sequence[Item]) -> None:
        """The Python that packages are installed for, where exactly one is known."""
        if any(part.component == "python" for part in self.parts):
            return
        called_for = {item.python: item for item in items if item.kind == PIP and item.python}
        if len(called_for) == 1:
            series, item = next(iter(called_for.items()))
            self.add("python", f"=={series}", item, f"the Python {series} that pip uses")
            return
        system = [item for item in items if item.kind == SYSTEM]
        matches = filter(None, (called.system(item.name) for item in system))
        others = any("python" in match.re.groupindex for match in matches)
        own = [item for item in system if called.brings_python(item.name)]
        conda = any(item.kind == CONDA for item in items)
        # Several may be there, and it is unknown which of them pip installs for.
        if others or conda or called_for or not own:
            return
        distro = next(
            (part.asks[0].selector for part in self.parts if part.component == "distro"), ""
        )
        series = called.python_of(distro)
        if series:
            self.add(
                "python", f"=={series}", own[0], f"Python {series}, the {own[0].name} of {distro}"
            )


def indexed(index: Index, item: Item, variants: str) -> tuple[bool, str]:
    """Whether it is known what all indexes have of an item, and a selector of the builds on them."""
    selectors = [] if item.alone else ["*@default/*"]
    for address in item.indexes:
        lines = [
            line
            for name in index.channels()
            if (line := builds_at(index.channel(name), name, address))
            # That a channel has builds of one component says nothing of another.
            and index.scale(variants).select(line)
        ] or builds_installed_from(index, variants, address)
        if not lines:
            return False, ""
        selectors += lines
    return True, " ".join(selectors)


def _without_builds(index: Index, item: Item, variants: str) -> str:
    """The only index of an item, if it would be a line of a channel that has builds, and none of that line."""
    if not item.alone or len(item.indexes) != 1:
        return ""
    (address,) = item.indexes
    scale = index.scale(variants)
    lines = {
        name: line
        for name in index.channels()
        if (line := builds_at(index.channel(name), name, address)).startswith("*+")
        and scale.select(f"*@{name}/*")
    }
    return address if lines and not any(map(scale.select, lines.values())) else ""


def _installation(item: Item) -> tuple[str, str, str]:
    return item.kind, item.command, called.package_name(item.name)


def _tightest(names: Names, parts: Sequence[RequestedPart]) -> list[RequestedPart]:
    """Some parts of a component without those that another one implies."""
    masks = [names.scale(part.component).select(part.asks[0].selector) for part in parts]
    builds = [[ask.selector for ask in part.asks[1:]] for part in parts]

    def implied(at: int) -> bool:
        return any(
            not mask & ~masks[at]
            and (mask != masks[at] or other > at)
            and builds[at] in ([], builds[other])
            for other, mask in enumerate(masks)
            if other != at
        )

    return [part for at, part in enumerate(parts) if not implied(at)]


def _archs(patterns: Mapping[str, Sequence[str]], word: str) -> list[str]:
    """The archs that a word of a variable names."""
    for pattern, archs in patterns.items():
        match = re.fullmatch(pattern, word)
        if match:
            return [arch.format(*match.groups()) for arch in archs]
    return []


def _series(specifier: str) -> str:
    """A version of Python as its series, which is all that matters to packages: `==3.10.4` is `==3.10`."""
    return re.sub(r"==(\d+\.\d+)(?:\.\d+)+(?![\d.*])", r"==\1", specifier).replace(".*", "")


def builds_at(channel: ChannelRecord, name: str, address: str) -> str:
    """A selector of the builds of a channel that an address leads to, empty where it leads to none."""
    # An index beside the files of a release page has only what they require.
    is_beside = channel.kind == "releases" and "-f" not in channel.install
    match = None if is_beside else match_address(channel.install, address)
    line = match.groupdict().get("line") if match else ""
    if not match:
        return ""
    return f"*+{line}@{name}/*" if line else f"*@{name}/*"


def match_address(install: Sequence[str], address: str) -> re.Match[str] | None:
    """The match of the address of a channel, with its `line`, such as cu128, where it has one."""
    for word in install:
        if "://" in word:
            pattern = re.escape(word.rstrip("/")).replace(re.escape("{line}"), r"(?P<line>[\w.]+)")
            match = re.fullmatch(pattern, address.rstrip("/"))
            if match:
                return match
    return None


def targets(index: Index, parts: RequestedParts, machine: Sequence[str] = ()) -> list[str]:
    """The targets that an environment may be for, the likeliest first: of one that is said, no other."""
    heads = index.header["targets"]
    devices = [part for part in parts.parts if part.component == DEVICE]
    if devices and not machine:
        products = [(part.asks[0].selector, part.text) for part in devices]
        machine = device_targets(index, [device for device, _ in products], products)
    known = [name for name in machine if parts.machine in ("", heads[name]["context"]["machine"])]
    if known:
        return known
    rocm = any(_of_rocm(index, part) for part in parts.parts)
    fitting = [
        name
        for name, head in heads.items()
        if parts.machine in ("", head["context"]["machine"])
        and (head["accelerator"] == "rocm") == rocm
    ]
    return fitting or list(heads)


def _of_rocm(index: Index, part: RequestedPart) -> bool:
    if part.item.kind == VARIABLE:
        return str(called.variables()[part.item.name]["of"]) == "rocm"
    for ask in part.asks:
        name = index.header["components"][ask.component]["variant_of"]
        if name and "rocm" in ask.selector and "cu" not in ask.selector.replace("rocm", ""):
            return True
    return list(index.header["components"][part.component]["accelerators"]) == ["rocm"]
