"""An answer as a tree for people: every line with its evidence, why, and the notes it rests on."""

from __future__ import annotations

from toolmatrix.facts import evidence as words
from toolmatrix.report import caveats, claims, terminal, variants
from toolmatrix.solve import flags
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolmatrix.facts.index import Index
    from toolmatrix.report.terminal import Terminal
    from toolmatrix.solve.resolve import Choice, Resolution

# A longer name (an image reference) runs over its column instead of pushing all others to the right.
_WIDE = 36
# A longer release is told by the name of its component where another line speaks of it.
_LONG = 24
# A selector may be continued on the next line before any of these.
_SIGNS = "<>=!~"
# With fewer columns than these a reason is not continued below its beginning.
_READABLE = 24


class _Row(Value):
    """One line of the tree: what is drawn before its name and on what follows below it, and its columns."""

    lead: str = ""
    below: str = ""
    name: str
    evidence: str = ""
    why: str = ""
    sources: tuple[str, ...] = ()


def text(
    index: Index,
    resolution: Resolution,
    screen: Terminal,
    *,
    depth: int | None = None,
) -> str:
    """The answer as trees, notes and one closing line."""
    notes = claims.Notes(index)
    parts = [
        "\n".join(_Tree(index, resolution, target, notes, screen).lines(depth))
        for target in resolution.targets
    ]
    choices = [choice for held in resolution.targets.values() for choice in held]
    facts = {cite.record for choice in choices for cite in choice.cites}
    closing = (
        f"Resolved {terminal.plural(len(choices), 'component')} from {terminal.plural(len(facts), 'fact')}, "
        f"weakest evidence: {resolution.evidence}"
    )
    disputed = sum(1 for choice in choices if choice.disputed)
    if disputed:
        closing += f", {disputed} disputed"
    told = [closing, *(caveat["text"] for caveat in caveats.caveats(resolution))]
    told += [f"cannot say: {part['text']}  TM120" for part in caveats.unread(resolution)]
    below = notes.lines(screen.width)
    for part in told:
        below += terminal.wrap(part, screen.width, indent="  ", first="")
    return "\n\n".join([*parts, "\n".join(below)]) + "\n"


def _headline(resolution: Resolution, target: str) -> str:
    """The target with the defaults that were filled in."""
    context = {ask.component: ask for ask in resolution.request.asks if ask.target in ("", target)}
    held = [target, f"from {context['from'].selector}"]
    if "accelerator" in context:
        held.append(f"accelerator {context['accelerator'].selector}")
    return ", ".join(held)


class _Tree:
    """The tree of one target."""

    def __init__(
        self,
        index: Index,
        resolution: Resolution,
        target: str,
        notes: claims.Notes,
        screen: Terminal,
    ) -> None:
        self.index = index
        self.resolution = resolution
        self.target = target
        self.notes = notes
        self.screen = screen
        self.charset = screen.charset
        self.components = index.header["components"]
        parts = [self.components[choice.component]["flag"] for choice in resolution.targets[target]]
        pairs = list(zip(resolution.targets[target], parts, strict=True))
        self.builds = {
            build.component: build for build in variants.of(index, resolution.targets[target])
        }
        self.inside = variants.carried(index, resolution, target) if self.builds else {}
        self.choices = [choice for choice, flag in pairs if not flag]
        self.flagged = {choice.version: choice for choice, flag in pairs if flag}
        self.long = {
            choice.version: choice.component
            for choice in self.choices
            if len(choice.version) > _LONG
        }

    def lines(self, depth: int | None) -> list[str]:
        """The tree, one line for each component or flag, as wide as the screen."""
        headline = _headline(self.resolution, self.target)
        if not self.choices:
            return [f"nothing to choose  {headline}"]
        wanted = {*self.resolution.request.wanted}
        roots = [choice for choice in self.choices if choice.component in wanted]
        root = (roots or self.choices)[0]
        children = self.children(roots or [root])
        first = self.row(root).replace(name=self.labelled(root), why=headline)
        rows = [first, *self.disputes(root, ""), *self.branches(children, root, "", depth)]
        wide = max(len(row.lead + row.name) for row in rows if len(row.lead + row.name) <= _WIDE)
        middle = max(len(row.evidence) for row in rows)
        following = [*(row.lead for row in rows[1:]), ""]
        return [
            line
            for row, lead in zip(rows, following, strict=True)
            for line in self.drawn(row, lead, wide, middle)
        ]

    def drawn(self, row: _Row, following: str, wide: int, middle: int) -> Iterator[str]:
        """A row as lines; what does not fit is continued below, beside the branches that go on."""
        goes_on = len(following) > len(row.below) and following.startswith(row.below)
        below = row.below + (self.charset.bar if goes_on else "")
        left = row.lead + row.name
        mark = self.notes.mark(row.sources)
        evidence = terminal.pad(_coloured(row.evidence, self.screen), middle)
        line = f"{left.ljust(wide)}  {evidence}  {row.why}  {mark}".rstrip()
        if len(terminal.visible(line)) <= self.screen.width:
            yield line
            return
        if len(left) > wide:
            yield left
            left = below
        head = f"{left.ljust(wide)}  {evidence}  "
        indent = f"{below.ljust(wide)}  {' ' * middle}  "
        if self.screen.width - len(indent) < _READABLE:
            indent = f"{below}    "
        text = f"{row.why} {mark}"
        for sign in _SIGNS:
            text = text.replace(f",{sign}", f", {sign}")
        yield from (
            line.rstrip()
            for line in terminal.wrap(text, self.screen.width, indent=indent, first=head)
        )

    def row(self, choice: Choice, lead: str = "", below: str = "") -> _Row:
        return _Row(
            lead=lead,
            below=below,
            name=self.labelled(choice),
            evidence=choice.evidence,
            why=self.why(choice),
            sources=_sources(self.index, choice),
        )

    def labelled(self, choice: Choice) -> str:
        """What a line calls a choice; a build by where it comes from, and what it is a build of with its line."""
        if choice.component in self.builds:
            return f"{choice.component} {self.builds[choice.component].local}"
        of = self.components[choice.component]["variant_of"]
        if of:
            build = self.builds[of]
            return f"{build.line} build for {build.machine}"
        given = (
            _given(self.resolution, choice) if self.components[choice.component]["floor"] else ""
        )
        return f"{choice.component} {given}" if given else _label(self.index, choice)

    def why(self, choice: Choice) -> str:
        """The reason without the name that its line begins with; a long name elsewhere by its component."""
        of = self.components[choice.component]["variant_of"]
        if of:
            return f"on {self.builds[of].channel_title}"
        told = claims.reason(self.index, choice)
        if choice.component in self.inside:
            told += f" (with {self.inside[choice.component]})"
        told = told.removeprefix(f"{choice.component} ").removeprefix(f"{choice.version} ")
        for release, component in self.long.items():
            told = told.replace(release, component)
        return told

    def children(self, roots: Sequence[Choice]) -> dict[int, list[Choice]]:
        """Each choice below the component it belongs under, all else below the first component asked for."""
        first = roots[0]
        asked = {id(choice) for choice in roots}
        by_name = {choice.component: choice for choice in reversed(self.choices)}
        found: dict[int, list[Choice]] = {}
        for choice in self.choices:
            if choice is first:
                continue
            under = by_name.get(self.components[choice.component]["under"])
            over = under or _toolkit(choice, by_name) or first
            if over is choice or (id(choice) in asked and over is not first):
                over = first
            found.setdefault(id(over), []).append(choice)
        for held in found.values():
            held.sort(key=lambda choice: not self.components[choice.component]["variant_of"])
        return found

    def branches(
        self, children: Mapping[int, Sequence[Choice]], over: Choice, indent: str, depth: int | None
    ) -> list[_Row]:
        """What stands below a component, and the flags below the first one."""
        if depth is not None and depth <= 0:
            return []
        rows: list[_Row] = []
        mine = list(children.get(id(over), ()))
        extra = [] if indent else list(self.flags())
        for place, choice in enumerate(mine):
            last = place == len(mine) - 1 and not extra
            inner = indent + (self.charset.blank if last else self.charset.bar)
            rows.append(
                self.row(
                    choice, indent + (self.charset.corner if last else self.charset.tee), inner
                )
            )
            rows += self.disputes(choice, inner)
            rows += self.branches(children, choice, inner, None if depth is None else depth - 1)
        for place, row in enumerate(extra):
            last = place == len(extra) - 1
            lead, below = (
                (self.charset.corner, self.charset.blank)
                if last
                else (self.charset.tee, self.charset.bar)
            )
            rows.append(row.replace(lead=indent + lead, below=indent + below))
        return rows

    def flags(self) -> Iterator[_Row]:
        """The flags of the answer: those solved with it, and those that follow from the CPU and the codegen archs."""
        for line in variants.installs(list(self.builds.values())):
            yield _Row(name=line)
        made = flags.of(self.resolution, self.target)
        for flag in made.cflags:
            if flag in self.flagged:
                yield self.row(self.flagged[flag]).replace(name=flag)
            else:
                said = f"archspec {made.archspec} spells --cpu {self.resolution.request.cpu}"
                yield _Row(name=flag, evidence="artifact", why=said)
        archs = {choice.version: choice for choice in self.choices if choice.component == "arch"}
        gencode = [flag for flag in made.nvcc if flag.startswith("-gencode")]
        yield from self.codegen("nvcc", gencode, archs)
        yield from self.codegen("hipcc", made.hipcc, archs)
        for wish in made.missing:
            yield _Row(name=f"no {wish}", why="the chosen compiler cannot say it")

    def codegen(
        self, compiler: str, made: Sequence[str], archs: Mapping[str, Choice]
    ) -> Iterator[_Row]:
        """Flags that say a codegen arch are known as well as that the compiler takes it."""
        for flag in made:
            name = next(arch for arch in archs if flag.endswith(f"={arch}"))
            choice = archs[name]
            yield _Row(
                name=flag,
                evidence=choice.evidence,
                why=f"{compiler} makes {name} code",
                sources=_sources(self.index, choice),
            )

    def disputes(self, choice: Choice, indent: str) -> Iterator[_Row]:
        """What says otherwise, each once."""
        rows: dict[str, _Row] = {}
        for part in choice.disputed:
            record = self.index.claim(part.rival)
            told = claims.disagreement(record)
            winner = self.index.claim(part.deciding)
            rows.setdefault(
                told,
                _Row(
                    lead=indent + self.charset.corner,
                    below=indent + self.charset.blank,
                    name="disputed",
                    evidence=part.evidence,
                    why=f"{told}, {winner.evidence} wins  TM301",
                    sources=(record.source,),
                ),
            )
        yield from rows.values()


def _coloured(word: str, screen: Terminal) -> str:
    return screen.style(word, _colour(word)) if word else ""


def _colour(word: str) -> str:
    if word == "unknown":
        return word
    return "yes" if words.rank(word) > words.rank("derived") else "partial"


def _toolkit(choice: Choice, by_name: Mapping[str, Choice]) -> Choice | None:
    """A parent that is no framework keeps what it brought in: the distro stands below its image."""
    parent = by_name.get(choice.parent)
    return parent if parent is not None and choice.component in ("distro", "driver") else None


def _label(index: Index, choice: Choice) -> str:
    part = index.header["components"][choice.component]
    if part["floor"]:
        return f"{choice.component} >={choice.version}"
    if choice.component in ("arch", "device"):
        return choice.version if choice.component == "arch" else f"device {choice.version}"
    return f"{choice.component} {choice.version}"


def _given(resolution: Resolution, choice: Choice) -> str:
    """The release that the request names exactly, as it was written: it may lie between those that are listed."""
    for ask in resolution.request.asks:
        if ask.component == choice.component and ask.text.startswith(f"{choice.component}=="):
            return ask.text.partition("==")[2].lstrip("=")
    return ""


def _sources(index: Index, choice: Choice) -> tuple[str, ...]:
    """The sources of the facts that carry the evidence of a choice."""
    carried = [cite for cite in choice.cites if cite.evidence == choice.evidence] or list(
        choice.cites
    )
    return tuple(index.record(cite.record).source for cite in carried)
