"""Contact sheets, measured: joints where they project, left and right on their sides, the camera going along."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from bunraku.errors import BadValue, FileProblem, SkeletonMismatch
from bunraku.files.image import save_picture
from bunraku.geometry.colour import to_linear, to_srgb
from bunraku.geometry.mesh import Material, Mesh
from bunraku.kinematics.forward import forward_kinematics
from bunraku.kinematics.library import skeleton
from bunraku.kinematics.motion import Motion, rest_motion
from bunraku.kinematics.skeleton import Skeleton
from bunraku.math.rotations import quat_multiply, yaw_quat
from bunraku.picture.shade import _grid_spacing
from bunraku.picture.sheet import contact_sheet
from bunraku.picture.view import framing
from bunraku.rig.character import Character
from bunraku.rig.mannequin import mannequin
from bunraku.rig.rig import rig_for

BODY = skeleton("smplx22")
SIZE = (160, 200)


def pixels(sheet: Image.Image) -> np.ndarray:
    return np.asarray(sheet, dtype=np.float64)


def warm(image: np.ndarray) -> np.ndarray:
    return image[..., 0] - image[..., 2] > 70


def cool(image: np.ndarray) -> np.ndarray:
    return image[..., 2] - image[..., 0] > 40


def column(mask: np.ndarray) -> float:
    return float(np.nonzero(mask)[1].mean())


def turned(motion: Motion, yaw: float) -> Motion:
    quats = motion.quats.clone()
    quats[:, 0] = quat_multiply(yaw_quat(torch.tensor(yaw)), quats[:, 0])
    return replace(motion, quats=quats)


@pytest.mark.parametrize("yaw", [0.0, 2.0, 3.14])
@pytest.mark.parametrize("dressed", [True, False])
def test_from_the_front_left_is_on_the_right_of_the_picture(yaw: float, dressed: bool) -> None:
    motion = turned(rest_motion(BODY), yaw)
    image = pixels(contact_sheet(motion, mannequin(BODY) if dressed else None, 1, SIZE, "front"))
    assert warm(image).sum() > 100
    assert cool(image).sum() > 100
    assert column(warm(image)) > SIZE[0] / 2 + 10
    assert column(cool(image)) < SIZE[0] / 2 - 10


def test_from_the_side_the_left_hides_the_right() -> None:
    image = pixels(contact_sheet(rest_motion(BODY), mannequin(BODY), 1, SIZE, "side"))
    assert warm(image).sum() > 5 * cool(image).sum()


def test_the_skeleton_is_drawn_where_its_joints_project() -> None:
    """In the middle of every longer bone of the stick view there is ink; in the corner of the sky there is none."""
    motion = rest_motion(BODY)
    image = pixels(contact_sheet(motion, None, 1, (300, 340), "front"))
    p = forward_kinematics(motion).p_world_joint[0].double().numpy()
    stand = p[0] * (1, 0, 1)
    from bunraku.picture.surface import stick_vertices
    from bunraku.rig.proportions import measure

    view = framing("front", np.array([0.0, 0.0, 1.0]), stick_vertices(measure(BODY), (p - stand)[None])[0], (600, 680))
    for joint, parent in list(enumerate(BODY.parents))[1:]:
        if np.linalg.norm(p[joint] - p[parent]) < 0.15:
            continue
        x, y = view.project(0.75 * p[parent] + 0.25 * p[joint] - stand)[:2] / 2
        assert image[int(y), int(x)].min() < 150, BODY.joints[joint]
    assert image[5, 5].min() > 235


def test_the_camera_goes_along() -> None:
    motion = rest_motion(BODY, frames=2)
    moved = replace(motion, root_position=motion.root_position + torch.tensor([[0.0, 0, 0], [3.0, 0, 5.0]]))
    sheet = pixels(contact_sheet(moved, mannequin(BODY), 2, SIZE))
    first, second = sheet[:, : SIZE[0]], sheet[:, -SIZE[0] :]
    # the trail is warm too, so the cool side is compared
    assert column(cool(first)) == pytest.approx(column(cool(second)), abs=0.5)
    assert cool(first).sum() == pytest.approx(cool(second).sum(), rel=0.02)
    assert not np.array_equal(first, second)


def test_a_jump_leaves_the_ground_in_the_picture() -> None:
    motion = rest_motion(BODY, frames=2)
    up = replace(motion, root_position=motion.root_position + torch.tensor([[0.0, 0, 0], [0, 0.5, 0]]))
    sheet = pixels(contact_sheet(up, mannequin(BODY), 2, SIZE, "front"))
    low, high = sheet[:, : SIZE[0]], sheet[:, -SIZE[0] :]
    bottom = [np.nonzero(cool(image))[0].max() for image in (low, high)]
    assert bottom[0] - bottom[1] > 20


def test_the_character_throws_a_shadow_on_the_ground() -> None:
    motion = rest_motion(BODY)
    image = pixels(contact_sheet(motion, mannequin(BODY), 1, (300, 340)))
    ground = image[200:, :]
    grey = (np.ptp(ground, axis=-1) < 14) & (ground.mean(-1) > 90) & (ground.mean(-1) < 170)
    assert grey.sum() > 1000


def test_contacts_are_dots_at_the_feet() -> None:
    motion = rest_motion(BODY)
    touching = replace(motion, contacts=torch.tensor([[True, True, False, False]]))
    plain, dotted = (pixels(contact_sheet(m, mannequin(BODY), 1, (300, 340), "front")) for m in (motion, touching))
    changed = np.abs(plain - dotted).max(-1) > 20
    assert 60 < changed.sum() < 400
    rows, columns = np.nonzero(changed)
    assert rows.min() > 240
    assert columns.min() > 150


def test_tiles_lie_in_rows_of_at_most_four() -> None:
    motion = rest_motion(BODY, frames=9)
    for frames, shape in ((1, (1, 1)), (4, (1, 4)), (5, (2, 3)), (8, (2, 4)), (20, (3, 3))):
        sheet = contact_sheet(motion, None, frames, (40, 50))
        assert sheet.size == (shape[1] * 43 - 3, shape[0] * 53 - 3)


def test_textures_and_colours_reach_the_picture() -> None:
    import io

    texture = Image.new("RGB", (2, 1))
    texture.putpixel((0, 0), (0, 200, 0))
    texture.putpixel((1, 0), (200, 0, 200))
    data = io.BytesIO()
    texture.save(data, "PNG")
    one = Skeleton(name="one", joints=("root",), parents=(-1,), offsets=torch.zeros(1, 3))
    corners = torch.tensor([[-1.0, 0, 0], [1, 0, 0], [1, 2, 0], [-1, 2, 0]])
    mesh = Mesh(
        vertices=corners,
        faces=torch.tensor([[0, 1, 2], [0, 2, 3]]),
        uvs=torch.tensor([[0.0, 1], [1, 1], [1, 0], [0, 0]]),
        materials=(Material(image=data.getvalue()),),
    )
    board = Character(name="board", mesh=mesh, rig=rig_for(one, torch.ones(4, 1)))
    image = pixels(contact_sheet(rest_motion(one), board, 1, (100, 100), "front"))
    left, right = image[50, 30], image[50, 70]
    assert left[1] > left[0] + 60
    assert left[1] > left[2] + 60
    assert right[0] > right[1] + 60


def test_srgb_there_and_back() -> None:
    values = np.linspace(0, 1, 101)
    assert to_srgb(to_linear(values)) == pytest.approx(values, abs=1e-6)


def test_grid_lines_are_round_numbers() -> None:
    assert [_grid_spacing(reach) for reach in (1.75, 0.17, 35.0, 1.2)] == pytest.approx([0.5, 0.05, 10.0, 0.2])


def test_a_single_joint_can_be_looked_at() -> None:
    one = Skeleton(name="one", joints=("root",), parents=(-1,), offsets=torch.zeros(1, 3))
    assert pixels(contact_sheet(rest_motion(one), None, 1, SIZE)).std() > 1
    assert pixels(contact_sheet(rest_motion(one), mannequin(one), 1, SIZE)).std() > 1


def test_wrong_wishes_are_refused() -> None:
    motion = rest_motion(BODY)
    with pytest.raises(BadValue, match="no camera 'top'"):
        contact_sheet(motion, camera="top")
    with pytest.raises(BadValue, match="32 to 4096"):
        contact_sheet(motion, frames=0)
    with pytest.raises(SkeletonMismatch, match="retarget"):
        contact_sheet(motion, mannequin(skeleton("cmu23")))


def test_pictures_are_saved_and_nothing_else(tmp_path: Path) -> None:
    motion = rest_motion(BODY)
    save_picture(motion, tmp_path / "a b.png", frames=1, size=SIZE)
    assert Image.open(tmp_path / "a b.png").size == SIZE
    with pytest.raises(FileProblem, match=r"\.png"):
        save_picture(motion, tmp_path / "a.gif")
    assert [path.name for path in tmp_path.iterdir()] == ["a b.png"]


def test_a_texture_that_cannot_be_read_is_said_and_its_base_colour_shown() -> None:
    one = Skeleton(name="one", joints=("root",), parents=(-1,), offsets=torch.zeros(1, 3))
    corners = torch.tensor([[-0.5, 0.0, 0.0], [0.5, 0.0, 0.0], [0.5, 1.0, 0.0], [-0.5, 1.0, 0.0]])
    material = Material(name="skin", base_color=(0.0, 1.0, 0.0, 1.0), image=b"junk")
    mesh = Mesh(vertices=corners, faces=torch.tensor([[0, 1, 2], [0, 2, 3]]), uvs=torch.rand(4, 2), materials=(material,))
    board = Character(name="board", mesh=mesh, rig=rig_for(one, torch.ones(4, 1)))
    with pytest.warns(UserWarning, match="'skin' cannot be read"):
        image = pixels(contact_sheet(rest_motion(one), board, 1, (100, 100), "front"))
    red, green, blue = image[50, 50]
    assert green > 1.5 * max(red, blue)
