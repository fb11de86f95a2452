"""Put the built-in walk on a rigged character and on the Unitree G1, write files, look at it, and ask how plausible it is.

Usage: python examples/01_retarget_a_walk.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

import bunraku

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
folder.mkdir(parents=True, exist_ok=True)

walk = bunraku.walk(bunraku.skeleton("soma30"), seconds=4)
bunraku.save_motion(walk, folder / "walk.bvh", tpose=True)

character = bunraku.mannequin(bunraku.skeleton("smplx22"))
performed = bunraku.retarget(walk, character)
bunraku.save_character(character, folder / "walk.glb", performed)
bunraku.render(walk, folder / "walk.png", frames=4)

robot = bunraku.retarget(walk, "g1")
bunraku.save_motion(robot, folder / "walk-g1.csv")

print(bunraku.check(performed))
print(f"\nwrote {', '.join(str(folder / name) for name in ('walk.bvh', 'walk.glb', 'walk.png', 'walk-g1.csv'))}")
