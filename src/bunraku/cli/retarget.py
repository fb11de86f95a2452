"""Put one character's motion on another: other proportions, other bones, or a robot.

  bunraku retarget dance.bvh --to knight.glb -o knight-dance.glb
  bunraku retarget walk.npz --to g1 -o walk.csv
  bunraku retarget walk.bvh --to robot.urdf --to-roles robot-roles.json -o walk.csv
"""

from __future__ import annotations

import argparse

from bunraku.cli.shared import add_reading_arguments, progress, reading, say_written

HELP = "put one character's motion on another, or on a robot"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="IN", help="a motion or a character with animations")
    parser.add_argument("--to", required=True, metavar="BODY", help="soma30, soma77, g1, smplx22, cmu23, or a file: CHARACTER.glb, a motion, an MJCF or URDF")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the suffix chooses the format")
    add_reading_arguments(parser)
    parser.add_argument("--to-roles", metavar="FILE", help="a small JSON that names the joints of BODY")


def run(args: argparse.Namespace) -> int:
    from bunraku import api

    with progress("retargeting") as on_progress:
        motion, lost = api.retarget_file(
            args.input, args.output, to=args.to, to_roles=args.to_roles, on_progress=on_progress, **reading(args)
        )
    return say_written(motion, args.output, lost)
