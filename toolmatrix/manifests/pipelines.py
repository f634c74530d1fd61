"""Pipelines of GitHub and GitLab, and the images of Cog: what their steps install."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain, islice, product

from toolmatrix.manifests import containers, requirements
from toolmatrix.manifests.files import Files
from toolmatrix.manifests.installers import Word
from toolmatrix.manifests.model import (
    PYTHON,
    FileText,
    Item,
    ManifestEnvironment,
    NotRead,
    ProjectManifest,
    Traced,
    bounded,
    joined,
)
from toolmatrix.manifests.requirements import Marked
from toolmatrix.manifests.scripts import MOST_VARIABLES, ShellSession

# Combinations of the values of a matrix that are read of a job.
_MOST_COMBINED = 20
_EXPRESSION = re.compile(r"\$\{\{([^{}]*)\}\}")
_SERIES = re.compile(r"\d+\.\d+(?:\.\d+)?")
_ELSEWHERE = re.compile(r"windows|macos", re.IGNORECASE)
_NO_JOBS = frozenset(
    ("default", "variables", "stages", "include", "workflow", "image", "services", "cache")
)


def _python(text: Traced) -> Item:
    return Item(kind=PYTHON, name="python", specifier=f"=={text.text}", text=text, version=text)


def _variables(*tables: Marked) -> dict[str, Word]:
    """What tables set, the later ones in the place of the earlier."""
    pairs = chain.from_iterable(table.fields().items() for table in tables)
    texts = ((name, value.text()) for name, (_, value) in islice(pairs, MOST_VARIABLES))
    return {name: Word(text=text) for name, text in texts if text is not None}


def read_workflow(source: FileText, files: Files) -> ProjectManifest:
    """The jobs of a workflow of GitHub as environments, one for each combination of its matrix."""
    root = requirements.parse(source)
    reader = _Workflow(files.within("../.."), root)
    environments = (
        environment
        for name, (_, job) in root.get("jobs").fields().items()
        for environment in reader.job(name, job)
    )
    kept = bounded(source.path, (environment for environment in environments if environment.items))
    return files.manifest("GitHub workflow", source, kept, reader.unread)


class _Workflow:
    def __init__(self, files: Files, root: Marked) -> None:
        self.files = files
        self.root = root
        self.unread: list[NotRead] = []

    def job(self, name: str, job: Marked) -> Iterator[ManifestEnvironment]:
        combinations = _combinations(job.get("strategy").get("matrix"))
        runner = job.get("runs-on").text()
        for values in islice(combinations, _MOST_COMBINED):
            on = self.put(runner, values) if runner else None
            # Facts are about Linux.
            if on is None or not _ELSEWHERE.search(on.text):
                called = " ".join(value.text for value in values.values() if len(value) < 40)
                items = tuple(self.items(job, values))
                yield ManifestEnvironment(name=f"{name} {called}".strip(), items=items)
        if next(combinations, None) is not None and runner:
            why = f"more than {_MOST_COMBINED} combinations of its matrix"
            self.unread.append(NotRead(text=runner, why=why))

    def items(self, job: Marked, values: Mapping[str, Traced]) -> Iterator[Item]:
        container = job.get("container")
        image = container.text() or container.get("image").text()
        yield from containers.image(self.put(image, values) if image else None, self.unread)
        common = _variables(self.root.get("env"), job.get("env"))
        for step in job.get("steps").items():
            fields = step.fields()
            items = [*self.step(step, values, common)]
            if "if" in fields:
                why = "a condition decides whether it is installed"
                self.unread += [NotRead(text=item.text, why=why) for item in items]
            else:
                yield from items

    def step(
        self, step: Marked, values: Mapping[str, Traced], common: Mapping[str, Word]
    ) -> Iterator[Item]:
        version = step.get("with").get("python-version").text()
        version = self.put(version, values) if version else None
        if version and _SERIES.fullmatch(version.text):
            yield _python(version)
        script, folder = step.get("run").text(), step.get("working-directory").text()
        if script:
            files = self.files.within(self.put(folder, values).text) if folder else self.files
            variables = {**common, **_variables(step.get("env"))}
            set_here = {
                name: word.replace(text=self.put(word.text, values))
                for name, word in variables.items()
            }
            yield from ShellSession(files, self.unread).run(self.put(script, values), set_here)

    def put(self, text: Traced, values: Mapping[str, Traced]) -> Traced:
        """A text with the values of the matrix; what else an expression gives becomes a variable that is never set."""
        parts: list[Traced] = []
        position = 0
        for match in _EXPRESSION.finditer(text.text):
            whole = match[1].strip()
            kind, _, name = whole.partition(".")
            value = values.get(name) if kind == "matrix" else None
            new = value.text if value else f"${{{re.sub(r'[^A-Za-z0-9]', '_', whole)}}}"
            parts += (
                text[position : match.start()],
                Traced(text.source, new, [text.at[match.start()]] * len(new)),
            )
            position = match.end()
        return joined([*parts, text[position:]], text.source) if parts else text


def _combinations(matrix: Marked) -> Iterator[Mapping[str, Traced]]:
    """The combinations of a matrix, without those that it excludes and with those that it includes."""
    named = {
        name: texts
        for name, (_, values) in matrix.fields().items()
        if name not in ("include", "exclude") and (texts := [*requirements.texts(values.items())])
    }
    included, excluded = (
        [
            {name: text for name, (_, value) in entry.fields().items() if (text := value.text())}
            for entry in matrix.get(key).items()
        ]
        for key in ("include", "exclude")
    )
    # What includes no new value adds to the combinations that have its values.
    values = {name: {text.text for text in texts} for name, texts in named.items()}
    added: list[dict[str, Traced]] = []
    new: list[dict[str, Traced]] = []
    for entry in included:
        known = all(text.text in values.get(name, (text.text,)) for name, text in entry.items())
        (added if known and named else new).append(entry)
    for chosen in product(*named.values()) if named or not new else ():
        combination = dict(zip(named, chosen, strict=True))
        if not any(entry and _agrees(entry, combination, every=True) for entry in excluded):
            for entry in added:
                combination |= entry if _agrees(entry, combination) else {}
            yield combination
    yield from new


def _agrees(
    entry: Mapping[str, Traced], combination: Mapping[str, Traced], *, every: bool = False
) -> bool:
    """Whether the values of two are the same, of those that both have, or of all of the first."""
    return all(
        combination[name].text == text.text if name in combination else not every
        for name, text in entry.items()
    )


def read_gitlab(source: FileText, files: Files) -> ProjectManifest:
    """The jobs of a pipeline of GitLab as environments."""
    root = requirements.parse(source)
    unread: list[NotRead] = []
    usual = root.get("default").fields() | root.fields()
    jobs, common = root.fields(), _variables(root.get("variables"))

    def read_job(name: str, job: Marked) -> ManifestEnvironment:
        fields = job.fields()
        templates = [job.get("extends").text(), *requirements.texts(job.get("extends").items())]
        for template in filter(None, templates):
            if template.text in jobs:
                fields = jobs[template.text][1].fields() | fields
        fields = {key: usual[key] for key in ("image", "before_script") if key in usual} | fields
        items = _of_job(fields, common, files, unread)
        return ManifestEnvironment(name=name, items=tuple(items))

    environments = (
        read_job(name, job)
        for name, (_, job) in jobs.items()
        if name not in _NO_JOBS
        and not name.startswith(".")
        and job.fields().keys() & {"script", "extends"}
    )
    kept = bounded(source.path, (environment for environment in environments if environment.items))
    return files.manifest("GitLab pipeline", source, kept, unread)


def _of_job(
    fields: containers.Fields, common: Mapping[str, Word], files: Files, unread: list[NotRead]
) -> Iterator[Item]:
    own = _variables(fields["variables"][1]) if "variables" in fields else {}
    variables = {**common, **own}
    if "image" in fields:
        image = fields["image"][1]
        yield from containers.image(image.text() or image.get("name").text(), unread, variables)
    session = ShellSession(files, unread)
    for key in ("before_script", "script"):
        if key in fields:
            lines = fields[key][1]
            for script in requirements.texts([lines, *lines.items()]):
                yield from session.run(script, variables)


def read_cog(source: FileText, files: Files) -> ProjectManifest:
    """The image that Cog builds."""
    unread: list[NotRead] = []
    build = requirements.parse(source).get("build")
    items: list[Item] = []
    for key, name in (("python_version", "python"), ("cuda", "cuda"), ("cudnn", "cudnn")):
        text = build.get(key).text()
        if text and text.text[:1].isdigit():
            items.append(
                _python(text).replace(kind=PYTHON if name == "python" else name, name=name)
            )
    lists = [*requirements.texts(build.get("python_packages").items())]
    named = build.get("python_requirements").text()
    beside = files.beside(named.text) if named else None
    if beside is not None:
        items += (
            item.replace(command="pip")
            for item in requirements.read_requirements(beside, files, unread)
        )
    elif named:
        unread.append(NotRead(text=named, why="not a file of the project"))
    pip = requirements.pip_lines(lists, files, unread, source)
    items += (item.replace(command="pip") for item in pip)
    session = ShellSession(files, unread)
    for command in build.get("run").items():
        script = command.text() or command.get("command").text()
        items += session.run(script) if script else ()
    environments = [ManifestEnvironment(name="", items=tuple(items))]
    return files.manifest("cog.yaml", source, bounded(source.path, environments), unread)
