"""`NodeFacts`: what rewrites, feeding and explain need to know of a node."""

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """What other rooms may assume of a node. The defaults hold for every node; true facts make plans faster.

    Attributes:
        by_position: It yields elements of its children, chosen and ordered by position alone, whatever their values.
        elementwise: It makes element i from element i of each child, and of nothing else.
        same_elements: It yields the elements of its child, unchanged and in order.
        prefers_positions: It reads or holds less if the elements of its child have positions.
        sequential: Why its elements have no positions although those of its children have; None if they have
            positions too. `Node.why_sequential` may depend on more.
        addressed_since: The version of iterator states since which its elements have positions. Older states are
            restored as if they had none.
        keeps_batch_size: If its children yield batches of one size, so does it, and TensorFlow knows it.
        passes_files: It can be sharded by file: each worker runs it over the files of that worker.
        rewinds: It can go back a few elements at once, and read them again unobserved.
        counts_by_value: How many elements it yields depends on the values of the child's elements.
        calls_in_order: It calls its function for one element after another, even if that could run on whole Blocks.
        works_ahead: It calls its function for several elements at a time, ahead of the reader.
        replays: It cannot restore a position, and re-reads all elements up to it instead.
        random: It has the fields of `RandomNode`, and different elements in each pass if `reshuffle` is set.
        saves_at_delivery: If its elements are read one by one, a state that it saves never has elements of its child
            read again. Only then may the child find another order after it is restored.
        keeps_passes: It stores the elements of a pass, and later passes read these.
        writes_files: It writes files while it is read, and locks them.
        method: The public method that makes it; by default its name in lower case.
    """

    by_position: bool = False
    elementwise: bool = False
    same_elements: bool = False
    prefers_positions: bool = False
    sequential: str | None = "it reads elements one after another"
    addressed_since: int = 0
    keeps_batch_size: bool = False
    passes_files: bool = False
    rewinds: bool = False
    counts_by_value: bool = False
    calls_in_order: bool = False
    works_ahead: bool = False
    replays: bool = False
    random: bool = False
    saves_at_delivery: bool = False
    keeps_passes: bool = False
    writes_files: bool = False
    method: str | None = None
