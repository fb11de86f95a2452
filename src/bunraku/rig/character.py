"""A character: what it looks like, how its skin follows its bones, and the file it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bunraku.errors import BadValue
from bunraku.geometry.mesh import Mesh
from bunraku.kinematics.skeleton import Skeleton
from bunraku.rig.rig import Rig


@dataclass(frozen=True, kw_only=True, eq=False)
class Character:
    """A rigged mesh. `source` is the document a reader made it from; the matching writer puts motions back into it.

    Only the file rooms look inside `source`, so that everything the file holds beyond this (names, extras, materials, other
    animations) survives without anyone here knowing about it.
    """

    name: str
    mesh: Mesh
    rig: Rig
    source: object | None = None
    clips: tuple[str, ...] = ()  # names of the animations in the source
    notes: Mapping[str, str] = field(default_factory=dict)  # what the reader had to assume or leave out
    splats: object | None = None  # a bunraku.splats.Splats (which lives above this room): the character at rest as Gaussians

    def __post_init__(self) -> None:
        if len(self.rig.weights) != len(self.mesh.vertices):
            raise BadValue(f"character '{self.name}' has {len(self.mesh.vertices)} vertices but skin weights for {len(self.rig.weights)}.")

    @property
    def skeleton(self) -> Skeleton:
        return self.rig.skeleton

    def __repr__(self) -> str:
        return f"Character({self.name!r}, {len(self.mesh.vertices)} vertices, {len(self.skeleton)} joints, {len(self.clips)} clips)"
