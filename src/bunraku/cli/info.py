"""Say what a file holds: skeleton, roles, frames, animations, where it came from.

  bunraku info walk.npz
  bunraku info knight.glb --json
"""

from __future__ import annotations

import argparse
import json

from bunraku.cli.shared import add_reading_arguments, reading

HELP = "say what a file holds"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a motion, character or robot")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_reading_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from bunraku import api

    facts = api.describe(args.file, **reading(args))
    if args.json:
        print(json.dumps(facts, indent=1, ensure_ascii=False))
        return 0
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {_plain(value)}")
    return 0


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_plain(item)}" for key, item in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(_plain, value)) or "none"
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
