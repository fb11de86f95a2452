"""A start for matching a video: limb by limb, the poses that look most like its frames, out of a grid of them.

A leg that swings far does not overlap where it should be, and a gradient alone puts the wrong leg there. So every limb tries a grid of
poses around its own in every frame, two joints at a time, the others being as they were found so far. Of all ways through the frames the
cheapest is taken, where a limb pays for what differs between picture and video, and for moving (dynamic programming along time).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from bunraku.distill.settings import SearchSettings
from bunraku.distill.stage import Stage
from bunraku.distill.teachers import VideoTeacher
from bunraku.distill.trajectory import ORDER, Trajectory
from bunraku.kinematics.forward import pose_joints
from bunraku.math.rotations import quat_to_matrix
from bunraku.splats.deformation import deform

_AT_ONCE = 256  # pictures in one call
PITCH = ORDER.index("x")


def limbs_of(trajectory: Trajectory) -> list[list[int]]:
    """Chains of three or more moved joints (their numbers) from where they leave the trunk to their end."""
    skeleton = trajectory.skeleton
    number = {int(joint): i for i, joint in enumerate(trajectory.joints)}
    children = [[child for child in skeleton.children[joint] if child in number] for joint in range(len(skeleton))]
    limbs = []
    for joint in number:
        if len(children[skeleton.parents[joint]]) == 1 and skeleton.parents[joint] in number:
            continue  # in the middle of a chain
        chain = [joint]
        while len(children[chain[-1]]) == 1:
            chain.append(children[chain[-1]][0])
        if len(chain) >= 3 and not children[chain[-1]]:
            limbs.append([number[member] for member in chain])
    return limbs


@torch.no_grad()
def search_limbs(
    trajectory: Trajectory,
    stage: Stage,
    teacher: VideoTeacher,
    settings: SearchSettings,
    on_progress: Callable[[float], None] | None = None,
) -> None:
    """Gives the trajectory the limb poses that were found; everything else stays as it is."""
    limbs, rounds = limbs_of(trajectory), settings.rounds
    grid = torch.deg2rad(torch.cartesian_prod(*(torch.tensor(axis, dtype=torch.float32) for axis in (settings.swings, settings.bends))))  # (P 2)
    angles = trajectory.bone_angles().clone()
    for turn, (first, width) in enumerate(rounds):
        for done, limb in enumerate(limbs):
            pair = limb[first : first + 2]
            tried = angles[:, None, pair, PITCH] + width * grid
            costs = _costs(trajectory, stage, teacher, angles, pair, tried)
            path = cheapest_path(costs, tried, settings.moving * costs.std(dim=1, correction=0).mean())
            angles[:, pair, PITCH] = tried[torch.arange(len(path)), path]
            if on_progress is not None:
                on_progress((turn * len(limbs) + done + 1) / (len(rounds) * len(limbs)))
    wanted = angles.flatten(1)
    trajectory.angles.data = torch.linalg.lstsq(trajectory.basis.double(), wanted.double()).solution.float().unflatten(1, tuple(angles.shape[1:]))


def _costs(
    trajectory: Trajectory, stage: Stage, teacher: VideoTeacher, angles: Float[Tensor, "F M 3"], pair: list[int], tried: Float[Tensor, "F P 2"]
) -> Float[Tensor, "F P"]:
    """How much every frame differs from the video with two joints at every pair of angles."""
    frames, poses = tried.shape[:2]
    whole = angles[:, None].repeat(1, poses, 1, 1)
    whole[:, :, pair, PITCH] = tried
    whole = whole.flatten(0, 1)
    frame = torch.arange(frames).repeat_interleave(poses)
    camera = stage.camera(deform(stage.splats, stage.rig, trajectory.poses()).means, teacher.width, teacher.height)
    costs = []
    for start in range(0, len(whole), _AT_ONCE):
        here = frame[start : start + _AT_ONCE]
        quats = trajectory.quats_of(whole[start : start + _AT_ONCE], here)
        world = pose_joints(trajectory.skeleton, trajectory.root_positions()[here], quat_to_matrix(quats))
        video = stage.film_splats(deform(stage.splats, stage.rig, world), camera[here])
        costs.append(teacher.away(video, here))
    return torch.cat(costs).unflatten(0, (frames, poses))


def cheapest_path(costs: Float[Tensor, "F P"], places: Float[Tensor, "F P C"], moving: Float[Tensor, ""] | float) -> Int[Tensor, " F"]:
    """One place for each frame so that the sum of costs, and of `moving` × (way in right angles)² between frames, is least."""
    total, came = costs[0], []
    for before, after, cost in zip(places[:-1], places[1:], costs[1:], strict=True):
        best = (total[:, None] + moving * (torch.cdist(before, after) / (math.pi / 2)).square()).min(dim=0)
        came.append(best.indices)
        total = best.values + cost
    path = [int(total.argmin())]
    for step in reversed(came):
        path.append(int(step[path[-1]]))
    return torch.tensor(path[::-1])
