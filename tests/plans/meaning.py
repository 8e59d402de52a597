"""What a plan means, in plain Python: its elements one at a time, without any Block.

A function marked `@means` is given a node and the elements of its children, and yields the node's. What
is random, or has passes or datasets of its own, stands in `meaning`.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from evenfeed.core.draws import key_of
from evenfeed.plan.buffering import Cache
from evenfeed.plan.choosing import Random, Sample
from evenfeed.plan.elementwise import WithKeys
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import Repeat, Shuffle
from evenfeed.plan.saving import Snapshot


class Failed:
    """Stands for an element that is an error: a batch of two shapes, a function that raised."""

    def __repr__(self) -> str:
        return "FAILED"


FAILED: Final = Failed()
DRAWN: Final = (Shuffle, Random, Sample, WithKeys)  # the nodes in which something is random
Events = Iterator[Any]  # elements, FAILED among them
Seeds = list[list[int]]  # of all that is random in a plan, parents first

_MEANINGS: Final[dict[type[Node], Callable[..., Events]]] = {}


def means(kind: type[Node]) -> Callable[[Callable[..., Events]], Callable[..., Events]]:
    """Mark a function that is given a node and the elements of its children, and yields the node's.

    That of a node in which something is random is given its key before these.
    """

    def mark(function: Callable[..., Events]) -> Callable[..., Events]:
        _MEANINGS[kind] = function
        return function

    return mark


def meaning(node: Node, seeds: Seeds, epoch: int = 0) -> Events:
    """Yield the parts of each element of `node`, one element at a time; FAILED where one is an error.

    Args:
        node: A plan.
        seeds: The numbers that each of its shuffles begins with, parents first.
        epoch: The number of the round of a repetition above.
    """
    if isinstance(node, Cache | Snapshot):
        return meaning_of_fixed(node.child)  # it has passes of its own
    own, rest = (seeds[:1], seeds[1:]) if isinstance(node, DRAWN) else ([], seeds)
    children = []
    for child in node.children:
        count = len(drawn(child))
        mine, rest = rest[:count], rest[count:]
        children.append(lambda at=epoch, child=child, mine=mine: meaning(child, mine, at))
    if isinstance(node, Repeat):
        return _played(node, children[0], epoch)
    keys = [key_of(*own[0], epoch if node.reshuffle else 0)] if own else []
    return _MEANINGS[type(node)](node, *keys, *(child() for child in children))


def meaning_of_fixed(plan: Node) -> Events:
    """Yield the elements of a plan whose passes are all the same."""
    assert not any(node.reshuffle for node in drawn(plan))
    return meaning(plan, [[*node.seed, 0] for node in drawn(plan)])


def drawn(node: Node) -> list[Any]:
    """Return what is random in a plan, parents first; what is kept has passes of its own below it."""
    own = [node] if isinstance(node, DRAWN) else []
    children = () if isinstance(node, Cache | Snapshot) else node.children
    return own + [found for child in children for found in drawn(child)]


def _played(node: Repeat, start: Callable[[int], Events], epoch: int) -> Events:
    first = epoch * (node.count if node.count >= 0 else 2**64)
    played = 0
    while played != node.count:
        empty = True
        for element in start(first + played):
            empty = False
            yield element
        if empty and node.count < 0:
            return
        played += 1


def any_failed(found: list[Any]) -> bool:
    return any(element is FAILED for element in found)
