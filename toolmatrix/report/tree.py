"""An answer as a tree for people: every line with its evidence, why, and the notes it rests on."""

from __future__ import annotations

from toolmatrix.documents import Evidence, Literal, Ordinal, TypedDict
from toolmatrix.factbase import evidence as words
from toolmatrix.report import claims, remarks, terminal
from toolmatrix.solve import flags
from toolmatrix.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from toolmatrix.factbase.index import Index
    from toolmatrix.report.terminal import Charset, Terminal
    from toolmatrix.report.variants import Variant
    from toolmatrix.solve.resolve import Resolution
    from toolmatrix.solve.support import Choice

    _Branch = tuple[str, str, "_Node"]
    """What is drawn before the name of a node, before the lines that continue it, and the node."""

# A longer name (an image reference) runs over its column instead of pushing all others to the right.
_WIDE = 36
# A longer release is called by the name of its component where another line mentions it.
_LONG = 24
# A selector may be continued on the next line before any of these.
_SIGNS = "<>=!~"
# With fewer columns than these a reason is not continued below its beginning.
_READABLE = 24


class _Node(Value):
    """A component or flag of the tree, with the claims that dispute it and its children."""

    name: str
    evidence: str = ""
    why: str = ""
    sources: tuple[str, ...] = ()
    disputes: tuple[_Node, ...] = ()
    below: tuple[_Node, ...] = ()
    component: str = ""


class NodeEntry(TypedDict):
    """A component or flag, with the claims that dispute it and its children."""

    name: str
    component: str
    evidence: Evidence | Literal[""]
    why: str
    notes: list[Ordinal]
    disputes: list[NodeEntry]
    below: list[NodeEntry]


class TreeEntry(TypedDict):
    """The tree of a target."""

    target: str
    root: NodeEntry


def text(
    index: Index,
    resolution: Resolution,
    screen: Terminal,
    *,
    depth: int | None = None,
    further: Sequence[str] = (),
) -> str:
    """The answer as trees, notes, one closing line and further ones."""
    notes = claims.Notes(index)
    parts = []
    for target in resolution.targets:
        root = _TargetTree(index, resolution, target).root()
        if root is None:
            parts.append([f"nothing to choose  {_headline(index, resolution, target)}"])
        else:
            parts.append([*_tree(root, notes, screen, depth)])
    below = notes.lines(screen.width)
    for remark in (*footer(resolution), *further):
        below += screen.wrap(remark)
    return terminal.blocks([*parts, below])


def footer(resolution: Resolution) -> list[str]:
    """The lines below an answer: its size, its weakest evidence, and what it leaves open."""
    choices = [choice for chosen in resolution.targets.values() for choice in chosen]
    facts = {cite.record for choice in choices for cite in choice.cites}
    closing = (
        f"Resolved {terminal.plural(len(choices), 'component')} from {terminal.plural(len(facts), 'fact')}, "
        f"weakest evidence: {resolution.evidence}"
    )
    disputed = sum(bool(choice.disputed) for choice in choices)
    if disputed:
        closing += f", {disputed} disputed"
    lines = [closing, *(caveat["text"] for caveat in remarks.caveats(resolution))]
    lines += [f"cannot say: {unread['text']}  TM120" for unread in remarks.unread(resolution)]
    return lines


def document(index: Index, resolution: Resolution, notes: claims.Notes) -> list[TreeEntry]:
    """The same trees as JSON values, one for each target; `notes` number the sources."""
    trees: list[TreeEntry] = []
    for target in resolution.targets:
        root = _TargetTree(index, resolution, target).root()
        headline = _headline(index, resolution, target)
        node = root or _Node(name="nothing to choose", why=headline)
        trees.append({"target": target, "root": _document(node, notes)})
    return trees


def _document(node: _Node, notes: claims.Notes) -> NodeEntry:
    return {
        "name": node.name,
        "component": node.component,
        "evidence": node.evidence,
        "why": node.why,
        "notes": notes.numbered(node.sources),
        "disputes": [_document(dispute, notes) for dispute in node.disputes],
        "below": [_document(child, notes) for child in node.below],
    }


def _headline(index: Index, resolution: Resolution, target: str) -> str:
    # The defaults that were filled in are named as well; only a framework is built or installed.
    context = {ask.component: ask for ask in resolution.request.asks if ask.target in ("", target)}
    parts = [target]
    requested = [index.header["components"][name] for name in context]
    if any(head["framework"] or head["variant_of"] for head in requested):
        parts.append(f"from {context['from'].selector}")
    if "accelerator" in context:
        parts.append(f"accelerator {context['accelerator'].selector}")
    return ", ".join(parts)


class _TargetTree:
    """The choices of one target as nodes."""

    def __init__(self, index: Index, resolution: Resolution, target: str) -> None:
        self.index = index
        self.resolution = resolution
        self.target = target
        self.components = index.header["components"]
        chosen = resolution.targets[target]
        self.builds: dict[str, Variant] = {}
        self.inside: Mapping[str, str] = {}
        self.installs: Sequence[str] = ()
        # An answer built from source has no builds to distinguish, and loads nothing for them.
        wheels = any(
            ask.component == "from" and ask.selector == "wheel" for ask in resolution.request.asks
        )
        if wheels or any(self.components[choice.component]["variant_of"] for choice in chosen):
            from toolmatrix.report import variants

            self.builds = {build.component: build for build in variants.of(index, chosen)}
            self.inside = variants.carried(index, resolution, target)
            self.installs = variants.commands(index, resolution, target)
        # A flag is a component of which each spelling is a release.
        self.choices: list[Choice] = []
        self.flagged: dict[str, Choice] = {}
        for choice in chosen:
            if self.components[choice.component]["flag"]:
                self.flagged[choice.version] = choice
            else:
                self.choices.append(choice)

    def root(self) -> _Node | None:
        """The first component that was asked for, all others below it; None where nothing was chosen."""
        if not self.choices:
            return None
        wanted = {*self.resolution.request.wanted}
        # What was asked for may be no part of the answer on this target.
        roots = [choice for choice in self.choices if choice.component in wanted]
        roots = roots or self.choices[:1]
        root = self.node(roots[0], self.below(roots))
        # The first line says what was asked for, with the defaults: no fact explains it better.
        return root.replace(
            why=_headline(self.index, self.resolution, self.target),
            below=(*self.built(), *root.below, *self.flags()),
        )

    def built(self) -> Iterator[_Node]:
        """The images of what was asked for that were built."""
        for image in remarks.images_of(self.index, self.resolution, self.target):
            yield _Node(
                name=f"built {image.day}",
                evidence="ran",
                why=image.text,
                sources=(self.index.record(self.index.number(image.build.fact)).source,),
            )

    def below(self, roots: Sequence[Choice]) -> dict[int, list[Choice]]:
        """Each choice below the component it belongs under, all else below the first component asked for."""
        first = roots[0]
        requested = {id(choice) for choice in roots}
        # Of several archs or devices the first one is found.
        by_name = {choice.component: choice for choice in reversed(self.choices)}
        children: dict[int, list[Choice]] = {}
        for choice in self.choices:
            if choice is first:
                continue
            over = by_name.get(self.components[choice.component]["under"])
            # A parent that is not a framework keeps what it brought in: the distro is below its image.
            if over is None and choice.component in ("distro", "driver"):
                over = by_name.get(choice.parent)
            if over is None or over is choice or id(choice) in requested:
                over = first
            children.setdefault(id(over), []).append(choice)
        # The build comes first: it decides what else there is.
        for siblings in children.values():
            siblings.sort(key=lambda choice: not self.components[choice.component]["variant_of"])
        return children

    def node(self, choice: Choice, below: dict[int, list[Choice]]) -> _Node:
        """A choice with its disputes and all its children."""
        return _Node(
            component=choice.component,
            name=self.name(choice),
            evidence=choice.evidence,
            why=self.why(choice),
            sources=_sources(self.index, choice),
            disputes=tuple(_disputes(self.index, choice)) if choice.disputed else (),
            below=tuple(self.node(child, below) for child in below.get(id(choice), ())),
        )

    def name(self, choice: Choice) -> str:
        """The name of a choice; a build by where it comes from, and the component of a build with its line."""
        component, version = choice.component, choice.version
        head = self.components[component]
        if component in self.builds:
            return f"{component} {self.builds[component].local}"
        if head["variant_of"]:
            build = self.builds[head["variant_of"]]
            return f"{build.line} build for {build.machine}"
        if head["floor"]:
            # A release that the request names exactly may lie between those that are listed.
            exactly = f"{component}=="
            asks = [ask.text for ask in self.resolution.request.asks if ask.component == component]
            named = next((text for text in asks if text.startswith(exactly)), "")
            release = named.removeprefix(exactly).lstrip("=")
            return f"{component} {release or '>=' + version}"
        return version if component == "arch" else f"{component} {version}"

    def why(self, choice: Choice) -> str:
        """The reason without the name that its line begins with; a long name elsewhere by its component."""
        of = self.components[choice.component]["variant_of"]
        if of:
            return f"on {self.builds[of].channel_title}"
        reason = claims.reason(self.index, choice)
        if choice.component in self.inside:
            reason += f" (with {self.inside[choice.component]})"
        reason = reason.removeprefix(f"{choice.component} ").removeprefix(f"{choice.version} ")
        # The reference of an image would be the longest word of every line that mentions it.
        for other in self.choices:
            if len(other.version) > _LONG:
                reason = reason.replace(other.version, other.component)
        return reason

    def flags(self) -> Iterator[_Node]:
        """The flags of the answer: those solved with it, and those that follow from the CPU and the codegen archs."""
        for line in self.installs:
            yield _Node(name=line)
        chosen = flags.of(self.resolution, self.target)
        for flag in chosen.cflags:
            if flag in self.flagged:
                yield self.node(self.flagged[flag], {}).replace(name=flag, disputes=())
            else:
                why = f"archspec {chosen.archspec}, for --cpu {self.resolution.request.cpu}"
                yield _Node(name=flag, evidence="artifact", why=why)
        archs = {choice.version: choice for choice in self.choices if choice.component == "arch"}
        gencode = [flag for flag in chosen.nvcc if flag.startswith("-gencode")]
        for compiler, spelled in (("nvcc", gencode), ("hipcc", chosen.hipcc)):
            for flag in spelled:
                # Such a flag is known as well as that the compiler takes the arch.
                name = next(arch for arch in archs if flag.endswith(f"={arch}"))
                yield _Node(
                    name=flag,
                    evidence=archs[name].evidence,
                    why=f"{compiler} makes {name} code",
                    sources=_sources(self.index, archs[name]),
                )
        for wish in chosen.missing:
            yield _Node(name=f"no {wish}", why="the chosen compiler has no flag for it")


def _disputes(index: Index, choice: Choice) -> Iterator[_Node]:
    disagreements = set()
    for rival in choice.disputed:
        record = index.claim(rival.rival)
        disagreement = claims.disagreement(record)
        if disagreement not in disagreements:
            disagreements.add(disagreement)
            yield _Node(
                name="disputed",
                evidence=rival.evidence,
                why=f"{disagreement}, {index.claim(rival.deciding).evidence} wins  TM301",
                sources=(record.source,),
            )


def _sources(index: Index, choice: Choice) -> tuple[str, ...]:
    # Facts of other evidence are cited by `explain`.
    carried = [cite for cite in choice.cites if cite.evidence == choice.evidence]
    return tuple(index.record(cite.record).source for cite in carried or choice.cites)


def _tree(root: _Node, notes: claims.Notes, screen: Terminal, depth: int | None) -> Iterator[str]:
    lines = [("", "", root), *_branches(root, screen.charset, depth)]
    names = [len(lead + node.name) for lead, _, node in lines]
    wide = max((length for length in names if length <= _WIDE), default=0)
    middle = max(len(node.evidence) for _, _, node in lines)
    following = [*(lead for lead, _, _ in lines[1:]), ""]
    for (lead, below, node), after in zip(lines, following, strict=True):
        # Where a branch follows below this node, its bar runs beside the lines that continue the node.
        goes_on = len(after) > len(below) and after.startswith(below)
        bar = screen.charset.bar if goes_on else ""
        yield from _node_lines(lead, below + bar, node, notes, screen, (wide, middle))


def _branches(
    node: _Node, charset: Charset, depth: int | None, indent: str = ""
) -> Iterator[_Branch]:
    for dispute in node.disputes:
        yield indent + charset.corner, indent + charset.blank, dispute
    below = node.below if depth is None or depth > 0 else ()
    for position, child in enumerate(below, 1):
        last = position == len(below)
        inner = indent + (charset.blank if last else charset.bar)
        yield indent + (charset.corner if last else charset.tee), inner, child
        yield from _branches(child, charset, None if depth is None else depth - 1, inner)


def _node_lines(
    lead: str,
    below: str,
    node: _Node,
    notes: claims.Notes,
    screen: Terminal,
    widths: tuple[int, int],
) -> Iterator[str]:
    """A node as lines; what does not fit is continued below, beside the branches that go on."""
    wide, middle = widths
    left = lead + node.name
    mark = notes.mark(node.sources)
    known = node.evidence and words.rank(node.evidence) > words.rank("derived")
    colour = "unknown" if node.evidence == "unknown" else "yes" if known else "partial"
    evidence = terminal.pad(screen.style(node.evidence, colour) if node.evidence else "", middle)
    whole = f"{left.ljust(wide)}  {evidence}  {node.why}  {mark}".rstrip()
    if len(terminal.visible(whole)) <= screen.width:
        yield whole
        return
    # The name of an image takes a line of its own, and all columns begin below it.
    if len(left) > wide:
        yield left
        left = below
    head = f"{left.ljust(wide)}  {evidence}  "
    indent = f"{below.ljust(wide)}  {' ' * middle}  "
    if screen.width - len(indent) < _READABLE:
        indent = f"{below}    "
    reason = f"{node.why} {mark}"
    for sign in _SIGNS:
        reason = reason.replace(f",{sign}", f", {sign}")
    for line in screen.wrap(reason, head, indent):
        yield line.rstrip()
