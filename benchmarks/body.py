"""How fast the body room is, against the obvious alternatives, on this machine's CPU: `python benchmarks/body.py`.

Prints times and a table of ratios, and writes the table to docs/benchmarks.md as the section "Body". One thread each; wall time, best of a few runs, ours and
theirs in turn so that a busy machine slows both. Before anything is timed, both sides are checked to give the same answer.
To add a comparison, write a function that returns a Row and name it in `main`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import bvhio
import mink
import mujoco
import numpy as np
import torch
import trimesh
from timing import REPORT, Row, best_of, machine, ratios, write_section

from bunraku.files.axes import Frame, rotations_to, vectors_to
from bunraku.files.bvh import load_bvh, save_bvh
from bunraku.files.gltf import load_character, save_character
from bunraku.files.mjcf import mjcf_from_skeleton
from bunraku.files.qpos_csv import motion_from_qpos
from bunraku.kinematics.forward import WorldPoses, forward_kinematics
from bunraku.kinematics.inverse import Effort, Freedom, PositionTarget, RotationTarget, Target, solve
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.kinematics.retarget import retarget
from bunraku.kinematics.skeleton import Skeleton
from bunraku.kinematics.walk import walk
from bunraku.math.rotations import exp_quat, matrix_to_quat, quat_to_matrix
from bunraku.rig.mannequin import mannequin

MINUTES = 10


def main() -> None:
    torch.set_num_threads(1)
    rows = [forward_kinematics_row(frames, gradient=gradient) for frames in (300, 3000) for gradient in (False, True)]
    rows += [bvh_row(), glb_row(), robot_row()]
    print("\n".join(row.line() for row in rows))
    head = f"`python benchmarks/body.py` on {machine()} (one core used), numpy {np.__version__}. Ratios of wall time, best of several runs; below 1 the"
    report = f"{head} alternative is faster.\n\n{ratios(rows)}"
    print(report)
    write_section(REPORT, "Body", report)


def forward_kinematics_row(frames: int, *, gradient: bool) -> Row:
    motion = swaying(skeleton("soma77"), frames)

    def timed(pose: Callable[[Motion], WorldPoses]) -> Callable[[], WorldPoses]:
        def run() -> WorldPoses:
            poses = pose(replace(motion, quats=motion.quats.clone().requires_grad_(gradient)))
            if gradient:
                (poses.p_world_joint.sum() + poses.R_world_joint.sum()).backward()
            return poses

        return run

    ours, theirs = best_of(20, timed(forward_kinematics), timed(joint_by_joint))
    assert (ours.result.p_world_joint - theirs.result.p_world_joint).abs().max() < 1e-5
    return Row(
        task=f"Forward kinematics{' and its gradient' if gradient else ''}, 77 joints, {frames} frames",
        alternative="torch, one joint after the other",
        seconds=ours.seconds,
        seconds_alternative=theirs.seconds,
    )


def joint_by_joint(motion: Motion) -> WorldPoses:
    """What one would write first."""
    body, R_local = motion.skeleton, quat_to_matrix(motion.quats)
    p, R = [motion.root_position], [R_local[:, 0]]
    for joint, parent in enumerate(body.parents[1:], start=1):
        R.append(R[parent] @ R_local[:, joint])
        p.append(p[parent] + R[parent] @ body.offsets[joint])
    return WorldPoses(p_world_joint=torch.stack(p, dim=1), R_world_joint=torch.stack(R, dim=1))


def bvh_row() -> Row:
    """Reading the joint turns of a long take. bvhio's `readAsBvh` is its quickest way there (its `readAsHierarchy` takes longer)."""
    motion = swaying(skeleton("soma77"), MINUTES * 60 * 30)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "long.bvh"))
        save_bvh(motion, path, tpose=True)
        ours, theirs = best_of(5, lambda: load_bvh(path), lambda: bvhio.readAsBvh(path), runs_alternative=1)
    hand = next(joint for joint, _, _ in theirs.result.Root.layout() if joint.Name == "LeftHand")
    turn = np.array([hand.Keyframes[100].Rotation[i] for i in range(4)])  # w x y z
    assert abs(abs(turn @ ours.result.quats[100, motion.skeleton.index["LeftHand"]].double().numpy()) - 1) < 1e-5
    return Row(
        task=f"Reading a BVH of {MINUTES} minutes, 77 joints, 30 fps",
        alternative="bvhio `readAsBvh`",
        seconds=ours.seconds,
        seconds_alternative=theirs.seconds,
    )


def glb_row() -> Row:
    """Vertices and faces of a skinned character. trimesh reads no skin; ours also gives weights, skeleton, roles and clip names."""
    character = mannequin(skeleton("soma77"))
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "body.glb"))
        save_character(character, path)
        ours, theirs = best_of(10, lambda: load_character(path), lambda: trimesh.load(path, force="mesh", process=False))
    assert len(ours.result.mesh.faces) == len(theirs.result.faces)
    return Row(
        task=f"Reading a GLB of {len(character.mesh.faces) // 1000} k triangles (ours: with its skin and skeleton)",
        alternative="trimesh, geometry alone",
        seconds=ours.seconds,
        seconds_alternative=theirs.seconds,
    )


def robot_row() -> Row:
    """Hinge angles of a 4 s G1 clip from the world poses of pelvis, torso, feet, hands and knees, which a real clip of it has.

    mink solves frame by frame from the frame before, five steps each and sixty for the first. Both must end within 5 mm of the feet.
    """
    clip = retarget(walk(skeleton("soma30"), seconds=4.0), skeleton("g1"))
    body, poses = clip.skeleton, forward_kinematics(clip)
    followed = [body.role(role) for role in ("hips", "chest", *(f"{side}_{part}" for side in ("left", "right") for part in ("foot", "hand", "knee")))]
    ours, theirs = best_of(3, lambda: follow(clip, poses, followed), lambda: follow_with_mink(clip, poses, followed), runs_alternative=1)
    for result in (ours.result, theirs.result):
        feet = [body.role("left_foot"), body.role("right_foot")]
        worst = (forward_kinematics(result).p_world_joint[:, feet] - poses.p_world_joint[:, feet]).norm(dim=-1).max()
        assert worst < 0.005, float(worst)
    return Row(
        task=f"Inverse kinematics of the G1, {len(clip)} frames, 29 hinges with limits",
        alternative="mink (daqp), five steps a frame",
        seconds=ours.seconds,
        seconds_alternative=theirs.seconds,
    )


def follow(clip: Motion, poses: WorldPoses, followed: list[int]) -> Motion:
    body, every = clip.skeleton, torch.ones(len(clip))
    start = replace(rest_motion(body, len(clip), clip.fps), root_position=clip.root_position)
    targets: list[Target] = []
    for joint in followed:
        targets.append(PositionTarget(joint=joint, p_world=poses.p_world_joint[:, joint], weight=100 * every))
        targets.append(RotationTarget(joint=joint, R_world=poses.R_world_joint[:, joint], weight=3 * every))
    free = dict.fromkeys([0, *(body.index[name] for name in body.hinges.joints)], 1.0)
    return solve(start, targets, Freedom.of(body, free, 0), Effort(stay=0.001, stay_moving=0.001, smooth=0.01, smooth_moving=0.1, iterations=30))


def follow_with_mink(clip: Motion, poses: WorldPoses, followed: list[int]) -> Motion:
    body = clip.skeleton
    model = mujoco.MjModel.from_xml_string(mjcf_from_skeleton(body))
    configuration, limits = mink.Configuration(model), [mink.ConfigurationLimit(model)]
    tasks = [mink.FrameTask(body.joints[joint], "body", position_cost=100, orientation_cost=3, lm_damping=1e-3) for joint in followed]
    p = vectors_to(Frame.Z_UP_X_FORWARD, poses.p_world_joint).double().numpy()
    quats = matrix_to_quat(rotations_to(Frame.Z_UP_X_FORWARD, poses.R_world_joint)).double().numpy()
    qpos = np.zeros((len(clip), model.nq))
    for frame in range(len(clip)):
        for task, joint in zip(tasks, followed, strict=True):
            task.set_target(mink.SE3(np.concatenate([quats[frame, joint], p[frame, joint]])))
        for _ in range(5 if frame else 60):
            configuration.integrate_inplace(mink.solve_ik(configuration, tasks, 1.0, "daqp", limits=limits), 1.0)
        qpos[frame] = configuration.q
    return motion_from_qpos(body, torch.from_numpy(qpos).float(), clip.fps)


def swaying(body: Skeleton, frames: int) -> Motion:
    """Every joint swings at its own rate: no zeros and no repetitions that would be quick to read."""
    generator = torch.Generator().manual_seed(0)
    swing, rate, phase = (torch.randn(len(body), 3, generator=generator) for _ in range(3))
    t = torch.arange(frames)[:, None, None] / 30
    quats = exp_quat(0.5 * swing * torch.sin(3 * rate * t + phase))
    return Motion(skeleton=body, fps=30, root_position=torch.rand(frames, 3, generator=generator), quats=quats)


if __name__ == "__main__":
    main()
