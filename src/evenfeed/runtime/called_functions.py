"""Finds the users' functions that a plan calls, and what they read and change besides their arguments."""

from collections.abc import Iterator
from dataclasses import fields
from typing import NamedTuple

from evenfeed.core.callsite import Origin
from evenfeed.core.side_effects import Effects
from evenfeed.plan.buffering import Cache
from evenfeed.plan.generating import FromGenerator
from evenfeed.plan.node import Node
from evenfeed.plan.windowing import GroupByWindow
from evenfeed.runtime.functions import RowFunction
from evenfeed.runtime.inner import InnerDatasets


class Called(NamedTuple):
    """A user's function in a plan.

    Attributes:
        name: What the user calls it.
        origin: The user's line that asked for it.
        effects: What it reads and changes besides its arguments, as far as it was seen.
    """

    name: str
    origin: Origin | None
    effects: Effects


def functions_of(node: Node) -> list[RowFunction]:
    """Return the users' functions that a node calls with elements."""
    parts = [getattr(node, part.name) for part in fields(node)]
    inner = [part.function if isinstance(part, InnerDatasets) else part for part in parts]
    return [part for part in inner if isinstance(part, RowFunction)]


def called_in(plan: Node) -> list[Called]:
    """Return the users' functions that a pass over a plan may call, those of inner datasets too.

    What lies below a cache that is complete is not called any more.
    """
    return [called for node in _nodes_read(plan, set()) for called in _called_by(node)]


def _nodes_read(plan: Node, seen: set[int]) -> Iterator[Node]:
    if id(plan) in seen:
        return
    seen.add(id(plan))
    yield plan
    if isinstance(plan, Cache) and plan.memory.content is not None:
        return
    for child in plan.children:
        yield from _nodes_read(child, seen)
    for part in vars(plan).values():
        if isinstance(part, InnerDatasets):
            yield from _nodes_read(part.stand_in, seen)


def _called_by(node: Node) -> Iterator[Called]:
    for function in functions_of(node):
        yield Called(function.name, function.origin, function.effects)
    match node:
        case FromGenerator():
            yield Called("generator", node.origin, node.effects)
        case GroupByWindow():
            yield Called("reduce_func", node.origin, node.effects)
        case _:
            pass
