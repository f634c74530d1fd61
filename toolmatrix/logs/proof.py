"""What the log of a build proves: that the check at its end passed, or which address was missing."""

from __future__ import annotations

import re

# The last line of a check (the template `check.sh`).
_CHECKED = re.compile(r"\b([1-9]\d* checked, 0 failed(?:, \d+ not tried)?)$")
_URL = re.compile(r"\b(?:https?|git|ftp)://[^\s\"'<>|)\]]+")
# As Go, curl, git, wget, apt, Python, Java and CMake say that a host has no address or does not answer. `host` is
# asked for, a proxy that refuses it is another host.
_MISSING = re.compile(
    r"lookup (?P<go>[\w.-]+)(?: on \S+)?: (?:no such host|server misbehaving|.*[Tt]emporary failure)"
    r"|(?:[Cc]ould not|[Cc]ouldn't|unable to) resolve (?:host(?: address)?:? ?)?[‘'\"]?(?P<curl>[\w-]+(?:\.[\w-]+)+)"
    r"|Failed to connect to (?P<connect>[\w.-]+) port"
    r"|Unknown host:? (?P<java>[\w-]+(?:\.[\w-]+)+)"
    r"|UnknownHostException: (?P<exception>[\w.-]+)"
    r"|host='(?P<python>[\w.-]+)', port=\d+.*(?:NameResolutionError|NewConnectionError)"
)
# pip names the path alone, and tries again before it gives up.
_GIVEN_UP = re.compile(
    r"Retry\(total=0,.*(?:NewConnection|NameResolution)Error\(.*\)': (?P<path>/\S*)"
)
# So many addresses are kept while the log is read.
_MOST = 1000


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
        if self.missing:
            return
        if found := _MISSING.search(line):
            host = next(filter(None, found.groups()))
            # What names the host alone was asked for an address that was printed before.
            self.missing = self._addresses.get(host, host)
        elif given_up := _GIVEN_UP.search(line):
            every = self._addresses.items()
            under = (url for host, url in every if given_up["path"].startswith(_path(url, host)))
            self.missing = next(under, "")


def _path(address: str, host: str) -> str:
    return address.partition(host)[2].partition("?")[0] or "/"


def _host(address: str) -> str:
    return re.split(r"[/?#]", address.partition("://")[2])[0].rpartition("@")[2].partition(":")[0]
