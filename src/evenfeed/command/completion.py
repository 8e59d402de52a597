"""`evenfeed completion`: prints what a shell needs to complete the command."""

import argparse
from typing import Any, Final

from evenfeed.core.lazy import installed, shtab

_SHELLS: Final = ("bash", "zsh", "tcsh")


def add(commands: Any) -> None:
    """Add the command and its argument."""
    completion = commands.add_parser(
        "completion",
        help="print the completion of this command for your shell",
        description='For bash, put this into ~/.bashrc: eval "$(evenfeed completion bash)"',
    )
    completion.add_argument("shell", choices=_SHELLS)
    completion.set_defaults(act=act)


def act(given: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Print the completion."""
    library = installed(
        shtab,
        "Completion needs shtab, which is not installed.",
        "pip install 'evenfeed[completion]'",
    )
    print(library.complete(parser, given.shell))
    return 0
