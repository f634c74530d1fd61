"""What validate, goss and the check inside say of images that are wrong, and of images that only look so.

What is promised is said once: by the lock, and by `EXPECTED` of tests/engine/mutations.py.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import subprocess
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from _measure import Spread, spread
from resolve import tell

from tests.engine import bases, mutations
from toolmatrix.lockfile import lock_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from validate import Subjects

CHECK = "sh /usr/share/toolmatrix/x86.check.sh"
RUN = ("docker", "run", "--rm", "--network=none")
WAYS = ("validate", "goss", "the check inside")
ENDS = {0: "-", 1: "found"}
"""How all of them end; another code is no answer: they, or the engine, failed."""
VERDICTS = {"FAIL": "found", "unknown": "unknown", "warn": "warned"}
COUNTED: Mapping[str, Mapping[str, str]] = {
    "found": {"right": "false alarm"},
    "warned": {},
    "unknown": {},
    "-": {"wrong": "missed", "right": "passed"},
    "ended": {"wrong": "no answer", "right": "no answer"},
}
"""What is counted of answers, and what it is where the image is wrong, or right."""


def questions(work: Path) -> dict[str, Any]:
    """What is promised as somebody who knows the image asks goss, which has no word for labels and configurations."""
    target = lock_file.read(str(work / "toolmatrix.lock")).environments["default"].targets["x86"]
    version = {name: part.version for name, part in target.components.items()}
    begins = {name: rf"/^(Python )?{re.escape(text)}\b/" for name, text in version.items()}
    major, minor = mutations.RUNTIME
    printed = {
        "uname -m": ["x86_64"],
        ". /etc/os-release; echo $ID$VERSION_ID": [version["distro"]],
        "python --version": [begins["python"]],
        "gcc -dumpfullversion": [begins["gcc"]],
        "python -c 'import numpy; print(numpy.__version__)'": [version["numpy"]],
        "dpkg-query --show --showformat '${Version}' bazel-bootstrap": [begins["bazel"]],
        "echo $CFLAGS": list(target.flags.cflags),
        "echo $CXXFLAGS": list(target.flags.cxxflags),
        mutations.TOOL: [str(1000 * major + 10 * minor)],
        f"ldd {mutations.TOOL} $(gcc -print-prog-name=cc1)": ["!/not found/"],
    }
    inside = (work / mutations.NAME / "toolmatrix.lock").read_bytes()
    lock = {"exists": True, "sha256": hashlib.sha256(inside).hexdigest()}
    return {
        "command": {key: {"exit-status": 0, "stdout": lines} for key, lines in printed.items()},
        "file": {"/usr/share/toolmatrix/toolmatrix.lock": lock},
    }


def goss(work: Path) -> list[str]:
    """Goss out of Debian's package in sid with its questions, as options of `docker run`."""
    tell("taking goss from Debian")
    state = work / "apt"
    for part in ("lists/partial", "cache/archives/partial"):
        (state / part).mkdir(parents=True)
    (state / "sources.list").write_text(f"deb {bases.mirrors()['Debian']} sid main\n")
    words = ["apt-get", "-qq", f"-oDir::Etc::sourcelist={state}/sources.list"]
    words += ["-oDir::Etc::sourceparts=/dev/null", f"-oDir::State::lists={state}/lists"]
    words += [f"-oDir::Cache={state}/cache", "-oAPT::Sandbox::User=root"]
    subprocess.run([*words, "update"], check=True)
    subprocess.run([*words, "download", "goss"], check=True, cwd=state)
    (package,) = state.glob("goss_*.deb")
    subprocess.run(["dpkg-deb", "--extract", package, state / "goss"], check=True)
    (state / "goss.yaml").write_text(json.dumps(questions(work)))
    return [
        f"--volume={state}/goss/usr/bin/goss:/goss:ro",
        f"--volume={state}/goss.yaml:/goss.yaml:ro",
    ]


class Answer(NamedTuple):
    """What one of them says of an image, and the seconds that it took in each round."""

    said: str
    seconds: Spread


def caught(made: Subjects, goss: Sequence[str], rounds: int) -> str:
    """The table: in turn all of them about each image, so that other work on the machine meets them alike."""
    known, store = made.work / "caught", made.work / "store"
    base = f"docker:{mutations.NAME}:besides"
    tell("reading the base")
    made.place.cost(made.ours(base, f"--store={known}"))
    cold = spread([made.place.cost(made.ours(base)).wall for _ in range(rounds)])
    found = {}
    for name in (*mutations.MUTATIONS, *mutations.RIGHT):
        tell(f"image: {name}")
        image = mutations.mutate(made.engine, made.work, name)
        expected = [f"--expect={one}" for one in mutations.EXPECTED]
        ours = shlex.join(made.ours(f"docker:{image}", f"--store={store}", "--json", *expected))
        ways = (
            ["sh", "-c", f"rm -rf {store} && cp -r {known} {store} && exec {ours}"],
            [*RUN, *goss, image, "/goss", "-g", "/goss.yaml", "validate"],
            [*RUN, image, *CHECK.split()],
        )
        turns = [[_asked(made, words) for words in ways] for _ in range(rounds)]
        found[name] = [_answer(several) for several in zip(*turns, strict=True)]
    return f"{_table(found)}\nvalidate where nothing is known, seconds: {_seconds(cold)}"


def _asked(made: Subjects, words: Sequence[str]) -> tuple[str, float]:
    start = time.perf_counter()
    ended = subprocess.run(
        words, cwd=made.work, env=dict(made.place.env), capture_output=True, check=False
    )
    return _said(ended), time.perf_counter() - start


def _said(ended: subprocess.CompletedProcess[bytes]) -> str:
    # Of validate also what is wrong, and what it does not know apart from that; the others print no JSON.
    if ended.stdout.startswith(b"{") and ended.returncode in (*ENDS, 4):
        verdicts = json.loads(ended.stdout)["verdicts"]
        for verdict, word in VERDICTS.items():
            codes = {one["code"] for one in verdicts if one["verdict"] == verdict}
            if codes:
                return " ".join([word, *sorted(codes)])
    return ENDS.get(ended.returncode, f"ended with {ended.returncode}")


def _answer(rounds: Sequence[tuple[str, float]]) -> Answer:
    said = dict.fromkeys(one for one, _ in rounds)
    return Answer(" / ".join(said), spread([wall for _, wall in rounds]))


def _table(found: Mapping[str, Sequence[Answer]]) -> str:
    """A line for each image, and what they come to."""
    lines = [_line("", WAYS)]
    for title, names in (("wrong", mutations.MUTATIONS), ("right", mutations.RIGHT)):
        lines += [_line(f"{title}: {name}", map(_shown, found[name])) for name in names]
    for title, names in (("wrong", mutations.MUTATIONS), ("right", mutations.RIGHT)):
        ways = list(zip(*(found[name] for name in names), strict=True))
        words = [Counter(one.said.split()[0] for one in way) for way in ways]
        for word, meaning in COUNTED.items():
            if any(one[word] for one in words):
                counts = [f"{one[word]} of {len(names)}" for one in words]
                lines.append(_line(f"{title}: {meaning.get(title, word)}", counts))
    walls = [
        spread([one.seconds.median for one in way]) for way in zip(*found.values(), strict=True)
    ]
    lines.append(_line("seconds", [_seconds(one) for one in walls]))
    return "\n".join(lines)


def _shown(one: Answer) -> str:
    return f"{one.said:<19}{_seconds(one.seconds)}"


def _seconds(part: Spread) -> str:
    return f"{part.median:.1f} [{part.least:.1f}-{part.most:.1f}]"


def _line(title: str, parts: Iterable[str]) -> str:
    return (f"{title:<22}" + "".join(f"{part:<35}" for part in parts)).rstrip()
