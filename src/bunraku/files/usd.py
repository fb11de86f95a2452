"""USD: skeletons and their animation as UsdSkel describes them, through Pixar's own library (the extra `usd`).

Read are .usd, .usda, .usdc and .usdz, Y-up or Z-up, in any unit. The pose of every frame is taken as USD computes it in the world,
so animated transforms above the skeleton and scaled joints arrive as they look. What was assumed (no unit, no frame rate, several
skeletons) is in `motion.provenance.notes`. Written is Y-up in metres; see `usd_write`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.errors import BunrakuError, FormatProblem
from bunraku.files.axes import Frame
from bunraku.files.disk import existing_file
from bunraku.files.metadata import KEY, provenance_from_json
from bunraku.files.usd_write import pxr, save_usd_motion
from bunraku.files.world_poses import JointTrack, motion_of
from bunraku.kinematics.library import skeleton_from_json
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton

__all__ = ["load_usd_motion", "save_usd_motion"]

Matrices = Float[np.ndarray, "J 4 4"]
_MOST_FRAMES = 1_000_000
_FASTEST = 240.0  # a time code this short or longer is a frame; shorter ones are ticks


def load_usd_motion(path: str | os.PathLike[str]) -> Motion:
    """The animation of the first animated skeleton in a USD file."""
    path = existing_file(path)
    notes: dict[str, str] = {}
    with _damage_in_words(path):
        stage = pxr().Usd.Stage.Open(str(path))
        query, animation = _animated_skeleton(stage, path, notes)
        times, fps = _frames(stage, animation.GetJointTransformTimeSamples(), path, notes)
        A_world_joint, A_world_rest = _world_matrices(stage, query, times, notes)
        joints, parents = _joints(query)
        meta = _metadata(stage)
    if A_world_joint.shape[1] != len(joints) or len(A_world_rest) != len(joints):
        raise FormatProblem(f"'{path}' names {len(joints)} joints but does not give each of them a rest transform and an animation; export it again.")
    track = JointTrack(name=path.stem, joints=joints, parents=parents, A_world_joint=A_world_joint, A_world_rest=A_world_rest, fps=fps)
    provenance = provenance_from_json(meta.get("provenance"), os.fspath(path))
    motion = motion_of(track, provenance.noted(**notes), _known_skeleton(meta))
    return replace(motion, contacts=_contacts(meta, len(motion)))


@contextmanager
def _damage_in_words(path: Path) -> Iterator[None]:
    """USD reads lazily, so any call may meet damage. Its own warnings, which it would print, are held back: what matters is refused."""
    module = pxr()
    warnings = module.UsdUtils.CoalescingDiagnosticDelegate()
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            yield
    except (module.Tf.ErrorException, UnicodeDecodeError) as error:
        raise FormatProblem(f"'{path}' cannot be read as USD{_complaint(error, path)}; it is damaged or something else.") from error
    finally:
        warnings.TakeUncoalescedDiagnostics()


def _complaint(error: Exception, path: Path) -> str:
    """What USD said, in brackets. It quotes the file's own bytes, which need not be text."""
    try:
        said = str(getattr(error.args[0], "commentary", "")).strip().splitlines() if error.args else []
    except UnicodeDecodeError:
        said = []
    return f" ({said[0].replace(str(path), 'line')})" if said else ""


def _animated_skeleton(stage: Any, path: Path, notes: dict[str, str]) -> tuple[Any, Any]:
    """USD's answering machines for a skeleton and for its animation."""
    skel = pxr().UsdSkel
    cache, skeletons, animated = skel.Cache(), [], []
    for prim in stage.Traverse():
        if prim.IsA(skel.Root):
            cache.Populate(skel.Root(prim), pxr().Usd.PrimDefaultPredicate)
        if prim.IsA(skel.Skeleton):
            skeletons.append(prim.GetPath())
            query = cache.GetSkelQuery(skel.Skeleton(prim))
            if query and query.GetAnimQuery() and len(query.GetJointOrder()):
                animated.append((query, query.GetAnimQuery()))
    if not animated:
        what = f"{len(skeletons)} skeleton(s) but no animation bound to one" if skeletons else "no UsdSkel skeleton"
        raise FormatProblem(f"'{path}' has {what}; a motion needs a Skeleton with a SkelAnimation.")
    if len(skeletons) > 1:
        notes["skeleton"] = f"the first animated one of {len(skeletons)} skeletons: {animated[0][0].GetPrim().GetPath()}"
    return animated[0]


def _frames(stage: Any, samples: list[float], path: Path, notes: dict[str, str]) -> tuple[np.ndarray, float]:
    """The time codes to read, and how many of them pass in a second."""
    rate = float(stage.GetTimeCodesPerSecond())
    if not stage.HasAuthoredMetadata("timeCodesPerSecond") and not stage.HasAuthoredMetadata("framesPerSecond"):
        notes["fps"] = f"the file states none: {rate:g} taken"
    if not rate > 0:
        raise FormatProblem(f"'{path}' has {rate:g} time codes per second; a positive number is needed.")
    samples = [time for time in samples if np.isfinite(time)] or [0.0]
    gap = float(np.median(np.diff(samples))) if len(samples) > 1 else 1.0
    step = gap if gap < 1 or rate > _FASTEST else 1.0
    count = int((samples[-1] - samples[0]) / step + 1.5)
    if count > _MOST_FRAMES:
        raise FormatProblem(f"'{path}' claims {count} frames (time codes {samples[0]:g} to {samples[-1]:g}); up to {_MOST_FRAMES} are read.")
    return samples[0] + step * np.arange(count), rate / step


def _world_matrices(stage: Any, query: Any, times: np.ndarray, notes: dict[str, str]) -> tuple[Float[np.ndarray, "F J 4 4"], Float[np.ndarray, "K 4 4"]]:
    """`A_world_joint` of all frames (F J 4 4) and of the rest pose (J 4 4), in our axes and metres."""
    module = pxr()
    A_ours = np.eye(4)
    if module.UsdGeom.GetStageUpAxis(stage) == "Z":
        A_ours[:3, :3] = np.array(Frame.Z_UP_Y_BACK.value)
    unit = float(module.UsdGeom.GetStageMetersPerUnit(stage))
    if not module.UsdGeom.StageHasAuthoredMetersPerUnit(stage):
        notes["unit"] = f"the file states none: {unit:g} m taken, as USD has it"
    A_ours[:3, :3] *= unit
    above = module.UsdGeom.XformCache()

    def world(time: float, at_rest: bool) -> Matrices:
        # USD writes points as rows: its matrices are the transposes of ours
        above.SetTime(time)
        A_world_skeleton = np.array(above.GetLocalToWorldTransform(query.GetPrim())).T
        return A_ours @ A_world_skeleton @ np.array(query.ComputeJointSkelTransforms(time, at_rest)).swapaxes(-1, -2)

    return np.stack([world(time, False) for time in times.tolist()]), world(float(times[0]), True)


def _metadata(stage: Any) -> dict[str, Any]:
    """What `usd_write` left in the layer; empty in anyone else's file."""
    try:
        meta = json.loads(stage.GetRootLayer().customLayerData.get(KEY, "{}"))
    except (ValueError, TypeError, RecursionError):
        meta = {}
    return meta if isinstance(meta, dict) else {}


def _known_skeleton(meta: dict[str, Any]) -> Skeleton | None:
    try:
        return skeleton_from_json(meta["skeleton"])
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, BunrakuError):
        return None


def _joints(query: Any) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Names and parents; the skeleton's own names for its joints where they are unique, else the last parts of their paths."""
    paths = [str(token) for token in query.GetJointOrder()]
    given = [str(name) for name in query.GetSkeleton().GetJointNamesAttr().Get() or ()]
    short = [path.rsplit("/", 1)[-1] for path in paths]
    names = next((names for names in (given, short) if len(set(names)) == len(names) == len(paths)), paths)
    return tuple(names), tuple(query.GetTopology().GetParent(joint) for joint in range(len(paths)))


def _contacts(meta: dict[str, Any], frames: int) -> Bool[Tensor, "F 4"] | None:
    try:
        contacts = torch.tensor(meta.get("contacts", []), dtype=torch.bool)
    except (ValueError, TypeError, RuntimeError):
        return None
    return contacts if contacts.shape == (frames, 4) else None
