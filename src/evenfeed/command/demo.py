"""`evenfeed demo`: runs the demo, and says what to install or to try next."""

import argparse
import os
import shutil
import sys
import tempfile
from importlib import import_module
from typing import Any, Final

from evenfeed.cluster.launching import DEFAULT_GRACE_SECONDS, launch
from evenfeed.command.run_workers import count

_PROGRAM: Final = "evenfeed.demo.train_digits"
_ON_WORKERS: Final = "evenfeed.demo.lose_a_worker"
_ON_WORKERS_HELP: Final = """
on several workers:
  --workers N      train on N workers of two replicas each, and write a report
  --kill           kill one of them in the middle; the others go on without losing a row"""
_REPLICAS: Final = 2  # of each worker


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "demo",
        help="train a classifier of handwritten digits on four replicas",
        add_help=False,  # the program has its own arguments
    )
    parser.add_argument("--workers", type=count)
    parser.add_argument("--kill", action="store_true")
    parser.set_defaults(act=act)


def act(given: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Run the demo: on this machine's devices, or on several workers."""
    del parser
    if given.kill and (given.workers or 1) < 2:
        given.own.error("--kill needs --workers 2 or more: somebody must go on")
    try:
        program: Any = import_module(_PROGRAM)
    except ModuleNotFoundError as error:
        print(
            f"evenfeed demo needs {error.name}, which is not installed: pip install 'evenfeed[demo]' "
            "(in a clone: pip install '.[demo]').",
            file=sys.stderr,
        )
        return 1
    if given.workers is not None:
        return _on_workers(given)
    try:
        is_trained = program.main(["evenfeed demo", *given.rest])
    except SystemExit as end:
        if not end.code:  # it has printed its help
            print(_ON_WORKERS_HELP)
        raise
    if is_trained:
        print("\nTry next:")
        for what, command in _next_commands(program.__file__):
            print(f"  # {what}\n  {command}")
    return 0


def _on_workers(given: argparse.Namespace) -> int:
    """Train on several workers, and go on with those that are left if one is killed."""
    killed = ["--kill"] if given.kill else []
    program: Any = import_module(_ON_WORKERS)
    program.parsed([f"evenfeed demo --workers {given.workers}", *killed, *given.rest])  # or exits
    folder = tempfile.mkdtemp(prefix="evenfeed-demo-")
    command = ["-m", _ON_WORKERS, "--folder", folder, *killed, *given.rest]
    restarts = 1 if given.kill else 0
    return launch(
        command,
        given.workers,
        _REPLICAS,
        DEFAULT_GRACE_SECONDS,
        restarts,
        given.workers - 1 if given.kill else None,
    )


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
        (
            "lose a worker in the middle, and no row",
            f"{evenfeed} demo --workers 2 --kill",
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
