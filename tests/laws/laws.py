"""The laws: each takes a request with its reply, and yields what breaks it.

What a law adds to a request is drawn from the words of the request, so that the same request is tried in the same way.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

import toolmatrix
from tests.laws import engine
from tests.laws.ask import CANNOT_SAY, NO, YES, Asker, Reply, command, versions
from toolmatrix.api.answers import NoAnswer
from toolmatrix.api.requests import OpenMatrix
from toolmatrix.cli import tools
from toolmatrix.errors import ToolmatrixError
from toolmatrix.factbase import evidence
from toolmatrix.factbase.records import REQUIREMENT
from toolmatrix.request.fields import Fields
from toolmatrix.solve.parts import SEVERAL
from toolmatrix.solve.request import Ask

Law = Callable[[Asker, Reply], Iterator[str]]

ANSWERS = (YES, CANNOT_SAY)
FILLED_IN = {"NAME", "DIR", "FILE", "TARGET", "COMMAND"}
_PASTED = re.compile(r"^(?:help|hint): .*(?:\n +.*)*|^ +toolmatrix .*", re.MULTILINE)


class Broken(NamedTuple):
    """A law that a request breaks, and how."""

    law: str
    fields: Fields
    how: str

    def __str__(self) -> str:
        return f"{self.law}: {command(self.fields)}\n    {self.how}"


def broken(asker: Asker, fields: Fields, names: tuple[str, ...] = ()) -> Iterator[Broken]:
    """What a request breaks of the laws, or of those that are named."""
    reply = asker.ask(fields)
    for name in names or tuple(LAWS):
        for how in LAWS[name](asker, reply):
            yield Broken(name, fields, how)


def written_out(reply: Reply) -> Fields:
    """A request with the defaults that its answer took as options."""
    request = reply.request
    held = {
        option: dict.fromkeys(ask.selector for ask in request.asks if ask.component == option)
        for option in ("from", "accelerator")
    }
    # Several targets may have an accelerator each, which no option says.
    accelerator = next(iter(held["accelerator"])) if len(held["accelerator"]) == 1 else ""
    return reply.fields.replace(
        target=request.targets, from_=next(iter(held["from"]), ""), accelerator=accelerator
    )


def _draw(fields: Fields, salt: str) -> Random:
    return Random(f"{salt}/{command(fields)}")


def _differences(one: dict[str, dict[str, str]], other: dict[str, dict[str, str]]) -> str:
    found = [
        f"{target}/{name} {held.get(name, 'none')} -> {other.get(target, {}).get(name, 'none')}"
        for target, held in one.items()
        for name in dict.fromkeys((*held, *other.get(target, {})))
        if held.get(name) != other.get(target, {}).get(name)
    ]
    return ", ".join(found[:6])


def facts_hold(_asker: Asker, reply: Reply) -> Iterator[str]:
    """No answer breaks a hard fact that somebody knows."""
    if reply.answer is not None:
        yield from engine.broken(reply.answer)


def second_engine(asker: Asker, reply: Reply) -> Iterator[str]:
    """A SAT solver says of the whole problem what the answer says."""
    if reply.outcome is not None and not reply.request.min_evidence:
        found = engine.satisfiable(asker.index, reply.request)
        if found != (reply.answer is not None):
            yield f"the SAT solver says {'satisfiable' if found else 'unsatisfiable'}"


def own_pins(asker: Asker, reply: Reply) -> Iterator[str]:
    """An answer that is asked for again, with each of its choices pinned, is itself."""
    answer = reply.answer
    if answer is None:
        return
    pins = [
        Ask(
            component=choice.component,
            selector=asker.index.scale(choice.component).exact(choice.version),
            text=f"{choice.component}=={choice.version}",
            option="with",
            target=target if choice.component not in answer.request.align else "",
        )
        for target, choices in answer.targets.items()
        for choice in choices
        if choice.component not in SEVERAL
    ]
    # What was solved by words is solved by them again; but no word names a release for one of several targets. Where
    # all is named more pairs count, so that it may be worth less.
    pinned = answer.request.replace(
        asks=(*answer.request.asks, *dict.fromkeys(pins)), min_evidence=""
    )
    again = asker.solved(pinned)
    if isinstance(again, NoAnswer):
        yield f"pinned it is a no: {reason(again)}"
    elif (held := versions(again.resolution)) != reply.versions:
        yield f"pinned it differs: {_differences(reply.versions, held)}"


def own_pins_in_words(asker: Asker, reply: Reply) -> Iterator[str]:
    """The same, pinned by the words that people type."""
    answer = reply.answer
    if answer is None or len(answer.targets) > 1:
        return
    components = asker.index.header["components"]
    (choices,) = answer.targets.values()
    pins = [
        f"{choice.component}=={choice.version}"
        for choice in choices
        if choice.component not in (*SEVERAL, "distro")
        and not components[choice.component]["variant_of"]
    ]
    fields = written_out(reply)
    distro = {choice.version for choice in choices if choice.component == "distro"}
    again = asker.ask(
        fields.replace(
            with_=tuple(dict.fromkeys((*fields.with_, *pins))),
            distro=fields.distro or "".join(distro),
            min_evidence=evidence.UNKNOWN,
        )
    )
    if again.answer is None:
        yield f"{command(again.fields)} is {again}"
    elif again.versions != reply.versions:
        yield f"{command(again.fields)} differs: {_differences(reply.versions, again.versions)}"


def reason(refusal: NoAnswer) -> str:
    """The first reason of a refusal."""
    cores = refusal.to_json(answers=False)["cores"]
    return "; ".join(line["text"] for core in cores[:1] for line in core["lines"])


def one_more(asker: Asker, reply: Reply) -> Iterator[str]:
    """One more constraint never turns a no into an answer."""
    # What is named is no free choice any more, and known better than before: that may be enough evidence.
    if reply.code != NO or reply.fields.min_evidence != evidence.UNKNOWN:
        return
    draw = _draw(reply.fields, "more")
    # Another constraint may have another default target, or way to install.
    out = written_out(reply)
    for base in dict.fromkeys((out, out.replace(accelerator=reply.fields.accelerator))):
        for more in dict.fromkeys(_constrained(asker, base, draw) for _ in range(3)):
            again = asker.ask(more)
            if again.answer is not None:
                yield f"{command(more)} is {again}"


def _constrained(asker: Asker, fields: Fields, draw: Random) -> Fields:
    index = asker.index
    # What was asked for is named once more: of what nothing joins with it a bound changes no answer.
    names = [re.split("[=<>\\[]", word)[0] for word in (*fields.wanted, *fields.with_)]
    component = draw.choice(
        [*(name for name in names if name in index.header["components"]), "python", "gcc"]
    )
    release = draw.choice(index.component(component).versions)
    names_only = index.header["components"][component]["scheme"] == "names"
    operator = "==" if names_only else draw.choice(("==", ">=", "<="))
    ways = [fields.replace(with_=(*fields.with_, f"{component}{operator}{release}"))] * 3
    if not fields.distro:
        ways.append(fields.replace(distro=draw.choice(index.component("distro").versions)))
    if not fields.at:
        ways.append(fields.replace(at="2025-07-04"))
    for option in ("arch", "device"):
        if not getattr(fields, option) and not (fields.arch or fields.device):
            name = draw.choice(index.component(option).versions)
            ways.append(fields.replace(**{option: (name,)}))
    return draw.choice(ways)


def met_already(asker: Asker, reply: Reply) -> Iterator[str]:
    """A constraint that an answer already meets does not change it."""
    if reply.answer is None:
        return
    base = asker.ask(written_out(reply))
    if base.versions != reply.versions or base.code != reply.code:
        yield f"{command(base.fields)} is {base}: {_differences(reply.versions, base.versions)}"
        return
    draw = _draw(reply.fields, "met")
    meeting = list(_meeting(asker, base))
    for more in draw.sample(meeting, min(3, len(meeting))):
        again = asker.ask(more)
        if again.versions != reply.versions:
            how = _differences(reply.versions, again.versions)
            yield f"{command(more)} is {again}: {how}"


def _meeting(asker: Asker, base: Reply) -> Iterator[Fields]:
    fields = base.fields
    for place, word in enumerate(fields.wanted):
        name = re.split("[=<>\\[]", word)[0]
        releases = {held[name] for held in base.versions.values() if name in held}
        # `==1.2` by itself is that release, and beside another bound also what is finer.
        if len(releases) == 1 and not {"[", "+", "=="} & {*word, word[len(name) :][:2]}:
            (release,) = releases
            for more in (f"==={release}", f">={release}", f"<={release}"):
                wanted = list(fields.wanted)
                scheme = asker.index.header["components"][name]["scheme"]
                if name not in asker.index.header["components"] or scheme == "names":
                    continue
                wanted[place] = f"{word},{more}" if word != name else f"{word}{more}"
                yield fields.replace(wanted=tuple(wanted))
    distros = {held.get("distro", "") for held in base.versions.values()}
    # What is named is no free choice any more, and known better than before.
    free = fields.min_evidence == evidence.UNKNOWN
    if free and len(distros) == 1 and not fields.distro and "" not in distros:
        yield fields.replace(distro=distros.pop())
    if not fields.at:
        yield fields.replace(at=asker.index.header["date"])


def each_target(asker: Asker, reply: Reply) -> Iterator[str]:
    """A yes for several targets is a yes for each of them alone, with everything that was requested."""
    answer = reply.answer
    if answer is None or len(answer.targets) < 2:
        return
    request = answer.request
    told = [one["text"] for one in reply.document["caveats"] if one["kind"] == "meant-for-another"]
    for target, held in reply.versions.items():
        meant = [name for owner, name in request.unavailable if owner == target]
        alone = asker.ask(_of_target(reply, target))
        if reply.code == YES and alone.code != YES:
            yield f"{command(alone.fields)} is {alone}"
        elif not request.align and alone.versions.get(target) != held:
            how = _differences({target: held}, alone.versions)
            yield f"{command(alone.fields)} differs: {how}"
        for name in meant:
            word = request.named(name)
            whole = reply.fields.replace(target=(target,), align=(), arch=(), device=())
            for option in ("arch", "device"):
                if name in getattr(request, f"{option}s"):
                    whole = whole.replace(**{option: (word,)})
            # What one of the targets cannot have is meant for another; what it could have is dropped with a word.
            if asker.ask(whole).code == YES and not any(
                f" {word}: not on {target}," in text for text in told
            ):
                yield f"{target} alone takes {word}, and together it does not, without a word"
        components = asker.index.header["components"]
        for name in request.wanted:
            if name not in held and not (components[name]["hidden"] or components[name]["flag"]):
                yield f"the answer has no {name} on {target}"


def _of_target(reply: Reply, target: str) -> Fields:
    """The part of a request that is for one of its targets, by itself."""
    request, fields = reply.request, written_out(reply)
    there = {ask.text for ask in request.asks if ask.target in ("", target)}
    chosen = {
        ask.component: ask.selector
        for ask in request.asks
        if ask.target in ("", target) and ask.component in ("from", "accelerator")
    }
    apart = {request.named(name) for owner, name in request.unavailable if owner == target}
    return fields.replace(
        target=(target,),
        align=(),
        accelerator=chosen.get("accelerator", ""),
        with_=tuple(word for word in fields.with_ if word in there),
        arch=tuple(name for name in request.archs if name not in apart),
        device=tuple(word for word in map(request.named, request.devices) if word not in apart),
    )


def ways_out(asker: Asker, reply: Reply) -> Iterator[str]:
    """Each repair runs as printed and is as good an answer as it says; no core is empty, no suggestion bad usage."""
    if reply.refusal is not None:
        document = reply.refusal.to_json()
        if not document["cores"]:
            yield "it is a no without a reason"
        for core in document["cores"]:
            if not core["lines"] or not all(line["text"].strip() for line in core["lines"]):
                yield "a reason has no line"
        for repair in document["repairs"]:
            again = asker.context.read(shlex.split(repair["command"])[2:])
            found = asker.solved(again)
            # What no fact supports says so by its evidence.
            if found.exit_code not in (
                ANSWERS if repair["evidence"] == evidence.UNKNOWN else (YES,)
            ):
                yield f"the way out `{repair['command']}` exits with {found.exit_code}"
            elif found.to_json().get("targets") != repair["resolution"]["targets"]:
                yield f"the way out `{repair['command']}` gives something else than it says"
            elif again == reply.request:
                yield f"the way out `{repair['command']}` is what was asked"
    text = (
        reply.error.help
        if reply.error
        else reply.outcome.text()
        if reply.outcome is not None
        else ""
    )
    for words in _suggested(text)[:3]:
        if words[0] in ("resolve", "why-not") and "--matrix" not in words:
            again_reply = _pasted(asker, words)
            if again_reply == 2:
                yield f"`toolmatrix {shlex.join(words)}` is suggested and is bad usage"


def _pasted(asker: Asker, words: list[str]) -> int:
    try:
        return asker.solved(asker.context.read(words[1:])).exit_code
    except ToolmatrixError as error:
        return error.exit_code


def _suggested(text: str) -> list[list[str]]:
    parts = (" ".join(part.split()) for part in _PASTED.findall(text))
    commands = [
        one
        for part in parts
        for one in ([part] if part.startswith("toolmatrix") else re.findall("`([^`]+)`", part))
    ]
    lines = [shlex.split(one) for one in commands if one.startswith("toolmatrix ")]
    return [line[1:] for line in lines if len(line) > 2 and FILLED_IN.isdisjoint(line)]


def commands_agree(asker: Asker, reply: Reply) -> Iterator[str]:
    """resolve, why-not, Python, JSON and MCP say the same."""
    matrix = OpenMatrix(index=asker.index)
    fields = reply.fields
    options = {name: getattr(fields, name) for name in Fields._fields if name != "wanted"} | {
        "matrix": matrix
    }
    if reply.outcome is None:
        return
    solved = toolmatrix.resolve(*fields.wanted, **options)
    judged = toolmatrix.why_not(*fields.wanted, **options)
    if solved.exit_code != reply.code:
        yield f"toolmatrix.resolve says {solved.exit_code}, and the command {reply.code}"
    if judged.exit_code != reply.code:
        yield f"why-not exits with {judged.exit_code}, resolve with {reply.code}"
    document, other = solved.to_json(), judged.to_json()
    if document.get("targets") != other.get("targets"):
        yield "why-not has other versions than resolve"
    allowed = other.get("allowed", "none")
    # A refusal that releases beyond the matrix may get round has no answer that could be allowed.
    refused = isinstance(judged, NoAnswer)
    if ("none" if refused else {YES: True, CANNOT_SAY: None}[judged.exit_code]) != allowed:
        yield f"why-not exits with {judged.exit_code} and writes allowed: {allowed}"
    arguments = {
        name.rstrip("_").replace("_", "-"): list(value) if isinstance(value, tuple) else value
        for name, value in options.items()
        if name != "matrix" and value
    } | {"request": list(fields.wanted)}
    for name, expected in (("resolve", document), ("why_not", other)):
        told = tools.call_tool(name, arguments, tools.SessionDefaults(matrix=matrix))
        if told.document != json.loads(json.dumps(expected)) and told.document != expected:
            yield f"the tool {name} of assistants has another document: {str(told.document)[:200]}"


def worth_its_weakest(asker: Asker, reply: Reply) -> Iterator[str]:
    """--min-evidence W accepts exactly the answers whose weakest evidence is W or better."""
    answer, fields = reply.answer, reply.fields
    if answer is None:
        return
    least = fields.min_evidence
    if reply.code == YES and evidence.rank(answer.evidence) < evidence.rank(least):
        yield f"its weakest evidence is {answer.evidence}"
    if answer.evidence == evidence.UNKNOWN:
        return
    again = asker.ask(written_out(reply).replace(min_evidence=answer.evidence))
    if again.code != reply.code:
        yield f"its weakest evidence is {answer.evidence}: {command(again.fields)} is {again}"
    elif again.versions != reply.versions:
        yield f"{command(again.fields)} differs: {_differences(reply.versions, again.versions)}"


def distro_is_with(asker: Asker, reply: Reply) -> Iterator[str]:
    """`--distro D` is `--with distro==D`."""
    fields = reply.fields
    if not fields.distro or reply.code not in (YES, NO, CANNOT_SAY):
        return
    other = asker.ask(fields.replace(distro="", with_=(*fields.with_, f"distro=={fields.distro}")))
    if other.code != reply.code or other.versions != reply.versions:
        how = _differences(reply.versions, other.versions)
        yield f"{reply}, but {command(other.fields)} is {other} {how}"


def brings_what_it_requires(asker: Asker, reply: Reply) -> Iterator[str]:
    """Installers bring what parts of an answer require: to have it already turns no answer into a no."""
    # What no fact ties to the rest is no evidence, wherever it comes from.
    if reply.answer is None or reply.fields.min_evidence != evidence.UNKNOWN:
        return
    index, draw = asker.index, _draw(reply.fields, "brings")
    required = {
        binding.component
        for releases in reply.versions.values()
        for name, release in releases.items()
        if name in index.header["components"] and release in index.scale(name).versions
        for binding in index.component(name).bindings
        if binding.kind == "limits"
        and not binding.conditions
        and binding.component not in releases
        and binding.mask & index.scale(name).bit(release)
        and any(index.claim(cite.record).says == REQUIREMENT for cite in index.cites(binding.cites))
    }
    base = written_out(reply)
    for name in draw.sample(sorted(required), min(3, len(required))):
        again = asker.ask(base.replace(with_=(*base.with_, name)))
        if again.code == NO:
            assert isinstance(again.outcome, NoAnswer)
            yield f"{command(again.fields)} is {again}: {reason(again.outcome)}"


LAWS: dict[str, Law] = {
    "facts-hold": facts_hold,
    "second-engine": second_engine,
    "own-pins": own_pins,
    "own-pins-in-words": own_pins_in_words,
    "one-more": one_more,
    "met-already": met_already,
    "each-target": each_target,
    "ways-out": ways_out,
    "commands-agree": commands_agree,
    "worth-its-weakest": worth_its_weakest,
    "distro-is-with": distro_is_with,
    "brings-what-it-requires": brings_what_it_requires,
}
