"""The one family of errors: each says what was wrong, what was given, what would be right, and the next step.

Raised at the boundary (files, api, configuration). The command line prints one of these as a single line and exits with 2;
anything that is not a BunrakuError is a defect of ours and keeps its traceback.
"""

from __future__ import annotations


class BunrakuError(Exception):
    """Something the user gave cannot be used; the message says why and what to do."""


class FileProblem(BunrakuError):
    """A path that cannot be read or written: missing, a folder, no permission, unknown suffix, an extra not installed."""


class FormatProblem(BunrakuError):
    """A file whose content breaks its format: truncated, corrupt, pickled, of absurd size, not finite."""


class SkeletonProblem(BunrakuError):
    """A joint tree that is no tree: a cycle, two roots, names that repeat, shapes that do not fit."""


class SkeletonMismatch(BunrakuError):
    """A motion and a skeleton that do not belong together."""


class RoleMissing(BunrakuError):
    """A joint role (hips, left_foot …) that this skeleton does not have and the operation needs."""


class BadValue(BunrakuError):
    """A number or option outside what is allowed."""


class Diverged(BunrakuError):
    """A training run whose numbers ran away; what was in work is kept."""
