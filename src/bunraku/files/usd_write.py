"""Writing USD: a Skeleton with its SkelAnimation, and the skinned mesh of a character if there is one.

    /Character (SkelRoot)   /Character/Skeleton   /Character/Skeleton/Animation   /Character/Mesh   /Character/Materials/…

Y-up, metres, one time code per frame. Joint names become valid USD identifiers; the true names stand in `jointNames`. What USD has
no place for (roles, tips, hinges, contacts, provenance) is one JSON text in the layer's `customLayerData["bunraku"]`. Texture
images are not written; their materials keep the base colour.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bunraku.errors import FileProblem, SkeletonMismatch
from bunraku.files.disk import write_atomically
from bunraku.files.metadata import KEY, provenance_to_json
from bunraku.files.usd_library import pxr
from bunraku.geometry.mesh import Mesh
from bunraku.kinematics.forward import rest_poses
from bunraku.kinematics.library import skeleton_to_json
from bunraku.kinematics.motion import Motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rigid import rigid
from bunraku.math.rotations import quat_to_matrix
from bunraku.rig.character import Character

_MOST_INFLUENCES = 8


def save_usd_motion(motion: Motion, path: str | os.PathLike[str], character: Character | None = None) -> None:
    """Writes .usda (text), .usdc or .usd (binary)."""
    if character is not None and character.skeleton.joints != motion.skeleton.joints:
        raise SkeletonMismatch(
            f"motion has {len(motion.skeleton)} joints of '{motion.skeleton.name}', character '{character.name}' has {len(character.skeleton)} of "
            f"'{character.skeleton.name}'. Use retarget(motion, character.skeleton)."
        )
    if Path(path).suffix.lower() not in (".usd", ".usda", ".usdc"):
        raise FileProblem(f"'{path}' has no suffix of USD; write .usda (text), .usdc or .usd (binary).")
    stage = _stage(motion)
    root = pxr().UsdSkel.Root.Define(stage, "/Character")
    stage.SetDefaultPrim(root.GetPrim())
    tokens = _joint_paths(motion.skeleton)
    skeleton = _write_skeleton(stage, motion.skeleton if character is None else character.skeleton, tokens)
    _write_animation(stage, motion, tokens, skeleton)
    if character is not None and len(character.mesh.vertices):
        _write_mesh(stage, character, skeleton)
    write_atomically(path, lambda temporary: stage.GetRootLayer().Export(str(temporary)))


def _stage(motion: Motion) -> Any:
    usd = pxr()
    stage = usd.Usd.Stage.CreateInMemory()
    usd.UsdGeom.SetStageUpAxis(stage, "Y")
    usd.UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    stage.SetTimeCodesPerSecond(motion.fps)
    stage.SetFramesPerSecond(motion.fps)
    stage.SetStartTimeCode(0)
    stage.SetEndTimeCode(len(motion) - 1)
    meta: dict[str, Any] = {"skeleton": skeleton_to_json(motion.skeleton), "provenance": provenance_to_json(motion.provenance)}
    if motion.contacts is not None:
        meta["contacts"] = motion.contacts.int().tolist()
    stage.GetRootLayer().customLayerData = {KEY: json.dumps(meta)}
    return stage


def _joint_paths(skeleton: Skeleton) -> list[str]:
    """Each joint as USD names it: the path of identifiers from the root down, no two alike."""
    paths: list[str] = []
    for joint, parent in zip(skeleton.joints, skeleton.parents, strict=True):
        stem = (paths[parent] + "/" if parent >= 0 else "") + pxr().Tf.MakeValidIdentifier(joint)
        path, number = stem, 2
        while path in paths:
            path, number = f"{stem}_{number}", number + 1
        paths.append(path)
    return paths


def _matrices(T: torch.Tensor) -> Any:
    """USD writes points as rows: its matrices are the transposes of ours."""
    return pxr().Vt.Matrix4dArray.FromNumpy(np.ascontiguousarray(T.double().transpose(-1, -2).numpy()))


def _write_skeleton(stage: Any, body: Skeleton, tokens: list[str]) -> Any:
    skeleton = pxr().UsdSkel.Skeleton.Define(stage, "/Character/Skeleton")
    rest = rest_poses(body)
    skeleton.CreateJointsAttr(tokens)
    skeleton.CreateJointNamesAttr(list(body.joints))
    skeleton.CreateRestTransformsAttr(_matrices(rigid(quat_to_matrix(body.rest_quats), body.offsets)))
    skeleton.CreateBindTransformsAttr(_matrices(rigid(rest.R_world_joint, rest.p_world_joint)))
    return skeleton


def _write_animation(stage: Any, motion: Motion, tokens: list[str], skeleton: Any) -> None:
    usd = pxr()
    animation = usd.UsdSkel.Animation.Define(stage, "/Character/Skeleton/Animation")
    animation.CreateJointsAttr(tokens)
    animation.CreateScalesAttr(usd.Vt.Vec3hArray(len(tokens), usd.Gf.Vec3h(1, 1, 1)))
    places = motion.skeleton.offsets.expand(len(motion), -1, -1) if motion.translations is None else motion.translations
    places = torch.cat([motion.root_position[:, None], places[:, 1:]], dim=1).float().numpy()
    turns = motion.quats[..., [1, 2, 3, 0]].float().contiguous().numpy()  # as a quatf lies in memory
    translations, rotations = animation.CreateTranslationsAttr(), animation.CreateRotationsAttr()
    for frame in range(len(motion)):
        translations.Set(usd.Vt.Vec3fArray.FromNumpy(places[frame]), frame)
        rotations.Set(usd.Vt.QuatfArray.FromNumpy(turns[frame]), frame)
    usd.UsdSkel.BindingAPI.Apply(skeleton.GetPrim()).CreateAnimationSourceRel().SetTargets([animation.GetPath()])


def _write_mesh(stage: Any, character: Character, skeleton: Any) -> None:
    usd, mesh = pxr(), character.mesh
    prim = usd.UsdGeom.Mesh.Define(stage, "/Character/Mesh")
    prim.CreatePointsAttr(usd.Vt.Vec3fArray.FromNumpy(mesh.vertices.float().contiguous().numpy()))
    prim.CreateFaceVertexCountsAttr(usd.Vt.IntArray.FromNumpy(np.full(len(mesh.faces), 3, dtype=np.int32)))
    prim.CreateFaceVertexIndicesAttr(usd.Vt.IntArray.FromNumpy(mesh.faces.int().contiguous().numpy().ravel()))
    prim.CreateSubdivisionSchemeAttr("none")
    prim.CreateExtentAttr([tuple(mesh.vertices.amin(0).tolist()), tuple(mesh.vertices.amax(0).tolist())])
    if mesh.normals is not None:
        prim.CreateNormalsAttr(usd.Vt.Vec3fArray.FromNumpy(mesh.normals.float().contiguous().numpy()))
        prim.SetNormalsInterpolation(usd.UsdGeom.Tokens.vertex)
    if mesh.colours is not None:
        colours = prim.CreateDisplayColorPrimvar(usd.UsdGeom.Tokens.vertex)
        colours.Set(usd.Vt.Vec3fArray.FromNumpy(mesh.colours.float().contiguous().numpy()))
    if mesh.uvs is not None:
        flipped = torch.stack([mesh.uvs[:, 0], 1 - mesh.uvs[:, 1]], dim=-1)  # USD counts from the lower left
        st = usd.UsdGeom.PrimvarsAPI(prim).CreatePrimvar("st", usd.Sdf.ValueTypeNames.TexCoord2fArray, usd.UsdGeom.Tokens.vertex)
        st.Set(usd.Vt.Vec2fArray.FromNumpy(flipped.float().contiguous().numpy()))
    _write_materials(stage, prim, mesh)
    influences = min(max(int((character.rig.weights > 0).sum(1).max()), 1), _MOST_INFLUENCES, len(character.skeleton))
    weights, joints = character.rig.weights.float().topk(influences, dim=1)
    weights = weights / weights.sum(1, keepdim=True)
    binding = usd.UsdSkel.BindingAPI.Apply(prim.GetPrim())
    binding.CreateSkeletonRel().SetTargets([skeleton.GetPath()])
    binding.CreateGeomBindTransformAttr(usd.Gf.Matrix4d(1.0))
    binding.CreateJointIndicesPrimvar(False, influences).Set(usd.Vt.IntArray.FromNumpy(joints.int().contiguous().numpy().ravel()))
    binding.CreateJointWeightsPrimvar(False, influences).Set(usd.Vt.FloatArray.FromNumpy(weights.contiguous().numpy().ravel()))


def _write_materials(stage: Any, prim: Any, mesh: Mesh) -> None:
    """One preview material each, bound to the faces that wear it."""
    usd = pxr()
    worn = torch.zeros(len(mesh.faces), dtype=torch.long) if mesh.face_materials is None else mesh.face_materials
    for number, material in enumerate(mesh.materials):
        name = f"/Character/Materials/{pxr().Tf.MakeValidIdentifier(material.name)}_{number}"
        made = usd.UsdShade.Material.Define(stage, name)
        shader = usd.UsdShade.Shader.Define(stage, f"{name}/Surface")
        shader.CreateIdAttr("UsdPreviewSurface")
        shader.CreateInput("diffuseColor", usd.Sdf.ValueTypeNames.Color3f).Set(usd.Gf.Vec3f(*material.base_color[:3]))
        shader.CreateInput("opacity", usd.Sdf.ValueTypeNames.Float).Set(float(material.base_color[3]))
        shader.CreateInput("roughness", usd.Sdf.ValueTypeNames.Float).Set(0.7)
        made.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
        faces = usd.Vt.IntArray.FromNumpy(torch.nonzero(worn == number).flatten().int().numpy())
        binding = usd.UsdShade.MaterialBindingAPI.Apply(prim.GetPrim())
        subset = binding.CreateMaterialBindSubset(f"faces_{number}", faces, usd.UsdGeom.Tokens.face)
        usd.UsdShade.MaterialBindingAPI.Apply(subset.GetPrim()).Bind(made)
