"""Finds the user functions that a plan calls, and their side effects.

`ExternalState` uses them to refuse a saved position that would not lead to the same elements.
"""

import warnings
from collections.abc import Iterator
from typing import Final, NamedTuple, final

from evenfeed.core.callsite import Origin
from evenfeed.core.errors import EvenfeedError, FailedPreconditionError
from evenfeed.core.side_effects import Effect, Effects, draws_numbers
from evenfeed.formats.pages.saved import find_saved
from evenfeed.plan.buffering import Cache, Snapshot
from evenfeed.plan.flattening import GroupByWindow, read_by
from evenfeed.plan.node import Node, walk
from evenfeed.plan.options import ExternalStatePolicy, options_of
from evenfeed.plan.sources import FromGenerator
from evenfeed.runtime.caches.cache_files import InFiles
from evenfeed.runtime.functions.inner_datasets import InnerDatasets
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.live_state import effects_of, memory_of


class Called(NamedTuple):
    """A user function in a plan.

    Attributes:
        name: Its name in user code.
        origin: The line of user code that asked for it.
        effects: The side effects seen so far.
        is_python: Whether the reader waits for Python code that runs for each element.
    """

    name: str
    origin: Origin | None
    effects: Effects
    is_python: bool


def functions_of(node: Node) -> list[RowFunction]:
    """Return the user functions that a node calls with elements."""
    found: list[RowFunction] = []
    for part in vars(node).values():
        if isinstance(part, RowFunction):
            found.append(part)
        elif isinstance(part, InnerDatasets):
            found.append(part.function)
    return found


def is_spec_known(node: Node) -> bool:
    """Return True if the output specs of a node's functions are known without reading an element."""
    inner = [part for part in vars(node).values() if isinstance(part, InnerDatasets)]
    known = all(function.is_spec_known for function in functions_of(node))
    return known and all(part.plan_seen is not None for part in inner)


def runs_on_blocks(function: RowFunction, node: Node) -> bool:
    """Return True if a node calls a function on whole Blocks."""
    return function.is_vectorised and not node.facts.calls_in_order


def _is_waited_for(function: RowFunction, node: Node) -> bool:
    """Return True if the reader waits for Python code that may block, for each element.

    A traced function only computes, so it is fast on Blocks and on single elements.
    """
    if function.is_vectorised or function.opens_datasets:
        return False
    # Pending work in threads and processes does not hold back finished results.
    return not node.facts.works_ahead


def called_in(plan: Node) -> list[Called]:
    """Return the user functions that a pass over a plan may call, including those of inner datasets.

    Functions below a complete cache or snapshot are not called any more.
    """
    nodes = walk(plan, lambda node: () if is_complete(node) else read_by(node))
    return [called for node in nodes if not is_complete(node) for called in _called_by(node)]


def draws_in_turn(plan: Node) -> bool:
    """Return True if a function in a plan draws random numbers, so that what is read too much uses up some of them."""
    return any(draws_numbers(called.effects) for called in called_in(plan))


def is_complete(node: Node) -> bool:
    """Return True if a node is a complete cache or snapshot, whose input is not read any more."""
    match node:
        case Cache(filename=""):
            return memory_of(node).content is not None
        case Cache():
            return InFiles(node).is_complete
        case Snapshot():
            return _is_saved(node.folder)
        case _:
            return False


def _is_saved(folder: str) -> bool:
    try:
        return find_saved(folder) is not None
    except EvenfeedError:  # reading the directory raises it again
        return False


def _called_by(node: Node) -> Iterator[Called]:
    for function in functions_of(node):
        is_python = _is_waited_for(function, node)
        yield Called(function.name, function.origin, function.effects, is_python)
    match node:
        case FromGenerator():
            yield Called("generator", node.origin, effects_of(node), is_python=True)
        case GroupByWindow():
            yield Called("reduce_func", node.origin, effects_of(node), is_python=False)
        case _:
            pass


# A function with one of these effects may return something else when it is called again.
_NOT_REPRODUCIBLE: Final = (
    Effect.DRAWS,
    Effect.DRAWS_IN_TURN,
    Effect.ASSIGNS,
    Effect.PULLS,
    Effect.VARIES,
)

_FIX: Final = (
    "draw random numbers in random_map, which derives them from the element's position, and carry other "
    "changing state in the elements (zip, enumerate, scan). To save the position anyway, set "
    "options.experimental_external_state_policy to ExternalStatePolicy.WARN or IGNORE."
)


@final
class ExternalState:
    """The external state that a pass over a plan depends on.

    Created when the pass starts: functions below a cache that is complete by then do not count.

    Attributes:
        called: The user functions that the pass may call.
    """

    def __init__(self, plan: Node) -> None:
        self._plan = plan
        self.called = called_in(plan)

    @property
    def policy(self) -> ExternalStatePolicy:
        """The policy in the dataset's options, FAIL by default."""
        policy = options_of(self._plan).experimental_external_state_policy
        return ExternalStatePolicy.FAIL if policy is None else policy

    @property
    def lost(self) -> list[Called]:
        """The functions that would return something else after a restore."""
        return [
            called for called in self.called if any(e in called.effects for e in _NOT_REPRODUCIBLE)
        ]

    def check(self) -> None:
        """Raise, warn or do nothing if a restored state would not lead to the same elements.

        Raises:
            FailedPreconditionError: The policy is FAIL, which is the default.
        """
        for called in self.lost:
            if self.policy is ExternalStatePolicy.FAIL:
                raise FailedPreconditionError(_message(called), fix=_FIX, origin=called.origin)
            if self.policy is ExternalStatePolicy.WARN:
                _warn(called)


def what_it_does(called: Called) -> str:
    """Return a text that says why a function's results would differ."""
    return f"{called.name} {called.effects.text(*_NOT_REPRODUCIBLE)}"


def _message(called: Called) -> str:
    return f"{what_it_does(called)}, so a restored iterator would produce different elements."


def _warn(called: Called) -> None:
    origin = called.origin
    filename, line = (origin.filename, origin.line) if origin else ("<unknown>", 0)
    warnings.warn_explicit(f"{_message(called)} To avoid this, {_FIX}", UserWarning, filename, line)
