"""Write a motion in another format, at another frame rate or on another skeleton.

  bunraku convert walk.bvh walk.npz
  bunraku convert knight.glb walk.bvh --clip Walking_A --fps 60
  bunraku convert walk.npz walk.csv --skeleton g1
"""

from __future__ import annotations

import argparse

from bunraku.cli.shared import add_reading_arguments, progress, reading, say_written

HELP = "write a motion in another format, frame rate or skeleton"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="IN", help="a motion or a character with animations")
    parser.add_argument("output", metavar="OUT", help="the suffix chooses the format")
    parser.add_argument("--fps", type=float, metavar="N", help="frames per second of the output")
    parser.add_argument("--skeleton", metavar="NAME", help="a library skeleton: soma30, soma77, g1, smplx22, cmu23")
    add_reading_arguments(parser)
    parser.add_argument("--tpose", action="store_true", help="BVH only: let zero angles be the rest pose")


def run(args: argparse.Namespace) -> int:
    from bunraku import api

    with progress("converting") as on_progress:
        motion, lost = api.convert(
            args.input, args.output, to=args.skeleton, to_fps=args.fps, tpose=args.tpose, on_progress=on_progress, **reading(args)
        )
    return say_written(motion, args.output, lost)
