"""How much of what repositories pin the matrix knows: python benchmarks/coverage.py [--against INDEX]

benchmarks/pins.md says which repositories were counted, and by which rule; pins.json holds the counts.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

KNOWN, INDEPENDENT, UNLISTED, UNKNOWN = ("known", "independent", "release unknown", "unknown")
STATES = (KNOWN, INDEPENDENT, UNLISTED, UNKNOWN)


def states(pins: list[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """What the matrix of this checkout knows of each package with its release."""
    from toolmatrix.factbase import store
    from toolmatrix.factbase.versions import SelectorError
    from toolmatrix.request.names import Names

    index = store.open_index([], dict(os.environ))
    names = Names(index)
    found = {}
    for package, release in pins:
        component = names.called(package)
        if not component:
            found[package, release] = UNKNOWN
            continue
        try:
            listed = bool(names.scale(component).select(f"=={release}") & ~1)
        except SelectorError:
            listed = False
        independent = getattr(index, "is_independent", lambda _: False)(component)
        found[package, release] = UNLISTED if not listed else INDEPENDENT if independent else KNOWN
    return found


def main() -> None:
    """Print the shares, and with `--json FILE` write what was found of each pin."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the state of each pin")
    parser.add_argument("--before", type=Path, help="such a file, of another commit")
    parser.add_argument(
        "--missing", type=int, default=0, help="list so many packages without facts"
    )
    options = parser.parse_args()
    counted = json.loads((HERE / "pins.json").read_text())
    pins = [
        (package, release)
        for repository in counted["repositories"].values()
        for package, releases in repository["pins"].items()
        for release in releases
    ]
    compiled = set(counted["compiled"])
    now = states(sorted(set(pins)))
    columns = {"now": now}
    if options.before:
        before = json.loads(options.before.read_text())
        columns = {
            "before": {tuple(key.split("==")): value for key, value in before.items()}
        } | columns
    print(f"{len(counted['repositories'])} repositories, {len(pins)} pins")
    for title, wanted in (
        ("all pins", pins),
        (
            "of packages with compiled code, or bound to a framework",
            [p for p in pins if p[0] in compiled],
        ),
    ):
        print(f"{title}: {len(wanted)}")
        for name, found in columns.items():
            counts = Counter(found[pin] for pin in wanted)
            shares = (f"{state} {100 * counts[state] / len(wanted):.1f} %" for state in STATES)
            print(f"  {name:7}" + ", ".join(shares))
    if options.missing:
        lacking = Counter(
            package for package, release in pins if now[package, release] in STATES[2:]
        )
        print(", ".join(f"{name} {count}" for name, count in lacking.most_common(options.missing)))
    if options.json:
        entries = {"==".join(pin): state for pin, state in sorted(now.items())}
        options.json.write_text(json.dumps(entries, indent=0) + "\n")


if __name__ == "__main__":
    main()
