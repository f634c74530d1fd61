"""The record of observers' sightings, and the view that they look at: an image with its files in one pass."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache

from toolmatrix.images.image import ImageMetadata
from toolmatrix.images.layers import LEFT_OUT, Tree
from toolmatrix.images.limits import MOST_SEARCHED, Budget
from toolmatrix.inspection.dynamic import DEVICES
from toolmatrix.inspection.elf import Elf
from toolmatrix.inspection.model import WHICH, FilePattern, Seen, Skipped
from toolmatrix.inspection.rpm import Database
from toolmatrix.inspection.stated import ModuleArchive

ACCOUNTS = FilePattern(r"etc/(passwd|group)", 64 << 10)
"""The files that name users and groups, passwd(5) and group(5)."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The PATH of a container whose image sets none, as Docker and Podman have it."""
NO_PROCESSORS = frozenset(("", *DEVICES.values()))
"""The architectures of files of device code."""
# Sightings of one value that are kept; a thousand files with the same value count as few.
_MOST_SIGHTINGS = 16
_NOTHING_PACKED = ModuleArchive()


class View:
    """An image as observers see it: `env` of its configuration, `contents` of files, `elves` and `databases` by path.

    `left_out` are the paths of files that were too large to be kept. `started_env` is what its program gets.
    `machine` is the architecture of most ELF files, `own` are those that are made for it.
    """

    def __init__(self, image: ImageMetadata, tree: Tree) -> None:
        self.image = image
        self.tree = tree
        settings = image.config.get("config") or image.config.get("container_config")
        self.settings = settings if isinstance(settings, dict) else {}
        variables = self.settings.get("Env")
        entries = variables if isinstance(variables, list) else []
        pairs = [variable.partition("=") for variable in entries if isinstance(variable, str)]
        self.env = {name: value for name, _, value in pairs}
        self.started_env: Mapping[str, str] = self.env
        self._known: dict[str, tuple[int, frozenset[int], str]] = {}
        self._user = str(self.settings.get("User") or "0")
        self.contents: dict[str, bytes] = {}
        self.elves: dict[str, Elf] = {}
        self.databases: dict[str, Database] = {}
        self.layers: dict[str, str] = {}
        self.left_out: list[str] = []
        for path, entry in tree.files():
            if entry.content is None:
                continue
            if isinstance(entry.content, bytes):
                self.contents[path] = entry.content
            elif isinstance(entry.content, Elf):
                self.elves[path] = entry.content
            elif isinstance(entry.content, Database):
                self.databases[path] = entry.content
            elif entry.content == LEFT_OUT:
                self.left_out.append(path)
                continue
            self.layers[path] = entry.layer
        # Cross compilers and emulators have files for other processors; device code is for none.
        counts = Counter(elf.machine for elf in self.elves.values())
        machines = sorted(counts.keys() - NO_PROCESSORS)
        self.machine = max(machines, key=counts.__getitem__, default="")
        self.own = {path: elf for path, elf in self.elves.items() if elf.machine == self.machine}

    def files(self, declared: FilePattern) -> Iterator[tuple[re.Match[str], str]]:
        """The kept files of a pattern: the match of it on their paths, and their contents as text."""
        fits = re.compile(declared.pattern).fullmatch
        for path, data in self.contents.items():
            match = fits(path)
            if match:
                yield match, data.decode("utf-8", "replace")

    def archive(self, path: str) -> ModuleArchive:
        """The modules in the archive at a path, none where there is another file or a directory."""
        entry = self.tree.entry(path)
        content = entry.content if entry is not None else None
        return content if isinstance(content, ModuleArchive) else _NOTHING_PACKED

    def path(self, env: Mapping[str, str] | None = None) -> list[str]:
        """The absolute directories of PATH, as paths of the tree."""
        value = (self.env if env is None else env).get("PATH") or PATH
        return [folder.strip("/") for folder in self.elements("PATH", value) if folder[:1] == "/"]

    def elements(self, name: str, value: str, separators: str = ":") -> tuple[str, ...]:
        """The distinct elements of a search path; raises SubjectError for more than any image has."""
        elements = _elements(value, separators)
        if len(elements) > MOST_SEARCHED:
            what, limit = f"{name} has too many elements", f"{MOST_SEARCHED} different ones"
            raise Budget(self.image.subject).excess(what, limit)
        return elements

    @property
    def folder(self) -> str:
        """The directory in which the image's program starts, an absolute path."""
        return posixpath.normpath(posixpath.join("/", str(self.settings.get("WorkingDir") or "/")))

    def become(self, env: Mapping[str, str], user: str) -> None:
        """Look as the program that the image starts: with its variables, and as another user if it names one."""
        self.started_env = env
        self._user = user or self._user

    @property
    def _account(self) -> tuple[int, frozenset[int], str]:
        if self._user not in self._known:
            self._known[self._user] = self.account(self._user)
        return self._known[self._user]

    def account(self, text: str) -> tuple[int, frozenset[int], str]:
        """The user, the groups and the home of `USER:GROUP`."""
        # By the files of the image, as engines do. A number needs no account, and its home is the root.
        name, _, group = text.partition(":")
        user = 0 if name == "root" else int(name) if name.isdecimal() else -1
        groups, home = set[int](), "/" if user else "/root"
        for fields in self._accounts("etc/passwd", 7):
            if name in (fields[0], fields[2]) and fields[2].isdecimal() and fields[3].isdecimal():
                user, groups, home = int(fields[2]), {int(fields[3])}, fields[5]
                name = fields[0]
                break
        for fields in self._accounts("etc/group", 4):
            if fields[2].isdecimal() and (fields[0] == group or name in fields[3].split(",")):
                groups.add(int(fields[2]))
        return user, frozenset(groups or {int(group) if group.isdecimal() else 0}), home

    def _accounts(self, path: str, count: int) -> Iterator[list[str]]:
        lines = self.tree.text(path).splitlines()
        yield from (fields for line in lines if len(fields := line.split(":")) >= count)

    @property
    def user(self) -> int:
        """The number of the image's user; negative for a name that no file has."""
        return self._account[0]

    @property
    def home(self) -> str:
        """The home of the image's user."""
        return self.env.get("HOME") or self._account[2]

    def is_open(self, path: str) -> bool:
        """Check whether the image's user reaches what is at a path, and may enter or read it."""
        user, groups, _ = self._account
        if user <= 0:
            # Of an unknown name nothing can be excluded.
            return True
        for spelling in dict.fromkeys((path.strip("/"), self.tree.real(path) or "")):
            parts = spelling.split("/")
            for count in range(1, len(parts) + 1):
                entry = self.tree.entry("/".join(parts[:count]))
                if entry is not None and not entry.admits(user, groups):
                    return False
        return True

    def is_runnable(self, path: str) -> bool:
        """Check whether the image's user can run the program at a path."""
        entry = self.tree.entry(path)
        # execvp(3) goes on to the next directory where a file may not be run, or a link leads nowhere.
        return entry is not None and entry.is_program and self.is_open(path.rpartition("/")[0])

    def which(self, name: str, env: Mapping[str, str] | None = None) -> str:
        """The path at which PATH has a program; empty where it has none."""
        return next(
            (path for path in (f"{f}/{name}" for f in self.path(env)) if self.is_runnable(path)), ""
        )

    @cached_property
    def runnable(self) -> frozenset[str]:
        """The names of the programs that PATH leads to."""
        folders = filter(None, dict.fromkeys(map(self.tree.real, self.path())))
        paths = (
            (name, f"{folder}/{name}") for folder in folders for name in self.tree.names(folder)
        )
        entries = ((name, self.tree.entry(path)) for name, path in paths)
        return frozenset(name for name, entry in entries if entry is not None and entry.is_program)


@lru_cache(maxsize=16)
def _elements(value: str, separators: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(re.split(f"[{separators}]", value))) if value else ()


class Record:
    """Sightings in the making; earlier ones are the better witnesses, and defaults come before others."""

    def __init__(self, view: View) -> None:
        self.view = view
        self.components: dict[str, dict[Seen, None]] = {}
        self.features: dict[str, dict[Seen, None]] = {}
        self.skipped: dict[Skipped, None] = {}
        self._alike: Counter[tuple[str, str, str, str]] = Counter()

    def component(
        self, name: str, version: str, seen_by: str, where: str, *, default: bool = False
    ) -> None:
        """Record a version of a component; nothing where there is none."""
        seen = Seen(version=version, seen_by=seen_by, where=where, default=default)
        self._add("component", name, self.components.setdefault(name, {}), seen)

    def take(self, name: str, where: str) -> None:
        """Make the sightings of a component at a place the defaults."""
        sightings = self.components.get(name, {})
        self.components[name] = {
            seen.replace(default=seen.default or seen.where == where): None for seen in sightings
        }

    def feature(self, name: str, value: str, seen_by: str, where: str) -> None:
        """Record the value of a feature; nothing where there is none."""
        seen = Seen(version=value, seen_by=seen_by, where=where)
        self._add("feature", name, self.features.setdefault(name, {}), seen)

    def hide(self, names: Iterable[str], reason: str) -> None:
        """Record that it is not known which version of some components a user gets."""
        for name in names:
            sightings = self.components.get(name, {})
            self.components[name] = {seen.replace(default=False): None for seen in sightings}
            self.skip(f"{WHICH}{name}", reason)

    def skip(self, what: str, reason: str) -> None:
        """Record what could not be seen."""
        self.skipped[Skipped(what=what, reason=reason)] = None

    def _add(self, kind: str, name: str, sightings: dict[Seen, None], seen: Seen) -> None:
        key = (kind, name, seen.version, seen.seen_by)
        if not seen.version or self._alike[key] >= _MOST_SIGHTINGS:
            return
        placed = seen.replace(layer=self.view.layers.get(seen.where, ""))
        if placed not in sightings:
            sightings[placed] = None
            self._alike[key] += 1


def sort_sightings(sightings: dict[str, dict[Seen, None]]) -> dict[str, tuple[Seen, ...]]:
    """Sightings by name, defaults first, else in the order of recording."""
    return {
        name: tuple(sorted(group, key=lambda sighting: not sighting.default))
        for name, group in sorted(sightings.items())
        if group
    }
