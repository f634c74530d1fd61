"""The commands of a shell script, and what they install by pip, uv, conda, apt and dnf; and what variables ask for.

Nothing is run, and what depends on running says so. Quotes, escapes, comments, redirections and variables are read as
POSIX has them (Shell Command Language, 2.2 to 2.7). What a substitution of a command would give, or a variable that
nobody set, is marked and never guessed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import dropwhile

from toolmatrix.manifests import names, requirements
from toolmatrix.manifests.files import Files
from toolmatrix.manifests.model import (
    ALL,
    CHANNEL,
    EXCERPT,
    LONGEST_VALUE,
    NAMED,
    PYTHON,
    REMOVED,
    SYSTEM,
    VARIABLE,
    Item,
    NotRead,
    Traced,
    joined,
    position,
)
from toolmatrix.manifests.requirements import PackageIndexes
from toolmatrix.value import Value

NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?:(:?[-+])([^{}]*))?\}|([A-Za-z_]\w*))", re.ASCII)
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)=", re.ASCII)
_FROM_NUMBER = re.compile(r"\d[<>]")
_REDIRECTION = re.compile(r"[0-9<>&|-]*[ \t]*")
# A letter, and those behind it up to one that means something to the shell.
_LETTERS = re.compile(r".[^ \t\r\n;&|()<>'\"\\`$]*", re.DOTALL)
_QUOTED = re.compile(r'[^"\\$`]+')
_OPENS = {"if", "for", "while", "until", "case", "select"}
_CLOSES = {"fi", "done", "esac"}
_MIDDLE = {"then", "else", "elif", "do", "{", "}", "!", "time"}
# What follows them in a chain runs only if they succeed.
_TESTS = {"[", "[[", "test"}


class Word(Value):
    """One word of a command; `unread` is the part that is only known when it runs."""

    text: Traced
    unread: str = ""

    @property
    def plain(self) -> str:
        """Its letters."""
        return self.text.text


class ShellCommand(Value):
    """The words of one command, and the variables set for it; `unsure`: a condition decides whether it runs."""

    words: tuple[Word, ...]
    variables: Mapping[str, Word]
    unsure: bool = False


def expand(text: Traced, variables: Mapping[str, Word]) -> Word:
    """A text with its variables put in: what is set, or its default."""
    parts, unread, position, letters, match = [], "", 0, 0, None
    for match in _VARIABLE.finditer(text.text):
        name = match[1] or match[4]
        parts.append(text[position : match.start()])
        position = match.end()
        value = variables.get(name)
        # What is put in where a variable is set says nothing of the value that it has.
        if match[2] in (":+", "+"):
            unread = unread or match[0]
        elif value is not None and (value.plain or value.unread or match[2] != ":-"):
            letters += len(value.text)
            if letters > LONGEST_VALUE:
                break
            parts.append(value.text)
            unread = unread or value.unread
        elif match[2]:
            parts.append(text.group(match, 3))
        else:
            unread = unread or match[0]
            parts.append(text.group(match, 0))
    if match and letters and not text.source.has_room(text, letters):
        return Word(text=text, unread=match[0])
    parts.append(text[position:])
    return Word(text=joined(parts, text.source), unread=unread)


class _Reader:
    def __init__(self, text: Traced, variables: Mapping[str, Word]) -> None:
        self.text = text
        self.letters = text.text
        self.variables = dict(variables)
        self.index = 0

    def commands(self) -> Iterator[ShellCommand]:
        """The commands in their order, with what decides whether each runs."""
        depth, alternative, tested = 0, False, False
        for words, operator in self.lines():
            depth -= sum(word.plain in _CLOSES for word in words[:1])
            opening = bool(words) and words[0].plain in _OPENS
            depth += opening
            rest = list(dropwhile(lambda word: word.plain in _MIDDLE, words))
            if rest and not opening and words[0].plain not in _CLOSES:
                # A test, and `||`, decide what else of the chain runs.
                # The words of a test install nothing.
                is_test = rest[0].plain in _TESTS
                if not is_test:
                    yield self.command(rest, unsure=bool(depth or alternative or tested))
                tested = (tested or is_test) and operator == "&&"
            if operator == "||":
                alternative = True
            elif operator not in ("&&", "|"):
                alternative = tested = False

    def command(self, words: list[Word], *, unsure: bool) -> ShellCommand:
        variables, assigned = {}, 0
        for value in words:
            assignment = None if value.unread else _ASSIGNED.match(value.plain)
            if assignment is None:
                break
            variables[assignment[1]] = value.replace(text=value.text[assignment.end() :])
            assigned += 1
        words = words[assigned:]
        # What is exported, or assigned alone, is seen by all commands of the same script.
        exported = words and words[0].plain in ("export", "declare")
        for word in words[1:] if exported else ():
            if assignment := _ASSIGNED.match(word.plain):
                self.variables[assignment[1]] = word.replace(text=word.text[assignment.end() :])
        if not words:
            # An assignment alone holds for what follows; where it is conditional, the value is unknown.
            for name, value in variables.items():
                self.variables[name] = value.replace(unread=f"${name}") if unsure else value
        return ShellCommand(words=tuple(words), variables=variables, unsure=unsure)

    def lines(self) -> Iterator[tuple[list[Word], str]]:
        """The words up to each operator, and the operator."""
        words: list[Word] = []
        while self.index < len(self.letters):
            letter = self.letters[self.index]
            if letter in " \t\r":
                self.index += 1
            elif letter == "#":
                self.skip("\n")
            elif letter in "\n;&|()":
                operator = letter
                if self.letters[self.index : self.index + 2] in ("&&", "||", ";;"):
                    operator *= 2
                self.index += len(operator)
                yield words, operator
                words = []
            # `pip install torch>2` writes a file, and asks for any torch.
            elif letter in "<>" or _FROM_NUMBER.match(self.letters, self.index):
                self.redirection()
            else:
                words += self.word()
        yield words, "\n"

    def skip(self, end: str) -> None:
        index = self.letters.find(end, self.index)
        self.index = len(self.letters) if index < 0 else index

    def skip_match(self, pattern: re.Pattern[str]) -> None:
        if match := pattern.match(self.letters, self.index):
            self.index = match.end()

    def redirection(self) -> None:
        self.skip_match(_REDIRECTION)
        if self.letters[self.index : self.index + 1] not in ("", "\n", ";", "&", "|"):
            self.word()

    def word(self) -> list[Word]:
        """The word that begins here; several where blanks come out of a variable."""
        parts: list[Word] = []
        bare = True
        while self.index < len(self.letters):
            letter = self.letters[self.index]
            if letter in " \t\r\n;&|()<>":
                break
            parts.append(self.piece())
            bare = bare and letter not in "\"'"
        unread = next((part.unread for part in parts if part.unread), "")
        text = joined([part.text for part in parts], self.text.source)
        if bare and not unread and any(letter.isspace() for letter in text.text):
            return [Word(text=word, unread=unread) for word in text.words()]
        return [Word(text=text, unread=unread)]

    def piece(self) -> Word:
        """The piece that begins here: a quoted text, an escaped letter, a substitution, or the letters before one."""
        letter = self.letters[self.index]
        start = self.index
        if letter in "'\"":
            return self.quoted(letter)
        if letter == "\\":
            self.index += 2
            return Word(text=self.text[start + 1 : self.index])
        if letter == "`" or self.letters.startswith("$(", start):
            return self.substitution()
        if letter == "$":
            # `${TAG:-a b}` is one piece.
            match = _VARIABLE.match(self.letters, start)
            self.index = match.end() if match else start + 1
            return expand(self.text[start : self.index], self.variables)
        self.skip_match(_LETTERS)
        return Word(text=self.text[start : self.index])

    def quoted(self, quote: str) -> Word:
        self.index += 1
        parts: list[Word] = []
        while self.index < len(self.letters) and self.letters[self.index] != quote:
            start = self.index
            if quote == "'":
                self.skip(quote)
                parts.append(Word(text=self.text[start : self.index]))
            elif self.letters[start] in "\\$`":
                # Between double quotes a backslash keeps its meaning before few letters alone.
                literal = (
                    self.letters[start] == "\\"
                    and self.letters[start + 1 : start + 2] not in '$`"\\'
                )
                piece = self.piece()
                parts.append(Word(text=self.text[start : self.index]) if literal else piece)
            else:
                self.skip_match(_QUOTED)
                parts.append(Word(text=self.text[start : self.index]))
        self.index += 1
        unread = next((part.unread for part in parts if part.unread), "")
        return Word(text=joined([part.text for part in parts], self.text.source), unread=unread)

    def substitution(self) -> Word:
        start = self.index
        # What a command prints is known when it runs.
        if self.letters[start] == "`":
            self.index += 1
            self.skip("`")
            self.index += 1
        else:
            depth = 0
            self.index += 1
            while self.index < len(self.letters):
                depth += {"(": 1, ")": -1}.get(self.letters[self.index], 0)
                self.index += 1
                if not depth:
                    break
        return Word(text=self.text[start : self.index], unread="$(...)")


def commands(text: Traced, variables: Mapping[str, Word]) -> Iterator[ShellCommand]:
    """The commands of a script, with the variables that are set where it begins."""
    yield from _Reader(text, variables).commands()


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
    "--no-dependencies": "--no-deps",
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
    ("PIP_FIND_LINKS", "--find-links"),
    ("UV_FIND_LINKS", "--find-links"),
    ("UV_INDEX", "--extra-index-url"),
    ("UV_DEFAULT_INDEX", "--index-url"),
    # Settings in a file, which is not read.
    ("PIP_CONFIG_FILE", "--extra-index-url"),
)
_CONSTRAINTS = {
    "pip": {"PIP_CONSTRAINT": "-c"},
    "uv": {"UV_CONSTRAINT": "-c", "UV_OVERRIDE": "--override"},
}
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
SYSTEM_INSTALLERS = frozenset(("apt-get", "apt", "dnf", "yum", "microdnf"))
"""The programs that install packages of a distribution."""
_SYSTEM_VALUED = frozenset(("-o", "-t", "--option", "--target-release", "-c", "--config-file"))
BEFORE = frozenset(["sudo", "exec", "command", "time", "nice", "env", "eatmydata"])
"""Words before a command that run it."""
_PIP = re.compile(r"pip(?:[23]|(\d\.\d+))?$")
_PYTHON_OF = re.compile(r"python(\d\.\d+)$")


class CopiedFiles:
    """The files and folders of a build context by where a Dockerfile copied them to."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.folders: list[tuple[str, str]] = []

    def add(self, names: Sequence[str], target: str) -> None:
        """Copy files or the contents of folders to a path of the image."""
        is_folder = target.endswith(("/", ".")) or len(names) > 1
        for name in names:
            base = posixpath.basename(name.rstrip("/"))
            self.names[base if is_folder else posixpath.basename(target)] = name
            self.folders.append((target.rstrip("/") + "/", name))

    def sources(self, path: str) -> Iterator[str]:
        """The paths in the context that a path of the image may be of, the likeliest first."""
        # The folder of the image is often known by the working directory alone.
        name = self.names.get(posixpath.basename(path))
        if name:
            yield name.lstrip("/")
        for folder, source in reversed(self.folders):
            if path.startswith(folder):
                yield posixpath.join(source.strip("/"), path[len(folder) :])


class _Session:
    def __init__(
        self,
        files: Files,
        unread: list[NotRead],
        copied: CopiedFiles,
        variables: Mapping[str, Word],
    ) -> None:
        self.files = files
        self.unread = unread
        self.copied = copied
        self.variables = variables

    def items(self, command: ShellCommand) -> Iterator[Item]:
        for name, value in command.variables.items():
            yield from variable(name, value, self.unread)
        words = list(dropwhile(lambda word: word.plain in BEFORE, command.words))
        items = self.installed(words, command) if words else ()
        if command.unsure:
            # One line for each thing that it would install.
            why = "a condition decides whether it is installed"
            self.unread += [NotRead(text=item.text, why=why) for item in items]
        else:
            yield from items

    def installed(self, words: list[Word], command: ShellCommand) -> Iterator[Item]:
        program = posixpath.basename(words[0].plain)
        variables = {**self.variables, **command.variables}
        plain = [word.plain for word in words]
        if program in SYSTEM_INSTALLERS and "install" in plain:
            yield from self.system(words[plain.index("install") + 1 :])
        elif program in _CONDAS:
            yield from self.conda(words[1:], variables)
        elif program == "uv":
            yield from self.uv(words[1:], variables)
        else:
            python, rest = pip_words(program, words)
            if rest and rest[0].plain == "install":
                yield from self.pip(rest[1:], python, variables)
            elif rest and rest[0].plain == "uninstall":
                yield from self.remove(rest[1:])

    def remove(self, words: Sequence[Word]) -> Iterator[Item]:
        """What `pip uninstall` takes away."""
        for option, value in _options(words, _VALUED):
            if value is not None and not option and not value.unread:
                name = names.package_name(value.plain)
                yield Item(kind=REMOVED, name=name, specifier="", text=value.text)

    def pip(
        self, words: Sequence[Word], python: str, variables: Mapping[str, Word], tool: str = "pip"
    ) -> Iterator[Item]:
        """What `pip install` is asked for."""
        options = [(_SAME.get(option, option), value) for option, value in _options(words, _VALUED)]
        # A variable may name several files.
        options += [
            (option, variables[name].replace(text=path))
            for name, option in _CONSTRAINTS[tool].items()
            for path in (variables[name].text.words() if name in variables else ())
        ]
        indexes, built = PackageIndexes(), set[str]()
        for name, option in _INDEXES:
            for address in variables[name].plain.split() if name in variables else ():
                indexes = indexes.with_option(option, address)
        for option, value in options:
            if option in requirements.INDEXES and value is not None:
                indexes = indexes.with_option(option, value.plain)
            # uv takes torch and what belongs to it from an index that it knows by that name.
            if option == "--torch-backend" and value is not None:
                indexes = indexes.with_option("--extra-index-url", value.plain)
            if option == "--no-binary" and value is not None:
                built |= {names.package_name(name) for name in value.plain.split(",")}
            if option in ("--python", "-p") and value and re.fullmatch(r"\d\.\d+", value.plain):
                python = value.plain
        bare = any(option == "--no-deps" for option, _ in options)
        upgrade = _upgrade(options)
        command = str(position(words[0].text)) if words else ""
        for option, value in options:
            if value is None or (option and option not in _FILES):
                continue
            if value.unread:
                self.unread.append(unknown_value(value))
                continue
            items = (
                self.read_file(value, python, **_FILES[option])
                if option
                else self.read_requirement(value, indexes, python)
            )
            for item in items:
                own = {":all:", names.package_name(item.name)} & built
                yield item.replace(command=command, bare=bare, built=bool(own), upgrade=upgrade)

    def read_requirement(self, word: Word, indexes: PackageIndexes, python: str) -> Iterator[Item]:
        item = requirements.requirement(word.text, indexes, python)
        if isinstance(item, NotRead):
            self.unread.append(item)
        elif item is not None:
            yield item

    def read_file(self, word: Word, python: str, **kind: bool) -> Iterator[Item]:
        """What a file of requirements asks for that the context has."""
        names = self.copied.sources(word.plain)
        beside = (self.files.beside(name) for name in (*names, word.plain))
        source = next((file for file in beside if file is not None), None)
        if source is None:
            self.unread.append(NotRead(text=word.text, why="not a file of the project"))
            return
        yield from requirements.read_requirements(source, self.files, self.unread, python, **kind)

    def uv(self, words: list[Word], variables: Mapping[str, Word]) -> Iterator[Item]:
        plain = [word.plain for word in words[:2]]
        if plain == ["pip", "uninstall"]:
            yield from self.remove(words[2:])
        elif plain == ["pip", "install"]:
            backends = [v for option, v in _options(words, _VALUED) if option == "--torch-backend"]
            backend = (backends or [variables.get("UV_TORCH_BACKEND")])[-1]
            for item in self.pip(words[2:], "", variables, "uv"):
                package = names.package_name(item.name)
                address = names.backend_index(backend.plain, package) if backend else ""
                if address:
                    item = item.replace(indexes=(address,), alone=True)
                # uv upgrades whatever it resolves.
                yield item.replace(upgrade=ALL) if item.upgrade else item
        elif plain[:1] == ["venv"]:
            for option, value in _options(words[1:], _VALUED):
                if option in ("--python", "-p") and value is not None:
                    yield from self.interpreter(value)
        elif plain == ["python", "install"]:
            for option, value in _options(words[2:], _VALUED):
                if not option and value is not None:
                    yield from self.interpreter(value)

    def interpreter(self, word: Word) -> Iterator[Item]:
        match = re.match(r"(?:cpython[@-]?|python)?(\d\.\d+(?:\.\d+)?)$", word.plain)
        if word.unread:
            self.unread.append(unknown_value(word))
        elif match:
            version = word.text.group(match, 1)
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
            python, rest = pip_words(plain[inner], words[inner:]) if inner is not None else ("", ())
            if rest and rest[0].plain == "install":
                yield from self.pip(rest[1:], python, variables)
            return
        at = next((at for at, word in enumerate(plain) if word in ("install", "create")), None)
        if at is not None:
            command = str(position(words[0].text))
            for option, value in _options(words[at + 1 :], _CONDA_VALUED):
                if option in ("-c", "--channel") and value is not None and not value.unread:
                    yield Item(kind=CHANNEL, name=value.plain, specifier="", text=value.text)
            for word in self.plain_words(words[at + 1 :], _CONDA_VALUED):
                for item in requirements.conda_spec(word.text, self.unread):
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
                self.unread.append(unknown_value(value))
            else:
                yield value


def _upgrade(options: Sequence[tuple[str, Word | None]]) -> str:
    """What a command of pip upgrades (pip 23.2.1 and uv 0.9, `install --help`)."""
    names = [option for option, _ in options]
    # Letters of several short options may be one word.
    letters = {letter for name in names if name[1:2] not in ("", "-") for letter in name[1:]}
    upgraded = "--upgrade" in names or "U" in letters
    eager = any(
        option == "--upgrade-strategy" and value and value.plain == "eager"
        for option, value in options
    )
    again = {"--force-reinstall", "--ignore-installed", "--reinstall"}
    if not again.isdisjoint(names) or "I" in letters or (upgraded and eager):
        return ALL
    return NAMED if upgraded else ""


def unknown_value(word: Word) -> NotRead:
    """That a word has a variable whose value nothing says."""
    return NotRead(text=word.text[:EXCERPT], why=f"{word.unread} is unknown")


def pip_words(program: str, words: Sequence[Word]) -> tuple[str, Sequence[Word]]:
    """The series of Python that pip is called for, if its name says so, and the words behind `pip`."""
    if match := _PIP.match(program):
        return match[1] or "", words[1:]
    plain = [word.plain for word in words]
    if program.startswith("python") and plain[1:3] == ["-m", "pip"]:
        match = _PYTHON_OF.match(program)
        return (match[1] if match else ""), words[3:]
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
    copied: CopiedFiles | None = None,
    variables: Mapping[str, Word] | None = None,
) -> list[Item]:
    """What commands install, in their order; what is only known when they run goes into `unread`.

    `copied` are files of the context in the image, `variables` those that are set for all commands.
    """
    session = _Session(files, unread, copied or CopiedFiles(), variables or {})
    return [item for command in commands for item in session.items(command)]


def configured(commands: Iterable[ShellCommand]) -> dict[str, Word]:
    """What commands write into the settings of pip (`pip config set`), as the variables that say the same."""
    variables: dict[str, Word] = {}
    for command in commands:
        words = list(dropwhile(lambda word: word.plain in BEFORE, command.words))
        _, rest = pip_words(posixpath.basename(words[0].plain), words) if words else ("", ())
        rest = [word for word in rest if not word.plain.startswith("-")]
        if [word.plain for word in rest[:2]] == ["config", "set"] and len(rest) == 4:
            key = rest[2].plain.rpartition(".")[2]
            variables["PIP_" + key.upper().replace("-", "_")] = rest[3]
    return variables


def variable(name: str, value: Word, unread: list[NotRead]) -> Iterator[Item]:
    """What a variable asks for, if it is one that says what code is made for."""
    if name not in names.variables():
        return
    if value.unread:
        unread.append(unknown_value(value))
    elif value.text:
        yield Item(kind=VARIABLE, name=name, specifier=value.plain, text=value.text)
