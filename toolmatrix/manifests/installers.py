"""What commands of a shell install: pip, uv, conda and its kin, apt and dnf; and what variables ask for."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from toolmatrix.manifests import conda, names, requirements
from toolmatrix.manifests.files import Files
from toolmatrix.manifests.model import PYTHON, SYSTEM, VARIABLE, Item, NotRead, place
from toolmatrix.manifests.requirements import PackageIndexes
from toolmatrix.manifests.shell import ShellCommand, Word

# Options of pip and uv that take a value apart (pip 23.2.1 and uv 0.9, `install --help`).
_VALUED = frozenset(
    [
        "-r",
        "--requirement",
        "-c",
        "--constraint",
        "-e",
        "--editable",
        "-t",
        "--target",
        "-d",
        "--dest",
        "--platform",
        "--python-version",
        "--implementation",
        "--abi",
        "--root",
        "--prefix",
        "--src",
        "--upgrade-strategy",
        "-C",
        "--config-settings",
        "--config-setting",
        "--global-option",
        "--install-option",
        "--build-option",
        "--no-binary",
        "--only-binary",
        "--progress-bar",
        "--report",
        "--python",
        "-p",
        "--log",
        "--proxy",
        "--retries",
        "--timeout",
        "--exists-action",
        "--trusted-host",
        "--cert",
        "--client-cert",
        "--cache-dir",
        "--use-feature",
        "--use-deprecated",
        "-i",
        "--index-url",
        "--extra-index-url",
        "-f",
        "--find-links",
        "--index",
        "--default-index",
        "--index-strategy",
        "--keyring-provider",
        "--resolution",
        "--prerelease",
        "--exclude-newer",
        "--link-mode",
        "--torch-backend",
        "--overrides",
        "--override",
        "--build-constraint",
        "--extra",
        "--group",
        "--no-build-package",
        "--refresh-package",
        "--reinstall-package",
        "--upgrade-package",
        "-P",
        "--no-binary-package",
        "--directory",
        "--project",
    ]
)
_SAME = {
    "--default-index": "--index-url",
    "--index": "--extra-index-url",
    "--requirement": "-r",
    "--constraint": "-c",
    "--overrides": "--override",
    "--no-binary-package": "--no-binary",
}
# The options that name a file, and what the lines of it are besides requirements.
_FILES: Mapping[str, Mapping[str, bool]] = {
    "-r": {},
    "-c": {"bounds": True},
    "--override": {"bounds": True, "overrides": True},
}
# pip and uv take an index from their variables as well.
_INDEXES = (
    ("PIP_INDEX_URL", "--index-url"),
    ("PIP_EXTRA_INDEX_URL", "--extra-index-url"),
    ("UV_INDEX_URL", "--index-url"),
    ("UV_EXTRA_INDEX_URL", "--extra-index-url"),
)
_CONDAS = frozenset(("conda", "mamba", "micromamba"))
_CONDA_VALUED = frozenset(
    [
        "-n",
        "--name",
        "-p",
        "--prefix",
        "-c",
        "--channel",
        "-f",
        "--file",
        "--solver",
        "--revision",
        "--platform",
        "--subdir",
        "--repodata-fn",
    ]
)
_SYSTEM = frozenset(("apt-get", "apt", "dnf", "yum", "microdnf"))
_SYSTEM_VALUED = frozenset(("-o", "-t", "--option", "--target-release", "-c", "--config-file"))
_BEFORE = frozenset(["sudo", "exec", "command", "time", "nice", "env", "eatmydata"])
_PIP_OF = re.compile(r"pip(\d\.\d+)$")
_PYTHON_OF = re.compile(r"python(\d\.\d+)$")


class _Session:
    def __init__(
        self,
        files: Files,
        unread: list[NotRead],
        copied: Mapping[str, str],
        variables: Mapping[str, Word],
    ) -> None:
        self.files = files
        self.unread = unread
        self.copied = copied
        self.variables = variables

    def of(self, command: ShellCommand) -> Iterator[Item]:
        for name, value in command.variables.items():
            yield from variable(name, value, self.unread)
        words = list(command.words)
        while words and words[0].plain in _BEFORE:
            words.pop(0)
        if not words:
            return
        found = list(self.installed(words, command))
        if found and command.unsure:
            # One line for each thing that it would install.
            why = f"{command.unsure} decides whether it is installed"
            self.unread += [NotRead(text=item.text, why=why) for item in found]
            return
        yield from found

    def installed(self, words: list[Word], command: ShellCommand) -> Iterator[Item]:
        program = posixpath.basename(words[0].plain)
        variables = {**self.variables, **command.variables}
        plain = [word.plain for word in words]
        if program in _SYSTEM and "install" in plain:
            yield from self.system(words[plain.index("install") + 1 :])
        elif program in _CONDAS:
            yield from self.conda(words[1:], variables)
        elif program == "uv":
            yield from self.uv(words[1:], variables)
        else:
            python, rest = _pip(program, words)
            if rest and rest[0].plain == "install":
                yield from self.pip(rest[1:], python, variables)

    def pip(
        self, words: Sequence[Word], python: str, variables: Mapping[str, Word]
    ) -> Iterator[Item]:
        """What `pip install` is asked for."""
        told = [(_SAME.get(option, option), value) for option, value in _options(words, _VALUED)]
        indexes, built = PackageIndexes(), set[str]()
        for variable_name, option in _INDEXES:
            for address in (
                variables[variable_name].plain.split() if variable_name in variables else ()
            ):
                indexes = indexes.with_option(option, address)
        for option, value in told:
            if option in requirements.INDEXES and value is not None:
                indexes = indexes.with_option(option, value.plain)
            if option == "--no-binary" and value is not None:
                built |= {requirements.plain(name) for name in value.plain.split(",")}
            if option in ("--python", "-p") and value and re.fullmatch(r"\d\.\d+", value.plain):
                python = value.plain
        bare = any(option == "--no-deps" for option, _ in told)
        command = str(place(words[0].text)) if words else ""
        for option, value in told:
            if value is None or (option and option not in _FILES):
                continue
            if value.unread:
                self.unread.append(_unsaid(value))
                continue
            found = (
                self.named(value, python, **_FILES[option])
                if option
                else self.required(value, indexes, python)
            )
            for item in found:
                own = {":all:", requirements.plain(item.name)} & built
                yield item.replace(command=command, bare=bare, built=bool(own))

    def required(self, word: Word, indexes: PackageIndexes, python: str) -> Iterator[Item]:
        item = requirements.requirement(word.text, indexes, python)
        if isinstance(item, NotRead):
            self.unread.append(item)
        elif item is not None:
            yield item

    def named(self, word: Word, python: str, **kind: bool) -> Iterator[Item]:
        """What a file of requirements asks for that the context has."""
        # The name in the image is another than that in the context.
        name = self.copied.get(posixpath.basename(word.plain), word.plain)
        source = self.files.beside(name.lstrip("/") if name != word.plain else name)
        if source is None:
            self.unread.append(NotRead(text=word.text, why="a file that is not beside it"))
            return
        yield from requirements.read_requirements(source, self.files, self.unread, python, **kind)

    def uv(self, words: list[Word], variables: Mapping[str, Word]) -> Iterator[Item]:
        plain = [word.plain for word in words[:2]]
        if plain == ["pip", "install"]:
            yield from self.pip(words[2:], "", variables)
        elif plain[:1] == ["venv"]:
            for option, value in _options(words[1:], _VALUED):
                if option in ("--python", "-p") and value is not None:
                    yield from self.interpreter(value)
        elif plain == ["python", "install"]:
            for option, value in _options(words[2:], _VALUED):
                if not option and value is not None:
                    yield from self.interpreter(value)

    def interpreter(self, word: Word) -> Iterator[Item]:
        found = re.match(r"(?:cpython[@-]?|python)?(\d\.\d+(?:\.\d+)?)$", word.plain)
        if word.unread:
            self.unread.append(_unsaid(word))
        elif found:
            version = word.text.group(found, 1)
            yield Item(
                kind=PYTHON,
                name="python",
                specifier=f"=={version.text}",
                text=word.text,
                version=version,
            )

    def conda(self, words: list[Word], variables: Mapping[str, Word]) -> Iterator[Item]:
        plain = [word.plain for word in words]
        # `conda run -n NAME pip install ...` is a command of pip.
        if plain[:1] == ["run"]:
            named = {"pip", "pip3", "python", "python3"} & set(plain)
            inner = min((plain.index(name) for name in named), default=None)
            python, rest = _pip(plain[inner], words[inner:]) if inner is not None else ("", ())
            if rest and rest[0].plain == "install":
                yield from self.pip(rest[1:], python, variables)
            return
        at = next((at for at, word in enumerate(plain) if word in ("install", "create")), None)
        if at is not None:
            command = str(place(words[0].text))
            for word in self.plain_words(words[at + 1 :], _CONDA_VALUED):
                for item in conda.spec(word.text, self.unread):
                    yield item.replace(command=command)

    def system(self, words: Sequence[Word]) -> Iterator[Item]:
        for word in self.plain_words(words, _SYSTEM_VALUED):
            item = Item(kind=SYSTEM, name=word.plain, specifier="", text=word.text)
            # Most packages of a distribution are nothing that facts are about.
            if names.system(item.name) or names.brings_python(item.name):
                yield item

    def plain_words(self, words: Sequence[Word], valued: frozenset[str]) -> Iterator[Word]:
        """The words of a command that are no options, and that are known without running it."""
        for option, value in _options(words, valued):
            if value is None or option:
                continue
            if value.unread:
                self.unread.append(_unsaid(value))
            else:
                yield value


def _unsaid(word: Word) -> NotRead:
    return NotRead(text=word.text, why=f"{word.unread} is unknown")


def _pip(program: str, words: Sequence[Word]) -> tuple[str, Sequence[Word]]:
    """The series of Python that pip is called for, if its name says so, and the words behind `pip`."""
    if program in ("pip", "pip3", "pip2") or _PIP_OF.match(program):
        found = _PIP_OF.match(program)
        return (found[1] if found else ""), words[1:]
    plain = [word.plain for word in words]
    if program.startswith("python") and plain[1:3] == ["-m", "pip"]:
        found = _PYTHON_OF.match(program)
        return (found[1] if found else ""), words[3:]
    return "", ()


def _options(words: Sequence[Word], valued: frozenset[str]) -> Iterator[tuple[str, Word | None]]:
    """Each option with its value, None where it takes none; a word without an option has an empty one."""
    rest = iter(words)
    for word in rest:
        plain = word.plain
        name, equals, _ = plain.partition("=")
        if not plain.startswith("-") or plain == "-":
            yield "", word
        elif plain.startswith("--") and equals:
            yield name, word.replace(text=word.text[len(name) + 1 :])
        elif plain in valued:
            yield plain, next(rest, None)
        elif not plain.startswith("--") and plain[:2] in valued:
            yield plain[:2], word.replace(text=word.text[2:])
        else:
            yield plain, None


def installed(
    commands: Sequence[ShellCommand],
    files: Files,
    unread: list[NotRead],
    copied: Mapping[str, str] | None = None,
    variables: Mapping[str, Word] | None = None,
) -> list[Item]:
    """What commands install, in their order; what only running would tell goes into `unread`.

    `copied` are files of the context by their names in the image, `variables` those that are set for all commands.
    """
    session = _Session(files, unread, copied or {}, variables or {})
    return [item for command in commands for item in session.of(command)]


def variable(name: str, value: Word, unread: list[NotRead]) -> Iterator[Item]:
    """What a variable asks for, if it is one that says what code is made for."""
    if name not in names.variables():
        return
    if value.unread:
        unread.append(_unsaid(value))
    elif value.text:
        yield Item(kind=VARIABLE, name=name, specifier=value.plain, text=value.text)
