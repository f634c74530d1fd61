"""Try the laws on random requests, and print what breaks them.

    python -m tests.laws --count 5000 --seed 7

prints how many answers are yes, no and cannot say, each law with the requests that break it, made smaller, and the
slowest ten. Exits with 1 where any law is broken.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter, defaultdict
from time import process_time

from tests.laws import shrink
from tests.laws.ask import Asker, Reply, command
from tests.laws.laws import LAWS, Broken, broken
from tests.laws.requests import Draw
from toolmatrix.factbase.store import open_index

_SLOWEST = 10


def main(argv: list[str]) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tests.laws", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="requests to try")
    parser.add_argument("--seed", type=int, default=0, help="where the draw begins")
    parser.add_argument("--first", type=int, default=0, help="number of the first request")
    parser.add_argument("--law", action="append", choices=sorted(LAWS), help="these laws alone")
    parser.add_argument("--shown", type=int, default=5, help="requests to print for a law")
    parser.add_argument("--seconds", type=float, default=20, help="what one answer may take")
    given = parser.parse_args(argv)
    asker = Asker(open_index((), os.environ))
    draw = Draw(asker.index, given.seed)
    kinds: Counter[str] = Counter()
    slowest: list[Reply] = []
    found: list[Broken] = []
    tried: set[tuple[str, ...]] = set()
    cost: defaultdict[str, float] = defaultdict(float)
    for number in range(given.first, given.first + given.count):
        fields = draw.request(number)
        reply = asker.ask(fields)
        kinds[str(reply)] += 1
        slowest = sorted([*slowest, reply], key=lambda one: -one.seconds)[:_SLOWEST]
        for law in given.law or LAWS:
            start = process_time()
            one = next(broken(asker, fields, (law,)), None)
            cost[law] += process_time() - start
            if one is not None:
                # To make one smaller takes dozens of answers: that is done for those that are shown.
                found.append(one)
                kinds_of_law = [part.law for part in found]
                if kinds_of_law.count(law) <= given.shown:
                    small = shrink.smallest(asker, one)
                    if (law, *small.fields.arguments()) not in tried:
                        tried.add((law, *small.fields.arguments()))
                        print(f"{number}: {small}", flush=True)
    late = [reply for reply in slowest if reply.seconds > given.seconds]
    print(f"\n{given.count} requests of seed {given.seed}")
    print(", ".join(f"{count} {kind}" for kind, count in kinds.most_common()))
    by_law = Counter(one.law for one in found)
    for law in given.law or LAWS:
        print(f"{by_law[law]:6} break {law} ({cost[law]:.0f} s)")
    print("slowest")
    for reply in slowest:
        print(f"{reply.seconds:6.2f} s  {reply}: {command(reply.fields)}")
    return 1 if found or late else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
