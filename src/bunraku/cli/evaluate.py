"""Measure how good a model is: how well it follows words and constraints, against captured motion that it has not seen.

  bunraku evaluate MODEL --data DIR -o REPORT
  bunraku evaluate MODEL --data DIR --suite text --text-cases all -o REPORT
  bunraku evaluate MODEL --data DIR --suite fullbody,root/path_2dpos --cases 32 -o REPORT
  bunraku evaluate MODEL --benchmark testsuite -o REPORT        # NVIDIA's released test cases

REPORT is a folder with report.md, report.json, plots, the test cases and the takes. Killed, it goes on where it was.
"""

from __future__ import annotations

import argparse

from bunraku.cli.shared import plain_warnings, progress
from bunraku.errors import BadValue

HELP = "measure how good a model is"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a model that comes with the package, a checkpoint folder, or a released Kimodo model")
    parser.add_argument("-o", "--output", required=True, metavar="REPORT", help="the folder for the report")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", metavar="DIR", help="a dataset, as `bunraku data build` makes it")
    source.add_argument("--benchmark", metavar="DIR", help="a folder of NVIDIA's Kimodo-Motion-Gen-Benchmark, or part of it")
    parser.add_argument("--suite", metavar="NAMES", help="some of text, constraints, behaviours, or families such as root,fullbody/random (default: all)")
    parser.add_argument("--split", choices=("train", "val", "test"), default="test", help="of the dataset (default test)")
    parser.add_argument("--tmr", metavar="FOLDER", help="the retriever for R@k and FID (default: the one that comes with the package)")
    amount = parser.add_argument_group("how much")
    amount.add_argument("--text-cases", metavar="N|all", help="of text alone (default 128)")
    amount.add_argument("--cases", type=int, metavar="N", help="of each family of constraints, with text and without (default 4)")
    amount.add_argument("--seeds", type=int, metavar="N", help="samples of each behaviour (default 16)")
    amount.add_argument("--seed", type=int, metavar="N", help="from which all chance follows (default 0)")
    amount.add_argument("--sheets", type=int, metavar="N", help="contact sheets in the report (default 16)")
    parser.add_argument("--steps", type=int, metavar="N", help="of the sampler (default 20)")
    parser.add_argument("--text-encoder", metavar="NAME", help="minilm, llm2vec, none, a file of embeddings, or an http(s) address")
    parser.add_argument("--device", default="auto", metavar="NAME", help="cpu, cuda, cuda:1 … (default: the GPU if there is one)")
    parser.add_argument("--precision", choices=("auto", "float32", "bfloat16", "float16"), default="auto", help="of the network (default: what is fast there)")


def run(args: argparse.Namespace) -> int:
    from bunraku import api

    settings = {name: getattr(args, name) for name in ("cases", "seeds", "seed", "sheets") if getattr(args, name) is not None}
    settings["split"] = args.split
    if args.text_cases is not None:
        settings["text_cases"] = _amount(args.text_cases)
    if args.suite is not None:
        settings["suites"] = tuple(name for part in args.suite.split(",") if (name := part.strip()))
    opening = {"text_encoder": args.text_encoder, "device": args.device, "precision": args.precision}
    with plain_warnings(), progress("evaluating") as on_progress:
        evaluation = api.evaluate_model(
            args.model,
            args.output,
            data=args.data,
            benchmark=args.benchmark,
            tmr=args.tmr,
            steps=args.steps,
            opening=opening,
            on_progress=on_progress,
            **settings,
        )
    api.print_evaluation(evaluation)
    print(f"{args.output}: report.md, report.json")
    return 0


def _amount(text: str) -> int | None:
    if text == "all":
        return None
    if not text.isdigit():
        raise BadValue(f"--text-cases is a number, or all; got '{text}'.")
    return int(text)
