"""Failures of what is more than a question: files that are read or rendered, outside tools and services.

They are had from `toolmatrix.errors`, which imports this module when one of them is first asked for.
"""

from __future__ import annotations

from toolmatrix.errors import ToolmatrixError


class LockError(ToolmatrixError, code="TM904", exit_code=2):
    """A lock that is missing, truncated, edited by hand or of another schema."""


class LogError(ToolmatrixError, code="TM906", exit_code=2):
    """A log that cannot be read, or has no output of a driver."""


class ManifestError(ToolmatrixError, code="TM909", exit_code=2):
    """A file of a project that cannot be read, or is none that is known."""


class RecipeError(ToolmatrixError, code="TM601", exit_code=2):
    """A recipe that is missing, unreadable, malformed, or asks for what an answer does not have."""


class RenderError(ToolmatrixError, code="TM602", exit_code=2):
    """A value that cannot be put where a template wants it, or a template that cannot be used."""


class Unpinned(ToolmatrixError, code="TM603", exit_code=1):
    """Something that `--strict` refuses: no digest, checksum, commit or snapshot pins it."""


class NoImage(ToolmatrixError, code="TM604", exit_code=1):
    """A lock of which no target can become an image."""


class Unresolved(ToolmatrixError, code="TM605", exit_code=1):
    """Python packages of an answer that a resolver refuses: they do not go together, or one has no wheel."""


class SubjectError(ToolmatrixError, code="TM907", exit_code=2):
    """An image, archive or directory that cannot be read, is damaged, or is not what it says it is."""


class HarvestRefused(ToolmatrixError, code="TM308", exit_code=2):
    """A source that is not what it was, or of which facts have vanished; what was harvested before is kept."""


class ToolMissing(ToolmatrixError, code="TM500", exit_code=5):
    """An outside tool or service is missing or failed."""


class IndexFailed(ToolMissing, code="TM512"):
    """A package index that cannot be reached, is too slow, or does not answer as one."""


class RegistryFailed(ToolMissing, code="TM510"):
    """A registry that cannot be reached, is too slow, or does not answer as one."""


class AccessDenied(ToolMissing, code="TM511"):
    """A registry that wants credentials, or others than it was given."""
