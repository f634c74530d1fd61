"""Findings of `toolmatrix judge`: what a file of a project asks for, beside the facts."""

from __future__ import annotations

from toolmatrix.finding import Finding
from toolmatrix.wording import listing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolmatrix.errors import Position
    from toolmatrix.finding import Words


def short(text: str) -> str:
    """What a part is, without where it comes from: `cuda 12.0.1` of `cuda 12.0.1 of nvidia/cuda:12.0.1-devel`."""
    return text.partition(" of ")[0].partition(", ")[0]


class ManifestFinding(Finding):
    """What a file asks for; `places` are the positions of `asked`, and `environment` is the stage or service."""

    code: str = ""
    asked: tuple[str, ...]
    positions: tuple[Position, ...]
    environment: str = ""

    @property
    def reason(self) -> str:
        """Why, where no fact about two of them is behind it."""
        return ""

    @property
    def named(self) -> str:
        """All that was asked for, in a few words each."""
        return listing([short(requirement) for requirement in self.asked])


class RefusedTogether(ManifestFinding):
    """What a file asks for, and a hard fact refuses."""

    code: str = "TM106"

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return f"{self.named} {'conflict' if len(self.asked) > 1 else 'is not available'}"

    @property
    def reason(self) -> str:
        """Lines about one package need no fact."""
        return f"no release of {self.component} satisfies all of them"


class NotOnIndex(RefusedTogether):
    """A release of which the only index that a file names has no build."""

    code: str = "TM106"
    address: str

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return f"{self.named} is not at {self.address}"

    @property
    def reason(self) -> str:
        """What the index has in its place."""
        return f"all builds of {self.component} there are of other releases"


class BuiltBySource(ManifestFinding):
    """What a file asks for, and of which there is no wheel for the rest of it."""

    code: str = "TM107"
    advice: str = "take a release with a wheel, or install the compiler and headers in the file"

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return f"no wheel for {self.named}: pip compiles a source distribution, if there is one"


class NoSuchRelease(ManifestFinding):
    """A release that a file pins, and that was not in the list of its package; `near` are its neighbours."""

    code: str = "TM108"
    release: str
    near: tuple[str, ...]
    instead: str

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return f"{self.named} is not available"

    @property
    def reason(self) -> str:
        """What the list has in its place, and when it was read."""
        return self.instead


class NoLocalVersion(ManifestFinding):
    """A release with a local version, which a file looks for on the package index; `options` lead to one with it."""

    code: str = "TM108"
    release: str
    options: tuple[str, ...]

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return f"{self.named} is not on the package index"

    @property
    def reason(self) -> str:
        """What the index never has."""
        local = self.release.partition("+")[2]
        return f"the package index takes no local versions such as +{local}, and the file names no other index"

    def help(self) -> str:
        """What names the index that has it."""
        return f"add {' '.join(self.options)}" if self.options else "name the index that has it"


class ImageGone(ManifestFinding):
    """An image that cannot be pulled since a day; `near` are others that can, and `recipe` is the address of its own.

    The nearest `moves` to another major release.
    """

    code: str = "TM118"
    image: str
    since: str
    near: tuple[str, ...]
    moves: bool
    recipe: str

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return f"{self.image} cannot be pulled"

    @property
    def reason(self) -> str:
        """The day by which lists no longer have it."""
        return f"it is not among its tags as of {self.since}"

    def help(self) -> str:
        """The nearest image, and what builds the one that is gone."""
        near = self.near[0] if self.near else ""
        begin = f"begin with {near}" + (", of another major release" if self.moves else "")
        build = f"build it from its recipe ({self.recipe})" if self.recipe else ""
        advice = [begin if near else "", build]
        if self.moves:
            advice.reverse()
        return ", or ".join(filter(None, advice)) or "name a tag that its repository has"


class NeverBuilt(ManifestFinding):
    """An image of a framework and a toolkit for which no build of the framework is known."""

    code: str = "TM118"
    image: str
    release: str
    toolkit: str

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return f"{self.image} cannot have been published"

    @property
    def reason(self) -> str:
        """What it would have to contain."""
        return f"{self.release} has no build for {self.toolkit}"

    def help(self) -> str:
        return "name a tag that its repository has"


class MirrorsGone(ManifestFinding):
    """An image that is there, and in which packages of its distribution cannot be installed as it is."""

    code: str = "TM119"
    image: str
    why: str

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return f"packages cannot be installed in {self.image} as it is"

    @property
    def reason(self) -> str:
        """What it lacks."""
        return self.why


class ExternallyManaged(ManifestFinding):
    """Commands of pip that stop, as the Python of the distribution is externally managed (PEP 668)."""

    code: str = "TM122"
    advice: str = "install in a virtual environment, or set PIP_BREAK_SYSTEM_PACKAGES=1 in an image for this alone"
    distro: str

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return f"pip installs nothing for the Python of {self.distro}"

    @property
    def reason(self) -> str:
        """What stops it."""
        return "it is externally managed (PEP 668)"


class StubPackage(ManifestFinding):
    """A package whose release stops the installer, or that is not on the index, and the one to ask for `instead`."""

    code: str = "TM123"
    instead: str
    why: str

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return f"{self.named} cannot be installed"

    @property
    def reason(self) -> str:
        """What its release does, or that there is none."""
        return self.why

    def help(self) -> str:
        """The name to use."""
        return f"ask for {self.instead}"


class Replaced(ManifestFinding):
    """A package that a later command replaces, and what it leaves behind; `pins` prevent it, `kept` is the old one.

    `takes` is the newest release that requires it, if no line names that; `instead` is the nearest to ask for.
    """

    code: str = "TM109"
    line: str
    takes: str
    old: str
    old_line: str
    new: str
    left: tuple[str, ...]
    pins: tuple[str, ...]
    kept: str
    instead: str
    today: str

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        takes = f"takes {self.takes} today ({self.today}) and " if self.takes else ""
        where = f" of {self.old_line}" if self.old_line != self.line else ""
        behind = f", and leaves {listing(self.left)} behind" if self.left else ""
        package = f"{self.component} {self.old}{where}"
        return f"{self.line} {takes}replaces the {package} with {self.new}{behind}"

    @property
    def reason(self) -> str:
        """Where no fact requires it, the line itself does."""
        return f"{short(self.asked[0])} takes {self.new} today ({self.today})"

    def help(self) -> str:
        """What keeps the package that was there."""
        if self.pins:
            kept = f", or install with a constraints file that has {self.kept}" if self.kept else ""
            return f"pin {listing(self.pins)}{kept}"
        if self.old.partition(" ")[0] == self.new.partition(" ")[0]:
            return f"name the index of {self.old_line} in {self.line} as well"
        if self.kept:
            return f"ask for {self.component}=={self.instead} in {self.old_line}"
        return f"begin with an image that has {self.component} {self.instead}"


class NewestUnfit(ManifestFinding):
    """A package whose newest release, which pip takes today, does not go with the rest; `pins` prevent it."""

    code: str = "TM112"
    new: str
    others: tuple[str, ...]
    line: str
    pins: tuple[str, ...]
    today: str

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return (
            f"{self.line} takes {self.component} {self.new} today ({self.today}), "
            f"which does not go with {listing(self.others)}"
        )

    def help(self) -> str:
        """What prevents it."""
        return f"add {listing(self.pins)}" if self.pins else ""


class ForProcessorAlone(ManifestFinding):
    """A package whose builds run on the processor alone, beside a device that is named."""

    code: str = "TM115"
    advice: str = "take the package, extra or index that has builds for the device"
    accelerator: str

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return f"{short(self.asked[0])} does not compute on {listing(self.asked[1:])}"

    @property
    def reason(self) -> str:
        """What its builds lack."""
        return f"all builds that it may be are without {self.accelerator}"


class LibraryMissing(ManifestFinding):
    """A package that loads libraries which its image does not have; `near` are images that have them."""

    package: str
    libraries: tuple[str, ...]
    image: str
    near: tuple[str, ...]

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return f"{self.package} loads {listing(self.libraries)}, which {self.image} does not have"

    @property
    def reason(self) -> str:
        """Where it looks for them."""
        return f"its builds look for {listing(self.libraries)} on the system"

    def help(self) -> str:
        """What has them."""
        if self.near:
            return f"begin with {self.near[0]}"
        return (
            f"install {listing(self.libraries)}, or take an extra or an index whose builds bring it"
        )


class DoesNotBuild(ManifestFinding):
    """A source distribution that cannot be built as a file installs it: of a `package` that it is, or requires."""

    code: str = "TM124"
    package: str
    why: str
    instead: str

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return f"{short(self.asked[0])} does not build where it is installed"

    @property
    def reason(self) -> str:
        """What stops its build."""
        return f"{self.package} has no wheel for it, and {self.why}"

    def help(self) -> str:
        """What makes it build."""
        return self.instead


class NameRemoved(ManifestFinding):
    """A name that code uses, and that the release which a file installs does not have; others have it."""

    code: str = "TM125"
    name: str
    place: str
    release: str
    selector: str

    def sentence(self, words: Words) -> str:  # noqa: ARG002 - it names what the file says
        return f"{self.release} has no `{self.name}`, which {self.place} uses"

    @property
    def reason(self) -> str:
        """What the file asks for."""
        return f"the file asks for {self.named}"

    def help(self) -> str:
        """The releases that have it."""
        return f"change the code, or ask for {self.component}{self.selector}"
