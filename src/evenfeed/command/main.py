"""The arguments of the `evenfeed` command, and what it does with errors: no traceback for a user's mistake."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import Any, cast

from evenfeed import __version__
from evenfeed.command import bench, completion, demo, doctor, inspect, run_workers
from evenfeed.command.value_texts import without_place
from evenfeed.core.errors import EvenfeedError

_STORY = """\
Feeds every replica evenly: TensorFlow's tf.data and tf.distribute on JAX, without TensorFlow.

  evenfeed demo                       see it work: train a classifier on four replicas
  evenfeed inspect data/*.tfrecord    see what is in your files, and the code that reads them
  evenfeed run --workers 2 train.py   start your program in several workers on this machine
  evenfeed doctor                     see what evenfeed finds on this machine, and what is wrong with it
  evenfeed bench                      see how fast it is here, next to what else is installed
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, and return the exit code: 0, 1 for an error, 2 for wrong arguments, 130 after Ctrl-C."""
    _print_any_text()
    parser = command_parser()
    given, rest = parser.parse_known_args(arguments)
    given.rest = rest
    if rest and given.name != "demo":  # the demo has arguments of its own
        given.own.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        return given.act(given, parser)
    except (
        BrokenPipeError
    ):  # the reader of our output has seen enough, as in `evenfeed inspect x | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nothing fails at the exit
        return 0
    except (EvenfeedError, OSError, ImportError, ValueError) as error:
        print(f"evenfeed {given.name}: {without_place(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _print_any_text() -> None:
    """Escape what the terminal cannot print, such as a name with an umlaut where the locale is C."""
    out: Any = sys.stdout
    if isinstance(out, io.TextIOWrapper):
        out = cast(Any, out)
        out.reconfigure(errors="backslashreplace")


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="evenfeed", description=_STORY, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"evenfeed {__version__}")
    commands = parser.add_subparsers(
        required=True, dest="name", metavar="command", title="commands"
    )
    for command in (demo, inspect, run_workers, doctor, bench, completion):
        command.add(commands)
    for own in commands.choices.values():
        own.set_defaults(own=own)  # whose usage stands above its errors
    return parser
