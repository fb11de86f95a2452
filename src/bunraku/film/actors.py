"""Who performs a motion: the character that is asked for, a human for SOMA, or a mannequin; standing on the ground y = 0."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from bunraku.errors import BadValue
from bunraku.film.camera_moves import outline
from bunraku.film.stage import reach_of
from bunraku.kinematics.contacts import foot_joints
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.retarget import retarget
from bunraku.kinematics.skeleton import SIDES, Skeleton
from bunraku.kinematics.soma import expand_soma
from bunraku.rig.character import Character
from bunraku.rig.mannequin import mannequin
from bunraku.rig.proportions import measure
from bunraku.rig.skinning import skin_vertices
from bunraku.rig.soma_body import soma_body

FRAMES_AT_ONCE = 16
_SAME_BONES = 0.02  # [body sizes] bones that differ by less are stretched by the skin; others need retargeting
_STANDS = 0.10  # share of the frames in which the lowest point may be below the ground
_FARTHEST = 2e4  # [body sizes]
_NEAR_ZERO = 0.1  # [body sizes] a body that never comes nearer to y = 0 from above flies; the ground stays there


@dataclass(frozen=True, kw_only=True, eq=False)
class Performance:
    """A character and the motion it performs, above the ground y = 0."""

    motion: Motion
    character: Character
    points: Float[Tensor, "F 26 3"]  # the outermost points of the skin in every frame [m]
    raised: float  # by how much the motion was lifted onto the ground [m]


def perform(motion: Motion, character: Character | None = None, *, on_progress: Callable[[float], None] | None = None) -> Performance:
    """The motion on a character; on one with another skeleton it is retargeted."""
    motion = motion.to(torch.float32)
    if character is None:
        motion, character = _default_body(motion, on_progress)
    elif not _fits(motion.skeleton, character.skeleton):
        motion = retarget(motion, character.skeleton, on_progress=on_progress)
    if not len(character.mesh.faces):
        raise BadValue(f"character '{character.name}' has no faces to be seen; name another one, or leave the character out to see a mannequin.")
    _require_near(motion)
    feet = _feet(character)
    parts = [(outline(skin), skin[:, feet, 1].amin(1)) for skin in skins(character, motion)]
    points = torch.cat([part[0] for part in parts])
    raised = -ground_under(points, torch.cat([part[1] for part in parts]))
    lift = torch.tensor([0.0, raised, 0.0])
    return Performance(motion=replace(motion, root_position=motion.root_position + lift), character=character, points=points + lift, raised=raised)


def frames_of(motion: Motion, rows: Int[Tensor, " N"]) -> Motion:
    """Some frames of a motion, in any order and as often as wished."""
    moved = {name: getattr(motion, name) for name in ("root_position", "quats", "translations", "contacts")}
    return replace(motion, **{name: value[rows] for name, value in moved.items() if value is not None})


def skins(character: Character, motion: Motion) -> Iterator[Float[Tensor, "F V 3"]]:
    """The skin's vertices, some frames at a time."""
    return (skin_vertices(character, motion[start : start + FRAMES_AT_ONCE]) for start in range(0, len(motion), FRAMES_AT_ONCE))


def ground_under(points: Float[Tensor, "F P 3"], soles: Float[Tensor, " F"]) -> float:
    """The height on which the body mostly rests [m]: what its skin, or that of its feet, is above in nine frames of ten.

    A sword may go through the ground, and in a handstand the feet are not what stands: of the two, the one nearer to y = 0 is believed.
    """
    body, feet = (float(lowest.sort().values[int(_STANDS * (len(lowest) - 1))]) for lowest in (points[..., 1].amin(1), soles))
    height = min(body, feet, key=abs)
    return 0.0 if height > _NEAR_ZERO * reach_of(points) else height


def _require_near(motion: Motion) -> None:
    """Far from the origin float32 cannot tell a hand from a foot."""
    far = float(motion.root_position.abs().max())
    if far > _FARTHEST * measure(motion.skeleton).reach:
        raise BadValue(f"the motion is {far:.3g} m away from the origin; its unit may be wrong, or move it nearer with kinematics.edit.place.")


def _feet(character: Character) -> Bool[Tensor, " V"]:
    """The vertices of the feet; all vertices where no joint plays a foot."""
    joints = [joint for side in SIDES for joint in foot_joints(character.skeleton, side)]
    feet = character.rig.weights[:, joints].sum(1) > 0.5
    return feet if bool(feet.any()) else torch.ones_like(feet)


def _default_body(motion: Motion, on_progress: Callable[[float], None] | None) -> tuple[Motion, Character]:
    if _fits(motion.skeleton, skeleton("soma30")):
        return expand_soma(motion), soma_body()
    if motion.skeleton.joints == skeleton("soma77").joints:
        body = soma_body()
        return (motion if _fits(motion.skeleton, body.skeleton) else retarget(motion, body.skeleton, on_progress=on_progress)), body
    return motion, mannequin(motion.skeleton)


def _fits(own: Skeleton, body: Skeleton) -> bool:
    """The same joints, resting turned the same way, with bones of nearly the same length."""
    if own.joints != body.joints:
        return False
    turned = float((own.rest_quats.double() * body.rest_quats.double()).sum(-1).abs().amin())
    stretched = (own.offsets[1:].double() - body.offsets[1:].double()).norm(dim=-1)
    return turned > 0.9999 and (not len(stretched) or float(stretched.max()) < _SAME_BONES * measure(body).reach)
