"""Finds the users' functions that a plan calls, and what they read and change besides their arguments."""

from collections.abc import Iterator
from dataclasses import fields
from typing import NamedTuple

from evenfeed.core.callsite import Origin
from evenfeed.core.errors import EvenfeedError
from evenfeed.core.side_effects import Effects
from evenfeed.formats.saved import find_saved
from evenfeed.plan.buffering import Cache
from evenfeed.plan.filtering import TakeWhile
from evenfeed.plan.flattening import read_by
from evenfeed.plan.generating import FromGenerator
from evenfeed.plan.mapping import Map
from evenfeed.plan.node import Node, walk
from evenfeed.plan.saving import Snapshot
from evenfeed.plan.scanning import Scan
from evenfeed.plan.windowing import GroupByWindow
from evenfeed.runtime.cache_files import InFiles
from evenfeed.runtime.functions import RowFunction
from evenfeed.runtime.inner import InnerDatasets


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
