"""Finds the users' functions that a plan calls, and what they read and change besides their arguments."""

import warnings
from collections.abc import Iterator
from dataclasses import fields
from typing import Final, NamedTuple, final

from evenfeed.core.callsite import Origin
from evenfeed.core.errors import EvenfeedError, FailedPreconditionError
from evenfeed.core.side_effects import Effect, Effects
from evenfeed.formats.pages.saved import find_saved
from evenfeed.plan.buffering import Cache, Snapshot
from evenfeed.plan.elementwise import Map, Scan, TakeWhile
from evenfeed.plan.flattening import GroupByWindow, read_by
from evenfeed.plan.node import Node, walk
from evenfeed.plan.options import ExternalStatePolicy, options_of
from evenfeed.plan.sources import FromGenerator
from evenfeed.runtime.caches.cache_files import InFiles
from evenfeed.runtime.functions.inner_datasets import InnerDatasets
from evenfeed.runtime.functions.row_function import RowFunction


class Called(NamedTuple):
    """A user's function in a plan.

    Attributes:
        name: What the user calls it.
        origin: The user's line that asked for it.
        effects: What it reads and changes besides its arguments, as far as it was seen.
        is_python: Whether whoever reads an element waits while Python code runs for it.
    """

    name: str
    origin: Origin | None
    effects: Effects
    is_python: bool


def functions_of(node: Node) -> list[RowFunction]:
    """Return the users' functions that a node calls with elements."""
    parts = [getattr(node, part.name) for part in fields(node)]
    inner = [part.function if isinstance(part, InnerDatasets) else part for part in parts]
    return [part for part in inner if isinstance(part, RowFunction)]


def is_spec_known(node: Node) -> bool:
    """Return True if what a node's functions return is known without reading an element."""
    inner = [part for part in vars(node).values() if isinstance(part, InnerDatasets)]
    known = all(function.is_spec_known for function in functions_of(node))
    return known and all(part.plan_seen is not None for part in inner)


def runs_on_blocks(function: RowFunction, node: Node) -> bool:
    """Return True if a node calls a function with many elements at a time."""
    return function.is_vectorised and not isinstance(node, Scan | TakeWhile | GroupByWindow)


def _is_waited_for(function: RowFunction, node: Node) -> bool:
    """Return True if Python code that may wait for something runs for each element while it is read.

    A function that could be traced computes: it is quick, whether it is called with Blocks or with elements.
    """
    if function.is_vectorised or function.opens_datasets:
        return False
    # What threads and processes have not done yet does not hold back what they have.
    return not (isinstance(node, Map) and (node.num_parallel_calls or node.processes))


def called_in(plan: Node) -> list[Called]:
    """Return the users' functions that a pass over a plan may call, those of inner datasets too.

    What lies below a cache or a snapshot that is complete is not called any more.
    """
    nodes = walk(plan, lambda node: () if is_complete(node) else read_by(node))
    return [called for node in nodes if not is_complete(node) for called in _called_by(node)]


def is_complete(node: Node) -> bool:
    """Return True if a node is a cache or a snapshot that is complete: what lies below is not read any more."""
    match node:
        case Cache(filename=""):
            return node.memory.content is not None
        case Cache():
            return InFiles(node).is_complete
        case Snapshot():
            return _is_saved(node.folder)
        case _:
            return False


def _is_saved(folder: str) -> bool:
    try:
        return find_saved(folder) is not None
    except EvenfeedError:  # it is raised when the folder is read
        return False


def _called_by(node: Node) -> Iterator[Called]:
    for function in functions_of(node):
        is_python = _is_waited_for(function, node)
        yield Called(function.name, function.origin, function.effects, is_python)
    match node:
        case FromGenerator():
            yield Called("generator", node.origin, node.effects, is_python=True)
        case GroupByWindow():
            yield Called("reduce_func", node.origin, node.effects, is_python=False)
        case _:
            pass


# A function that does one of these makes other elements when it is called again.
_MAKES_OTHERS: Final = (Effect.DRAWS, Effect.ASSIGNS, Effect.PULLS, Effect.VARIES)

_FIX: Final = (
    "draw random numbers in random_map, where they follow from the element's position, and keep what else "
    "changes in the elements (zip, enumerate, scan). To save the position all the same, set "
    "options.experimental_external_state_policy to ExternalStatePolicy.WARN or IGNORE."
)


@final
class ExternalState:
    """What a pass over a plan depends on besides the plan.

    Made when the pass begins: below a cache that is complete by then, nothing is called.

    Attributes:
        called: The users' functions that the pass may call.
    """

    def __init__(self, plan: Node) -> None:
        self._plan = plan
        self.called = called_in(plan)

    @property
    def policy(self) -> ExternalStatePolicy:
        """What is to be done about it, as the options say."""
        said = options_of(self._plan).experimental_external_state_policy
        return ExternalStatePolicy.FAIL if said is None else said

    @property
    def lost(self) -> list[Called]:
        """The functions whose elements would be others behind a restored state."""
        return [called for called in self.called if any(e in called.effects for e in _MAKES_OTHERS)]

    def check(self) -> None:
        """Raise, warn or say nothing, where a state would not lead to the same elements.

        Raises:
            FailedPreconditionError: The policy is FAIL, which is the default.
        """
        for called in self.lost:
            if self.policy is ExternalStatePolicy.FAIL:
                raise FailedPreconditionError(_said(called), fix=_FIX, origin=called.origin)
            if self.policy is ExternalStatePolicy.WARN:
                _warn(called)


def what_it_does(called: Called) -> str:
    """Say of a function why its elements would be others."""
    return f"{called.name} {called.effects.text(*_MAKES_OTHERS)}"


def _said(called: Called) -> str:
    return f"{what_it_does(called)}: behind a restored state its elements would be others."


def _warn(called: Called) -> None:
    origin = called.origin
    filename, line = (origin.filename, origin.line) if origin else ("<unknown>", 0)
    warnings.warn_explicit(f"{_said(called)} To avoid this, {_FIX}", UserWarning, filename, line)
