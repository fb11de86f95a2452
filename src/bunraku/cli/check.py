"""Measure how plausible a motion is: skating feet, penetration, jerk, limits, balance … (docs/metrics.md defines each number).

  bunraku check walk.bvh
  bunraku check walk.npz --json
  bunraku check walk.npz --fail-on "skate>5,penetration_max>20"     # exit code 1 if a limit is broken
"""

from __future__ import annotations

import argparse
import json
import math
import sys

from bunraku.cli.shared import add_reading_arguments, reading, say_notes
from bunraku.errors import BadValue

HELP = "measure how plausible a motion is"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a motion or a character with animations")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--fail-on", metavar="LIMITS", help='exit with 1 if a limit is broken: "skate>5,penetration_max>20", or "default"')
    add_reading_arguments(parser)
    parser.add_argument("--ground", type=float, default=0.0, metavar="Y", help="height of the floor in metres (default 0)")


def run(args: argparse.Namespace) -> int:
    from bunraku import api

    if not math.isfinite(args.ground):
        raise BadValue(f"the height of the floor is a number of metres; got {args.ground}.")
    limits = api.parse_limits(args.fail_on) if args.fail_on and args.fail_on != "default" else None
    motion = api.load_motion(args.file, **reading(args))
    report = api.check(motion, ground=args.ground)
    failures, notes = report.failures(limits), motion.provenance.notes
    if args.json:
        print(json.dumps({"file": args.file, **report.to_dict(), "failures": failures, "notes": dict(notes)}, indent=1, ensure_ascii=False))
    else:
        _print_table(args.file, report, failures)
        sys.stdout.flush()
        say_notes(notes)
    return 1 if args.fail_on and failures else 0


def _print_table(file: str, report: object, failures: list[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    from bunraku.api import report_rows

    table = Table(title=file, title_justify="left", box=None, pad_edge=False)
    for name, justify in (("", "left"), ("metric", "left"), ("value", "right"), ("unit", "left"), ("meaning", "left")):
        table.add_column(name, justify=justify, no_wrap=name != "meaning")  # type: ignore[arg-type]
    last = ""
    for group, metric, value, unit, meaning in report_rows(report):  # type: ignore[arg-type]
        table.add_row(group if group != last else "", metric, value, unit, meaning, style=None if value != "–" else "dim")
        last = group
    console = Console()
    console.print(table)
    for failure in failures:
        console.print(f"[yellow]![/] {failure}", highlight=False)
