"""The library's skeletons as they stand in BVH files: Kimodo's wrapper joint, and rest poses other than the library's.

Kimodo writes its skeletons under a wrapper joint `Root`, by default on the BONES-SEED rest pose, whose joint frames have their
x axis along the bone: with zero rotations the body collapses into a line. `recognise` undoes all that where names and offsets
prove that it is one of ours, so that a motion of soma77 comes back as a motion of soma77 from any of its spellings.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.library import raw, skeleton, skeleton_names
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.rest import rebase, rebase_skeleton
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import quat_multiply, quat_normalize, quat_rotate, quat_to_matrix

WRAPPER = "Root"
SOMA = ("soma30", "soma77")
_SAME = 1e-5  # [m] offsets closer than this are the same bone, rounded


def is_soma(body: Skeleton) -> bool:
    return body.name in SOMA and body.joints == skeleton(body.name).joints


def seed_frames(body: Skeleton) -> Float[Tensor, "J 3 3"]:
    """`O_j`: the turn from the BONES-SEED frame of each SOMA joint to its T-pose frame, `R_tpose = R_seed · O_jᵀ`, so that
    `rebase(motion_on_seed_rest, O)` is on the library's rest and `rebase(motion_of_the_library, Oᵀ)` goes back."""
    table = dict(zip(raw("soma77")["joints"], raw("soma77")["seed_bvh_global_wxyz"], strict=True))
    return quat_to_matrix(quat_normalize(torch.tensor([table[joint] for joint in body.joints], dtype=torch.float64)))


def recognise(motion: Motion) -> Motion:
    """The motion on the library's skeleton, where its joints are that skeleton's; otherwise the motion as it is."""
    here = motion.skeleton
    for body in map(skeleton, skeleton_names()):
        candidate = motion
        if len(here.children[0]) == 1 and set(here.joints[1:]) == set(body.joints):
            candidate = _without_wrapper(motion)
        if _same_tree(candidate.skeleton, body):
            return _on_library_rest(_in_order(candidate, body), body)
    return motion


def _same_tree(a: Skeleton, b: Skeleton) -> bool:
    def tree(body: Skeleton) -> dict[str, str | None]:
        return {joint: body.joints[parent] if parent >= 0 else None for joint, parent in zip(body.joints, body.parents, strict=True)}

    return len(a) == len(b) and tree(a) == tree(b)


def _in_order(motion: Motion, body: Skeleton) -> Motion:
    """The joints in the library's order, which need not be the depth-first one of a file."""
    if motion.skeleton.joints == body.joints:
        return motion
    here = motion.skeleton
    order = [here.index[joint] for joint in body.joints]
    place = {joint: i for i, joint in enumerate(order)}
    ordered = Skeleton(
        name=here.name,
        joints=body.joints,
        parents=body.parents,
        offsets=here.offsets[order],
        rest_quats=here.rest_quats[order],
        roles={role: place[joint] for role, joint in here.roles.items()},
        tips={place[joint]: tip for joint, tip in here.tips.items()},
    )
    return replace(motion, skeleton=ordered, quats=motion.quats[:, order], translations=None if motion.translations is None else motion.translations[:, order])


def _on_library_rest(motion: Motion, body: Skeleton) -> Motion:
    rests = {"its own rest pose": torch.eye(3).expand(len(body), 3, 3), "its rest pose as zero rotations": rest_poses(body).R_world_joint}
    if is_soma(body):
        rests["the BONES-SEED rest pose"] = seed_frames(body).transpose(-1, -2)
    for what, R_world_rest in rests.items():
        if (rebase_skeleton(body, R_world_rest).offsets - motion.skeleton.offsets)[1:].abs().max() < _SAME:
            noted = motion.provenance.noted(skeleton=f"recognised as {body.name} on {what}")
            inverse = R_world_rest.transpose(-1, -2)
            return replace(rebase(motion, inverse) if what != "its own rest pose" else motion, skeleton=body, provenance=noted)
    return replace(motion, provenance=motion.provenance.noted(skeleton=f"joint names of {body.name}, but other bones; kept as they are"))


def _without_wrapper(motion: Motion) -> Motion:
    """Folds the root into its only child: the same world poses with one joint less."""
    top, quats = motion.skeleton, motion.quats
    p_root_hips = top.offsets[1] if motion.translations is None else motion.translations[:, 1]
    hips = Skeleton(
        name=top.name,
        joints=top.joints[1:],
        parents=tuple(parent - 1 for parent in top.parents[1:]),
        offsets=torch.cat([(top.offsets[0] + quat_rotate(top.rest_quats[0], top.offsets[1]))[None], top.offsets[2:]]),
        rest_quats=torch.cat([quat_multiply(top.rest_quats[0], top.rest_quats[1])[None], top.rest_quats[2:]]),
        roles={role: joint - 1 for role, joint in top.roles.items() if joint},
        tips={joint - 1: tip for joint, tip in top.tips.items() if joint},
    )
    return replace(
        motion,
        skeleton=hips,
        root_position=motion.root_position + quat_rotate(quats[:, 0], p_root_hips),
        quats=torch.cat([quat_multiply(quats[:, 0], quats[:, 1])[:, None], quats[:, 2:]], dim=1),
        translations=None if motion.translations is None else motion.translations[:, 1:],
        provenance=motion.provenance.noted(wrapper=f"the joint '{top.joints[0]}' above '{top.joints[1]}' was folded into it"),
    )
