"""What the log of a build proves: that the check at its end passed, or which address was missing."""

from __future__ import annotations

import re
from functools import cache

from toolmatrix.logs import signatures
from toolmatrix.logs.matcher import QUOTES
from toolmatrix.logs.signatures import LinePattern

# The last line of a check (the template `check.sh`).
_CHECKED = re.compile(r"\b([1-9]\d* checked, 0 failed(?:, \d+ not tried)?)$")
_URL = re.compile(r"\b(?:https?|git|ftp)://[^\s\"'<>|)\]]+")
# What the signatures of hosts that have no address, or do not answer, say that it is between.
_UNREACHED = ("host", "network")
# pip tries again before it gives up, and then may name the path alone.
_AGAIN = re.compile(r"Retry\(total=[1-9]")
_GIVEN_UP = re.compile(
    r"Retry\(total=0,.*(?:NewConnection|NameResolution)Error\(.*\)': (?P<path>/\S*)"
)
# So many addresses are kept while the log is read.
_MOST = 1000


@cache
def _patterns() -> tuple[tuple[str, LinePattern], ...]:
    known = (one for one in signatures.load().signatures if one.between == _UNREACHED)
    return tuple((line.has.lower(), line) for one in known for line in one.lines)


class Proof:
    """Reads the lines of a log: `checked` is what its check said, `missing` the first address that did not answer."""

    def __init__(self) -> None:
        self.checked = ""
        self.missing = ""
        self._addresses: dict[str, str] = {}

    def read(self, line: str) -> None:
        """The next line."""
        if checked := _CHECKED.search(line):
            self.checked = checked[1]
        for address in _URL.findall(line):
            if len(self._addresses) < _MOST:
                self._addresses[_host(address)] = address
        if self.missing or _AGAIN.search(line):
            return
        if host := _unreached(line):
            # What names the host alone was asked for an address that was printed before.
            self.missing = self._addresses.get(host, host)
        elif given_up := _GIVEN_UP.search(line):
            every = self._addresses.items()
            under = (url for host, url in every if given_up["path"].startswith(_path(url, host)))
            self.missing = next(under, "")


def _unreached(line: str) -> str:
    plain = line.translate(QUOTES)
    lower = plain.lower()
    found = (pattern.search(plain) for has, pattern in _patterns() if has in lower)
    hosts = (one["host"] for one in found if one and one.groupdict().get("host"))
    return next(hosts, "")


def _path(address: str, host: str) -> str:
    return address.partition(host)[2].partition("?")[0] or "/"


def _host(address: str) -> str:
    return re.split(r"[/?#]", address.partition("://")[2])[0].rpartition("@")[2].partition(":")[0]
