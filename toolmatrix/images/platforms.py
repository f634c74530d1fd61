"""Platforms as the OCI image specification names them: `linux/amd64`."""

from __future__ import annotations

import platform

MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Machines by the names of the kernel, and as the OCI image specification calls them."""


def this_platform() -> str:
    """What images for this machine call it."""
    return f"linux/{MACHINES.get(platform.machine(), platform.machine())}"
