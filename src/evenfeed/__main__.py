"""The command `evenfeed`: `evenfeed run --workers 2 --replicas 2 script.py`."""

import argparse
import sys
from collections.abc import Sequence

from evenfeed import __version__
from evenfeed.cluster.launching import DEFAULT_GRACE_SECONDS, launch


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says, and return the exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if not given.command:  # Python would wait for a program to be typed in
        parser.error("name the program: evenfeed run --workers 2 script.py")
    return launch(given.command, given.workers, given.replicas, given.grace)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="evenfeed", description="Feeds every replica evenly.")
    parser.add_argument("--version", action="version", version=f"evenfeed {__version__}")
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser(
        "run",
        help="run a program in several workers on this machine",
        description="Starts workers on this machine, each with its TF_CONFIG. What they print comes with "
        "their number before it; when one fails, the others have some seconds to save and end, then they are ended.",
    )
    run.add_argument("--workers", type=_count, default=1, help="how many processes (1)")
    run.add_argument("--replicas", type=_count, help="how many logical CPU devices in each")
    run.add_argument(
        "--grace",
        type=float,
        default=DEFAULT_GRACE_SECONDS,
        metavar="SECONDS",
        help=f"how long the others have to end by themselves when one fails ({DEFAULT_GRACE_SECONDS:g})",
    )
    run.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="script.py ...",
        help="the program and its arguments, or -m and a module",
    )
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, but got {text}")
    return number


if __name__ == "__main__":
    sys.exit(main())
