"""Skeletons for meshes without one: a template's limbs are found in the body, and its joints placed in them."""

from bunraku.rig.fit.fit import Fit, fit_skeleton
from bunraku.rig.fit.nudge import nudged
from bunraku.rig.fit.templates import templates

__all__ = ["Fit", "fit_skeleton", "nudged", "templates"]
