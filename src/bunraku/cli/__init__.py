"""The command `bunraku`: one file per subcommand, each of which parses, calls `bunraku.api` and prints.

Nothing heavy is imported before a subcommand runs, so that `bunraku --help` answers at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from bunraku import __version__
from bunraku.cli import check, convert, info, retarget
from bunraku.errors import BunrakuError

COMMANDS = (info, convert, retarget, check)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command. Returns 0, 1 if a check failed, 2 for what the user can repair, 130 when interrupted."""
    args = _parser().parse_args(argv)
    try:
        status = args.run(args)
        sys.stdout.flush()
        return status
    except BunrakuError as error:
        if args.debug:
            raise
        print(f"bunraku: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bunraku: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bunraku", description="Words into motion for 3D characters.")
    parser.add_argument("--version", action="version", version=f"bunraku {__version__}")
    parser.add_argument("--debug", action="store_true", help="show where in the code an error arose")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        name = command.__name__.rsplit(".", 1)[-1]
        sub = commands.add_parser(name, help=command.HELP, description=command.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    return parser
