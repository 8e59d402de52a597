"""The `evenfeed` command: `evenfeed demo`, and `evenfeed run --workers 2 --replicas 2 script.py`."""

import argparse
import os
import shutil
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final

from evenfeed import __version__
from evenfeed.cluster.launching import DEFAULT_GRACE_SECONDS, launch

_DEMO: Final = "evenfeed.demo.train_digits"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit code."""
    parser = _parser()
    given, rest = parser.parse_known_args(arguments)
    if given.name == "demo":
        return _demo(rest)
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    if not given.command:  # Python would wait for a program on stdin.
        parser.error("missing program; for example: evenfeed run --workers 2 script.py")
    if given.min_workers is not None and not (
        given.restarts and given.min_workers <= given.workers
    ):
        parser.error("--min-workers needs --restarts, and must be at most --workers")
    return launch(
        given.command,
        given.workers,
        given.replicas,
        given.grace,
        given.restarts,
        given.min_workers,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="evenfeed", description="Feeds every replica evenly.")
    parser.add_argument("--version", action="version", version=f"evenfeed {__version__}")
    commands = parser.add_subparsers(required=True, dest="name", metavar="demo | run")
    commands.add_parser(
        "demo",
        help="train a classifier of handwritten digits on four replicas",
        add_help=False,  # the program has its own arguments
    )
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
        "--restarts",
        type=_count,
        default=0,
        metavar="N",
        help="start all workers again up to N times after one was lost (default: 0)",
    )
    run.add_argument(
        "--min-workers",
        type=_count,
        metavar="M",
        help="restart without the workers that were lost, but with at least M (default: with all)",
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


def _demo(arguments: Sequence[str]) -> int:
    try:
        program: Any = import_module(_DEMO)
    except ModuleNotFoundError as error:
        print(
            f"evenfeed demo needs {error.name}, which is not installed: pip install 'evenfeed[demo]' "
            "(in a clone: pip install '.[demo]').",
            file=sys.stderr,
        )
        return 1
    if program.main(["evenfeed demo", *arguments]):
        print("\nTry next:")
        for what, command in _next_commands(program.__file__):
            print(f"  # {what}\n  {command}")
    return 0


def _next_commands(program: str) -> list[tuple[str, str]]:
    """Return what to try after the demo: a comment and a command each."""
    evenfeed = _this_command()
    example = os.path.join(os.path.dirname(program), "..", "..", "..", "examples", "workers.py")
    workers = os.path.relpath(example)
    return [
        (
            f"train longer, stop with Ctrl-C, and continue with: {evenfeed} demo --resume",
            f"{evenfeed} demo --epochs 200",
        ),
        ("copy the program, and change it", f"cp {_short(program)} train.py"),
        (
            "train on two workers of two replicas each",
            f"{evenfeed} run --workers 2 --replicas 2 {workers}",
        )
        if os.path.exists(example)
        else ("start several workers on this machine", f"{evenfeed} run --help"),
    ]


def _this_command() -> str:
    """Return the command line that starts evenfeed again, with its path if it is not on PATH."""
    script = sys.argv[0]
    if os.path.basename(script) != "evenfeed":
        return f"{_short(sys.executable)} -m evenfeed"
    return "evenfeed" if shutil.which("evenfeed") == script else _short(script)


def _short(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative


if __name__ == "__main__":
    sys.exit(main())
