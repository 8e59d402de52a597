"""Which parts of a plan have elements with positions, decided from the plan alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, final

from evenfeed.plan.node import Node


@final
@dataclass(frozen=True)
class Reason:
    """Why a plan must be read sequentially.

    Attributes:
        node: The first node whose elements have no positions, although those of its children have.
        text: Why, as the end of a sentence.
    """

    node: Node
    text: str


_NONE: Final[Mapping[int, Reason]] = {}

# For each node by its id: why it is sequential if it is read as a whole, and if a node above it prefers positions.
Addressing: TypeAlias = dict[int, tuple[Reason | None, Reason | None]]


def why_not_addressable(plan: Node) -> Reason | None:
    """Return why a plan must be read sequentially; None if its elements can be read by position.

    A file may turn out to be damaged, or missing. Its rows are then read sequentially in spite of this.
    """
    return addressing(plan)[id(plan)][0]


def reasons_in(plan: Node) -> dict[int, Reason | None]:
    """Return why each node, by its id, is read sequentially when the whole plan is read; None if it is not."""
    found = {key: reason for key, (reason, _) in addressing(plan).items()}
    waiting = [node for node in plan.walk() if found[id(node)] is None]
    seen: set[int] = set()
    while (
        waiting
    ):  # everything below is read by position, even files that are read sequentially by themselves
        node = waiting.pop()
        if id(node) not in seen:
            seen.add(id(node))
            found[id(node)] = None
            waiting.extend(node.children)
    return found


def addressing(
    plan: Node, version: int | None = None, known: Mapping[int, Reason] = _NONE
) -> Addressing:
    """Return for each node of a plan why it must be read sequentially.

    Args:
        plan: The plan.
        version: The version of a state to be restored; None for the current one.
        known: By their ids, nodes that turned out to be sequential, such as damaged files.
    """
    found: Addressing = {}
    for node in plan.bottom_up():
        below = [found[id(child)] for child in node.children]
        if node.facts.prefers_positions:
            below = [(selected, selected) for _, selected in below]
        plain = next((reason for reason, _ in below if reason), None)
        selected = next((reason for _, reason in below if reason), None)
        found[id(node)] = (
            plain or known.get(id(node)) or _reason(node, version, selected=False),
            selected or known.get(id(node)) or _reason(node, version, selected=True),
        )
    return found


def _reason(node: Node, version: int | None, *, selected: bool) -> Reason | None:
    if version is not None and node.facts.addressed_since > version:
        return Reason(node, "an older state is restored")
    text = node.why_sequential(selected=selected)
    return None if text is None else Reason(node, text)
