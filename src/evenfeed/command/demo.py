"""`evenfeed demo`: runs the demo, and says what to install or to try next."""

import argparse
import os
import shutil
import sys
from importlib import import_module
from typing import Any, Final

_PROGRAM: Final = "evenfeed.demo.train_digits"


def add(commands: Any) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "demo",
        help="train a classifier of handwritten digits on four replicas",
        add_help=False,  # the program has its own arguments
    )
    parser.set_defaults(act=act)


def act(given: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Run the demo."""
    del parser
    try:
        program: Any = import_module(_PROGRAM)
    except ModuleNotFoundError as error:
        print(
            f"evenfeed demo needs {error.name}, which is not installed: pip install 'evenfeed[demo]' "
            "(in a clone: pip install '.[demo]').",
            file=sys.stderr,
        )
        return 1
    if program.main(["evenfeed demo", *given.rest]):
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
