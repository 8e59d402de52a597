"""Random access: the plan that reads a single element of another plan."""

from collections.abc import Sequence

from evenfeed.core.errors import FailedPreconditionError, OutOfRangeError, UnimplementedError
from evenfeed.core.specs import INFINITE, UNKNOWN
from evenfeed.plan.batching import Unbatch
from evenfeed.plan.checking import AssertCardinality
from evenfeed.plan.node import Node, RandomNode, rebuilt
from evenfeed.plan.ordering import Skip, Take
from evenfeed.rewrite.by_row import lifted
from evenfeed.runtime.explain_text import method_of


def one_element(plan: Node, index: int) -> Node:
    """Return a plan of the element at `index`. It computes no other element, unless a function fails to trace.

    Raises:
        UnimplementedError: Elements of the plan are found only by reading those before them.
        FailedPreconditionError: The number of elements is infinite or unknown.
        OutOfRangeError: There is no such element.
    """
    if isinstance(plan, Unbatch):
        return _one_row(plan, index)
    _check_has_positions(plan)
    _check_index(plan, index)
    elements = rebuilt(plan, _without_buffers)
    return lifted(Take(Skip(elements, index, origin=plan.origin), 1, origin=plan.origin))


def _one_row(plan: Unbatch, index: int) -> Node:
    """Return a plan of a row of batches that all have the same number of rows, so that only one of them is read."""
    _check_index(plan, index)
    batch, row = divmod(index, plan.size // plan.child.size)
    rows = Unbatch(one_element(plan.child, batch), origin=plan.origin)
    return Take(Skip(rows, row, origin=plan.origin), 1, origin=plan.origin)


def first_pass(_: int, node: RandomNode) -> Sequence[int]:
    """Return the seed numbers of the first pass: every access must find the elements in the same order."""
    return [*node.seed, 0]


def _check_has_positions(plan: Node) -> None:
    for node in plan.walk():
        facts = node.facts
        if not (
            facts.by_position
            or facts.elementwise
            or facts.sequential is None
            or isinstance(node, AssertCardinality)
        ):
            raise UnimplementedError(
                f"Random access is not implemented for {method_of(node)}: {facts.sequential}.",
                fix="iterate over the dataset, or save its elements and load them again.",
                origin=node.origin,
            )


def _check_index(plan: Node, index: int) -> None:
    if plan.size in (INFINITE, UNKNOWN):
        kind = "infinitely many" if plan.size == INFINITE else "an unknown number of"
        raise FailedPreconditionError(
            f"Random access needs a dataset of known size, but this one has {kind} elements.",
            fix="call take(n) first, or data.experimental.assert_cardinality(n).",
        )
    if not 0 <= index < plan.size:
        raise OutOfRangeError(
            f"Index out of range [0, {plan.size}): {index}.",
            fix="pass an index from 0 on that is less than the cardinality.",
        )


def _without_buffers(node: Node) -> Node:
    """Drop what only reads ahead or keeps elements, which a single access must not fill."""
    is_buffer = node.facts.same_elements and len(node.children) == 1
    return node.children[0] if is_buffer else node
