"""Compiler drivers: asked for a dry run, and what they print read; one reader for nvcc, one for clang and hipcc."""

from __future__ import annotations


def roles_of(**roles: str) -> dict[str, str]:
    """A table from option to role out of one from role to blank-separated options."""
    return {option: role for role, options in roles.items() for option in options.split()}


def base_name(path: str) -> str:
    """The last part of a path, on any system."""
    # A log of Windows is read on Linux too, where os.path knows no backslash.
    return path[max(path.rfind("/"), path.rfind("\\")) + 1 :]
