"""Numbers the nodes of a plan, from the sources to the end: `explain()` and `stats()` count the same steps."""

from typing import NamedTuple

from evenfeed.plan.node import Node
from evenfeed.runtime.explain_text import is_random_map, label_of


class PlanStep(NamedTuple):
    """A node with its number.

    Attributes:
        number: Counts from 1.
        label: The call that made it, such as `batch(32)`.
        node: The node.
        inputs: The numbers of the steps that it reads.
    """

    number: int
    label: str
    node: Node
    inputs: list[int]

    @property
    def nodes(self) -> list[Node]:
        """The nodes of the step; random_map is one step made of two."""
        return [self.node.children[0], self.node] if is_random_map(self.node) else [self.node]


def steps_of(plan: Node) -> list[PlanStep]:
    """Return the steps, each after those that it reads. A node that occurs in two places is listed once."""
    steps: dict[int, PlanStep] = {}
    hidden = {id(node.children[0]) for node in plan.walk() if is_random_map(node)}
    for node in plan.bottom_up():
        if id(node) in hidden:
            continue
        number = len(steps) + 1
        read = node.children[0].children if is_random_map(node) else node.children
        inputs = [steps[id(child)].number for child in read]
        label = label_of(node, [] if inputs in ([], [number - 1]) else inputs)
        steps[id(node)] = PlanStep(number, label, node, inputs)
    return list(steps.values())
