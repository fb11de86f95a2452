"""The part of USD reading that runs in a process of its own: `python -m bunraku.files.usd_child FILE > arrays.npz`.

A few damaged bytes make Pixar's library ask for many gigabytes or print what it thinks; see `child`. Axes and units stay the file's.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from bunraku.files.child import Refused, answer
from bunraku.files.usd_library import pxr

_MOST_FRAMES = 1_000_000
_FASTEST = 240.0  # a time code this short or longer is a frame; shorter ones are ticks


def read(path: str, key: str) -> dict[str, np.ndarray]:
    """The animation of the first animated skeleton, and the text `key` of the layer's custom data."""
    notes: dict[str, str] = {}
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            stage = pxr().Usd.Stage.Open(path)
            query, animation = _animated_skeleton(stage, notes)
            times, fps = _frames(stage, animation.GetJointTransformTimeSamples(), notes)
            frames, rest = _world_matrices(stage, query, times)
            names, parents = _joints(query)
            meta = stage.GetRootLayer().customLayerData.get(key, "")
            unit = _unit(stage, notes)
    except (pxr().Tf.ErrorException, UnicodeDecodeError) as error:  # USD reads lazily, so any call may meet damage
        raise Refused(f"cannot be read as USD{_complaint(error, path)}; it is damaged or something else") from error
    return {
        "names": np.array(names),
        "parents": np.array(parents),
        "frames": frames,
        "rest": rest,
        "fps": np.array(fps),
        "up": np.array(str(pxr().UsdGeom.GetStageUpAxis(stage))),
        "unit": np.array(unit),
        "meta": np.array(meta if isinstance(meta, str) else ""),
        "notes": np.array(json.dumps(notes)),
    }


def _complaint(error: Exception, path: str) -> str:
    """What USD said, in brackets. It quotes the file's own bytes, which need not be text."""
    try:
        said = str(getattr(error.args[0], "commentary", "")).strip().splitlines() if error.args else []
    except UnicodeDecodeError:
        said = []
    return f" ({said[0].replace(f'@{path}@', 'it').replace(path, 'line')})" if said else ""


def _animated_skeleton(stage: Any, notes: dict[str, str]) -> tuple[Any, Any]:
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
        raise Refused(f"has {what}; a motion needs a Skeleton with a SkelAnimation")
    if len(skeletons) > 1:
        notes["skeleton"] = f"the first animated one of {len(skeletons)} skeletons: {animated[0][0].GetPrim().GetPath()}"
    return animated[0]


def _frames(stage: Any, samples: list[float], notes: dict[str, str]) -> tuple[np.ndarray, float]:
    """The time codes to read, and how many of them pass in a second."""
    rate = float(stage.GetTimeCodesPerSecond())
    if not stage.HasAuthoredMetadata("timeCodesPerSecond") and not stage.HasAuthoredMetadata("framesPerSecond"):
        notes["fps"] = f"the file states none: {rate:g} taken"
    if not rate > 0:
        raise Refused(f"has {rate:g} time codes per second; a positive number is needed")
    samples = [time for time in samples if np.isfinite(time)] or [0.0]
    gap = float(np.median(np.diff(samples))) if len(samples) > 1 else 1.0
    step = gap if gap < 1 or rate > _FASTEST else 1.0
    count = int((samples[-1] - samples[0]) / step + 1.5)
    if count > _MOST_FRAMES:
        raise Refused(f"claims {count} frames (time codes {samples[0]:g} to {samples[-1]:g}); up to {_MOST_FRAMES} are read")
    return samples[0] + step * np.arange(count), rate / step


def _unit(stage: Any, notes: dict[str, str]) -> float:
    """The length of the file's unit [m]."""
    unit = float(pxr().UsdGeom.GetStageMetersPerUnit(stage))
    if not pxr().UsdGeom.StageHasAuthoredMetersPerUnit(stage):
        notes["unit"] = f"the file states none: {unit:g} m taken, as USD has it"
    return unit


def _world_matrices(stage: Any, query: Any, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`A_world_joint` of all frames (F J 4 4) and of the rest pose (J 4 4), in the file's axes and unit."""
    above = pxr().UsdGeom.XformCache()

    def world(time: float, at_rest: bool) -> np.ndarray:
        # USD writes points as rows: its matrices are the transposes of ours
        above.SetTime(time)
        A_world_skeleton = np.array(above.GetLocalToWorldTransform(query.GetPrim())).T
        return A_world_skeleton @ np.array(query.ComputeJointSkelTransforms(time, at_rest)).swapaxes(-1, -2)

    return np.stack([world(time, False) for time in times.tolist()]), world(float(times[0]), True)


def _joints(query: Any) -> tuple[list[str], list[int]]:
    """Names and parents; the skeleton's own names for its joints where they are unique, else the last parts of their paths."""
    paths = [str(token) for token in query.GetJointOrder()]
    given = [str(name) for name in query.GetSkeleton().GetJointNamesAttr().Get() or ()]
    short = [path.rsplit("/", 1)[-1] for path in paths]
    names = next((names for names in (given, short) if len(set(names)) == len(names) == len(paths)), paths)
    return names, [query.GetTopology().GetParent(joint) for joint in range(len(paths))]


if __name__ == "__main__":
    answer("USD", read)
