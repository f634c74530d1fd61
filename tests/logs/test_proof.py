"""What the log of a build proves: the words of engines and tools as they were printed."""

from __future__ import annotations

import pytest

from toolmatrix.logs.log import Proof

URL = "https://github.com/bazelbuild/bazel/releases/download/6.1.0/bazel-6.1.0-linux-x86_64"
RETRY = (
    "WARNING: Retrying (Retry(total={}, connect=None)) after connection broken by 'NewConnectionError("
    "'<pip: [Errno -2] Name or service not known')': /whl/cpu/torch/"
)
LOGS = [
    pytest.param(
        [f'#4 ERROR: Get "{URL}": dial tcp: lookup github.com on 10.0.0.1:53: no such host'],
        URL,
        id="buildkit",
    ),
    pytest.param(
        [f"+ curl -fsSL {URL} -o bazel", "curl: (6) Could not resolve host: github.com"],
        URL,
        id="curl",
    ),
    pytest.param(
        [
            "fatal: unable to access 'https://github.com/a/b.git/': Could not resolve host: github.com"
        ],
        "https://github.com/a/b.git/",
        id="git",
    ),
    pytest.param(
        [
            "Looking in indexes: https://wheels.example/whl/cpu",
            RETRY.format(1),
        ],
        "",
        id="pip goes on",
    ),
    pytest.param(
        [
            "Looking in indexes: https://wheels.example/whl/cpu",
            RETRY.format(0),
        ],
        "https://wheels.example/whl/cpu",
        id="pip gives up",
    ),
    pytest.param(["wget: unable to resolve host address ‘ftp.gnu.org’"], "ftp.gnu.org", id="wget"),
    pytest.param(
        [
            "ERROR: Error downloading [https://mirror.example/x.tgz] to /x: Unknown host: mirror.example"
        ],
        "https://mirror.example/x.tgz",
        id="bazel",
    ),
    pytest.param(
        [
            (
                "WARNING: Retrying (Retry(total=4)) after connection broken by "
                "'NameResolutionError(\"HTTPSConnection(host='a.example', "
                "port=443): Failed to resolve 'a.example' ([Errno -2] Name or service not known)\")': /x"
            )
        ],
        "",
        id="a newer pip goes on",
    ),
    pytest.param(
        ["dial tcp 10.0.0.1:443: i/o timeout"], "10.0.0.1:443", id="an address that is silent"
    ),
    pytest.param(
        [
            "urllib3: HTTPSConnectionPool(host='a.example', port=443): Temporary failure in name resolution"
        ],
        "a.example",
        id="python",
    ),
    pytest.param(["lookup a.example", "no such host", "curl: (22) 404"], "", id="nothing"),
]


@pytest.mark.parametrize(("lines", "missing"), LOGS)
def test_the_address_that_does_not_answer_is_told_in_full(lines: list[str], missing: str) -> None:
    proof = Proof()
    for line in lines:
        proof.read(line)
    assert (proof.missing, proof.checked) == (missing, "")


def test_only_a_check_that_passed_is_a_proof() -> None:
    proof = Proof()
    proof.read("#9 8 checked, 1 failed")
    proof.read("#9 0 checked, 0 failed")
    assert proof.checked == ""
    proof.read("#12 11.50 8 checked, 0 failed")
    assert proof.checked == "8 checked, 0 failed"
    proof.read("#14 0.710 12 checked, 0 failed, 1 not tried")
    assert proof.checked == "12 checked, 0 failed, 1 not tried"
