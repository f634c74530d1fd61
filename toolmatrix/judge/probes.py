"""The probes for the programs of an image: those that recipes have for components, and those of what flags change."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from toolmatrix.facts.index import Index
from toolmatrix.inventory import programs
from toolmatrix.inventory.running import ProgramProbe
from toolmatrix.recipes import model as recipe
from toolmatrix.recipes import read, variables
from toolmatrix.recipes.model import Book, Effect, Provision

_COMPILERS = ("gcc", "clang")
_NAMES = ("cc", *_COMPILERS)
# Prints the macros that a compiler defines of itself (GCC manual, options of the preprocessor).
_MACROS = ("-dM", "-E", "-x", "c", "/dev/null")
_DEFINED = re.compile(r"(!?)defined\((\w+)\)")


def of_index(index: Index, wanted: Collection[str] = ()) -> tuple[ProgramProbe, ...]:
    """Every probe that needs no value of an answer; those of `wanted` components are asked whatever reading saw."""
    return tuple(one.replace(wanted=one.name in wanted) for one in _known(index))


@lru_cache(maxsize=1)
def _known(index: Index) -> tuple[ProgramProbe, ...]:
    catalog = read.provisions(index)
    return (*_of_components(catalog), *_of_flags(catalog.effects))


def _of_components(catalog: Book) -> Iterator[ProgramProbe]:
    # The probes of a component's first provision go in the first round; others stand in where those do not answer.
    asked: dict[str, dict[tuple[str, ...], int]] = {}
    for provision in catalog.provisions:
        held = asked.setdefault(provision.component, {})
        together = max(held.values(), default=-1) + 1
        for stands_in, probe, run in sorted(_runs(provision), key=lambda one: one[0]):
            if run not in held:
                held[run] = max(held.values(), default=-1) + 1 if stands_in else together
                yield ProgramProbe(
                    name=provision.component,
                    run=run,
                    about=(provision.component,),
                    after=probe.after,
                    round=held[run],
                )


def _runs(provision: Provision) -> Iterator[tuple[bool, recipe.Probe, tuple[str, ...]]]:
    """Each probe with its arguments, and whether it stands in for others."""
    for probe in provision.probes:
        try:
            words = [variables.put(word, {"component": provision.component}) for word in probe.run]
        except KeyError:
            # It needs a value of an answer, and an image that is only looked at has none.
            continue
        # `python` is missing in many images that have `python3`. A version that a probe names no program has to print.
        for name in (words[0], *programs.alike(words[0])) if not probe.wanted else ():
            yield bool(probe.when) or name != words[0], probe, (name, *words[1:])


def _of_flags(effects: Sequence[Effect]) -> Iterator[ProgramProbe]:
    # The default of a compiler shows in a macro, so that no file has to be compiled.
    names = [one.name for one in effects]
    for place, effect in enumerate(effects):
        found = _DEFINED.fullmatch(effect.holds)
        if found and names.count(effect.name) > 1 and effect.name not in names[:place]:
            values = (effect.expected, effect.otherwise)
            for number, name in enumerate(_NAMES):
                yield ProgramProbe(
                    name=effect.name,
                    run=(name, *_MACROS),
                    about=_COMPILERS,
                    holds=f"#define {found[2]} ",
                    values=values[::-1] if found[1] else values,
                    round=number,
                )
