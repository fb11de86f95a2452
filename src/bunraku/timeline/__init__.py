"""What the author asks for: prompts in time, and constraints on the body."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bunraku.timeline.constraints import EFFECTORS, Constraint, EffectorTarget, FootPlan, Heading, PoseKey, RootPath
    from bunraku.timeline.document import load_constraints

_HOMES = {
    "constraints": ("Constraint", "EFFECTORS", "EffectorTarget", "FootPlan", "Heading", "PoseKey", "RootPath"),
    "document": ("load_constraints",),
}
__all__ = ["EFFECTORS", "Constraint", "EffectorTarget", "FootPlan", "Heading", "PoseKey", "RootPath", "load_constraints"]


def __getattr__(name: str) -> object:
    """Looked up when first used, so that nothing waits for torch that does not need it."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"bunraku.timeline.{home}"), name)
    raise AttributeError(f"module 'bunraku.timeline' has no attribute '{name}'")
