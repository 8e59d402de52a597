"""The `evenfeed` command: `evenfeed run --workers 2 --replicas 2 script.py`."""

import argparse
import sys
from collections.abc import Sequence

from evenfeed import __version__
from evenfeed.cluster.launching import DEFAULT_GRACE_SECONDS, launch


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if not given.command:  # Python would wait for a program on stdin.
        parser.error("missing program; for example: evenfeed run --workers 2 script.py")
    return launch(given.command, given.workers, given.replicas, given.grace)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="evenfeed", description="Feeds every replica evenly.")
    parser.add_argument("--version", action="version", version=f"evenfeed {__version__}")
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser(
        "run",
        help="run a program in several workers on this machine",
        description="Starts workers on this machine, each with its own TF_CONFIG. Prefixes their output with the "
        "worker's number. If a worker fails, the others get some seconds to save and exit, and are then terminated.",
    )
    run.add_argument(
        "--workers", type=_count, default=1, help="number of worker processes (default: 1)"
    )
    run.add_argument("--replicas", type=_count, help="number of logical CPU devices per worker")
    run.add_argument(
        "--grace",
        type=float,
        default=DEFAULT_GRACE_SECONDS,
        metavar="SECONDS",
        help=f"time for the other workers to exit if one fails (default: {DEFAULT_GRACE_SECONDS:g})",
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
