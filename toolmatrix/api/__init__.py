"""The questions of the command line as functions of Python, and their answers; the commands use nothing else."""

from __future__ import annotations

from toolmatrix.report.terminal import Terminal

PLAIN = Terminal()
"""A pipe: 80 columns, no colours."""


class Printed:
    """A value that prints as the command prints it."""

    def text(self, screen: Terminal = PLAIN) -> str:
        """The text that the command prints on a screen."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text().removesuffix("\n")
