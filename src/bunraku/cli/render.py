"""Make a film of a motion or a character, or a contact sheet of it.

  bunraku render walk.npz -o walk.mp4
  bunraku render walk.npz --character knight.glb -o walk.gif --camera side --size 480x360
  bunraku render knight.glb --clip Walking_A -o walk.png --frames 12
"""

from __future__ import annotations

import argparse

from bunraku.cli.shared import add_reading_arguments, let_threads_sleep, plain_warnings, progress, reading, say_notes, size_of

HELP = "make a film of a motion or a character"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="FILE", help="a motion, a character with or without animations, or a robot")
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help=".mp4, .gif, or .png for a contact sheet")
    parser.add_argument("--character", metavar="GLB", help="who performs the motion (default: the file's own character, a human, or a mannequin)")
    parser.add_argument("--camera", metavar="NAME", help="follow (default), front, side, three-quarter or orbit")
    parser.add_argument("--size", metavar="WxH", help="in pixels (default 720x480; of each picture of a contact sheet 300x340)")
    parser.add_argument("--fps", type=float, metavar="N", help="frames per second of the film (default: the motion's, at most 60, in a .gif 30)")
    parser.add_argument("--background", metavar="COLOUR", help="of the sky: white, #dde4ee …; the ground goes with it")
    parser.add_argument("--frames", type=int, default=8, metavar="N", help="pictures on a contact sheet (default 8)")
    parser.add_argument("--splats", action="store_true", help="draw Gaussian splats instead of the exact mesh")
    add_reading_arguments(parser)


def run(args: argparse.Namespace) -> int:
    let_threads_sleep()
    from bunraku import api

    size = None if args.size is None else size_of(args.size)
    with plain_warnings(), progress("filming") as on_progress:
        film = api.render(
            args.input,
            args.output,
            args.character,
            reading=reading(args),
            on_progress=on_progress,
            camera=args.camera,
            size=size,
            fps=args.fps,
            background=args.background,
            frames=args.frames,
            splats=args.splats,
        )
    performance = film.performance
    print(f"{args.output}: {len(film)} frames at {film.fps:g} fps, {film.camera.width} × {film.camera.height} px, performed by '{performance.character.name}'")
    say_notes(performance.motion.provenance.notes)
    return 0
