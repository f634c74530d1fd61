"""Words that the matrix does not know: what was probably meant, and the spellings that are read all the same.

Names of packages of other indexes are read as the components that they mean.
"""

from __future__ import annotations

from toolmatrix.errors import CannotSay, NothingMatched, UsageError
from toolmatrix.factbase.versions import SelectorError
from toolmatrix.request import fields
from toolmatrix.request.names import NEWEST, OPERATORS, check_length
from toolmatrix.solve.request import Ask
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.factbase.records import Product
    from toolmatrix.request.names import Names

# A name with a version behind it, which is no specifier: `cuda12.4`, `gcc-11`, `tensorflow@2.6.5`.
_GLUED = r"(.*?[a-z+])[-_@:/ ]*v?(\d[\d.]*(?:\.\*|\.?(?:a|b|rc|post|dev)\d+)?)"

# A version with the line of a build behind it, without its `+`.
_BUILT = r"(\d[\d.]*\d)[-_ .]?([a-z][\w.]*)"

# So many devices of one name are listed.
_ENOUGH = 5
_LIKE = 0.75
# So much like a known name is a name with a slip in it.
_SLIP = 0.8
# So many letters of the name of a distribution are enough beside its number.
_DISTINCT_LETTERS = 3
# The images of UBI are of RHEL, and call themselves so.
_DISTROS = dict.fromkeys(("rhel", "red", "redhat"), "ubi")


_X86 = ("x86_64", "x86-64", "x64", "amd64", "linux/amd64")
_ARM = ("aarch64", "arm64", "sbsa", "linux/arm64")
_OTHER_MACHINES = (
    *("riscv64", "riscv", "risc-v", "linux/riscv64", "ppc64le", "ppc64", "power", "linux/ppc64le"),
    *("s390x", "linux/s390x", "loongarch64", "windows", "macos", "darwin"),
)
_CUDA_TARGET = "a target is a machine: `--target x86` or `arm`, with `--accelerator cuda`"
_NONE: Mapping[str, str] = {}
# Systems with other packages and loaders than those that facts cover.
_OTHER_SYSTEMS = (
    *("windows", "win", "macos", "osx", "darwin", "freebsd"),
    *("arch", "archlinux", "gentoo", "nixos", "void", "wolfi"),
)


class Vocabulary(Value):
    """The words of an option besides those it takes.

    `synonyms` are other words for these, `unheard` words for what no fact covers, and `advice` says for
    ambiguous words what to write for each meaning.
    """

    synonyms: Mapping[str, str] = _NONE
    unheard: tuple[str, ...] = ()
    advice: Mapping[str, str] = _NONE


VOCABULARIES = {
    "target": Vocabulary(
        synonyms={
            **dict.fromkeys(_X86, "x86"),
            **dict.fromkeys(_ARM, "arm"),
            **dict.fromkeys(("rocm", "hip"), "amd"),
        },
        unheard=_OTHER_MACHINES,
        advice={
            **dict.fromkeys(("gpu", "cuda", "nvidia"), _CUDA_TARGET),
            "cpu": "a target is a machine: `--target x86` or `arm`, with `--accelerator none`",
            "jetson": "`--target arm` with `--device`, such as `orin`",
        },
    ),
    "from_": Vocabulary(
        synonyms={
            **dict.fromkeys(("pip", "pypi", "uv", "wheels", "whl", "binary"), "wheel"),
            **dict.fromkeys(("src", "sources", "sdist", "build", "git"), "source"),
        },
        unheard=("conda", "mamba", "apt", "docker", "ngc", "nix", "spack"),
    ),
    "accelerator": Vocabulary(
        synonyms={"cpu": "none", "nvidia": "cuda", "amd": "rocm", "hip": "rocm"},
        unheard=("xpu", "sycl", "oneapi", "vulkan", "metal", "mps", "opencl", "tpu", "npu"),
        advice={"gpu": "`cuda` is for GPUs of NVIDIA, `rocm` for those of AMD"},
    ),
    "prefer": Vocabulary(synonyms={"latest": "newest", "highest": "newest", "lowest": "oldest"}),
    "distro": Vocabulary(unheard=_OTHER_SYSTEMS),
}


def pick(name: str, text: str, known: Sequence[str]) -> str:
    """The one of the `known` words of an option that is meant, which is not written as it is.

    Raises BadValue, and CannotSay for a word that no fact covers.
    """
    lower, vocabulary = text.lower(), VOCABULARIES.get(name) or Vocabulary()
    for word in (lower, vocabulary.synonyms.get(lower, "")):
        if word in known:
            return word
    expected = "one of " + ", ".join(known)
    if lower in vocabulary.unheard:
        raise _unheard(name, text, expected)
    help = vocabulary.advice.get(lower) or suggestion(text, known)
    raise fields.BadValue(expected, f"`{text}`", help, name)


def _unheard(name: str, text: str, expected: str) -> CannotSay:
    return CannotSay(
        f"`{fields.flag(name)} {text}`: no fact covers it",
        expected=expected,
        found=f"`{text}`",
        help="add facts of your own with `--matrix FILE`",
    )


def as_option(word: str) -> str:
    """The option and its word that a flag such as `--rocm` or `--wheel` was meant as; nothing for another."""
    for name, vocabulary in VOCABULARIES.items():
        value = vocabulary.synonyms.get(word, word)
        if value in vocabulary.synonyms.values():
            return f"{fields.flag(name)} {value}"
    return ""


def closest(word: str, known: Sequence[str], cutoff: float = 0.6) -> str:
    """The known word that was probably meant, or nothing."""
    import difflib

    return next(iter(difflib.get_close_matches(word, known, n=1, cutoff=cutoff)), "")


def suggestion(word: str, known: Sequence[str], otherwise: str = "") -> str:
    """The help that names the known word that was probably meant, or says what else helps."""
    close = closest(word, known)
    return f"did you mean `{close}`?" if close else otherwise


def nearest(name: str, known: Iterable[str], like: float = 0.5) -> str:
    """The known names most like another, as an error names what it expected."""
    import difflib

    by_lower = {word.lower(): word for word in known}
    near = difflib.get_close_matches(name.lower(), by_lower, 3, like)
    return perhaps([by_lower[word] for word in near])


def perhaps(near: Sequence[str]) -> str:
    """Some names, as an error offers them."""
    return "perhaps " + ", ".join(f"`{name}`" for name in near) if near else "a known name"


def unreadable(
    names: Names, component: str, selector: str, text: str, error: SelectorError
) -> UsageError:
    """The error for a specifier that cannot be read, with the one that was probably meant."""
    import re

    version = selector.lstrip(OPERATORS)
    close = ""
    if selector == f"={version}" and version:
        close = f"{component}=={version}"
    elif version.endswith(".x"):
        close = f"{component}=={version.removesuffix('.x')}"
    elif built := re.fullmatch(_BUILT, version.lower()):
        close = f"{component}=={built[1]}+{built[2]}" if _build(names, built[2], component) else ""
    return UsageError(
        f"`{text}` cannot be read",
        expected="a specifier such as `==2.6.5`, `>=11.2,<12`, `~=1.19.2`",
        found=str(error) if version else f"`{selector}` without a version",
        help=f"did you mean `{close}`?" if close else f"`{component}` alone means any release",
    )


def unknown(
    names: Names, name: str, selector: str = "", *, requested: bool = False
) -> NothingMatched:
    """No component is called that, nor a package if the index was `asked`: with the nearest name, or the right form."""

    readings = understood(names, name) or [request_of_index_name(names, name, selector)]
    suggestions = " or ".join(f"`{text}`" for text in readings if text)
    help = "`toolmatrix list` shows the components; `--matrix FILE` adds some of your own"
    # Builds are named by their release, `torch==2.6.0+cu124`, and not by the name that the matrix has for them.
    known = [component for component, head in names.components.items() if not head["variant_of"]]
    # What is but misspelt is not to be looked for elsewhere, where another may have taken that name.
    if not requested and not closest(name, known, _SLIP):
        help += f", and `toolmatrix resolve {name} --online` a package of the index"
    if name in NEWEST:
        help = "a component without a version means its newest release that fits"
    return NothingMatched(
        f"unknown component `{name}`"
        + (", which is not a package of the index either" if requested else ""),
        # Names that are like it lead astray where it is known what was meant.
        expected="" if suggestions or name in NEWEST else nearest(name.replace("_", "-"), known),
        found=f"`{name}`",
        help=f"did you mean {suggestions}?" if suggestions else help,
    )


def understood(names: Names, word: str) -> list[str]:
    """What a word may mean that no component is called, in the form that is read; nothing for what may be a name."""
    return list(dict.fromkeys(_readings(names, word)))


def _readings(names: Names, word: str) -> Iterator[str]:
    # `re` is loaded for words that nothing is called, here and below.
    import re

    plain = word.strip("+@:-/ ").lower()
    cut = next((position for position, letter in enumerate(plain) if letter in OPERATORS), 0)
    bare = re.sub(rf"[-_@:/ ]({'|'.join(NEWEST)})$", "", plain[:cut] or plain).partition("[")[0]
    if bare != word and names.called(bare):
        yield names.called(bare)
        return
    glued = re.fullmatch(_GLUED, plain)
    component = names.called(glued[1]) if glued else ""
    if glued and component and names.components[component]["scheme"] != "names":
        yield f"{component}=={_version(names, component, glued[2])}"
    yield from _options(names, plain)
    framework, _, line = plain.rpartition("+") if "+" in plain else plain.rpartition("-")
    of = names.called(framework) if framework else ""
    # A line alone, such as `cu124`, is that of any framework, and one behind a name of that alone.
    build = _build(names, line, of) if of or (not framework and line[-1:].isdigit()) else ""
    if build:
        yield build


def _options(names: Names, word: str) -> Iterator[str]:
    for name in fields.DECLARED:
        vocabulary = VOCABULARIES[name]
        value = vocabulary.synonyms.get(word, word)
        if value in (*fields.known(names.index, name), *vocabulary.unheard):
            yield f"{fields.flag(name)} {value}"
            return
        if name == "accelerator" and word in vocabulary.advice:
            yield "--accelerator cuda"
            return
    if "distro" in names.components and distro(names, word):
        yield f"--distro {distro(names, word)}"
    elif "arch" in names.components and word in names.scale("arch").versions:
        yield f"--arch {word}"
    elif "device" in names.components and _devices(names, word):
        yield f"--device {word}"


def _version(names: Names, component: str, text: str) -> str:
    """A version that may have lost its dot: `124` of CUDA is 12.4, `311` of Python 3.11."""
    scale = names.scale(component)
    # The first cut that is a release wins: 3.11 comes before 31.1.
    cuts = [f"{text[:cut]}.{text[cut:]}" for cut in range(1, len(text))] if text.isdigit() else []
    return next((version for version in (text, *cuts) if scale.select(f"=={version}")), text)


def _build(names: Names, line: str, component: str = "") -> str:
    """The newest release, of a component or of any, that has builds of a line: `cu124` is torch 2.6.0."""
    # What is a framework in its own right before what stands on one.
    heads = names.components
    order = sorted(
        heads, key=lambda name: not heads[heads[name]["variant_of"] or name]["framework"]
    )
    for name in order:
        head = heads[name]
        if head["variant_of"] and head["variant_of"] == (component or head["variant_of"]):
            for build in reversed(names.scale(name).versions):
                if build.partition("@")[0].endswith(f"+{line}"):
                    return f"{head['variant_of']}=={build.partition('@')[0]}"
    return ""


def _devices(names: Names, name: str) -> list[tuple[str, str]]:
    """The devices that a name may be, as (device, what is called that)."""
    from toolmatrix.factbase import products

    exact = products.exactly(name, names.scale("device").versions)
    return [(exact, name)] if exact else products.find(names.index, name)


def device(names: Names, name: str) -> str:
    """A device by compute capability, gfx name, or the name of a product that has it."""
    check_length(name)
    matches = _devices(names, name)
    if len(matches) == 1:
        return matches[0][0]
    if matches:
        several = ", ".join(f"{device} ({product})" for device, product in matches[:_ENOUGH])
        raise UsageError(
            f"`--device {name}` names more than one device",
            expected="one of them",
            found=several,
            help="name the device",
        )
    from toolmatrix.factbase import products

    known = [*names.scale("device").versions, *products.names(names.index)]
    raise NothingMatched(
        f"`--device {name}`: unknown device",
        expected=perhaps(products.nearest(name, known)),
        found=f"`{name}`",
        help="a compute capability (8.6), a gfx (gfx90a) or a product (RTX 3090, MI300X)",
    )


def sold_as(names: Names, name: str) -> list[Product]:
    """The products that a name means: those that have the device where it names one."""
    pairs = _devices(names, name)
    called = {product for _, product in pairs}
    products = names.index.products()
    named = [product for product in products if product.name in called]
    return named or [product for product in products if product.device in dict(pairs)]


def common(values: Iterable[str]) -> str:
    """The value that all have in common, or nothing where they differ."""
    distinct = {*values}
    return distinct.pop() if len(distinct) == 1 else ""


def kind_of_gpu(names: Names, devices: Sequence[str]) -> Iterator[Ask]:
    """The line for the kind that devices are sold as; a capability that several kinds have leaves it open."""
    kinds = {product.kind for word in devices for product in sold_as(names, word)}
    if any(kinds) and "gpu-kind" in names.components:
        text = f"--device {','.join(devices)}"
        kind = common(kinds) or "unspecified"
        yield Ask(component="gpu-kind", selector=kind, text=text, option="gpu-kind")


def cpu(name: str, targets: Sequence[str], index: Index) -> str:
    """A CPU that archspec or a flag of the matrix knows, and that is of the machine of a target."""
    from toolmatrix.solve import flags

    known = flags.cpu_names()
    spelled = [
        release[len("-mcpu=") :]
        for release in index.component("cpu-flag").versions
        if release.startswith("-mcpu=")
    ]
    # GCC writes `skylake-avx512` where archspec has an underscore.
    if name.replace("-", "_") not in known and name not in (*known, *spelled):
        raise NothingMatched(
            f"`--cpu {name}`: unknown CPU",
            expected=nearest(name, [*spelled, *known]),
            found=f"`{name}`",
            help="use a name of archspec or of -mcpu",
        )
    machines = [index.header["targets"][target]["context"]["machine"] for target in targets]
    family = flags.family(name)
    if family and family not in machines:
        names = " or ".join(dict.fromkeys(machines))
        raise UsageError(
            f"`--cpu {name}` is not a CPU of {names}",
            expected=f"a CPU of {names}, or another `--target`",
            found=f"`{name}`, which is {family}",
        )
    return name


def arch(names: Names, name: str) -> str:
    """A codegen arch; a product is what code runs on, which is another question."""
    known = names.scale("arch").versions
    if name in known:
        return name
    about = ""
    if "device" in names.components:
        from toolmatrix.factbase import products

        capability = products.exactly(name, names.scale("device").versions)
        if not capability and products.find(names.index, name):
            from shlex import quote

            raise NothingMatched(
                f"`--arch {name}`: unknown codegen arch",
                expected="a codegen arch",
                found=f"`{name}`, which is a device",
                help=f"did you mean `--device {quote(name)}`?",
            )
        if capability:
            about = f"`--device {name}` names the device that code runs on"
    raise NothingMatched(
        f"`--arch {name}`: unknown {names.components['arch']['title']}",
        expected=nearest(name, known),
        found=f"`{name}`",
        help=about,
    )


def distro(names: Names, text: str) -> str:
    """A distribution by its name, its codename, or as it calls itself: `Ubuntu 22.04.3 LTS`; empty if it is not one."""
    known = names.scale("distro").versions
    lower = text.lower()
    # `ubuntu:22.04` as images are called, and `Ubuntu 22.04` as people write.
    plain = "".join(lower.replace(":", "").split())
    if plain in known:
        return plain
    import re

    words = re.findall(r"[a-z]+|\d+", lower)
    facts = names.index.component("distro")
    for name, record in zip(facts.versions, facts.releases, strict=True):
        if names.index.release(record).attributes.get("codename", "") in words:
            return name
    if words and words[0] in known:
        # A name without a number is that of all its releases.
        return str(words[0])
    numbers = [word for word in words if word.isdigit()]
    letters = [word for word in words if word.isalpha()]
    # Ubuntu has two numbers and Debian one; what follows them is a point release.
    for version in (".".join(numbers[:2]), numbers[0]) if numbers and letters else ():
        first = _DISTROS.get(letters[0], letters[0])
        fitting = [name for name in known if name.startswith(first) and _ends(name, version)]
        if len(fitting) == 1 and len(first) >= _DISTINCT_LETTERS:
            return fitting[0]
    return ""


def _ends(name: str, version: str) -> bool:
    number = name.lstrip("abcdefghijklmnopqrstuvwxyz-_")
    return number == version or number.replace(".", "") == version


def no_distro(names: Names, text: str) -> NothingMatched | CannotSay:
    """No distribution is called that: with those of the same number, or of the nearest name.

    CannotSay for a system that no fact covers.
    """
    import re

    known = names.scale("distro").versions
    word = re.split(r"[^a-z]", text.lower())[0]
    if word in VOCABULARIES["distro"].unheard:
        return _unheard(
            "distro", text, "a distribution, as `toolmatrix matrix --rows distro` lists"
        )
    # A name without a number means all of its kind, and the last ones are preferred.
    family = [name for name in reversed(known) if word == text.lower() and name.startswith(word)]
    # Rebuilds of a distribution share its number: `almalinux9` suggests `rockylinux9`.
    number = re.fullmatch(r"\D*(\d+)(?:\.\d+)*", text)
    rebuilt = [name for name in known if number and _ends(name, number[1])]
    return NothingMatched(
        f"`--distro {text}`: unknown distro",
        expected=perhaps(family[:_ENOUGH] or rebuilt)
        if family or rebuilt
        else nearest(text, known, _LIKE),
        found=f"`{text}`",
        help="`toolmatrix matrix --rows distro` lists them",
    )


# Other pieces of such names: packager, part and purpose.
_BESIDES = {
    *("nvidia", "intel", "amd", "conda", "linux", "64", "lib", "libs", "py", "mutex", "base"),
    *("version", "toolkit", "runtime", "dev", "devel", "headers", "cudart", "training", "mkl"),
}
_ACCELERATORS = {"gpu": "cuda", "cpu": "none"}


def request_of_index_name(names: Names, name: str, selector: str) -> str:
    """What such a name asks for, as words of a request: `pytorch-cuda==12.4` is `torch --with cuda==12.4`.

    Nothing where a part of it is neither a component nor says what is usual besides.
    """
    import re

    components: dict[str, str] = {}
    accelerator = ""
    for piece in filter(None, re.split(r"[-_]", name.lower())):
        numbered = re.fullmatch(r"([a-z]+)(\d+)", piece)
        if piece in _ACCELERATORS:
            accelerator = f" --accelerator {_ACCELERATORS[piece]}"
        elif piece in _BESIDES:
            continue
        elif component := names.called(piece):
            components.setdefault(component, "")
        elif numbered and (component := names.called(numbered[1])):
            components[component] = f"=={numbered[2]}"
        else:
            return ""
    version = "==" + selector.lstrip("=") if selector.startswith("=") else selector
    # The version of a package that joins two is that of the one that has such a release.
    plain = (name for name, bound in components.items() if not bound)
    of = next((name for name in plain if selector and _has(names, name, version)), "")
    if of:
        components[of] = version
    first, *others = [component + bound for component, bound in components.items()] or [""]
    with_ = "".join(f" --with {other}" for other in others)
    return f"{first}{accelerator}{with_}" if first else ""


def _has(names: Names, component: str, selector: str) -> bool:
    try:
        return bool(names.scale(component).select(selector))
    except SelectorError:
        return False
