"""What people paste into bug reports: environment reports, lists of packages, and output that names a machine.

A text may hold several pastes between prose, prompts, quotes and fences; each is read line by line as its tool prints
it. What is installed becomes packages with their versions, the rest values of the machine.
"""

from __future__ import annotations

import re

from toolmatrix.manifests import names as called
from toolmatrix.manifests.installed import (
    MachineValue,
    Paste,
    installed,
    merged,
    release_series,
    written,
)
from toolmatrix.manifests.model import (
    CONDA,
    LONGEST,
    MACHINE,
    PASTE,
    PIP,
    PLATFORM,
    PYTHON,
    FileText,
    ProjectManifest,
    Traced,
    joined,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from toolmatrix.manifests.files import Files

# What precedes a line that is quoted or part of a list.
_BEFORE = r"^[ \t>]{0,40}"
SIGNATURE = re.compile(
    _BEFORE + r"(?:CUDA used to build PyTorch\s*:"
    r"|Collecting environment information\.\.\."
    r"|Nvidia driver version\s*:"
    r"|\W{0,8}(?:transformers|diffusers|accelerate|huggingface_hub)`? version: `?\d"
    r"|CUDA Driver Version: \d{3}\.|.{0,80}PyTorch compiling details: "
    r"|GPU [\d,]{1,40} Compute Capability: "
    r"|jaxlib: +\d+\.\d+\.\d+"
    r"|\|? ?NVIDIA-SMI +\d{3}\."
    r"|GPU \d+: .{1,100} \(UUID: "
    r"|(?:[a-z_.]{1,40}, ){0,20}driver_version(?:,|[ \t]*$)"
    r"|nvcc: NVIDIA \(R\) Cuda compiler driver"
    r"|(?:=+ *)?ROCm System Management Interface"
    r"|HSA Agents[ \t]*$"
    r"|[ih]i[ \t]+\S{1,100}[ \t]+\S{1,100}[ \t]+(?:amd64|arm64|all)\b"
    r"|PRETTY_NAME=\""
    r"|ldd \([^)\n]{1,100}\) \d"
    r"|Distributor ID:\s"
    r"|Package[ \t]+Version(?:[ \t]+[A-Z][\w ]{1,40})?[ \t]*\r?\n[ \t>]{0,40}-{5,} +-{5,}"
    r"|Using Python \d+\.\d+\S* environment at"
    r"|(?-i:Name: [\w.-]{1,100}\r?\n[ \t>]{0,40}Version: \d.{0,100}\n[ \t>]{0,40}(?:Summary|Location): )"
    r"|# packages in environment at |#? ?Name +Version +Build +Channel"
    r"|[\w.-]{1,100}[ \t]{1,60}\d[\w.]{0,40}[ \t]{1,60}"
    r"(?:py\S{1,60}_\d+|h[0-9a-f]{6,8}_\d+|pypi_0[ \t]+pypi)(?:[ \t]|\r?$)"
    r"|.{0,100}[$❯] (?:uv )?(?:pip[\d.]{0,5}|conda|mamba) (?:list|freeze)\b[^>\n]{0,200}\n"
    r"[ \t>]{0,40}[\w.-]{1,100}(?:==|[ \t]{2,60}| @ )[\dfh]"
    r"|# This file may be used to create an environment using"
    r"|@EXPLICIT[ \t]*$)",
    re.MULTILINE | re.IGNORECASE,
)
"""What only a paste has."""

# Colours of a terminal, and tags of a page.
_NOISE = re.compile(
    r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*(?:\x07|$)"
    r"|</?(?:details|summary|pre|code|font|b|br|p|div|span|samp)\b[^<>]*>"
)
# What precedes a line that is quoted, or that a logger prints.
_QUOTE = re.compile(r"[\s>]*(?:INFO:root:|[\d/:., -]{5,40}- \w{1,40} - INFO - )?")
_NOTHING = frozenset(
    (
        *("", "n/a", "na", "none", "no cuda", "could not collect", "not installed", "not found"),
        *("module not found", "unknown", "not available"),
    )
)
_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*", re.ASCII)
_VERSION = re.compile(r"\d[\w.!+-]*", re.ASCII)
_NUMBERS = re.compile(r"\d+(?:\.\d+)*")
_RULE = re.compile(r"-{2,}(?:\s+-{2,}){1,4}")
_COLUMNS = re.compile(r"#? ?Name\s+Version\s+Build")
# A command whose output is a list; `grep` may leave no heading of it.
_LIST = re.compile(
    r"(?:^|[\s$#%>!`])(?P<tool>pip[\d.]*|conda|mamba|micromamba)\s+(?P<verb>list|freeze)\b(?P<rest>.*)"
)
_QUERY = re.compile(r"--query-gpu=(?P<fields>[\w.,]+)")
_FIELDS = re.compile(r"[a-z_.]+(?:\s\[\w+\])?(?:,\s*[a-z_.]+(?:\s\[\w+\])?)*")
_GPU = re.compile(r"GPU\s?[\d,]+:\s+(?P<device>\S.*)")
_UUID = re.compile(r"\s*\(UUID:.*|,\s*\d+ MiB.*")
_SMI = re.compile(r"(?:Driver|KMD) Version:\s*(?P<driver>\d{3}\.\d+(?:\.\d+)?)")
_ROCM_SMI = re.compile(
    r"GPU\[\d+\]\s*:\s*(?P<field>[A-Za-z ]+?)\s*:\s*(?P<name>\S.*)", re.IGNORECASE
)
_BUS = re.compile(r"[0-9A-F]{4,8}:[0-9A-F]{2}:[0-9A-F]{2}\.\d", re.IGNORECASE)
_NVCC = re.compile(r"Cuda compilation tools, release (?P<cuda>\d+\.\d+)")
_GCC = re.compile(r"(?:gcc|g\+\+|cc|c\+\+)(?:-\d+)? \([^)]*\) (?P<gcc>\d+\.\d+\.\d+)")
_CLANG = re.compile(r"(?:\w+ )?clang version (?P<clang>\d+\.\d+\.\d+)")
_LDD = re.compile(r"ldd \([^)]*\) (?P<glibc>\d+\.\d+)")
_LIBRARY = re.compile(r"(?:\S*/)?libcudnn\.so\.(?P<cudnn>\d+(?:\.\d+\.\d+)?)")
_PYTHON = re.compile(r"Python (?P<python>\d+\.\d+\.\d+)\S*(?:$| \(| \|| ::)")
_ENVIRONMENT = re.compile(r"Using Python (?P<python>\d+\.\d+(?:\.\d+)?)\S* environment at")
_PRETTY = re.compile(r"PRETTY_NAME=[\"']?(?P<distro>[^\"']+)")
_DPKG = re.compile(r"[ih]i\s+(?P<name>\S+)\s+(?P<version>\S+)\s+(?P<machine>amd64|arm64|all)\b")
_AGENT = re.compile(r"Name:\s+(?P<device>gfx[0-9a-f]+)$")
_FILE = re.compile(
    r"\S+/(?P<platform>linux-64|linux-aarch64|noarch)/(?P<name>[^/#\s]+)-(?P<version>[^-/#\s]+)"
    r"-(?P<build>[^-/#\s]+?)(?:\.tar\.bz2|\.conda)(?:#\S*)?"
)
_EXPORT = re.compile(r"(?P<name>[\w.-]+)=(?P<version>[^=\s]+)=(?P<build>[^=\s]+)", re.ASCII)
_PIN = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)==(?P<version>\d\S*)", re.ASCII)
_LABELLED = re.compile(r"\[(?P<tool>pip3?|uv|conda)\]\s+(?P<rest>\S.*)")
_NAMED = re.compile(r"(?P<name>[\w.-]+) version(?: \([^)]*\))?", re.ASCII)
_PLATFORM = re.compile(
    r"(?:^|[-_(' ])(?P<machine>x86_64|aarch64|arm64|amd64)(?:$|[-_)' ])", re.IGNORECASE
)
_GLIBC = re.compile(r"glibc-?(?P<glibc>\d+\.\d+)")
_GFX = re.compile(r"\((?P<device>gfx[0-9a-f]+)")
_DRIVER_PACKAGE = re.compile(r"nvidia-driver-\d+(?:-open|-server)*|cuda-drivers(?:-\d+)?")
# So many lines after a command its output may begin.
_LATE = 6
_KEY = 60
_OTHER_SYSTEMS = ("Windows", "Microsoft", "macOS", "Darwin")
_DISTRO = re.compile(
    r"(?:Ubuntu|Debian|CentOS|Rocky|AlmaLinux|Fedora|Red Hat|Linux Mint|openSUSE|Amazon|Oracle)\b"
)
_SERIES = {"python": 2, "cuda": 2, "cudnn": 3, "gcc": 1, "clang": 1, "rocm": 2}


class _Reader:
    def __init__(self) -> None:
        self.pastes: list[Paste] = []
        # The list that is read, how many rows of it were, and after how many other lines it may begin.
        self.list, self.rows, self.late = "", 0, 0
        self.columns: list[str] = []
        self.name: Traced | None = None

    @property
    def paste(self) -> Paste:
        """The one that is read."""
        if not self.pastes:
            self.pastes.append(Paste(1))
        return self.pastes[-1]

    def line(self, text: Traced) -> None:
        """Read one line."""
        name, self.name = self.name, None
        if not text or text.text.startswith(("```", "~~~")):
            self.end()
        elif self.command(text) or self.head(text) or self.row(text):
            return
        elif name is not None and text.text.startswith("Version:"):
            self.package(name.text, name, text[len("Version:") :].strip())
        elif not self.tool(text):
            self.key(text)

    def end(self) -> None:
        """The end of a list, unless it has not begun."""
        self.columns = []
        if self.rows:
            self.list = ""

    def begin(self, kind: str, text: Traced) -> None:
        """Expect the rows of a list, which is a paste of its own."""
        if kind != "values":
            self.pastes.append(Paste(text.where[0]))
        self.list, self.rows, self.late = kind, 0, _LATE

    def command(self, text: Traced) -> bool:
        """A command at a prompt, or in a heading."""
        if match := _QUERY.search(text.text):
            self.columns = match["fields"].split(",")
            return True
        match = _LIST.search(text.text)
        if not match:
            return False
        of_conda, rest = not match["tool"].startswith("pip"), match["rest"]
        if match["verb"] == "freeze" or "format=freeze" in rest:
            kind = "freeze"
        elif re.search(r"\s(?:-e|--export)\b", rest):
            kind = "export"
        else:
            kind = "conda" if of_conda else "pip"
        self.begin(kind, text)
        return True

    def head(self, text: Traced) -> bool:
        """The heading of a list."""
        line = text.text
        if _RULE.fullmatch(line):
            if self.list != "pip" or self.rows:
                self.begin("pip", text)
        elif line.startswith("# packages in environment at"):
            self.begin("conda", text)
        elif _COLUMNS.match(line):
            if self.list != "conda" or self.rows:
                self.begin("conda", text)
        elif line.startswith("# This file may be used to create an environment"):
            self.begin("export", text)
        elif match := _ENVIRONMENT.match(line):
            self.begin("pip", text)
            self.python(text.group(match, "python"))
        elif _FIELDS.fullmatch(line) and {"name", "driver_version", "gpu_name"} & {*_fields(line)}:
            self.columns = _fields(line)
        else:
            return line.startswith("#") and self.list in ("conda", "export")
        return True

    def row(self, text: Traced) -> bool:
        """A row of the list that is read."""
        if self.columns:
            return self.cells(text)
        if not self.list:
            return False
        if self.read_row(text):
            self.rows += 1
            return True
        self.late -= 1
        if self.rows or self.late <= 0:
            self.list = ""
        return False

    def read_row(self, text: Traced) -> bool:
        line = text.text
        if self.list in ("freeze", "export"):
            match = (_PIN if self.list == "freeze" else _EXPORT).fullmatch(line)
            if match:
                build = match["build"] if self.list == "export" else "pypi"
                self.conda(text.group(match, "name"), text.group(match, "version"), build, text)
            return bool(match) or " @ " in line or line.startswith("-e ")
        if self.list == "values":
            name, colon, value = text.partition(":")
            value = value.strip()
            absent = value.text.lower() in _NOTHING
            if (
                not colon
                or not _NAME.fullmatch(name.text)
                or not (absent or _VERSION.fullmatch(value.text))
            ):
                return False
            if not absent and name.text.lower() not in _KEYS:
                self.package(name.text, name, value)
                return True
            return absent
        return self.columns_of_list(text)

    def columns_of_list(self, text: Traced) -> bool:
        """`name version`, and in lists of conda the build and the channel."""
        words = text.words()
        if (
            len(words) < 2
            or not _NAME.fullmatch(words[0].text)
            or not _VERSION.fullmatch(words[1].text)
        ):
            return False
        third = words[2].text if len(words) > 2 else ""
        if self.list == "conda" or re.search(r"_\d+$", third):
            channel = words[3].text if len(words) > 3 else ""
            self.conda(words[0], words[1], "pypi" if channel == "pypi" else third, text)
            return True
        # A location, or what installed it.
        if third and not re.match(r"[/~.\\]|[A-Za-z]:|\w+://|pip$|conda$|uv$", third):
            return False
        self.package(words[0].text, words[0], words[1])
        return True

    def cells(self, text: Traced) -> bool:
        """A row of what nvidia-smi was asked for."""
        cells = text.text.split(",")
        if len(cells) != len(self.columns):
            self.columns = []
            return False
        start = 0
        for column, cell in zip(self.columns, cells, strict=True):
            value = text[start : start + len(cell)].strip()
            start += len(cell) + 1
            if column in ("name", "gpu_name"):
                self.device(value)
            elif column == "driver_version":
                self.value("driver", value)
            elif column == "compute_cap" and not {"name", "gpu_name"} & {*self.columns}:
                self.device(value)
        return True

    def package(self, name: str, at: Traced, version: Traced, kind: str = PIP) -> None:
        """A package that is installed."""
        if not _VERSION.fullmatch(version.text):
            return
        label = written(at, f"{name}=={version.text}")
        item = installed(kind, name, f"=={version.text}", label, version)
        known = called.of_conda(name) if kind == CONDA else ""
        # Several packages of conda are of one toolkit, and need not have its version.
        self.paste.add(known if known not in ("", "cuda") else called.package_name(name), item)

    def conda(self, name: Traced, version: Traced, build: str, text: Traced) -> None:
        """A package of conda, or one of pip that conda lists."""
        if build.startswith("pypi"):
            self.package(name.text, name, version)
        elif name.text == "python":
            self.python(version)
        else:
            self.package(name.text.lower(), name, version, CONDA)
            if build:
                at = text.text.rindex(build)
                self.paste.builds[name.text] = text[at : at + len(build)]

    def value(self, name: str, text: Traced, *, weak: bool = False) -> None:
        """A value of the machine."""
        if not text or text.text.lower() in _NOTHING:
            return
        version = _NUMBERS.search(text.text)
        if name not in ("device", "distro") and not version:
            return
        if name == "distro":
            words = re.findall(r"[a-z]+|\d+", text.text.lower())
            numbers = [word for word in words if word.isdigit()][:2]
            specifier, alike = f"=={text.text}", " ".join((words[0] if words else "", *numbers))
        elif name == "device" or version is None:
            specifier, alike = f"=={text.text}", text.text
        else:
            alike = release_series(version[0], _SERIES.get(name, len(version[0])))
            # Tools count their own builds, which are no releases.
            specifier = f"=={alike}.*" if name in ("cuda", "cudnn", "rocm") else f"=={version[0]}"
            text = text if name == "python" else text[slice(*version.span())]
        kind = PYTHON if name == "python" else MACHINE
        item = installed(kind, name, specifier, text)
        self.paste.values.setdefault(name, []).append(MachineValue(item, alike, weak))

    def python(self, text: Traced) -> None:
        """The version of an interpreter."""
        match = re.match(r"\d+\.\d+(?:\.\d+)?", text.text)
        if match:
            self.value("python", written(text, f"python {match[0]}"))

    def device(self, text: Traced) -> None:
        """A GPU by its name."""
        match = _UUID.search(text.text)
        text = text[: match.start()] if match else text
        gfx = _GFX.search(text.text)
        self.value("device", text.group(gfx, "device") if gfx else text.strip())

    def gpu(self, text: Traced) -> None:
        """`GPU 0: NVIDIA A10`, or a name alone."""
        match = _GPU.match(text.text)
        self.device(text.group(match, "device") if match else text)

    def platform(self, text: Traced) -> None:
        """The machine and the C library in the name of a platform, and the distribution before it."""
        distro, dash, kernel = text.partition(" - ")
        if dash:
            self.value("distro", distro)
            text = kernel
        if text.text.startswith(_OTHER_SYSTEMS):
            self.value("distro", text, weak=True)
            return
        if match := _PLATFORM.search(text.text):
            machine = text.group(match, "machine")
            item = installed(PLATFORM, machine.text.lower(), "", machine)
            value = MachineValue(item, item.name, weak=False)
            self.paste.values.setdefault("platform", []).append(value)
        if match := _GLIBC.search(text.text):
            self.value("glibc", text.group(match, "glibc"))

    def tool(self, text: Traced) -> bool:
        """A line that only one tool prints."""
        line = text.text
        for pattern, read in _TOOLS:
            if match := pattern.match(line):
                read(self, text, match)
                return True
        if match := _NVCC.search(line):
            self.value("cuda", text.group(match, "cuda"))
            return True
        if match := _SMI.search(line):
            self.value("driver", text.group(match, "driver"))
            return True
        return line.startswith("|") and self.smi_row(text)

    def smi_row(self, text: Traced) -> bool:
        """A GPU in the table of nvidia-smi: `|   0  NVIDIA A10G    On  |   00000000:00:16.0 Off |`."""
        _, first, second, *_ = [*text.text.split("|"), "", ""]
        words = first.split()
        if len(words) < 3 or not words[0].isdigit() or not _BUS.match(second.strip()):
            return False
        name = text[1 : 1 + len(first)].strip()[len(words[0]) :].strip()
        self.device(name[: len(name) - len(words[-1])].strip())
        return True

    def labelled(self, text: Traced, match: re.Match[str]) -> None:
        """`[pip3] torch==2.6.0`, `[conda] torch 2.6.0 pypi_0 pypi`."""
        rest = text.group(match, "rest")
        before, self.list = self.list, "conda" if match["tool"] == "conda" else "freeze"
        self.read_row(rest)
        self.list = before

    def rocm_smi(self, text: Traced, match: re.Match[str]) -> None:
        """`GPU[0] : Card series: AMD Instinct MI300X`, of which the arch counts where it is there."""
        field, name = match["field"].lower(), text.group(match, "name").strip()
        if field == "gfx version":
            self.device(name)
        elif field in ("card series", "device name", "product name") and name.text[:2] != "0x":
            self.value("device", name, weak=True)

    def dpkg(self, text: Traced, match: re.Match[str]) -> None:
        """A package of the distribution."""
        name, version = text.group(match, "name"), text.group(match, "version")
        package = name.text.partition(":")[0]
        if _DRIVER_PACKAGE.fullmatch(package):
            self.value("driver", version, weak=True)
        elif package == "libc6":
            self.value("glibc", version)
        elif system := called.system(f"{package}={version.text}"):
            for component, value in system.groupdict().items():
                if value and component != "python":
                    label = version if component == "cudnn" else name
                    self.value(component, written(label, value.replace("-", ".")), weak=True)

    def file(self, text: Traced, match: re.Match[str]) -> None:
        """The address of a package of conda."""
        if not (self.pastes and self.pastes[-1].packages):
            self.begin("explicit", text)
            self.list = ""
        name, version = (text.group(match, group) for group in ("name", "version"))
        self.conda(name, version, match["build"], text)
        if match["platform"] == "linux-aarch64":
            self.platform(written(text, "aarch64"))

    def key(self, text: Traced) -> None:
        """`key: value` of a report."""
        name, colon, value = text.partition(":")
        if not colon or len(name) > _KEY:
            return
        key = " ".join(name.text.replace("`", "").replace("*", "").strip(" \t-•🤗").lower().split())
        value = value.strip("`* \t")
        read = _KEYS.get(key)
        if read is not None:
            self.report(key, text)
            if value.text.lower() not in _NOTHING:
                read(self, value)
        elif (match := _NAMED.fullmatch(key)) and value:
            version = value.words()[0].strip("`")
            self.package(match["name"], version, version)

    def report(self, key: str, text: Traced) -> None:
        """A key of a report, which has each of them once."""
        paste = self.pastes[-1] if self.pastes else None
        if paste is None or key in paste.keys or (paste.packages and not paste.is_report):
            paste = Paste(text.where[0])
            self.pastes.append(paste)
        paste.is_report = True
        paste.keys.add(key)

    def framework(self, name: str, text: Traced) -> None:
        """The version of a framework, which others may follow without a heading."""
        version = text.words()[0].strip("`")
        self.package(name, version, version)
        self.begin("values", text)

    def interpreter(self, text: Traced) -> None:
        """The version of Python, which others may follow."""
        self.python(text)
        self.begin("values", text)

    def system(self, text: Traced) -> None:
        """`Ubuntu 22.04.3 LTS (x86_64)`."""
        match = _PLATFORM.search(text.text)
        before = text[: match.start()].strip("( ") if match else text
        self.value("distro", before)
        if not before.text.startswith(_OTHER_SYSTEMS):
            self.platform(text)

    def description(self, text: Traced) -> None:
        """What lsb_release calls a distribution."""
        if _DISTRO.match(text.text):
            self.value("distro", text)

    def gcc(self, text: Traced) -> None:
        """`(Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0`."""
        _, _, version = text.partition(")")
        self.value("gcc", version.strip() or text)

    def driver(self, text: Traced) -> None:
        """The driver, and not the CUDA that it is for."""
        if re.match(r"\d{3}\.", text.text):
            self.value("driver", text)

    def cudnn(self, text: Traced) -> None:
        """The cuDNN of the system, by the name of its library."""
        if match := _LIBRARY.match(text.text):
            self.value("cudnn", text.group(match, "cudnn"))

    def built(self, text: Traced) -> None:
        """The CUDA that PyTorch was built for, which is no toolkit."""
        if match := re.match(r"\d+\.\d+", text.text):
            self.paste.cuda = match[0]


def _fields(line: str) -> list[str]:
    return [field.split()[0] for field in line.split(",")]


def _group(name: str) -> Callable[[_Reader, Traced, re.Match[str]], None]:
    return lambda reader, text, match: reader.value(name, text.group(match, name))


def _package(name: str) -> Callable[[_Reader, Traced], None]:
    return lambda reader, text: reader.framework(name, text)


def _machine(name: str) -> Callable[[_Reader, Traced], None]:
    return lambda reader, text: reader.value(name, text)


def _nothing(reader: _Reader, text: Traced) -> None:
    """What says nothing of a package or of the machine."""
    del reader, text


def _show(reader: _Reader, text: Traced, match: re.Match[str]) -> None:
    reader.name = text.group(match, "name")


# By the beginning of a line.
_TOOLS: tuple[tuple[re.Pattern[str], Callable[[_Reader, Traced, re.Match[str]], None]], ...] = (
    (_LABELLED, _Reader.labelled),
    (_GPU, lambda reader, text, match: reader.device(text.group(match, "device"))),
    (_ROCM_SMI, _Reader.rocm_smi),
    (_AGENT, _group("device")),
    (re.compile(r"Name:\s+(?P<name>[\w.-]+)$", re.ASCII), _show),
    (_LIBRARY, _group("cudnn")),
    (_GCC, _group("gcc")),
    (_CLANG, _group("clang")),
    (_LDD, _group("glibc")),
    (_PYTHON, lambda reader, text, match: reader.python(text.group(match, "python"))),
    (_PRETTY, _group("distro")),
    (_DPKG, _Reader.dpkg),
    (_FILE, _Reader.file),
)
# By the key of a report, in small letters.
_KEYS: Mapping[str, Callable[[_Reader, Traced], None]] = {
    "pytorch version": _package("torch"),
    "pytorch version (gpu?)": _package("torch"),
    "pytorch version (accelerator?)": _package("torch"),
    "pytorch": _package("torch"),
    "jax": _package("jax"),
    "jaxlib": _package("jaxlib"),
    "sglang": _package("sglang"),
    "cuda used to build pytorch": _Reader.built,
    "rocm used to build pytorch": _nothing,
    "os": _Reader.system,
    "description": _Reader.description,
    "gcc version": _Reader.gcc,
    "gcc": _Reader.gcc,
    "clang version": _machine("clang"),
    "cmake version": _nothing,
    "libc version": _Reader.platform,
    "python version": _Reader.python,
    "python": _Reader.interpreter,
    "python platform": _Reader.platform,
    "platform": _Reader.platform,
    "cuda runtime version": _machine("cuda"),
    "cuda version": _nothing,
    "nvidia driver version": _Reader.driver,
    "cuda driver version": _Reader.driver,
    "gpu models and configuration": _Reader.gpu,
    "gpu type": _Reader.device,
    "accelerator": _Reader.device,
    "cudnn version": _Reader.cudnn,
    "hip runtime version": _nothing,
    "miopen runtime version": _nothing,
    "rocm version": _machine("rocm"),
}


def read(source: FileText, files: Files) -> ProjectManifest:
    """What is pasted in a text, by environment."""
    reader = _Reader()
    for line in source.lines():
        if len(line) <= LONGEST:
            reader.line(_plain(line))
    pastes = merged(reader.pastes)
    environments = [
        paste.environment(f"line {paste.line}" if len(pastes) > 1 else "") for paste in pastes
    ]
    unread = [entry for paste in pastes for entry in paste.unread]
    return files.manifest(PASTE, source, environments, unread)


def _plain(line: Traced) -> Traced:
    """A line without colours, tags, and the marks of a quote."""
    parts, start = [], 0
    for match in _NOISE.finditer(line.text):
        parts.append(line[start : match.start()])
        start = match.end()
    text = joined([*parts, line[start:]], line.source) if parts else line
    quote = _QUOTE.match(text.text)
    text = text[quote.end() if quote else 0 :].strip()
    return text if text.text.startswith("```") else text.strip("` \t")
