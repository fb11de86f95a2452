"""Kimodo's NPZ: the arrays its tools exchange, and beside them what those arrays leave out.

Arrays of the release (T frames, J joints): `posed_joints` (T J 3), `global_rot_mats` and `local_rot_mats` (T J 3 3),
`root_positions` and `smooth_root_pos` (T 3), `foot_contacts` (T 4, or T 6 for 77 joints: heel, toe and a copy of the toe, left
before right), `global_root_heading` (T 2: cos and sin of the hips' heading). When read, the turns and the root's positions decide.

The release says neither frame rate nor skeleton. We add `fps` and one text `bunraku`: JSON with the whole skeleton and the
motion's provenance, and `local_translations` (T J 3) where bones stretch. Numbers are float32, as in the release. A file without
our text is taken for one of the released skeletons by its joint count, its bones are measured against that skeleton, and the
guess is noted. The release always stores contacts: those that had to be detected are marked (`"contacts": "detected"`) and read back
as not known.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.errors import BadValue, BunrakuError, FormatProblem
from bunraku.files.archive import Archive, write_archive
from bunraku.files.metadata import KEY, provenance_from_json, provenance_to_json, read_metadata
from bunraku.kinematics.contacts import detect_contacts
from bunraku.kinematics.forward import forward_kinematics, local_rotations, pose_joints
from bunraku.kinematics.heading import heading_of, heading_vector
from bunraku.kinematics.hinges import require_hinges
from bunraku.kinematics.library import skeleton as library_skeleton
from bunraku.kinematics.library import skeleton_from_json, skeleton_to_json
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import CONTACT_ROLES, Skeleton
from bunraku.kinematics.smooth_root import smoothed_root
from bunraku.math.rotations import matrix_to_quat, nearest_rotation, quat_continuous, quat_to_matrix

RELEASED_FPS = 30.0
ROTATION_KEYS = ("local_rot_mats", "global_rot_mats")
_RELEASED = {30: "soma30", 77: "soma77", 34: "g1", 22: "smplx22"}  # joint count → skeleton, for files that do not say
_DETECTED = "detected"
_COPY_COLUMNS = (0, 1, 3, 4)  # of six contact columns, those that are no copies
_BONE_TOLERANCE = 0.01  # [m] between stored joints and those of the guessed skeleton
_DRIFT = 1e-3  # above this, R Rᵀ − 1 is no rounding error; above fifty times that, R is no rotation


def load_npz(path: str | os.PathLike[str], *, sample: int | None = None, fps: float | None = None) -> Motion:
    """The motion in a Kimodo NPZ. `sample` picks one of a batch [N T …]; `fps` overrides what the file says (or does not say)."""
    archive = Archive(path)
    rotations = next((key for key in ROTATION_KEYS if key in archive), None)
    if rotations is None:
        held = "only joint positions" if "posed_joints" in archive else f"the arrays {', '.join(archive.names) or '(none)'}"
        raise FormatProblem(f"'{path}' holds {held}; a Kimodo NPZ needs 'local_rot_mats' or 'global_rot_mats' [T J 3 3] (save the motion with rotations).")
    R, batch = _clip(archive, rotations, ("J", 3, 3), sample, None)
    frames, joints = R.shape[:2]
    if frames == 0:
        raise FormatProblem(f"'{path}' holds no frames.")
    meta = read_metadata(archive)
    skeleton, notes = _skeleton(archive, meta, joints)
    R = _rotations(archive, rotations, R)
    if rotations == "global_rot_mats":
        R = local_rotations(skeleton, R)
    p_root, p_joints = _positions(archive, sample, batch, R)
    if p_joints is not None and "skeleton" in notes:
        _check_bones(archive, skeleton, R, p_root, p_joints)
    rate, rate_notes = _rate(archive, fps)
    translations = _clip(archive, "local_translations", (joints, 3), sample, batch)[0] if "local_translations" in archive else None
    return Motion(
        skeleton=skeleton,
        fps=rate,
        root_position=p_root,
        quats=quat_continuous(matrix_to_quat(R).transpose(0, 1)).transpose(0, 1),
        translations=translations,
        contacts=None if meta.get("contacts") == _DETECTED else _contacts(archive, sample, batch, frames),
        provenance=provenance_from_json(meta.get("provenance"), str(path)).noted(**notes, **rate_notes),
    )


def save_npz(motion: Motion, path: str | os.PathLike[str]) -> None:
    """Writes the release's arrays and our metadata. Contacts the motion does not carry are detected."""
    motion = motion.to(torch.float32)
    poses = forward_kinematics(motion)
    arrays = {
        "posed_joints": poses.p_world_joint,
        "global_rot_mats": poses.R_world_joint,
        "local_rot_mats": quat_to_matrix(motion.quats),
        "root_positions": motion.root_position,
        "smooth_root_pos": smoothed_root(motion.root_position),
    }
    contacts = motion.contacts
    if contacts is None and motion.skeleton.has(*CONTACT_ROLES):
        contacts = detect_contacts(motion)
    if contacts is not None:
        # the released 77-joint files carry each toe twice; only there, so that 30-joint files keep four columns
        arrays["foot_contacts"] = contacts[:, [0, 1, 1, 2, 3, 3]] if motion.skeleton.name == "soma77" else contacts
    if motion.skeleton.has("left_hip", "right_hip"):
        arrays["global_root_heading"] = heading_vector(heading_of(motion.skeleton, poses.p_world_joint))
    if motion.translations is not None:
        arrays["local_translations"] = motion.translations
    stored = {name: value.detach().cpu().numpy() for name, value in arrays.items()}
    stored["fps"] = np.array(float(motion.fps))
    meta = {"skeleton": skeleton_to_json(motion.skeleton), "provenance": provenance_to_json(motion.provenance)}
    stored[KEY] = np.array(json.dumps(meta if motion.contacts is not None else {**meta, "contacts": _DETECTED}))
    write_archive(path, stored)


# --- what the release stores -----------------------------------------------------------------------------------------


def _clip(archive: Archive, key: str, tail: tuple[int | str, ...], sample: int | None, batch: int | None) -> tuple[Tensor, int | None]:
    """An array [T *tail], picked from [N T *tail] where the file holds a batch of N; `batch` is the N of the rotations, read first."""
    values = archive.numbers(key)
    wanted, rank = " ".join(map(str, ("T", *tail))), 1 + len(tail)
    shape_tail = values.shape[max(values.ndim - len(tail), 0) :]
    if values.ndim not in (rank, rank + 1) or any(isinstance(want, int) and size != want for size, want in zip(shape_tail, tail, strict=True)):
        raise FormatProblem(f"'{archive.path}': array '{key}' has the shape {list(values.shape)}; [{wanted}] or a batch [N {wanted}] is needed.")
    if (values.ndim == rank) != (batch is None) and key not in ROTATION_KEYS:
        other = f"a batch of {batch}" if batch is not None else "one motion"
        raise FormatProblem(f"'{archive.path}': array '{key}' has the shape {list(values.shape)}, but the rotations hold {other}.")
    if values.ndim == rank:
        if sample not in (None, 0):
            raise BadValue(f"'{archive.path}' holds one motion; sample {sample} does not exist.")
        return torch.from_numpy(values), None
    count = values.shape[0]
    if batch not in (None, count):
        raise FormatProblem(f"'{archive.path}': array '{key}' holds a batch of {count}, the rotations one of {batch}; they must agree.")
    if sample is None and count != 1:
        raise BadValue(f"'{archive.path}' holds a batch of {count} motions; choose one with sample=0 … {count - 1}.")
    if not 0 <= (sample or 0) < count:
        raise BadValue(f"'{archive.path}' holds {count} motions; sample {sample} does not exist (0 … {count - 1}).")
    return torch.from_numpy(values[sample or 0]), count


def _rotations(archive: Archive, key: str, R: Float[Tensor, "F J 3 3"]) -> Float[Tensor, "F J 3 3"]:
    """The matrices, with rounding drift taken out; anything worse is refused."""
    drift = (R @ R.transpose(-1, -2) - torch.eye(3, dtype=R.dtype)).abs().amax(dim=(-1, -2))
    frame, joint = divmod(int(drift.argmax()), R.shape[1])
    mirrored = bool((torch.linalg.det(R) < 0).any())
    if mirrored or float(drift.max()) > 50 * _DRIFT:
        reason = "mirrors" if mirrored else f"is {float(drift.max()):.2g} away from a rotation at frame {frame}, joint {joint}"
        raise FormatProblem(f"'{archive.path}': array '{key}' {reason}; rotation matrices are needed.")
    return nearest_rotation(R) if float(drift.max()) > _DRIFT else R


def _positions(archive: Archive, sample: int | None, batch: int | None, R: Float[Tensor, "F J 3 3"]) -> tuple[Tensor, Tensor | None]:
    """Root positions, and every joint's where the file has them."""
    frames, joints = R.shape[:2]
    p_joints = _clip(archive, "posed_joints", (joints, 3), sample, batch)[0] if "posed_joints" in archive else None
    p_root = _clip(archive, "root_positions", (3,), sample, batch)[0] if "root_positions" in archive else None
    if p_root is None:
        if p_joints is None:
            raise FormatProblem(f"'{archive.path}' does not say where the root is: 'root_positions' [T 3] or 'posed_joints' [T J 3] is needed.")
        p_root = p_joints[:, 0]
    for key, value in (("root_positions", p_root), ("posed_joints", p_joints)):
        if value is not None and value.shape[0] != frames:
            raise FormatProblem(f"'{archive.path}': '{key}' has {value.shape[0]} frames, the rotations {frames}; they must agree.")
    return p_root.to(R), p_joints


def _contacts(archive: Archive, sample: int | None, batch: int | None, frames: int) -> Bool[Tensor, "F 4"] | None:
    if "foot_contacts" not in archive:
        return None
    values = _clip(archive, "foot_contacts", ("C",), sample, batch)[0]
    if values.shape[0] != frames or values.shape[1] not in (4, 6):
        raise FormatProblem(f"'{archive.path}': 'foot_contacts' has the shape {list(values.shape)}; [{frames} 4] or [{frames} 6] is needed.")
    columns = values[:, _COPY_COLUMNS] if values.shape[1] == 6 else values
    return columns > 0.5


# --- what the release leaves out -------------------------------------------------------------------------------------


def _rate(archive: Archive, fps: float | None) -> tuple[float, dict[str, str]]:
    """The frame rate asked for, else the stored one, else the release's, which is noted."""
    notes = {}
    if fps is None and "fps" in archive:
        fps = archive.scalar("fps")
    if fps is None:
        fps, notes = RELEASED_FPS, {"fps": f"the file says none: {RELEASED_FPS:g} assumed, the rate of every released model"}
    if not 0 < fps < float("inf"):
        raise FormatProblem(f"'{archive.path}': {fps:g} frames per second is no frame rate; give a positive one: fps=30.")
    return fps, notes


def _skeleton(archive: Archive, meta: dict[str, Any], joints: int) -> tuple[Skeleton, dict[str, str]]:
    """The stored skeleton; without one, the released skeleton with that many joints, and a note that it is a guess."""
    if "skeleton" in meta:
        try:
            skeleton = skeleton_from_json(meta["skeleton"])
            if skeleton.hinges is not None:
                require_hinges(skeleton)
        except BunrakuError as error:
            raise FormatProblem(f"'{archive.path}': the stored skeleton cannot be used: {error}") from error
        except (KeyError, TypeError, ValueError, IndexError, RuntimeError, AttributeError) as error:
            raise FormatProblem(f"'{archive.path}': the stored skeleton is incomplete ({type(error).__name__}: {error}); save the motion again.") from error
        if len(skeleton) != joints:
            raise FormatProblem(f"'{archive.path}': the rotations have {joints} joints, the stored skeleton '{skeleton.name}' {len(skeleton)}.")
        return skeleton, {}
    if joints not in _RELEASED:
        known = ", ".join(f"{name} ({count})" for count, name in _RELEASED.items())
        raise FormatProblem(f"'{archive.path}' has {joints} joints and does not name its skeleton; without a name it must be one of {known}.")
    return library_skeleton(_RELEASED[joints]), {"skeleton": f"the file names none: taken for {_RELEASED[joints]}, which has as many joints ({joints})"}


def _check_bones(archive: Archive, skeleton: Skeleton, R: Tensor, p_root: Tensor, p_joints: Tensor) -> None:
    """A guess by joint count holds only if the stored positions are what the guessed skeleton gives."""
    error = (pose_joints(skeleton, p_root, R).p_world_joint - p_joints).norm(dim=-1)
    if float(error.max()) > _BONE_TOLERANCE:
        frame, joint = divmod(int(error.argmax()), len(skeleton))
        raise FormatProblem(
            f"'{archive.path}' has as many joints as {skeleton.name}, but '{skeleton.joints[joint]}' lies {float(error.max()) * 100:.1f} cm "
            f"from where that skeleton puts it at frame {frame}: it is another skeleton. Convert the file from a format that names its joints (BVH, GLB)."
        )
