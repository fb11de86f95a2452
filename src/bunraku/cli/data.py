"""Make and look at datasets: motion with captions on one body, ready to train on.

  bunraku data build cmu cmu_mocap/ -o data/cmu
  bunraku data build folder takes/ --captions takes.csv -o data/takes
  bunraku data info data/cmu
  bunraku data pack data/cmu -o cmu.pack
  bunraku data paraphrase data/cmu --command "python ask_my_model.py"

A build that was interrupted goes on where it was when the same command is run again.
"""

from __future__ import annotations

import argparse

from bunraku.cli.shared import progress

HELP = "make and look at datasets of motion with captions"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    tasks = parser.add_subparsers(title="tasks", metavar="TASK", required=True)

    build = tasks.add_parser("build", help="convert a source of motion", description="Convert a source of motion with captions into a dataset.")
    build.add_argument("kind", metavar="KIND", help="cmu, style100, folder, amass or bones-seed")
    build.add_argument("source", metavar="SOURCE", help="the folder it lies in")
    build.add_argument("-o", "--output", required=True, metavar="DIR", help="a new folder for the dataset")
    build.add_argument("--captions", metavar="FILE", help="folder: a CSV file,text[,start,end,split,category]; amass: HumanML3D's folder")
    build.add_argument("--workers", type=_count, metavar="N", help="processes to convert with (default: one per core)")
    build.set_defaults(task=_build)

    info = tasks.add_parser("info", help="say what a dataset holds", description="Say what a dataset holds.")
    info.add_argument("dataset", metavar="DIR", help="a dataset's folder or packed file")
    info.add_argument("--json", action="store_true", help="print it as JSON")
    info.set_defaults(task=_info)

    pack = tasks.add_parser("pack", help="write a dataset as one small file", description="Write a dataset as one small file, which opens like its folder.")
    pack.add_argument("dataset", metavar="DIR")
    pack.add_argument("-o", "--output", required=True, metavar="FILE")
    pack.set_defaults(task=_pack)

    asking = "ask a program for paraphrases of the captions"
    paraphrase = tasks.add_parser("paraphrase", help=asking, description=f"{asking.capitalize()}.")
    paraphrase.add_argument("dataset", metavar="DIR")
    paraphrase.add_argument("--command", required=True, help='reads lines {"text", "count"}, answers each with a line {"paraphrases": […]}')
    paraphrase.add_argument("--count", type=_count, default=4, metavar="N", help="how many of each (default 4)")
    paraphrase.set_defaults(task=_paraphrase)


def run(args: argparse.Namespace) -> int:
    return args.task(args)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"a number from 1 on is needed, not {text}")
    return number


def _build(args: argparse.Namespace) -> int:
    from bunraku import api

    with progress(f"converting {args.kind}") as on_progress:
        dataset = api.build_dataset(args.kind, args.source, args.output, captions=args.captions, workers=args.workers, on_progress=on_progress)
    about = api.describe_dataset(dataset)
    print(f"{args.output}: {about['clips']} clips, {about['hours']:.2f} hours, {about['captions']} captions on '{about['skeleton']}' at {about['fps']:g} fps")
    _say_notes(about)
    return 0


def _info(args: argparse.Namespace) -> int:
    import json

    from bunraku import api

    about = api.describe_dataset(api.open_dataset(args.dataset))
    if args.json:
        print(json.dumps(about, ensure_ascii=False, indent=1))
        return 0
    print(f"{about['dataset']}: {about['name']}, '{about['skeleton']}' at {about['fps']:g} fps")
    print(f"  {'all':6} {about['clips']:6} clips  {about['hours']:7.2f} h  {about['captions']:6} captions")
    for split, part in about["splits"].items():
        print(f"  {split:6} {part['clips']:6} clips  {part['hours']:7.2f} h  {part['captions']:6} captions")
    print(f"  captions: {_listed(about['sources of captions'])}; of the mirrored motion {about['mirrored captions']}")
    print(f"  hours by category: {_listed(about['hours by category'])}")
    _say_notes(about)
    print(f"  licence: {about['licence']}")
    for line in about["credits"]:
        print(f"  credit: {line}")
    return 0


def _pack(args: argparse.Namespace) -> int:
    import os

    from bunraku import api

    with progress("packing") as on_progress:
        api.pack_dataset(args.dataset, args.output, on_progress=on_progress)
    print(f"{args.output}: {os.path.getsize(args.output) / 2**20:.1f} MiB")
    return 0


def _paraphrase(args: argparse.Namespace) -> int:
    from bunraku import api

    with progress("paraphrasing") as on_progress:
        known = api.paraphrase_dataset(args.dataset, args.command, count=args.count, on_progress=on_progress)
    print(f"{args.dataset}: {sum(map(len, known.values()))} paraphrases of {len(known)} sentences")
    return 0


def _say_notes(about: dict) -> None:
    for title in ("clips with", "left out"):
        for what, count in about[title].items():
            print(f"  {title}: {what.rstrip('.')}: {count}")
    if about["empty splits"]:
        print(f"  note: nothing is in the split {' and '.join(about['empty splits'])}")
    if about["clips without captions"]:
        print(f"  note: {about['clips without captions']} clips have no caption")


def _listed(counts: dict) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "none"
