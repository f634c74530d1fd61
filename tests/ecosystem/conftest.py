"""A run of the program in this process, as tests/cli has it."""

from __future__ import annotations

from tests.cli.conftest import cli, here, real

__all__ = ["cli", "here", "real"]
