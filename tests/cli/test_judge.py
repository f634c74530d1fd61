"""`toolmatrix judge`: its forms, its exit codes, bad input; what it finds is the business of tests/judge."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import jsonschema
import pytest

from tests.manifests import patches
from tests.schemas import shipped
from toolmatrix.manifests import files, read

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

REQUIREMENTS = "torch==2.5.0\ntorchaudio==2.2.0\nnumba==0.59.1; python_version < '3.12'\n"
REFUSED = "torch==2.5.0 and torchaudio==2.2.0 conflict"


@pytest.fixture
def file(here: Path) -> Path:
    """A file with a refusal, an edit and something that is not read."""
    path = here / "requirements.txt"
    path.write_text(REQUIREMENTS)
    return path


def test_a_refusal_is_told_with_its_places_its_fact_and_the_edit(real: Cli, file: Path) -> None:
    run = real("judge", file.name, COLUMNS="100")
    assert (run.code, run.err) == (1, "")
    assert run.out == (
        f"error[TM106]: {REFUSED}\n"
        "  --> requirements.txt:1:1  torch==2.5.0\n"
        "  --> requirements.txt:2:1  torchaudio==2.2.0\n"
        "    | torchaudio 2.2.0 does not go with torch 2.5.0 (only 2.2.0) (artifact) [1]\n"
        "\n"
        "the smallest edit found that resolves every conflict:\n"
        "\n"
        "--- requirements.txt\n"
        "+++ requirements.txt\n"
        "@@ -1,3 +1,3 @@\n"
        "-torch==2.5.0\n"
        "+torch==2.2.0\n"
        " torchaudio==2.2.0\n"
        " numba==0.59.1; python_version < '3.12'\n"
        "\n"
        "not read\n"
        "  requirements.txt:3:1  numba==0.59.1; python_version < '3.12': its marker depends on Python\n"
        "\n"
        "[1] package torchaudio, final releases 0.3.0 to 2.11.0\n"
        "    Python package index, torchaudio: file lists, METADATA and contents, read 2026-11-22\n"
        "\n"
        "requirements.txt: facts forbid it; of 1 pair 1 refused, 0 fine and 0 not covered by facts\n"
    )


def test_the_document_has_every_part_pair_and_place(real: Cli, file: Path) -> None:
    document = real("judge", file.name, "--json").json()
    jsonschema.validate(document, shipped("judged"))
    (told,) = document["files"]
    assert (document["outcome"], told["outcome"], told["kind"]) == ("no", "no", "requirements")
    assert told["summary"] == {
        "refused": 1,
        "warnings": 0,
        "pairs": {"fine": 0, "refused": 1, "unknown": 0},
    }
    assert [one["where"]["line"] for one in told["findings"][0]["asked"]] == [1, 2]
    assert told["unread"][0]["where"] == {"path": "requirements.txt", "line": 3, "column": 1}
    assert "torch==2.2.0" in patches.applied(REQUIREMENTS, told["edit"]["patch"])


def test_lines_of_one_package_and_a_release_that_is_not_there_have_their_reasons(
    real: Cli, file: Path
) -> None:
    file.write_text("numpy==1.26.4\nnumpy<1.24\ntorch==2.1.7\n")
    run = real("judge", file.name, COLUMNS="100")
    assert run.code == 1
    assert run.out.startswith(
        "error[TM108]: torch==2.1.7 is not available\n"
        "  --> requirements.txt:3:1  torch==2.1.7\n"
        "    | the package index has no torch 2.1.7, but 2.1.2 and 2.2.0 (read 2026-11-28)\n"
        "\n"
        "error[TM106]: numpy==1.26.4 and numpy<1.24 conflict\n"
        "  --> requirements.txt:1:1  numpy==1.26.4\n"
        "  --> requirements.txt:2:1  numpy<1.24\n"
        "    | no release of numpy satisfies all of them\n"
    )
    jsonschema.validate(real("judge", file.name, "--json").json(), shipped("judged"))


def test_the_patch_alone_is_what_patch_takes(real: Cli, file: Path) -> None:
    run = real("judge", file.name, "--format", "patch")
    assert run.code == 1
    assert patches.applied(REQUIREMENTS, run.out) == REQUIREMENTS.replace("2.5.0", "2.2.0")


@pytest.mark.process
@pytest.mark.long
def test_patch_and_git_apply_it(real: Cli, file: Path) -> None:
    written = real("judge", file.name, "--format", "patch").out.encode()
    # Applied by the one, and taken back by the other.
    for command in (["patch", "-p0"], ["git", "apply", "-R", "-p0"], ["git", "apply", "-p0"]):
        subprocess.run(command, check=True, cwd=file.parent, input=written, capture_output=True)
    assert file.read_text() == REQUIREMENTS.replace("2.5.0", "2.2.0")
    assert real("judge", file.name).code == 0


def test_ci_systems_see_the_line(real: Cli, file: Path) -> None:
    github = real("judge", file.name, "--format", "github")
    assert github.out.startswith(
        "::error file=requirements.txt,line=1,title=TM106::"
        f"{REFUSED} (requirements.txt:2:1), because torchaudio 2.2.0 does not go with"
    )
    sarif = real("judge", file.name, "--format", "sarif")
    (result,) = sarif.json()["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"] == {
        "startLine": 1,
        "startColumn": 1,
    }


@pytest.mark.parametrize(
    ("text", "code", "last"),
    [
        ("torch==2.5.0\ntorchaudio==2.5.0\n", 0, "nothing forbids it; of 1 pair 0 refused, 1 fine"),
        ("requests==2\n", 4, "cannot say; nothing to judge"),
        ("", 4, "cannot say; nothing to judge"),
    ],
)
def test_the_exit_code_says_what_came_of_it(
    real: Cli, file: Path, text: str, code: int, last: str
) -> None:
    file.write_text(text)
    run = real("judge", file.name)
    assert run.code == code
    assert run.out.splitlines()[-1].startswith(f"requirements.txt: {last}")


def test_what_the_matrix_does_not_know_is_told(real: Cli, here: Path) -> None:
    (here / "Dockerfile").write_text("FROM example/image:1\nRUN pip install tensorflow-io==0.8.0\n")
    out = real("judge", "Dockerfile", COLUMNS="100").out
    assert out.startswith(
        "the matrix does not know\n"
        "  Dockerfile:1:6   example/image:1: the contents of this image are unknown\n"
        "  Dockerfile:2:17  tensorflow-io==0.8.0: the matrix knows no tensorflow-io ==0.8.0; its "
    )


def test_a_folder_is_all_its_files_and_a_template_is_not_read(real: Cli, file: Path) -> None:
    (file.parent / "environment.yml").write_text("{% if x %}\na: b: c\n")
    run = real("judge", ".")
    assert run.code == 1
    assert run.out.splitlines()[-3:] == [
        "./environment.yml: not read",
        "./requirements.txt: facts forbid it; of 1 pair 1 refused, 0 fine and 0 not covered by facts",
        "2 files: 1 refused and 1 not read",
    ]
    jsonschema.validate(real("judge", ".", "--json").json(), shipped("judged"))


def test_what_cannot_be_judged_is_one_error(real: Cli, here: Path) -> None:
    (here / "empty").mkdir()
    assert (real("judge", "empty").code, real("judge", "none.txt").code) == (3, 2)
    (here / "notes.md").write_text("hello\n")
    run = real("judge", "notes.md")
    assert (run.code, run.out) == (2, "")
    assert run.err == (
        "error[TM909]: unknown kind of file\n"
        "  --> notes.md\n"
        f"  expected: {read.KINDS}\n"
        "  found: `notes.md`\n"
        "help: use the file name that its tool expects\n"
    )


PASTE = """\
$ pip list | grep torch
torch                     2.0.0
torchaudio                2.1.1
"""


def test_a_paste_is_read_from_stdin_and_commands_resolve_its_conflicts(real: Cli) -> None:
    run = real("judge", "-", piped=PASTE, COLUMNS="100")
    assert run.code == 1
    assert run.out.partition("\n\n[1]")[0] == (
        "error[TM106]: torch==2.0.0 and torchaudio==2.1.1 conflict\n"
        "  --> stdin:2:1  torch==2.0.0\n"
        "  --> stdin:3:1  torchaudio==2.1.1\n"
        "    | torchaudio 2.1.1 does not go with torch 2.0.0 (only 2.1.1) (artifact) [1]\n"
        "\n"
        "these commands resolve every conflict:\n"
        "\n"
        "  pip install torch==2.1.1"
    )
    document = real("judge", "-", "--json", piped=PASTE).json()
    jsonschema.validate(document, shipped("judged"))
    (told,) = document["files"]
    assert (told["path"], told["kind"]) == ("stdin", "paste")
    assert told["edit"] == {
        "patch": "",
        "files": [],
        "commands": ["pip install torch==2.1.1"],
    }


REPORT = """\
PyTorch version: 2.6.0+cu126
CUDA used to build PyTorch: 12.6
Python version: 3.12.9 (main)
CUDA runtime version: 12.4.131
GPU models and configuration: GPU 0: NVIDIA GeForce RTX 5090
Nvidia driver version: 570.124.04
cuDNN version: /usr/lib/x86_64-linux-gnu/libcudnn.so.9.8.0
[pip3] torch==2.6.0+cu126
[pip3] torchvision==0.21.0+cu126
"""


def test_packages_of_a_report_are_judged_for_its_device(real: Cli) -> None:
    told = real("judge", "-", "--json", piped=REPORT).json()["files"][0]
    assert told["outcome"] == "no"
    assert [one["text"] for one in told["findings"][0]["asked"]] == [
        "torch==2.6.0+cu126",
        "NVIDIA GeForce RTX 5090",
    ]
    # The toolkit and cuDNN of the system do not bind wheels that bring their own.
    (command,) = told["edit"]["commands"]
    assert command.startswith(
        "pip install torch==2.7.0+cu128 torchvision==0.22.0+cu128 --index-url "
    )


def test_a_local_version_is_installed_from_its_index(real: Cli) -> None:
    text = PASTE.replace("2.0.0\n", "2.0.0+cu118\n").replace("2.1.1\n", "2.1.1+cu118\n")
    told = real("judge", "-", "--json", piped=text).json()["files"][0]
    (command,) = told["edit"]["commands"]
    assert command.startswith("pip install torch==2.1.1+cu118 --index-url https://")


def test_what_is_piped_in_is_bounded(real: Cli) -> None:
    run = real("judge", "-", piped="a" * (files.LARGEST + 1))
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith("error[TM909]: the file is too large\n  --> stdin\n")


def test_what_is_installed_needs_no_wheel_and_exists(real: Cli) -> None:
    text = "Package Version\n------- -------\nnumpy   2.3.0\nsglang  0.4.5\n\nldd (GNU libc) 2.17\n"
    assert real("judge", "-", piped=text).code == 4


def test_a_matrix_of_ones_own_may_know_nothing_of_it(small: Cli, here: Path) -> None:
    (here / "Dockerfile").write_text(
        "FROM ubuntu:focal\nENV TORCH_CUDA_ARCH_LIST=8.0\nRUN pip install torch==2.0 app==1\n"
    )
    assert small("judge", "Dockerfile").code == 4


def test_what_several_files_have_in_them_is_reported_and_mended_once(real: Cli, here: Path) -> None:
    for name, text in {
        "requirements.txt": "torch==2.5.0\ntorchaudio==2.2.0\n",
        "Dockerfile": "FROM python:3.10\nCOPY requirements.txt .\nRUN pip install -r requirements.txt\n",
        "compose.yaml": "services: {a: {build: .}}\n",
        "README.md": "```\npip install -r requirements.txt\n```\n",
        "setup.cfg": "[metadata]\nname = x\n",
    }.items():
        (here / name).write_text(text)
    text = real("judge", ".").out
    assert text.count("error[TM106]") == 1
    assert text.count("the smallest edit") == 1
    # What asks for nothing is not listed.
    assert text.endswith("4 files: 4 refused\n")
    assert real("judge", ".", "--format", "patch").out.count("+++ ") == 1
    assert real("judge", ".", "--format", "github").out.count("::error") == 1


def environment(folder: Path, **packages: str) -> Path:
    """A virtual environment with the records of packages."""
    for name, version in packages.items():
        place = folder / "lib/python3.12/site-packages"
        record = place / f"{name}-{version}.dist-info"
        record.mkdir(parents=True)
        (record / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        (place / name).mkdir()
        (place / name / "__init__.py").write_text("")
        (record / "RECORD").write_text(f"{name}/__init__.py,,\n")
    return folder


def test_an_environment_is_judged_by_what_is_installed(real: Cli, here: Path) -> None:
    environment(here / "env", torch="2.6.0+cu124", torchvision="0.20.1")
    run = real("judge", "venv:env", "--json")
    assert run.code == 1
    (file,) = run.json()["files"]
    (finding,) = file["findings"]
    assert (file["kind"], finding["text"]) == (
        "inventory",
        "torch==2.6.0+cu124 and torchvision==0.20.1 conflict",
    )
    places = [entry["where"]["path"].rpartition("/site-packages/")[2] for entry in finding["asked"]]
    assert places == [
        "torch-2.6.0+cu124.dist-info/METADATA",
        "torchvision-0.20.1.dist-info/METADATA",
    ]
    # No file is changed: commands install what fits.
    assert (file["edit"]["patch"], file["edit"]["files"]) == ("", [])
    assert file["edit"]["commands"] == ["pip install torchvision==0.21.0"]


def test_an_environment_is_judged_for_a_device(real: Cli, here: Path) -> None:
    environment(here / "env", torch="2.6.0+cu124")
    codes = [real("judge", "venv:env", "--device", name).code for name in ("A100", "RTX 5090")]
    assert codes == [0, 1]


def test_an_index_of_a_readme_may_have_what_requirements_want(real: Cli, here: Path) -> None:
    wanted = "torch==1.9.1+cu111\nnumpy<1.24\n"
    (here / "requirements.txt").write_text(wanted)
    alone = real("judge", ".", "--json", code=1).json()
    assert [entry["code"] for file in alone["files"] for entry in file["findings"]] == ["TM108"]
    assert alone["files"][0]["edit"]["patch"].count("+-f https://") == 1
    link = "-f https://download.pytorch.org/whl/torch_stable.html"
    (here / "README.md").write_text(f"```sh\npip install torch==1.9.1+cu111 {link}\n```\n")
    both = real("judge", ".", "--json").json()
    assert [entry["code"] for file in both["files"] for entry in file["findings"]] == []


# A line of requirements and code beside it, and the findings about the names of the code.
LACKING: dict[str, tuple[str, str, list[str]]] = {
    "a pin": (
        "numpy==1.26.4\n",
        "import numpy as np\nnp.int(3)\n",
        ["numpy 1.26.4 has no `np.int`, which a.py:2:1 uses"],
    ),
    "the newest": (
        "torch\n",
        "from torch._six import inf\n",
        ["torch 2.15.0 has no `torch._six`, which a.py:1:6 uses"],
    ),
    "the newest of a range": (
        "numpy<2\n",
        "import numpy\nnumpy.float(1)\n",
        ["numpy 1.26.4 has no `numpy.float`, which a.py:2:1 uses"],
    ),
    "a pin that has it": ("numpy==1.23.5\n", "import numpy\nnumpy.float(1)\n", []),
    "what another line leaves of the newest": (
        "torch==1.13.1\ntorchvision\n",
        "from torchvision.models.resnet import model_urls\n",
        [],
    ),
    "a package that no line asks for": (
        "numpy==1.26.4\n",
        "import scipy.misc\nscipy.misc.imread\n",
        [],
    ),
}


@pytest.mark.parametrize("name", LACKING)
def test_names_of_the_code_that_a_release_lacks_are_warnings(
    real: Cli, here: Path, name: str
) -> None:
    lines, code, texts = LACKING[name]
    (here / "requirements.txt").write_text(lines)
    (here / "a.py").write_text(code)
    # A file deeper down is of another environment.
    (here / "demo").mkdir()
    (here / "demo" / "requirements.txt").write_text("numpy==2.0.2\ntorch==2.3.0\n")
    found = [
        finding
        for file in real("judge", ".", "--json").json()["files"]
        for finding in file["findings"]
        if finding["code"] == "TM125"
    ]
    assert [finding["text"].replace("./", "") for finding in found] == texts
    assert {finding["severity"] for finding in found} <= {"warning"}
