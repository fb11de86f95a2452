"""What the author asks for: prompts in time, and constraints on the body."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bunraku.timeline.check import check_constraints
    from bunraku.timeline.constraints import EFFECTORS, Constraint, EffectorTarget, FootPlan, Heading, PoseKey, RootPath
    from bunraku.timeline.document import load_constraints, load_timeline, save_constraints, save_timeline
    from bunraku.timeline.edit import crop_constraints, place_constraints, retime_constraints, shift_constraints
    from bunraku.timeline.prompt import Prompt, parse_prompt, parse_prompts
    from bunraku.timeline.timeline import Timeline

_HOMES = {
    "check": ("check_constraints",),
    "constraints": ("Constraint", "EFFECTORS", "EffectorTarget", "FootPlan", "Heading", "PoseKey", "RootPath"),
    "document": ("load_constraints", "load_timeline", "save_constraints", "save_timeline"),
    "edit": ("crop_constraints", "place_constraints", "retime_constraints", "shift_constraints"),
    "prompt": ("Prompt", "parse_prompt", "parse_prompts"),
    "timeline": ("Timeline",),
}
__all__ = [
    "EFFECTORS",
    "Constraint",
    "EffectorTarget",
    "FootPlan",
    "Heading",
    "PoseKey",
    "Prompt",
    "RootPath",
    "Timeline",
    "check_constraints",
    "crop_constraints",
    "load_constraints",
    "load_timeline",
    "parse_prompt",
    "parse_prompts",
    "place_constraints",
    "retime_constraints",
    "save_constraints",
    "save_timeline",
    "shift_constraints",
]


def __getattr__(name: str) -> object:
    """Looked up when first used, so that nothing waits for torch that does not need it."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"bunraku.timeline.{home}"), name)
    raise AttributeError(f"module 'bunraku.timeline' has no attribute '{name}'")
