"""The law: what is read out of a script is what a shell does with it, or it is not known."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.amount import TIMES, growth
from toolmatrix.images import local
from toolmatrix.images.image import ImageMetadata
from toolmatrix.images.layers import LayerReader, Tree
from toolmatrix.images.limits import Budget
from toolmatrix.inspection.entry import Start, starts
from toolmatrix.inspection.observe import Look
from toolmatrix.inspection.record import View
from toolmatrix.inspection.shell.syntax import UnreadScript, parse

pytestmark = [pytest.mark.process, pytest.mark.slow]

# What the started program says: where it lies, what is exported to it, and where it starts.
SAY = (
    "import json, os, sys\n"
    "print(json.dumps([sys.executable, os.environ.get('PYTHONPATH'), os.getcwd()]))\n"
)
FILES = {
    "app.py": SAY,
    "env.sh": "export PYTHONPATH=/from/env\n",
    "plain.env": "PYTHONPATH=/plain\n",
    "returns.sh": "export PYTHONPATH=/early\nreturn 0\nexport PYTHONPATH=/late\n",
    "defines.sh": "enter() {\n  export PYTHONPATH=/$1\n}\n",
    "venv/bin/activate": (
        "deactivate () {\n    unset PYTHONPATH\n}\nVIRTUAL_ENV=ROOT/venv\nexport VIRTUAL_ENV\n"
        'case "$(uname)" in\n  CYGWIN*) VIRTUAL_ENV=/cygwin ;;\nesac\n'
        '_OLD="$PATH"\nPATH="$VIRTUAL_ENV/bin:$PATH"\nexport PATH\n'
        'if [ -n "${PYTHONHOME:-}" ] ; then\n    unset PYTHONHOME\nfi\n'
    ),
    "none.sh": "export PYTHONPATH=/none\npython3 -IS ROOT/app.py\n",
    "runs": '#!/bin/sh\nexport PYTHONPATH=/runs\nexec "$@"\n',
    "d/10.sh": "export A=1\n",
    "d/20.sh": "export PYTHONPATH=/twenty-$A\n",
    "empty.sh": "",
}
PY = "python3 -IS ROOT/app.py"
# Scripts that decide what starts.
DECIDED = (
    PY,
    f"exec {PY}",
    f"export PYTHONPATH=/a; {PY}",
    f"PYTHONPATH=/a; {PY}",
    f"PYTHONPATH=/a {PY}",
    f"A=/a; export PYTHONPATH=$A:$B; {PY}",
    f"export PYTHONPATH=/a PATH; unset PYTHONPATH; {PY}",
    f"set -a; . ROOT/plain.env; set +a; {PY}",
    f". ROOT/plain.env; {PY}",
    f". ROOT/env.sh && {PY}",
    f". ROOT/returns.sh; {PY}",
    f". ROOT/defines.sh; enter x; {PY}",
    f". ROOT/venv/bin/activate && exec {PY}",
    f"for i in ROOT/d/*.sh; do if [ -r $i ]; then . $i; fi; done; unset i; {PY}",
    f"cd ROOT/d && {PY}",
    f"cd ROOT/missing || cd ROOT/venv; {PY}",
    f"(cd ROOT/d; export PYTHONPATH=/a); {PY}",
    f"{{ export PYTHONPATH=/b; }}; {PY}",
    f"if [ -d ROOT/venv ]; then export PYTHONPATH=/is; else export PYTHONPATH=/not; fi; {PY}",
    f"if [ -f ROOT/venv ]; then export PYTHONPATH=/is; fi; {PY}",
    f"if [ ! -e ROOT/gone ]; then export PYTHONPATH=/gone; fi; {PY}",
    f'[ -z "$NOTHING" ] && export PYTHONPATH=/z; {PY}',
    f'[ "$HOME" = /nowhere ] || export PYTHONPATH=/z; {PY}',
    f"[ -s ROOT/empty.sh ] && export PYTHONPATH=/s; {PY}",
    f"[ -x ROOT/app.py ] || export PYTHONPATH=/x; {PY}",
    f"test 1 -lt 2 -a a = a && export PYTHONPATH=/and; {PY}",
    f"test a = b -o 3 -ge 3 && export PYTHONPATH=/or; {PY}",
    f"if ! false; then export PYTHONPATH=/negated; fi; {PY}",
    f"true && false || export PYTHONPATH=/chain; {PY}",
    f"export PYTHONPATH=${{X:-/default}}; {PY}",
    f"export PYTHONPATH=${{HOME:+/set}}; {PY}",
    f"X=; export PYTHONPATH=${{X-/a}}${{X:-/b}}; {PY}",
    f": ${{X:=/assigned}}; export PYTHONPATH=$X; {PY}",
    f"X=/a/b/c.txt; export PYTHONPATH=${{X%/*}}:${{X##*/}}:${{X#/a}}; {PY}",
    f"export PYTHONPATH=$(dirname /a/b)$(basename /c/d); {PY}",
    f"export PYTHONPATH=`dirname /a/b`; {PY}",
    f"export PYTHONPATH=$(cd ROOT/d && pwd); {PY}",
    f"export PYTHONPATH=$(echo /echo); {PY}",
    f"export PYTHONPATH=\"$(printf '%s' /printed)\"; {PY}",
    f"case $HOME in /nowhere) export PYTHONPATH=/case;; *) export PYTHONPATH=/other;; esac; {PY}",
    f"case abc in x|a*) export PYTHONPATH=/pattern;; esac; {PY}",
    f"case '*' in '?') export PYTHONPATH=/one;; esac; {PY}",
    f'set -- {PY}; exec "$@"',
    f"set -- -c x; shift; export PYTHONPATH=$1$#; {PY}",
    f"set -- a b c; for i; do X=$X/$i; done; export PYTHONPATH=$X; {PY}",
    f"set -- a b; while [ $# -gt 0 ]; do X=$X/$1; shift; done; export PYTHONPATH=$X; {PY}",
    f"for i in 1 2 3; do [ $i = 2 ] && break; X=$X/$i; done; export PYTHONPATH=$X; {PY}",
    f"for i in 1 2 3; do [ $i = 2 ] && continue; X=$X/$i; done; export PYTHONPATH=$X; {PY}",
    f"f() {{ export PYTHONPATH=/f-$1; return 0; export PYTHONPATH=/not; }}; f x; {PY}",
    f"eval 'export PYTHONPATH=/eval'; {PY}",
    f"X='a b'; set -- $X; export PYTHONPATH=/$#; {PY}",
    f"X='a b'; set -- \"$X\"; export PYTHONPATH=/$#; {PY}",
    f'set -- "$@"; export PYTHONPATH=/$#; {PY}',
    f"set -- ''; export PYTHONPATH=/$#; {PY}",
    f"export PYTHONPATH='$HOME':\"a$(echo b)\":c\\ d; {PY}",
    f"cat <<EOF >/dev/null\nexport PYTHONPATH=/document\nEOF\n{PY}",
    f"# export PYTHONPATH=/comment\nexport PYTHONPATH=/a#b; {PY}",
    f"export \\\n  PYTHONPATH=/continued; {PY}",
    f"if command -v python3 >/dev/null 2>&1; then export PYTHONPATH=/has; fi; {PY}",
    f"if command -v no-such-program >/dev/null; then export PYTHONPATH=/has; fi; {PY}",
    f"env PYTHONPATH=/env {PY}",
    f'env -i PATH="$PATH" {PY}',
    f"exec env -u PYTHONPATH {PY}",
    f"ROOT/runs {PY}",
    "ROOT/none.sh",
    "sh ROOT/none.sh",
    f"sh -c 'export PYTHONPATH=/inner-$1; {PY}' name argument",
    "ROOT/venv/bin/python3 -IS ROOT/app.py",
    f"echo hi | {PY} | cat",
    f"true & {PY}; wait",
    f"sleep 0 && {PY}",
    f"mkdir -p ROOT/d; {PY} || exit 1",
    f'if [ -n "$DEBUG" ]; then set -x; fi; trap : TERM; umask 022; {PY}',
    f"export PATH=ROOT/venv/bin:$PATH; hash -r; {PY}",
    f"PATH=ROOT/venv/bin:$PATH; {PY}",
    f"until true; do export PYTHONPATH=/never; done; {PY}",
    f"while :; do export PYTHONPATH=/while; break; done; {PY}",
    f"export X='ROOT'; cd \"$X\" && {PY}",
    f"readonly X=/r; export PYTHONPATH=$X; {PY}",
    f"export PYTHONPATH=~; {PY}",
    f"x=$(false) || export PYTHONPATH=/failed; {PY}",
)
# Those that only bash understands so.
OF_BASH = (
    f"[[ $HOME == /no* && -d ROOT/venv ]] && export PYTHONPATH=/both; {PY}",
    f"[[ $HOME == '/no*' || ! -d ROOT/venv ]] || export PYTHONPATH=/none; {PY}",
    f"source ROOT/env.sh; {PY}",
    f'a=({PY}); exec "${{a[@]}}"',
    'a=(python3); a+=(-IS ROOT/app.py); exec "${a[@]}"',
    f"function f {{ declare -x PYTHONPATH=/declared; }}; f; {PY}",
    f"export PYTHONPATH=/a; PYTHONPATH+=:/b; {PY}",
    f"set -euo pipefail; export PYTHONPATH=/strict; {PY}",
    f"for ((i=0; i<2; i++)); do :; done; {PY}",
    f"((1 < 2)) && {PY}",
    f'cd "$(dirname "${{BASH_SOURCE[0]}}")" 2>/dev/null; {PY}',
)
# What a script does here is beyond what files decide: it must not be claimed.
UNDECIDED = (
    f"if grep -q x ROOT/app.py; then export PYTHONPATH=/grep; fi; {PY}",
    f"export PYTHONPATH=$(cat ROOT/plain.env); {PY}",
    f'eval "$(cat ROOT/env.sh)"; {PY}',
    f"read PYTHONPATH < ROOT/plain.env; export PYTHONPATH; {PY}",
    f". ROOT/nowhere/env.sh; {PY}",
    f"export PYTHONPATH=$(( 1 + 2 )); {PY}",
    f"cd $(mktemp -d); {PY}",
)


class World(NamedTuple):
    """A folder with programs and files, and what reading sees of it."""

    root: Path
    tree: Tree


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    root = tmp_path_factory.mktemp("shell")
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text.replace("ROOT", str(root)))
    for path in ("none.sh", "runs"):
        (root / path).chmod(0o755)
    (root / "bin").mkdir()
    for folder in ("bin", "venv/bin"):
        (root / folder / "python3").symlink_to(os.path.realpath(sys.executable))
    tree = Tree()
    paths = [str(root), "/bin", "/usr/bin/env", os.path.realpath(sys.executable)]
    reader = LayerReader(Look, Budget("shell"))
    programs = ("sh", "bash", "dash", "env", "cat", "sleep", "mkdir", "true", "grep")
    paths = [
        paths[0],
        paths[-1],
        *[f"/usr/bin/{name}" for name in programs],
        "/bin",
        "/usr/bin/env",
    ]
    tree.apply(local.read_below("/", [path.strip("/") for path in paths], reader), Budget("shell"))
    return World(root, tree)


def modelled(
    world: World, command: list[str], env: dict[str, str]
) -> list[tuple[str, str | None, str]] | None:
    """What may start by reading; None where that is not known."""
    config = {
        "Env": [f"{name}={value}" for name, value in env.items()],
        "Cmd": command,
        "WorkingDir": str(world.root),
    }
    view = View(ImageMetadata(subject="shell", config={"config": config}), world.tree)
    start = next(starts(view))
    if not start.is_entry or start.unknown:
        return None
    return [_facts(one) for one in (start, *start.others)]


def _facts(start: Start) -> tuple[str, str | None, str]:
    return f"/{start.called}", start.env.get("PYTHONPATH"), start.folder


def ran(world: World, command: list[str], env: dict[str, str]) -> tuple[str, str | None, str]:
    """What a shell starts."""
    done = subprocess.run(
        command, cwd=world.root, env=env, capture_output=True, text=True, check=False, timeout=60
    )
    called, path, folder = json.loads(done.stdout.splitlines()[-1])
    return called, path, folder


def cases(world: World) -> list[tuple[list[str], bool]]:
    """Commands, and whether files decide what they start."""
    made = [
        (shell, text, is_decided)
        for shells, texts, is_decided in (
            (("sh", "bash"), DECIDED, True),
            (("bash",), OF_BASH, True),
            (("bash",), UNDECIDED, False),
        )
        for shell in shells
        if shutil.which(shell)
        for text in texts
    ]
    return [
        ([shell, "-c", text.replace("ROOT", str(world.root))], known) for shell, text, known in made
    ]


def test_a_script_starts_what_is_read(world: World) -> None:
    env = {"PATH": f"{world.root}/bin:/usr/bin:/bin", "HOME": "/nowhere"}
    everything = cases(world)
    assert len(everything) > 100
    with ThreadPoolExecutor(2) as pool:
        real = list(pool.map(lambda case: ran(world, case[0], env), everything))
    wrong = []
    for (command, is_decided), said in zip(everything, real, strict=True):
        read = modelled(world, command, env)
        is_right = read == [said] if is_decided else read is None or said in read[:1] + read[1:]
        if not is_right:
            wrong.append((command[0], command[2], read, said))
    assert wrong == [], "\n".join(map(str, wrong))


@pytest.mark.parametrize(
    "text",
    [
        "select x in a; do :; done",
        "if true",
        "echo 'a",
        'echo "$(',
        "a && ;",
        "case x in",
        "((",
        ")",
    ],
)
def test_what_is_not_understood_is_not_read(text: str) -> None:
    with pytest.raises(UnreadScript):
        parse(text)


HOSTILE = {
    "brackets": "(",
    "substitutions": '"$(',
    "operands": "${a:-",
    "quotes": "\"'",
    "documents": "a <<E\n",
    "conditions": "if a; then b; fi\n",
    "arithmetic": "$((",
    "commands": "a && b || c; ",
    "blanks": "a \\\n",
    "backquotes": "`",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_scripts_are_parsed_in_linear_time(name: str) -> None:
    def read(text: str) -> None:
        with contextlib.suppress(UnreadScript):
            parse(text)

    small, large = (HOSTILE[name] * (4000 * times) for times in (1, TIMES))
    first, then, is_linear = growth(read, small, large)
    assert is_linear, (first, then)
