"""Turn words into motion: one prompt, or several one after the other, with constraints if wanted.

  bunraku generate "A person walks forward." -o walk.bvh --model FOLDER
  bunraku generate "A person walks forward." "waves."@3 -o walk.glb --samples 4 --seed 7
  bunraku generate "A person sits down." --constraints chair.json --continue walk.npz -o sit.npz
  bunraku generate --timeline scene.json -o scene.npz --samples 8 --best
"""

from __future__ import annotations

import argparse
import math
from typing import Any

from bunraku.cli.shared import let_threads_sleep, plain_warnings, progress, say_written
from bunraku.errors import BadValue

HELP = "turn words into motion"
_ASKED_FOR = ("sampling", "prompts", "constraints used", "clean-up", "cut text")  # notes that only repeat what the user typed or was warned of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("prompts", nargs="*", metavar="PROMPT", help='what happens, one after the other; "waves."@3 lasts 3 s')
    parser.add_argument("-o", "--output", required=True, metavar="OUT", help="the suffix chooses the format; several samples become OUT_00, OUT_01 …")
    parser.add_argument("--model", metavar="NAME|FOLDER", help="a model that comes with the package, a checkpoint folder, or a released Kimodo model")
    parser.add_argument("--seconds", type=float, metavar="S", help="of prompts that do not say how long they last (default 5)")
    parser.add_argument("--timeline", metavar="FILE", help="a JSON with prompts and all else, or a folder as Kimodo saves it; options outweigh it")
    parser.add_argument("--constraints", metavar="FILE", help="where the body must be, as JSON (Kimodo's format or ours)")
    parser.add_argument("--continue", dest="continue_from", metavar="FILE", help="a motion that the new one goes on from; the output holds both")
    parser.add_argument("--heading", type=float, metavar="DEG", help="which way the body faces at first: 0 is +Z, 90 is +X (default 0)")
    parser.add_argument("--loop", action="store_true", help="let the last frame lead back into the first")
    drawing = parser.add_argument_group("drawing")
    drawing.add_argument("--samples", type=int, metavar="N", help="how many to make (default 1)")
    drawing.add_argument("--best", action="store_true", help="write only the sample with the fewest faults")
    drawing.add_argument("--seed", type=int, metavar="N", help="of the first sample; the next ones count on (default 0)")
    drawing.add_argument("--steps", type=int, metavar="N", help="more are slower and, up to a point, better (default: 20 for dpm, 100 for ddim)")
    drawing.add_argument("--solver", choices=("dpm", "ddim"), default="dpm", help="dpm is fast, ddim as released")
    drawing.add_argument("--guidance-text", type=float, metavar="W", help="how strongly to follow the words (default 2)")
    drawing.add_argument("--guidance-constraint", type=float, metavar="W", help="how strongly to follow constraints (default 2)")
    drawing.add_argument("--no-cleanup", action="store_true", help="leave feet and constraints as the model drew them")
    parser.add_argument("--to", metavar="BODY", help="put the motion on soma30, soma77, g1, smplx22, cmu23, CHARACTER.glb, a robot …")
    parser.add_argument("--text-encoder", metavar="NAME", help="minilm, llm2vec, none, a file of embeddings, or an http(s) address")
    parser.add_argument("--device", default="auto", metavar="NAME", help="cpu, cuda, cuda:1 … (default: the GPU if there is one)")
    parser.add_argument("--precision", choices=("auto", "float32", "bfloat16", "float16"), default="auto", help="of the network (default: what is fast there)")


def run(args: argparse.Namespace) -> int:
    let_threads_sleep()
    from bunraku import api

    if args.prompts and args.timeline:
        raise BadValue("prompts come from the command line or from --timeline, not from both; leave one of them out.")
    api.output_paths(args.output, 1)  # before any work is done
    asking = {name: value for name, value in _asking(args).items() if value is not None}
    if not args.timeline:
        api.timeline_of(args.prompts, **asking)  # what is wrong with it is said before a model is read
    body = api.load_body(args.to) if args.to else None
    existing = api.load_motion(args.continue_from) if args.continue_from else None
    generator = api.load_model(args.model, text_encoder=args.text_encoder, device=args.device, precision=args.precision)
    api.require_format(args.output, body or generator)
    if args.constraints:
        asking["constraints"] = api.load_constraints(args.constraints, generator.skeleton)
    asked = api.load_timeline(args.timeline, generator.skeleton) if args.timeline else args.prompts
    timeline = api.timeline_of(asked, **asking)
    samples = timeline.samples or 1
    paths = api.output_paths(args.output, 1 if args.best else samples)
    sampling = api.sampling_of(timeline, args.solver, steps=args.steps, text=args.guidance_text, constraint=args.guidance_constraint)
    with plain_warnings(), progress("generating") as on_progress:
        takes = api.generate(
            timeline, model=generator, continue_from=existing, sampling=sampling, cleanup=not args.no_cleanup, on_progress=on_progress
        )
    if args.best:
        takes = [api.best(takes)]
        print(f"kept seed {takes[0].provenance.seed} of {samples}: faults {takes[0].faults:.2f}")
    for take, path in zip(takes, paths, strict=True):
        motion, lost = api.save_take(take, path, body)
        say_written(motion, str(path), lost, known=_ASKED_FOR)
    return 0


def _asking(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "seconds": args.seconds,
        "heading": None if args.heading is None else math.radians(args.heading),
        "seed": args.seed,
        "samples": args.samples,
        "loop": args.loop or None,
    }
