"""What builds are told of the network around them, as flags of the engine: docs/dockerfiles.md, Behind a mirror."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.engine.docker import Engine

# Settings of pip that hold in an image as well; its other ones may name files of this machine.
_SETTINGS = ("index-url", "trusted-host")

# Arguments that every build knows without being told (Dockerfile reference, predefined ARGs).
_PROXIES = ("http_proxy", "https_proxy", "no_proxy")


def flags(engine: Engine, secrets: Mapping[str, Path], args: Mapping[str, str]) -> list[str]:
    """Secrets and arguments as `docker build` takes them, or bake, which `toolmatrix build` calls where buildx is."""
    secret, arg = ("--secret=", "--build-arg=")
    if not engine.run("buildx", "version").returncode:
        secret, arg = ("--set=*.secrets=", "--set=*.args.")
    return [
        *(f"{secret}id={name},src={path}" for name, path in secrets.items()),
        *(f"{arg}{name}={text}" for name, text in args.items()),
    ]


def of_machine(engine: Engine, folder: Path) -> list[str]:
    """The package index and the proxies of this machine, if it has any; settings are written to the folder."""
    said = {name: found for name in _SETTINGS if (found := _setting(name))}
    settings = folder / "pip.conf"
    if said:
        settings.write_text("[global]\n" + "".join(f"{name} = {said[name]}\n" for name in said))
    proxies = {
        name: text
        for name in _PROXIES
        if (text := os.environ.get(name) or os.environ.get(name.upper()) or "")
    }
    return flags(engine, {"pip": settings} if said else {}, proxies)


def _setting(name: str) -> str:
    """What pip is told by its variables or, if by none, by its files."""
    variable = "PIP_" + name.upper().replace("-", "_")
    if variable in os.environ:
        return os.environ[variable]
    words = [sys.executable, "-m", "pip", "config", "get", f"global.{name}"]
    return subprocess.run(words, check=False, capture_output=True, text=True).stdout.strip()
