"""The builds that an answer installs: how each differs from the others, what is inside, and what installs it."""

from __future__ import annotations

from toolmatrix.documents import Annotated, Literal, NotRequired, TypedDict
from toolmatrix.factbase.evidence import UNKNOWN
from toolmatrix.report import pins
from toolmatrix.solve.flags import PTX
from toolmatrix.solve.preferences import limits
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.solve.resolve import Resolution
    from toolmatrix.solve.support import Choice

NOT_ISOLATED = "--no-build-isolation"
"""The option by which pip compiles with what is installed."""
_BUILD_TOOLS = ("setuptools", "wheel")
_UNQUOTED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@%+=:,./-_")
"""What no shell takes for anything else."""


class BuildForm(TypedDict):
    """A build by what distinguishes it from others."""

    name: str
    """The release with its line: `2.7.1+cu118`."""
    channel: str
    line: str
    machine: str
    accelerator: str
    abi: str
    sass: list[str] | None
    """Codegen archs with machine code; null where unknown."""
    ptx: list[str] | None
    """Codegen archs that the driver compiles; null where unknown."""
    install: Annotated[dict[str, str], "pip", "uv"]
    """The command that installs it, by tool."""
    build: str
    """Its name among the builds of all releases."""
    requirements: list[str]
    arguments: list[str]
    """What pip gets beside the requirements."""
    partly: NotRequired[Literal[True]]
    """Not all of it was read: it may hold code for more archs."""


class Variant(Value):
    """One build of a component: `archs` are None where unknown, `partly` where it may hold more.

    `extras` are by frameworks those of the package that pip compiles for them where it is installed.
    """

    component: str
    build: str
    release: str
    line: str
    channel: str
    channel_title: str
    machine: str
    accelerator: str
    abi: str
    archs: tuple[str, ...] | None
    partly: bool
    requirement: str
    arguments: tuple[str, ...]
    extras: Mapping[str, str] = {}

    @property
    def local(self) -> str:
        """The release with its line, as PyTorch and others write it: `2.7.1+cu118`."""
        return f"{self.release}+{self.line}"


def of(index: Index, choices: Iterable[Choice]) -> Iterator[Variant]:
    """The builds among the choices of a target."""
    components = index.header["components"]
    chosen = list(choices)
    python = next((choice.version for choice in chosen if choice.component == "python"), "")
    for choice in chosen:
        if components[choice.component]["variant_of"]:
            yield build(index, choice.component, choice.version, python)


def build(index: Index, component: str, name: str, python: str = "") -> Variant:
    """One build of a component of builds, by its name; where its file is one for each Python, that of the newest."""
    attributes = index.release(index.number(f"{component}=={name}")).attributes
    channel = index.channel(attributes["channel"])
    return Variant(
        component=index.header["components"][component]["variant_of"],
        build=name,
        release=attributes["release"],
        line=attributes["line"],
        channel=attributes["channel"],
        channel_title=channel.title,
        machine=attributes["machine"],
        accelerator=attributes["accelerator"],
        abi=attributes.get("abi", ""),
        # A build that was not inspected may contain anything, which is not the same as nothing.
        archs=None if attributes["archs"] == "unknown" else tuple(attributes["archs"].split()),
        partly="at-least" in attributes,
        requirement=_for_python(attributes["install"], python or _newest(index, component, name)),
        extras=dict(extra.split("=") for extra in attributes.get("extras", "").split()),
        arguments=tuple(word.replace("{line}", attributes["line"]) for word in channel.install),
    )


def _for_python(install: str, python: str) -> str:
    if "{" not in install:
        return install
    tag = "cp" + python.replace(".", "")
    # CPython had this letter in its ABI tag as long as it could be built without its own allocator (bpo-36707).
    letter = "m" if tag.removeprefix("cp3") in [*"01234567"] else ""
    return install.replace("{python}", tag).replace("{abitag}", tag + letter)


def _newest(index: Index, component: str, name: str) -> str:
    """The newest Python that facts allow with a build."""
    if "python" not in index.header["components"]:
        return ""
    allowed = limits(index, component, "python", index.scale(component).bit(name))
    pythons = index.component("python").versions
    admitted = [version for bit, version in enumerate(pythons) if allowed >> bit & 1]
    return admitted[-1] if admitted else ""


def preferred(index: Index, resolution: Resolution, choice: Choice, other: str) -> str:
    """The rule by which a build was taken and another one was not."""
    mine = build(index, choice.component, choice.version)
    another = build(index, choice.component, other)
    chosen = resolution.targets[choice.target]
    devices = [choice.version for choice in chosen if choice.component == "device"]
    # In the order in which the solver prefers builds: see `solve.preferences`.
    if any(_native(index, mine, name) > _native(index, another, name) for name in devices):
        return "machine code for the device comes before code that the driver compiles, by rule native-sass"
    if mine.accelerator != another.accelerator:
        return f"a build for {mine.accelerator} alone comes first, by rule one-accelerator"
    default = index.channel(mine.channel).default
    if mine.channel != another.channel and default:
        return f"{mine.channel_title} comes first, by rule default-channel"
    return f"the newest line comes first, which is {mine.line}, by rule newest-line"


def _native(index: Index, variant: Variant, device: str) -> bool:
    # A driver compiles PTX for any later device, so only machine code shows that a build was made for this one.
    runs = limits(index, "device", "arch", index.scale("device").bit(device))
    archs = index.scale("arch")
    return any(runs & archs.bit(name) for name in variant.archs or () if not name.startswith(PTX))


def commands(index: Index, resolution: Resolution, target: str, tool: str = "pip") -> list[str]:
    """The commands that install what was asked for in a target, none where one of its packages would be missing."""
    choices = resolution.targets[target]
    builds = {build.component: build for build in of(index, choices)}
    chosen = resolution.chosen(target)
    wheels = any(
        ask.component == "from" and ask.selector == "wheel" and ask.target in ("", target)
        for ask in resolution.request.asks
    )
    besides = []
    for name in dict.fromkeys(resolution.request.wanted):
        head = index.header["components"][name]
        if name in builds:
            continue
        if not head["variants"] and wheels and name in chosen and on_index(index, name):
            besides.append(f"{name}=={chosen[name]}")
        elif head["variants"] or head["framework"] or on_index(index, name):
            return []
    besides += [*pins.kept(index, resolution, target), *bounds(index, resolution, target)]
    return installs([with_extras(build, chosen) for build in builds.values()], tool, besides)


def bounds(index: Index, resolution: Resolution, target: str) -> Iterator[str]:
    """Requirements that keep libraries of builds from releases that left out a device of the answer.

    An extra of a build names a range of a library, of which an installer takes the newest.
    """
    chosen = resolution.chosen(target)
    owners = carried(index, resolution, target) if "device" in chosen else {}
    if not owners:
        return
    from toolmatrix.manifests.names import library_packages

    for library, package in library_packages().items():
        builds = [
            choice
            for choice in resolution.targets[target]
            if index.header["components"][choice.component]["variant_of"] == owners.get(library)
        ]
        scale = index.scale(library)
        newer = scale.everything & -(scale.bit(chosen.get(library, "")) << 1)
        admitted = [
            binding.allowed & newer
            for build in builds
            for binding in index.component(build.component).about(
                library, index.scale(build.component).bit(build.version)
            )
        ]
        newest = 1 << max(admitted, default=0).bit_length() >> 1
        if newest > 1 and _leaves_out(index, library, newest, chosen):
            name = package.format(cuda=chosen.get("cuda", "").partition(".")[0])
            yield f"{name}<={chosen[library]}"


def _leaves_out(index: Index, library: str, release: int, chosen: Mapping[str, str]) -> bool:
    """True if a release of a library does not run on the device of an answer, beside the rest of it."""
    device = index.scale("device").bit(chosen["device"])
    return any(
        not binding.allowed & device
        for binding in index.component(library).about("device", release)
        if binding.kind == "limits"
        and binding.evidence != UNKNOWN
        and all(
            index.scale(name).bit(chosen.get(name, "")) & mask
            for name, mask in binding.conditions.items()
        )
    )


def on_index(index: Index, name: str) -> bool:
    """Check whether releases of a component were read from the package of its name on the package index."""
    if index.is_independent(name):
        return True
    sources = {index.release(number).source for number in index.component(name).releases}
    # The address of such a source begins like this: `package NAME, final releases 1.0 to 2.0`.
    return any(index.source(source).at.startswith(f"package {name},") for source in sources)


def with_extras(build: Variant, chosen: Mapping[str, str]) -> Variant:
    """A build with the extras for the frameworks beside it, which pip compiles against those that are installed."""
    extras = [extra for framework, extra in build.extras.items() if framework in chosen]
    if not extras:
        return build
    name, pin, release = build.requirement.partition("==")
    package, _, existing = name.removesuffix("]").partition("[")
    return build.replace(
        requirement=f"{package}[{','.join(filter(None, (existing, *extras)))}]{pin}{release}",
        arguments=(*build.arguments, NOT_ISOLATED),
    )


def installs(
    variants: Sequence[Variant],
    tool: str = "pip",
    besides: Sequence[str] = (),
    compiled: Sequence[str] = (),
) -> list[str]:
    """The commands that install builds, one for each channel, and other packages of the default index beside them.

    Packages of other indexes are installed before those that may need them, and what is `compiled` beside them last.
    """
    by_channel: dict[tuple[str, ...], list[str]] = {}
    for variant in variants:
        by_channel.setdefault(variant.arguments, []).extend(variant.requirement.split())
    if besides:
        by_channel.setdefault((), []).extend(besides)
    if compiled:
        # An environment of uv, or of Python 3.12, begins without them.
        by_channel.setdefault((), []).extend(_BUILD_TOOLS)
        by_channel.setdefault((NOT_ISOLATED,), []).extend(compiled)
    if not by_channel:
        return []
    start = ["pip", "install"] if tool == "pip" else ["uv", "pip", "install"]
    return [
        " ".join(map(_quoted, [*start, *dict.fromkeys(by_channel[arguments]), *arguments]))
        for arguments in sorted(by_channel, key=_install_order)
    ]


def _quoted(word: str) -> str:
    if _UNQUOTED.issuperset(word):
        return word
    # It takes a third of the time of a short answer to import what quotes.
    import shlex

    return shlex.quote(word)


def _install_order(arguments: tuple[str, ...]) -> int:
    return 2 if NOT_ISOLATED in arguments else 1 - bool(arguments)


def document(variant: Variant) -> BuildForm:
    """A build as JSON values; `sass` and `ptx` are null where the content is unknown."""
    archs = variant.archs
    form: BuildForm = {
        "build": variant.build,
        "name": variant.local,
        "channel": variant.channel,
        "line": variant.line,
        "machine": variant.machine,
        "accelerator": variant.accelerator,
        "abi": variant.abi,
        "sass": None if archs is None else [name for name in archs if not name.startswith(PTX)],
        "ptx": None if archs is None else [name for name in archs if name.startswith(PTX)],
        "install": {tool: installs([variant], tool)[0] for tool in ("pip", "uv")},
        "requirements": variant.requirement.split(),
        "arguments": list(variant.arguments),
    }
    if variant.partly:
        form["partly"] = True
    return form


def carried(index: Index, resolution: Resolution, target: str) -> dict[str, str]:
    """The toolkit and libraries that a build brings, inside it or as packages: component to the one that brings it."""
    from toolmatrix.solve.demand import inside

    components = index.header["components"]
    chosen = resolution.chosen(target)
    owners = {}
    for choice in resolution.targets[target]:
        owner = components[choice.component]["variant_of"]
        if owner:
            bit = index.scale(choice.component).bit(choice.version)
            for about, builds in inside(index, choice.component, bit).items():
                if about in chosen and builds & bit:
                    owners[about] = owner
    return owners
