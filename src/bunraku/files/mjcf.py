"""Robots: a skeleton with hinges out of any MJCF or URDF, and a plain MJCF of a skeleton with hinges.

MuJoCo compiles the description, so its includes, defaults, angle units and frames are MuJoCo's business; meshes and textures are
taken out first, so that a file without its meshes still loads. Every body becomes a joint. A body with several hinges becomes a
chain of joints at one place, named after the hinges; the last one carries the body's name. Where a hinge's anchor lies off its
body's origin, the joint sits at the anchor.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np
import torch

from bunraku.errors import FileProblem, FormatProblem
from bunraku.files.axes import Frame, rotations_from, rotations_to, vectors_from, vectors_to
from bunraku.files.disk import existing_file, read_bytes
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.hinges import require_hinges
from bunraku.kinematics.roles import infer_roles, with_roles
from bunraku.kinematics.skeleton import Hinges, Skeleton
from bunraku.math.rotations import matrix_to_quat, quat_normalize, quat_rotate, quat_to_matrix

_CAPSULE = 0.03  # [m] radius of the bones of a written robot; joint tips get a ball of this size
_MOST_COPIES = 10_000  # a few bytes of XML may ask for a thousand million bodies
_COPIES = re.compile(rb"""<(?:replicate|composite|flexcomp)\b[^>]*?\bcount\s*=\s*["']([^"']*)["']""")
_UNTURNED = np.array([1.0, 0.0, 0.0, 0.0])
_MASS = 1.0  # [kg] of every body of a written robot: enough to move, not a physical model


@dataclass
class _Tree:
    """The joints gathered so far, in MuJoCo's axes."""

    joints: list[str] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    offsets: list[np.ndarray] = field(default_factory=list)
    quats: list[np.ndarray] = field(default_factory=list)
    hinges: list[tuple[str, np.ndarray, float, float]] = field(default_factory=list)

    def add(self, name: str, parent: int, offset: np.ndarray, quat: np.ndarray) -> int:
        self.joints.append(name)
        self.parents.append(parent)
        self.offsets.append(offset)
        self.quats.append(quat)
        return len(self.joints) - 1


def load_robot(path: str | os.PathLike[str], roles: Mapping[str, Any] | str | Path | None = None) -> Skeleton:
    """A robot as a skeleton with hinges in the order of MuJoCo's position vector; needs the extra `robot`.

    Roles are inferred from names and geometry; `roles` (role → joint name, or a JSON file of that) overrides them.
    """
    path = existing_file(path)
    _refuse_copies(path)
    with _warnings_in_words(path):
        model = _compile(path)
    try:
        skeleton = _skeleton(path, model)
    except UnicodeDecodeError as error:
        raise FormatProblem(f"'{path}' has names that are not UTF-8; save it as UTF-8.") from error
    skeleton = replace(skeleton, roles=infer_roles(skeleton))
    return skeleton if roles is None else with_roles(skeleton, roles)


def _mujoco() -> Any:
    try:
        import mujoco
    except ImportError as error:
        raise FileProblem("reading a robot needs the extra: pip install 'bunraku[robot]'") from error
    return mujoco


@contextmanager
def _warnings_in_words(path: Path) -> Iterator[None]:
    """Left alone, MuJoCo prints its warnings and appends them to a MUJOCO_LOG.TXT in the folder that happens to be current."""
    mujoco = _mujoco()
    warnings: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(warnings.append)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)
    if any("nan" in warning.lower() for warning in warnings):
        raise FormatProblem(f"'{path}' holds a NaN where a number is needed; correct it where the robot was made.")


def _refuse_copies(path: Path) -> None:
    counts = [int(count[:12]) for group in _COPIES.findall(read_bytes(path)) for count in re.findall(rb"\d+", group)[:3]]
    if math.prod(max(count, 1) for count in counts) > _MOST_COPIES:
        raise FormatProblem(f"'{path}' asks for {math.prod(counts):.3g} copies of its parts; up to {_MOST_COPIES} are made: take them out of the file.")


def _compile(path: Path) -> Any:
    mujoco = _mujoco()
    try:
        spec = mujoco.MjSpec.from_file(str(path))
        for geom in spec.geoms:
            geom.material = ""
            if geom.type in (mujoco.mjtGeom.mjGEOM_MESH, mujoco.mjtGeom.mjGEOM_HFIELD, mujoco.mjtGeom.mjGEOM_SDF):
                geom.type, geom.meshname, geom.hfieldname, geom.size = mujoco.mjtGeom.mjGEOM_SPHERE, "", "", [0.01, 0, 0]
        for kind in (spec.skins, spec.meshes, spec.hfields, spec.textures):
            for element in list(kind):
                spec.delete(element)
        for material in spec.materials:
            material.textures = [""] * len(material.textures)
        spec.compiler.fusestatic = False  # fixed links stay: they may be the hands and feet
        spec.compiler.boundmass, spec.compiler.boundinertia = 1e-3, 1e-6  # massless links are no problem for kinematics
        spec.compiler.balanceinertia = True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # MuJoCo's doubts are about masses and forces; only places and axes are asked for here
            return spec.compile()
    except (ValueError, RuntimeError, TypeError, mujoco.FatalError) as error:  # a name that is not UTF-8 is a ValueError too
        reason = " ".join(str(error).split())[:300]
        raise FormatProblem(f"MuJoCo cannot read '{path}': {reason}. A robot is described by an MJCF (.xml) or URDF (.urdf) file.") from error


def _skeleton(path: Path, model: Any) -> Skeleton:
    tree = _Tree()
    rows: dict[int, int] = {}  # body → its (last) joint
    anchors: dict[int, np.ndarray] = {}  # body → where that joint sits in the body
    for body in _robot_bodies(path, model):
        hinges = _hinges_of(path, model, body, root=not tree.joints)
        if not tree.joints and hinges:
            rows[0] = tree.add(f"{_name(model, body)}_base", -1, np.zeros(3), _UNTURNED)  # a fixed base whose first link turns
        parent = int(model.body_parentid[body])
        _add_body(tree, model, body, hinges, rows.get(parent, -1), anchors.get(parent, np.zeros(3)))
        rows[body] = len(tree.joints) - 1
        anchors[body] = model.jnt_pos[hinges[-1]].copy() if hinges else np.zeros(3)
    return _finish(model.names.split(b"\0", 1)[0].decode() or path.stem, tree)


def _hinges_of(path: Path, model: Any, body: int, root: bool) -> list[int]:
    """The hinges of a body, in order. Other joints are refused, but for a free joint at the root."""
    mujoco = _mujoco()
    joints = range(int(model.body_jntadr[body]), int(model.body_jntadr[body]) + int(model.body_jntnum[body]))
    if root and [int(model.jnt_type[j]) for j in joints] == [mujoco.mjtJoint.mjJNT_FREE]:
        return []
    for j in joints:
        name = model.joint(j).name or f"number {j}"
        if model.jnt_type[j] != mujoco.mjtJoint.mjJNT_HINGE:
            kind = mujoco.mjtJoint(int(model.jnt_type[j])).name.removeprefix("mjJNT_").lower()
            raise FormatProblem(f"'{path}': joint '{name}' is a {kind} joint; hinges and one free joint at the root are read. Weld it or split it into hinges.")
        if model.qpos0[model.jnt_qposadr[j]] != 0:
            raise FormatProblem(f"'{path}': hinge '{name}' has ref={model.qpos0[model.jnt_qposadr[j]]:g}; its zero must be the drawn pose: remove 'ref'.")
    return list(joints)


def _add_body(tree: _Tree, model: Any, body: int, hinges: list[int], parent: int, parent_anchor: np.ndarray) -> None:
    """One joint per hinge of the body, or one without a hinge."""
    offset, quat = model.body_pos[body] - parent_anchor, model.body_quat[body].copy()
    if not hinges:
        tree.add(_name(model, body), parent, offset, quat)
    here = np.zeros(3)
    for j in hinges:
        name = _name(model, body) if j == hinges[-1] else _hinge_name(model, j)
        step = model.jnt_pos[j] - here
        place = (offset + _rotate(quat, step), quat) if j == hinges[0] else (step, _UNTURNED)
        parent = tree.add(name, parent, *place)
        here = model.jnt_pos[j]
        lower, upper = model.jnt_range[j] if model.jnt_limited[j] else (-np.inf, np.inf)
        tree.hinges.append((name, model.jnt_axis[j].copy(), float(lower), float(upper)))


def _robot_bodies(path: Path, model: Any) -> list[int]:
    """The bodies of the one tree that has hinges; a floor, props and cameras beside it are left out."""
    mujoco = _mujoco()
    hinge_trees = {int(model.body_rootid[model.jnt_bodyid[j]]) for j in range(model.njnt) if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_HINGE}
    if len(hinge_trees) > 1:
        names = ", ".join(_name(model, body) for body in sorted(hinge_trees))
        raise FormatProblem(f"'{path}' holds {len(hinge_trees)} jointed trees ({names}); one robot per file is read.")
    if not hinge_trees:
        raise FormatProblem(f"'{path}' has no hinge joint; a robot needs at least one.")
    (root,) = hinge_trees
    return [body for body in range(1, model.nbody) if model.body_rootid[body] == root]


def _name(model: Any, body: int) -> str:
    return model.body(body).name or f"body{body}"


def _hinge_name(model: Any, hinge: int) -> str:
    mujoco = _mujoco()
    name = model.joint(hinge).name or f"hinge{hinge}"
    return f"{name}_hinge" if mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name) >= 0 else name


def _rotate(quat: np.ndarray, vector: np.ndarray) -> np.ndarray:
    return quat_rotate(torch.from_numpy(quat), torch.from_numpy(vector)).numpy()


def _finish(name: str, tree: _Tree) -> Skeleton:
    """From MuJoCo's axes to ours. A robot drawn with its root at the origin, as URDF does, is lifted onto y = 0."""
    frame = Frame.Z_UP_X_FORWARD
    offsets = vectors_from(frame, torch.from_numpy(np.stack(tree.offsets)))
    quats = matrix_to_quat(rotations_from(frame, quat_to_matrix(quat_normalize(torch.from_numpy(np.stack(tree.quats))))))
    names, axes, lower, upper = zip(*tree.hinges, strict=True)
    hinges = Hinges(
        joints=names,
        axes=vectors_from(frame, torch.from_numpy(np.stack(axes))).float(),
        lower=torch.tensor(lower),
        upper=torch.tensor(upper),
    )
    skeleton = Skeleton(name=name, joints=tuple(tree.joints), parents=tuple(tree.parents), offsets=offsets.float(), rest_quats=quats.float(), hinges=hinges)
    lowest = float(rest_poses(skeleton).p_world_joint[:, 1].min())
    if lowest >= 0:
        return skeleton
    lift = torch.zeros_like(skeleton.offsets)
    lift[0, 1] = -lowest
    return replace(skeleton, offsets=skeleton.offsets + lift)


# --- writing ---------------------------------------------------------------------------------------------------------


def mjcf_from_skeleton(skeleton: Skeleton) -> str:
    """A robot as a minimal MJCF: its bodies, hinges and limits, a free root, capsules along the bones. For playing, not for dynamics.

    `qpos` of the compiled model is a line of the robot's CSV.
    """
    hinges, _ = require_hinges(skeleton)
    rows = {name: i for i, name in enumerate(hinges.joints)}
    frame = Frame.Z_UP_X_FORWARD
    positions = vectors_to(frame, skeleton.offsets.double())
    quats = matrix_to_quat(rotations_to(frame, quat_to_matrix(quat_normalize(skeleton.rest_quats.double()))))
    axes = vectors_to(frame, hinges.axes.double())

    def body(joint: int, indent: str) -> list[str]:
        name = skeleton.joints[joint]
        lines = [f'{indent}<body name={quoteattr(name)} pos="{_cells(positions[joint])}" quat="{_cells(quats[joint])}">']
        inner = indent + "  "
        if joint == 0:
            lines.append(f"{inner}<freejoint/>")
        if name in rows:
            i = rows[name]
            limits = f'range="{float(hinges.lower[i]):.7g} {float(hinges.upper[i]):.7g}"' if np.isfinite([hinges.lower[i], hinges.upper[i]]).all() else ""
            lines.append(f'{inner}<joint name={quoteattr(name + "_hinge")} axis="{_cells(axes[i])}" {limits}/>')
        lines.append(f'{inner}<geom type="sphere" size="{_CAPSULE}" mass="{_MASS}"/>')
        for child in skeleton.children[joint]:
            if float(positions[child].norm()) > _CAPSULE:
                lines.append(f'{inner}<geom type="capsule" size="{_CAPSULE}" fromto="0 0 0 {_cells(positions[child])}" mass="0"/>')
        for child in skeleton.children[joint]:
            lines += body(child, inner)
        return [*lines, f"{indent}</body>"]

    head = [f"<mujoco model={quoteattr(skeleton.name)}>", '  <compiler angle="radian"/>']
    head += ['  <default><geom contype="0" conaffinity="0"/></default>', "  <worldbody>"]
    floor = ['    <light pos="0 0 4" dir="0 0 -1"/>', '    <geom name="floor" type="plane" size="10 10 0.1"/>']
    return "\n".join([*head, *floor, *body(0, "    "), "  </worldbody>", "</mujoco>", ""])


def _cells(values: torch.Tensor) -> str:
    return " ".join(f"{value:.9g}" for value in values.tolist())
