"""Animate a character of any shape: motion distilled from a video model, or matched to a video, written into its own rig.

  bunraku animate fox.glb "a fox is running" --prior cogvideox-5b -o fox-run.glb --run runs/fox
  bunraku animate fox.glb --first-frame fox.png                  # the picture to begin a video with
  bunraku animate fox.glb --from-video fox.mp4 -o fox-run.glb    # the motion in a video made from it
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bunraku.cli.shared import let_threads_sleep, long_run, plain_warnings, size_of
from bunraku.errors import BadValue

if TYPE_CHECKING:
    from bunraku.distill.optimise import Progress

HELP = "animate a character of any shape, from a video model or a video"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("character", metavar="CHARACTER", help="a rigged .glb or .gltf; for a mesh without a rig, see `bunraku rig`")
    parser.add_argument("text", nargs="?", default="", metavar="TEXT", help='what it does: "a fox is running"')
    parser.add_argument("-o", "--output", metavar="OUT", help=".glb or .gltf: its own document with one more animation; or a motion format")
    source = parser.add_argument_group("where motion comes from")
    source.add_argument("--prior", metavar="NAME", help="cogvideox-2b, cogvideox-5b, cogvideox1.5-5b, wan-1.3b, wan-14b, wan2.2-5b, ltx, or a folder")
    source.add_argument("--from-video", metavar="FILE", help="match a video of the character that begins with its --first-frame")
    source.add_argument("--first-frame", metavar="PNG", help="write the character at rest on its stage, and do nothing else")
    how = parser.add_argument_group("how")
    how.add_argument("--recipe", metavar="NAME", help="fast (default) or paper")
    how.add_argument("--iterations", type=int, metavar="N")
    how.add_argument("--basis", choices=("frames", "spline"), help="every frame on its own, or smooth curves")
    how.add_argument("--speed", type=float, metavar="M_PER_S", help="how fast it goes ahead, to begin with")
    how.add_argument("--seed", type=int, metavar="N")
    how.add_argument("--seconds", type=float, metavar="S", help="how long the clip is (default: 2, or what the prior was trained on)")
    how.add_argument("--fps", type=float, metavar="N", help="frames per second, when a video is matched (default 8)")
    how.add_argument("--size", metavar="WxH", help="of the clips that are looked at, in pixels (default 256x256, or the prior's own)")
    how.add_argument("--clip-name", metavar="NAME", help="of the new animation (default: the text)")
    how.add_argument("--device", default="auto", metavar="NAME", help="cpu, cuda, cuda:1 … (default: the GPU if there is one)")
    parser.add_argument("--run", metavar="DIR", dest="folder", help="keep checkpoints, log and previews there")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --run DIR")


def run(args: argparse.Namespace) -> int:
    let_threads_sleep()
    from bunraku import api

    size = None if args.size is None else size_of(args.size)
    if args.first_frame:
        api.stage_picture(args.character, args.first_frame, size=size)
        print(f"{args.first_frame}: the character at rest on its stage")
        return 0
    if not args.output:
        raise BadValue("where should the motion go? Name a file with -o OUT.glb.")
    if args.resume and not args.folder:
        raise BadValue("--resume needs the folder of the run; name it with --run DIR.")
    api.output_paths(args.output, 1)  # before any work is done
    with plain_warnings(), long_run("animating") as tell:
        take = api.animate(
            args.character,
            args.text,
            prior=args.prior,
            video=args.from_video,
            recipe=_changed(api.animate_settings(args.recipe, matching=args.from_video is not None), args),
            seconds=args.seconds,
            fps=args.fps,
            size=size,
            run=args.folder,
            resume=args.resume,
            device=args.device,
            on_progress=lambda now: _now_and_then(tell, now),
        )
    api.save_animation(take, args.character, args.output, clip=args.clip_name or args.text or None)
    print(f"{args.output}: {len(take.motion)} frames at {take.motion.fps:g} fps, from {take.provenance.teacher}")
    return 0


def _changed(settings: Any, args: argparse.Namespace) -> Any:
    """The recipe with what was said on the command line, and a preview every twentieth of the way."""
    said = {name: getattr(args, name) for name in ("iterations", "basis", "speed", "seed") if getattr(args, name) is not None}
    settings = replace(settings, **said)
    return replace(settings, preview_every=max(settings.iterations // 20, 1)) if args.folder else settings


def _now_and_then(tell: Callable[[int, int, str], None], now: Progress) -> None:
    """A terminal hears of every iteration, a log of every twentieth part."""
    if sys.stderr.isatty() or now.iteration % max(now.iterations // 20, 1) == 0:
        tell(now.iteration, now.iterations, _words(now))


def _words(now: Progress) -> str:
    """The terms of the loss that matter, and how long it will take."""
    if "searched" in now.terms:
        return f"looking for limbs, {now.terms['searched']:.0%}"
    shown = ", ".join(f"{name} {now.terms[name]:.3g}" for name in ("prior", "smooth", "ground") if name in now.terms)
    return f"{shown}; {now.seconds_left:.0f} s left"
