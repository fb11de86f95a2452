"""SOMA with 30 joints, as the generator sees it, and with 77, as its motions are written: the same body, matched by joint name.

Local turns are copied for the joints both have. The 47 others (fingers, toe ends, the top of the head) hold the relaxed-hands
pose that the release gives them: finger motion is never generated. A finger end that both have keeps its *local* turn though its
parent differs (the wrist in 30, the last finger joint in 77), as in the release; so 30 → 77 → 30 gives every number back.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.errors import SkeletonMismatch
from bunraku.kinematics.library import raw, skeleton
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import quat_normalize


def expand_soma(motion: Motion) -> Motion:
    """A soma30 motion on soma77, hands relaxed."""
    _require(motion, "soma30", "expand_soma")
    target = skeleton("soma77")
    return _carry(motion, "soma77", relaxed_hands().to(motion.quats), target.offsets.to(motion.quats))


def reduce_soma(motion: Motion) -> Motion:
    """A soma77 motion on soma30; the turns of the joints that soma30 lacks are dropped."""
    _require(motion, "soma77", "reduce_soma")
    target = skeleton("soma30")
    return _carry(motion, "soma30", target.rest_quats.to(motion.quats), target.offsets.to(motion.quats))


def relaxed_hands() -> Float[Tensor, "77 4"]:
    """Local turns of soma77 (wxyz) with everything at rest but the fingers, which hang relaxed."""
    return quat_normalize(torch.tensor(raw("soma77")["relaxed_hands_wxyz"]))


def _carry(motion: Motion, name: str, quats: Float[Tensor, "K 4"], offsets: Float[Tensor, "K 3"]) -> Motion:
    """The motion on skeleton `name`: joints of the same name keep their values, the others take the given ones."""
    target = skeleton(name)
    shared = [joint for joint in target.joints if joint in motion.skeleton.index]
    there, here = [target.index[joint] for joint in shared], [motion.skeleton.index[joint] for joint in shared]
    new_quats = quats.expand(len(motion), -1, -1).clone()
    new_quats[:, there] = motion.quats[:, here]
    translations = None
    if motion.translations is not None:
        same_parent = [(t, h) for t, h in zip(there, here, strict=True) if _parent_name(target, t) == _parent_name(motion.skeleton, h)]
        translations = offsets.expand(len(motion), -1, -1).clone()
        translations[:, [t for t, _ in same_parent]] = motion.translations[:, [h for _, h in same_parent]]
    return replace(motion, skeleton=target, quats=new_quats, translations=translations)


def _parent_name(tree: Skeleton, joint: int) -> str | None:
    parent = tree.parents[joint]
    return tree.joints[parent] if parent >= 0 else None


def _require(motion: Motion, name: str, function: str) -> None:
    if motion.skeleton.joints != skeleton(name).joints:
        given = f"'{motion.skeleton.name}' ({len(motion.skeleton)} joints)"
        raise SkeletonMismatch(f"{function} needs a motion on '{name}', not on {given}. Use retarget(motion, '{name}') first.")
