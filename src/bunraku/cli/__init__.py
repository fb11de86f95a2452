"""The command `bunraku`: one file per subcommand, each of which parses, calls `bunraku.api` and prints.

Nothing heavy is imported before a subcommand runs, so that `bunraku --help` answers at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from bunraku import __version__
from bunraku.cli import animate, check, convert, data, evaluate, generate, info, render, retarget, rig, train
from bunraku.errors import BunrakuError

COMMANDS = (generate, animate, info, convert, retarget, rig, render, check, data, train, evaluate)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command. Returns 0, 1 if a check failed, 2 for what the user can repair, 130 when interrupted."""
    args = parser().parse_args(argv)
    try:
        status = args.run(args)
        sys.stdout.flush()
        return status
    except BunrakuError as error:
        if args.debug:
            raise
        print(f"bunraku: {' '.join(str(error).splitlines())}", file=sys.stderr)  # a path may hold a line break
        return 2
    except MemoryError:
        if args.debug:
            raise
        print("bunraku: the memory of this machine is not enough for that file; cut it into shorter clips.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bunraku: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


class _Parser(argparse.ArgumentParser):
    """Says what is wrong with the arguments in one sentence, as everything else does."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"bunraku: {' '.join(message.split())}; see {self.prog} --help.\n")


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    whole = _Parser(prog="bunraku", description="Words into motion for 3D characters.")
    whole.add_argument("--version", action="version", version=f"bunraku {__version__}")
    whole.add_argument("--debug", action="store_true", help="show where in the code an error arose")
    commands = whole.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        name = command.__name__.rsplit(".", 1)[-1]
        sub = commands.add_parser(name, help=command.HELP, description=command.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        command.add_arguments(sub)
        sub.set_defaults(run=command.run)
    return whole
