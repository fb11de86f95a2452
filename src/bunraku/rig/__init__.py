"""How skin follows bone: rigs, characters, skin weights by heat, and the mannequin built from any skeleton."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bunraku.rig.bones import Bones, bones_of, moving_bones
    from bunraku.rig.heat import heat_weights
    from bunraku.rig.heat_report import HeatReport

__all__ = ["Bones", "HeatReport", "bones_of", "heat_weights", "moving_bones"]
_HOME = {"Bones": "bones", "HeatReport": "heat_report", "bones_of": "bones", "heat_weights": "heat", "moving_bones": "bones"}


def __getattr__(name: str) -> object:  # looked up when first used: solvers are slow to import
    if name in _HOME:
        return getattr(import_module(f"bunraku.rig.{_HOME[name]}"), name)
    raise AttributeError(f"module 'bunraku.rig' has no attribute '{name}'")
