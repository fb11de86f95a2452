"""How much splats look like the mesh they were made from: PSNR at rest and in motion, closed form and fitted, as a table; pictures beside.

    python tools/splat_likeness.py ../shared/data/rigged_assets/animals/Fox.glb … [--pictures FOLDER] [--views 200]

Both are shown before white at 256 × 256: at rest from 20 views that the fit has not seen, in motion (the clip named walk, run or swim, or the first)
five frames from four views each. PSNR of whole pictures / of the pixels that mesh or splats cover.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import bunraku
from bunraku.geometry.appearance import Appearance, appearance_of
from bunraku.kinematics.motion import Motion
from bunraku.rig.character import Character
from bunraku.rig.skinning import skin_vertices
from bunraku.splats import Splats, carry_rig, deform, from_mesh, render
from bunraku.splats.views import draw_mesh, random_views

UNSEEN = 999  # the seed of the views that judge; fits use 0
WHITE = torch.ones(3)
FRAMES, VIEWS_PER_FRAME = 5, 4

Score = tuple[float, float]  # PSNR of the picture, and of what is covered [dB]
Compared = tuple[list[Score], list[torch.Tensor]]  # and the pictures: mesh, splats


def compare(splats: Splats, vertices: torch.Tensor, appearance: Appearance, views: int, seed: int) -> Compared:
    scores, pictures = [], []
    for camera in random_views(vertices, views, seed):
        target, seen = draw_mesh(vertices, appearance, camera), render(splats, camera)
        error = (target.over(WHITE) - seen.over(WHITE)).square()
        covered = error[(target.alpha > 0) | (seen.alpha > 0.02)]
        scores.append((-10 * math.log10(float(error.mean())), -10 * math.log10(float(covered.mean()))))
        pictures.append(torch.cat([target.over(WHITE), seen.over(WHITE)], dim=1))
    return scores, pictures


def in_motion(splats: Splats, character: Character, motion: Motion, appearance: Appearance) -> Compared:
    frames = torch.linspace(0, len(motion) - 1, FRAMES).round().long().tolist()
    vertices, moved = skin_vertices(character, motion)[frames], deform(splats, carry_rig(splats, character), motion)
    found = [compare(moved[frame], vertices[i], appearance, VIEWS_PER_FRAME, UNSEEN + 1 + i) for i, frame in enumerate(frames)]
    return [score for scores, _ in found for score in scores], [picture for _, pictures in found for picture in pictures]


def clip_of(character: Character) -> str:
    """A gait, if the file has one."""
    for word in ("walk", "run", "swim"):
        for clip in character.clips:
            if any(part.startswith(word) for part in clip.lower().replace("_", "|").split("|")):
                return clip
    return character.clips[0]


def save_picture(rest: list[Compared], gait: list[Compared], path: Path) -> None:
    """From left to right the mesh, fitted splats, the closed form; three views at rest above three in motion."""
    shown = [pair for (_, closed), (_, fitted) in (rest, gait) for pair in zip(closed[7:10], fitted[7:10], strict=True)]
    rows = [torch.cat([fitted, closed[:, 256:]], dim=1) for closed, fitted in shown]
    Image.fromarray((torch.cat(rows) * 255).clamp(0, 255).byte().numpy()).save(path)


def told(scores: list[Score]) -> str:
    return " / ".join(f"{value:.1f}" for value in np.mean(scores, axis=0))


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("characters", nargs="+", type=Path)
    asked.add_argument("--pictures", type=Path)
    asked.add_argument("--views", type=int, default=200)
    arguments = asked.parse_args()
    torch.set_num_threads(1)
    print("| asset | rest, closed form | rest, fitted | clip | clip, closed form | clip, fitted | worst view | s, closed form + fit |\n" + "|---" * 8 + "|")
    for path in arguments.characters:
        character = bunraku.load_character(path)
        motion = bunraku.load_motion(path, clip=clip_of(character))
        appearance = appearance_of(character.mesh)
        begun = time.process_time()
        closed = from_mesh(character, views=0)
        seeded = time.process_time()
        fitted = from_mesh(character, views=arguments.views)
        seconds = f"{seeded - begun:.1f} + {time.process_time() - seeded:.0f}"
        rest = [compare(splats, character.mesh.vertices, appearance, 20, UNSEEN) for splats in (closed, fitted)]
        gait = [in_motion(splats, character, motion, appearance) for splats in (closed, fitted)]
        worst = min(score for score, _ in gait[1][0])
        columns = [path.stem, told(rest[0][0]), told(rest[1][0]), clip_of(character), told(gait[0][0]), told(gait[1][0]), f"{worst:.1f}", seconds]
        print("| " + " | ".join(columns) + " |", flush=True)
        if arguments.pictures is not None:
            arguments.pictures.mkdir(parents=True, exist_ok=True)
            save_picture(rest, gait, arguments.pictures / f"{path.stem}.png")


if __name__ == "__main__":
    main()
