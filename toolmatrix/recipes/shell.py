"""The lines of shell that a recipe may hold: one command on one line that stays one wherever it is put.

A line ends up in a heredoc or between `; \\` of a RUN instruction, so what would reach beyond its end is refused:
open quotes, a backslash or operator at the end, a comment, a heredoc, control characters.
"""

from __future__ import annotations

from toolmatrix.recipes.variables import LISTS, NAMED

END = "EOF"
"""The word that ends the heredocs of the Dockerfiles."""

# Behind these a shell reads on in the next line.
_OPEN_ENDS = (";", "&", "|", "\\")


def fault(line: str) -> str:
    """The fault of a line, or nothing."""
    if not line.strip() or line != line.strip():
        return "it is empty or has blanks around it"
    if not line.isprintable():
        return "it holds a control character or a line break"
    if line == END:
        return f"`{END}` ends the script that it would stand in"
    if line.endswith(_OPEN_ENDS):
        return f"it ends with `{line[-1]}`, which reaches into the next line"
    return _scan(line)


def _scan(line: str) -> str:
    # A value with blanks or semicolons would be several words there, or end the command.
    lists = {found.start() for found in NAMED.finditer(line) if found[1] in LISTS}
    quote, skip, before = "", False, " "
    for place, letter in enumerate(line):
        if skip:
            skip = False
        # Between single quotes a backslash is a letter like any other.
        elif letter == "\\" and quote != "'":
            skip = True
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        # Inside of a word it is a letter (POSIX, Shell Command Language, 2.3).
        elif letter == "#" and before in " ;(":
            return "it holds a comment"
        elif line.startswith("<<", place):
            return "it holds a heredoc"
        elif place in lists:
            return f"`{line[place:].partition('}')[0]}}}` is a list and needs quotes around it"
        before = letter
    return f"the quote {quote} is left open" if quote else ""
