"""The frames of a dataset: what is kept of each, as numbers to compute with and as 264 bytes on disk.

Turns are kept as four 16-bit integers a joint. Rounding a quaternion to 1 / 32767 turns it by at most 0.004°: hands and feet end
within 0.1 mm of where they were. Places are float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from bunraku.kinematics.motion import Motion, Provenance
from bunraku.kinematics.skeleton import Skeleton

QUAT_STEPS = 32767


@dataclass(frozen=True, kw_only=True, eq=False)
class PoseRows:
    """F frames: the motion, and what is worked out once for a whole clip because a crop would give something else."""

    root_position: Float[Tensor, "F 3"]  # [m] world
    smooth_xz: Float[Tensor, "F 2"]  # [m] the smoothed root on the ground
    quats: Float[Tensor, "F J 4"]  # unit, wxyz, joint in parent
    contacts: Bool[Tensor, "F 4"]  # columns: skeleton.CONTACT_ROLES

    def __len__(self) -> int:
        return len(self.quats)

    def motion(self, skeleton: Skeleton, fps: float, provenance: Provenance | None = None) -> Motion:
        made = Provenance() if provenance is None else provenance
        return Motion(skeleton=skeleton, fps=fps, root_position=self.root_position, quats=self.quats, contacts=self.contacts, provenance=made)


def record_type(joints: int) -> np.dtype:
    """One frame on disk, little-endian whatever the machine."""
    fields = [("root", "<f4", (3,)), ("smooth", "<f4", (2,)), ("quats", "<i2", (joints, 4)), ("contacts", "u1", (4,))]
    return np.dtype(fields)


def to_records(rows: PoseRows) -> np.ndarray:
    records = np.zeros(len(rows), dtype=record_type(rows.quats.shape[1]))
    records["root"] = rows.root_position.cpu().numpy()
    records["smooth"] = rows.smooth_xz.cpu().numpy()
    records["quats"] = np.rint(rows.quats.cpu().numpy() * QUAT_STEPS).astype(np.int16)
    records["contacts"] = rows.contacts.cpu().numpy()
    return records


def from_records(records: np.ndarray) -> PoseRows:
    quats = torch.from_numpy(records["quats"].astype(np.float32))
    return PoseRows(
        root_position=torch.from_numpy(records["root"].astype(np.float32)),
        smooth_xz=torch.from_numpy(records["smooth"].astype(np.float32)),
        quats=quats / quats.norm(dim=-1, keepdim=True),
        contacts=torch.from_numpy(records["contacts"] != 0),
    )
