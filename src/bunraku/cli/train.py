"""Train a generator, or the model that evaluates it, on a dataset of `bunraku data build`.

  bunraku train generator small --data DIR -o RUN
  bunraku train generator small --data DIR -o RUN --resume --minutes 60
  bunraku train generator small --data DIR -o RUN --set batch=64 --set learning_rate=1e-4
  torchrun --nproc-per-node 8 -m bunraku.cli train generator large --data DIR -o RUN

RUN/model is the model as of the newest checkpoint: bunraku generate "…" --model RUN/model
"""

from __future__ import annotations

import argparse
import os

from bunraku.cli.shared import let_threads_sleep, long_run, plain_warnings

HELP = "train a model on captured motion"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", metavar="KIND", help="generator or tmr")
    parser.add_argument("size", metavar="SIZE", help="tiny, small, base or large")
    parser.add_argument("--data", required=True, metavar="DIR", help="a dataset of `bunraku data build`, or a packed one")
    parser.add_argument("-o", "--output", required=True, metavar="RUN", help="the run's folder: log, checkpoints, model")
    parser.add_argument("--resume", action="store_true", help="go on where the newest checkpoint is")
    parser.add_argument("--set", action="append", default=[], dest="changes", metavar="FIELD=VALUE", help="change one setting of the recipe")
    parser.add_argument("--ablation", metavar="NAME", help="one-stage, second-stage-global, no-smoothed-root, no-extra-tokens or no-curriculum")
    parser.add_argument("--minutes", type=float, metavar="M", help="stop after so long, to be resumed later")
    parser.add_argument("--begin-with", metavar="MODEL", help="take over the weights of this model")
    parser.add_argument("--device", default="auto", metavar="NAME", help="cpu, cuda, cuda:1 … (default: the GPU if there is one)")
    parser.add_argument("--sharing", choices=("ddp", "fsdp"), default="ddp", help="with torchrun: whole networks, or layers in parts")


def run(args: argparse.Namespace) -> int:
    let_threads_sleep()
    from bunraku import api

    with plain_warnings(), long_run("training") as tell:
        finished = api.train_model(
            api.recipe(args.kind, args.size, ablation=args.ablation, changes=args.changes),
            args.data,
            args.output,
            resume=args.resume,
            minutes=args.minutes,
            begin_with=args.begin_with,
            device=args.device,
            sharing=args.sharing,
            on_progress=lambda now: tell(now.step, now.steps, f"loss {now.loss:.4f}, {now.steps_per_second:.2f} steps/s"),
        )
    if os.environ.get("RANK", "0") == "0":
        print(f"{args.output}/model: {'trained' if finished else 'not at its end: go on with --resume'}")
    return 0
