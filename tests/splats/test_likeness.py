"""Real characters as splats, at rest and in their own clips, without any fitting: what can be held in a few seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

import bunraku
from bunraku.geometry.appearance import appearance_of
from bunraku.rig.skinning import skin_vertices
from bunraku.splats import carry_rig, deform, from_mesh
from bunraku.splats.views import draw_mesh, random_views
from tests.splats.likeness import psnr


@pytest.mark.parametrize(
    ("name", "clip"),
    [
        ("khronos/Fox_khronos", "Walk"),  # one large texture
        ("animals/Spider", "SpiderArmature|Spider_Walk"),  # thin legs of long faces
        ("humanoids/KayKit_Knight", "Walking_A"),  # parts that are not skinned, shells within shells
    ],
)
def test_closed_form(shared: Path, name: str, clip: str) -> None:
    path = shared / f"data/rigged_assets/{name}.glb"
    character = bunraku.load_character(path)
    appearance, splats = appearance_of(character.mesh), from_mesh(character, views=0)
    cameras = random_views(character.mesh.vertices, 4, 0)
    assert psnr(splats, cameras, [draw_mesh(character.mesh.vertices, appearance, camera) for camera in cameras], 1.0) > 27.5
    motion = bunraku.load_motion(path, clip=clip)[5:6]
    moved, vertices = deform(splats, carry_rig(splats, character), motion)[0], skin_vertices(character, motion)[0]
    cameras = random_views(vertices, 4, 1)
    assert psnr(moved, cameras, [draw_mesh(vertices, appearance, camera) for camera in cameras], 1.0) > 27
