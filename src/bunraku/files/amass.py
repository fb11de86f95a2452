"""AMASS NPZ: SMPL-X body motion as rotation vectors, +Z up, exchanged as the released Kimodo does (characters face +Y).

Arrays: `trans` (T 3), `root_orient` (T 3) and `pose_body` (T 63), or all turns as `poses` (T 156 or 165, as the older files);
`mocap_frame_rate` (older: `mocap_framerate`). Fingers, jaw and eyes are not ours: they are ignored, and written as zero (a flat
hand). Body shape `betas` would need the SMPL-X body model, which is not free: the body is always the neutral one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from bunraku.errors import BadValue, FormatProblem, SkeletonMismatch
from bunraku.files.archive import Archive, write_archive
from bunraku.files.axes import Frame, vectors_from, vectors_to
from bunraku.files.metadata import KEY, provenance_from_json, provenance_to_json, read_metadata
from bunraku.kinematics.library import skeleton as library_skeleton
from bunraku.kinematics.motion import Motion
from bunraku.math.rotations import exp_quat, log_quat, matrix_to_quat, quat_conjugate, quat_continuous, quat_multiply

# Where the pelvis of the neutral SMPL-X body rests [m]. `trans` moves the whole body, and the body's root turn is about the pelvis,
# so the pelvis lies at trans + this in AMASS's own world: the offset is not turned, although it was measured on a body with +Y up.
PELVIS_REST = (0.002253, -0.372262, 0.012329)

_BODY = 63  # 21 joints × 3
_RATES = ("mocap_frame_rate", "mocap_framerate")


def is_amass(archive: Archive) -> bool:
    return "trans" in archive and ("poses" in archive or ("root_orient" in archive and "pose_body" in archive))


def load_amass(path: str | os.PathLike[str], *, fps: float | None = None) -> Motion:
    """The body of an AMASS file on `smplx22`. `fps` overrides the rate in the file."""
    archive = Archive(path)
    if not is_amass(archive):
        has = ", ".join(archive.names) or "nothing"
        raise FormatProblem(f"'{path}' is no AMASS file: 'trans' with 'poses', or with 'root_orient' and 'pose_body', is needed; it has {has}.")
    trans = _rows(archive, "trans", (3,))
    if "pose_body" in archive and "root_orient" in archive:
        turns = torch.cat([_rows(archive, "root_orient", (3,), len(trans)), _rows(archive, "pose_body", (_BODY,), len(trans))], dim=-1)
    else:
        turns = _rows(archive, "poses", (156, 165), len(trans))[:, : 3 + _BODY]
    notes = {}
    if "betas" in archive and bool(np.any(archive.numbers("betas"))):
        notes["betas"] = "the file's body shape is not applied: bones have the lengths of the neutral SMPL-X body"
    model = archive.text("surface_model_type") if "surface_model_type" in archive else "unknown"
    if model.lower() != "smplx":
        notes["surface_model"] = f"made for the body model '{model}'; its turns are put on the neutral SMPL-X body"
    quats = exp_quat(turns.unflatten(-1, (-1, 3)))
    quats[:, 0] = quat_multiply(_quat_ours_theirs(quats), quats[:, 0])
    return Motion(
        skeleton=library_skeleton("smplx22"),
        fps=_rate(archive, fps),
        root_position=vectors_from(Frame.Z_UP_Y_FORWARD, trans + torch.tensor(PELVIS_REST, dtype=trans.dtype)),
        quats=quat_continuous(quats.transpose(0, 1)).transpose(0, 1),
        provenance=provenance_from_json(read_metadata(archive).get("provenance"), str(path)).noted(**notes),
    )


def save_amass(motion: Motion, path: str | os.PathLike[str]) -> Mapping[str, str]:
    """Writes a `smplx22` motion; returns what the file could not hold, in the form of provenance notes (empty: nothing)."""
    neutral = library_skeleton("smplx22")
    if motion.skeleton.joints != neutral.joints:
        raise SkeletonMismatch(f"AMASS holds SMPL-X bodies; the motion is on '{motion.skeleton.name}'. Use retarget(motion, 'smplx22') first.")
    frames = len(motion)
    quats = motion.quats.detach().cpu().double()
    root = quat_multiply(quat_conjugate(_quat_ours_theirs(quats)), quats[:, 0])
    trans = vectors_to(Frame.Z_UP_Y_FORWARD, motion.root_position.detach().cpu().double()) - torch.tensor(PELVIS_REST, dtype=torch.float64)
    arrays = {
        "trans": trans.numpy(),
        "root_orient": log_quat(root).numpy(),
        "pose_body": log_quat(quats[:, 1:]).flatten(1).numpy(),
        "pose_hand": np.zeros((frames, 90)),
        "pose_jaw": np.zeros((frames, 3)),
        "pose_eye": np.zeros((frames, 6)),
        "betas": np.zeros(16),
        "num_betas": np.array(16),
        "gender": np.array("neutral"),
        "surface_model_type": np.array("smplx"),
        "mocap_frame_rate": np.array(float(motion.fps)),
        "mocap_time_length": np.array(motion.seconds),
        KEY: np.array(json.dumps({"provenance": provenance_to_json(motion.provenance)})),
    }
    write_archive(path, arrays)
    stretched = motion.translations is not None or not torch.allclose(motion.skeleton.offsets[1:].float(), neutral.offsets[1:], atol=1e-4)
    return {"bones": "bone lengths are not stored: the reader sees the neutral SMPL-X body"} if stretched else {}


def _quat_ours_theirs(like: Tensor) -> Tensor:
    """The turn from AMASS's world to ours. Only the world changes: the body's own frame has +Y up and faces +Z in both."""
    return matrix_to_quat(Frame.Z_UP_Y_FORWARD.matrix(like))


def _rows(archive: Archive, key: str, widths: tuple[int, ...], frames: int | None = None) -> Tensor:
    values = archive.numbers(key)
    if values.ndim != 2 or values.shape[1] not in widths or (frames is not None and len(values) != frames):
        wanted = f"[{'T' if frames is None else frames} {' or '.join(map(str, widths))}]"
        raise FormatProblem(f"'{archive.path}': array '{key}' has the shape {list(values.shape)}; {wanted} is needed.")
    if len(values) == 0:
        raise FormatProblem(f"'{archive.path}' holds no frames.")
    return torch.from_numpy(values).float()


def _rate(archive: Archive, fps: float | None) -> float:
    stored = next((archive.scalar(key) for key in _RATES if key in archive), None)
    rate = stored if fps is None else fps
    if rate is None:
        raise FormatProblem(f"'{archive.path}' does not say its frame rate ('{_RATES[0]}'); give it: fps=120.")
    if not 0 < rate < float("inf"):
        problem = FormatProblem if fps is None else BadValue
        raise problem(f"'{archive.path}': {rate:g} frames per second is no frame rate; a positive number is needed: fps=120.")
    return rate
