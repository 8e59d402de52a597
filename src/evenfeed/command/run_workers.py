"""`evenfeed run`: starts a program in several workers on this machine."""

import argparse
import math
from typing import Any, Final

from evenfeed.cluster.launching import DEFAULT_GRACE_SECONDS, launch

_LAST_PORT: Final = 65535


def add(commands: Any) -> None:
    """Add the command and its arguments."""
    run = commands.add_parser(
        "run",
        help="run a program in several workers on this machine",
        description="Starts workers on this machine, each with its own TF_CONFIG. Prefixes their output with the "
        "worker's number. If a worker fails, the others get some seconds to save and exit, and are then terminated.",
    )
    run.add_argument(
        "--workers", type=count, default=1, help="number of worker processes (default: 1)"
    )
    run.add_argument("--replicas", type=count, help="number of logical CPU devices per worker")
    run.add_argument(
        "--grace",
        type=_seconds,
        default=DEFAULT_GRACE_SECONDS,
        metavar="SECONDS",
        help=f"time for the other workers to exit if one fails (default: {DEFAULT_GRACE_SECONDS:g})",
    )
    run.add_argument(
        "--restarts",
        type=count,
        default=0,
        metavar="N",
        help="start all workers again up to N times after one was lost (default: 0)",
    )
    run.add_argument(
        "--min-workers",
        type=count,
        metavar="M",
        help="restart without the workers that were lost, but with at least M (default: with all)",
    )
    run.add_argument(
        "--dashboard",
        action="store_true",
        help="show a page on this machine with what each worker waits for, while it trains",
    )
    run.add_argument(
        "--dashboard-port",
        type=_port,
        metavar="PORT",
        help="the port of that page (default: any that is free)",
    )
    run.add_argument(
        "-m",
        dest="module",
        nargs=argparse.REMAINDER,
        help="run a module and its arguments, as in: python -m package.train --epochs 3",
    )
    run.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="script.py ...",
        help="the program and its arguments",
    )
    run.set_defaults(act=act)


def act(given: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Start the workers, and wait for them."""
    del parser
    command = ["-m", *given.module] if given.module else given.command
    if command[:1] == ["--"]:
        command = command[1:]
    if not command:  # Python would wait for a program on stdin.
        given.own.error("missing program; for example: evenfeed run --workers 2 script.py")
    if given.min_workers is not None and not (
        given.restarts and given.min_workers <= given.workers
    ):
        given.own.error("--min-workers needs --restarts, and must be at most --workers")
    return launch(
        command,
        given.workers,
        given.replicas,
        given.grace,
        given.restarts,
        given.min_workers,
        0 if given.dashboard and given.dashboard_port is None else given.dashboard_port,
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"must be at least 0 seconds, but got {text}")
    return seconds


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"must be 0 to {_LAST_PORT}, but got {text}")
    return int(text)


def count(text: str) -> int:
    """Return a number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, but got {text}")
    return int(text)
