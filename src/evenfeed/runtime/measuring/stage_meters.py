"""Counts what passes through each stage of a running plan, and where time goes.

`build` wraps the operator of each node, and `indexing` the rows of each node, if the run has a `PlanMeter`. A run
without one has neither wrappers nor counters.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection, Hashable
from threading import get_ident
from time import perf_counter
from typing import Final, TypeAlias, final

from evenfeed.core.block import Block, Positions
from evenfeed.plan.node import Node
from evenfeed.runtime.live_state import Meter, PassMeter
from evenfeed.runtime.operator import Operator, State
from evenfeed.runtime.positions.orders import Order
from evenfeed.runtime.positions.rows import Rows
from evenfeed.runtime.provenance import Provenance, RowOrigin

# The bytes of every Block are counted at first, then those of one in so many: that takes long.
_ALL_NOTED: Final = 8
_NOTED: Final = 32
# In seconds: shorter reads are in no trace, apart from the first ones of a stage.
_SHORT: Final = 2e-5
# The latest reads that a trace shows, of each iterator.
_EVENTS: Final = 20_000


# `below` is the time that measured reads took in this thread, since the current read began.
_clock: Final = threading.local()


# One read, for a trace: its stage, its thread, when it began, the seconds that it took, and how many elements it gave.
ReadEvent: TypeAlias = "tuple[StageMeter, int, float, float, int]"


@final
class StageMeter:
    """What one stage has done.

    Attributes:
        node: The node, of which another one like it may have run since.
        elements: How many elements it has returned.
        own: The seconds that its reads took, without the reads of the stages below.
        below: The seconds that its reads waited for the stages below, in the same thread.
        room: The seconds that its own thread waited, because its buffer was full.
        function: The time of its function in all threads and processes; None if it has none.
        passes_on: The stage whose elements it has, if it only chooses their positions.
        first, last: When the first read began, and when the last one ended.
        buffered, fills: The sum of the elements in its buffer at the begin of a read, and how many reads.
        buffer_size: The size of its buffer; None if it has none.
        events: Where to add each read, for a trace.
    """

    __slots__ = (
        *(
            "below",
            "buffer_size",
            "buffered",
            "elements",
            "events",
            "fills",
            "first",
            "function",
            "last",
        ),
        *("node", "own", "passes_on", "room", "_reads", "_sized_bytes", "_sized_elements"),
    )

    def __init__(self, node: Node, events: "deque[ReadEvent]") -> None:
        self.node = node
        self.elements = 0
        self.own = 0.0
        self.below = 0.0
        self.room = 0.0
        self.first = 0.0
        self.last = 0.0
        self.function: PassMeter | None = None
        self.passes_on: StageMeter | None = None
        self.buffered = 0
        self.fills = 0
        self.buffer_size: int | None = None
        self._reads = 0
        self._sized_bytes = 0
        self._sized_elements = 0
        self.events = events

    @property
    def bytes(self) -> int:
        """About how many bytes the elements have: the size of some Blocks is counted."""
        if self.passes_on is not None:
            return self.passes_on.bytes
        sized = self._sized_elements
        return self._sized_bytes * self.elements // sized if sized else 0

    @property
    def count(self) -> int:
        """How many elements have passed."""
        return self.elements if self.passes_on is None else self.passes_on.count

    def add(self, block: Block | None, began: float, seconds: float, below: float) -> None:
        """Count a read.

        Takes no lock: CPython switches threads only after calls and jumps, and there are none in a statement that adds.
        """
        self.last = began + seconds
        self.own += seconds - below
        self.below += below
        self._reads = reads = self._reads + 1
        length = 0
        if block is not None:
            length = block.length
            self.elements += length
        if reads <= _ALL_NOTED or not reads % _NOTED:
            self._note(block, began)
        if seconds > _SHORT or reads <= _ALL_NOTED:
            self.events.append((self, get_ident(), began, seconds, length))

    def _note(self, block: Block | None, began: float) -> None:
        """Note what need not be noted at every read."""
        self.first = self.first or began
        if block is not None:
            self._sized_bytes += block.nbytes
            self._sized_elements += block.length

    def add_own(self, block: Block | None, began: float, seconds: float, below: float) -> None:
        """Count time of its own in a read whose elements are counted elsewhere."""
        del block, began
        self.own += seconds - below

    def add_room(self, seconds: float) -> None:
        """Count time in which its own thread waited for room."""
        self.room += seconds

    def add_fill(self, buffered: int, size: int) -> None:
        """Count the elements in its buffer at the begin of a read."""
        self.buffered += buffered
        self.fills += 1
        self.buffer_size = size


@final
class MeasuredOperator(Operator):
    """Measures the reads of an operator, and is like it in everything else.

    Args:
        operator: The operator.
        stage: Where to count.
        counts: Whether to count elements; otherwise the rows below count them.
    """

    def __init__(self, operator: Operator, stage: StageMeter, *, counts: bool = True) -> None:
        self._operator = operator
        self._read = operator.read
        self._stage = stage
        self._count = stage.add if counts else stage.add_own
        # Without a call in between: readers ask for the state before each read.
        vars(self).update(state=operator.state, rewound=operator.rewound)
        is_buffer = type(operator).fill is not Operator.fill
        self._fill: Callable[[], tuple[int, int]] | None = operator.fill if is_buffer else None

    @property
    def reads_freely(self) -> bool:
        return self._operator.reads_freely

    @property
    def hides_reads(self) -> bool:
        return self._operator.hides_reads

    @property
    def stage(self) -> StageMeter:
        """Where it counts."""
        return self._stage

    @property
    def counts(self) -> bool:
        """Whether it counts elements."""
        return self._count == self._stage.add

    def read(self, most: int) -> Block | None:
        if self._fill is not None:
            self._stage.add_fill(*self._fill())
        clock = _clock.__dict__  # attributes of a threading.local take twice as long
        outer, clock["below"] = clock.get("below", 0.0), 0.0
        block = None
        began = perf_counter()
        try:
            block = self._read(most)
            return block
        finally:
            seconds = perf_counter() - began
            self._count(block, began, seconds, clock["below"])
            clock["below"] = outer + seconds

    def state(self) -> State:
        return self._operator.state()

    def restore(self, state: State) -> None:
        self._operator.restore(state)

    def seek(self, count: int) -> None:
        self._operator.seek(count)

    def rewound(self, count: int) -> State | None:
        return self._operator.rewound(count)

    def provenance(self, count: int) -> Provenance:
        return self._operator.provenance(count)

    def close(self) -> None:
        self._operator.close()

    def children(self) -> tuple[Operator, ...]:
        return (self._operator,)


@final
class MeasuredRows(Rows):
    """Measures how rows are fetched, and is like them in everything else."""

    def __init__(self, rows: Rows, stage: StageMeter) -> None:
        self._rows = rows
        self.stage = stage
        self.size = rows.size
        self.fetch_copies = rows.fetch_copies
        self.run_copies = rows.run_copies

    def fetch(self, positions: Positions) -> Block:
        return self._measured(lambda: self._rows.fetch(positions))

    def run(self, start: int, count: int) -> Block:
        return self._measured(lambda: self._rows.run(start, count))

    def _measured(self, fetch: Callable[[], Block]) -> Block:
        clock = _clock.__dict__
        outer, clock["below"] = clock.get("below", 0.0), 0.0
        block = None
        began = perf_counter()
        try:
            block = fetch()
            return block
        finally:
            seconds = perf_counter() - began
            self.stage.add(block, began, seconds, clock["below"])
            clock["below"] = outer + seconds

    def partly(self, parts: Collection[int]) -> Rows | None:
        rows = self._rows.partly(parts)
        return None if rows is None else MeasuredRows(rows, self.stage)

    def provenance(self, position: int) -> RowOrigin | None:
        return self._rows.provenance(position)


class PlanMeter:
    """The meters of all stages of one iterator.

    Attributes:
        events: The latest reads, for a trace.
        inner: The meters of the datasets that are made while reading, by the node that makes them.
    """

    def __init__(self, events: "deque[ReadEvent] | None" = None) -> None:
        self.events: deque[ReadEvent] = deque(maxlen=_EVENTS) if events is None else events
        self.inner: dict[int, InnerMeter] = {}
        self._stages: dict[Hashable, StageMeter] = {}

    def _key(self, node: Node) -> Hashable:
        return id(node)

    def stage(self, node: Node) -> StageMeter:
        """Return the meter of a node."""
        key = self._key(node)
        found = self._stages.get(key)
        # Takes no lock: the garbage collector may ask for the figures at any time.
        return found or self._stages.setdefault(key, StageMeter(node, self.events))

    def known(self, node: Node) -> StageMeter | None:
        """Return the meter of a node; None if nothing has run it yet, or another stage runs it."""
        return self._stages.get(self._key(node))

    def stages(self) -> list[StageMeter]:
        """Return the meters of all stages, in the order in which they were built."""
        return list(self._stages.values())

    def inside(self, node: Node) -> "InnerMeter":
        """Return the meters of the datasets that a node makes while it is read."""
        found = self.inner.get(id(node))
        return found or self.inner.setdefault(id(node), InnerMeter(self.events))

    def adopt(self, early: "PlanMeter") -> None:
        """Take over the meters of operators that were started before this pass."""
        for stage in early.stages():
            stage.events = self.events
        self._stages.update(early._stages)
        self.inner.update(early.inner)
        # The early operators may start others later.
        early._stages, early.inner, early.events = self._stages, self.inner, self.events

    def measured(self, node: Node, operator: Operator) -> Operator:
        """Return the operator of a node, measured."""
        stage = self.stage(node)
        if isinstance(operator, MeasuredOperator):  # the node passes its child on
            stage.passes_on = operator.stage if operator.stage is not stage else None
            return operator
        return MeasuredOperator(operator, stage)

    def walked(self, node: Node, operator: Operator) -> Operator:
        """Return the operator of a walk over rows, measured. What the rows do not take, their order takes."""
        part, stage = node, self.stage(node)
        while stage.passes_on is None and len(part.children) == 1:
            part = part.children[0]
            stage = self.stage(part)
        return MeasuredOperator(
            operator, stage if stage.passes_on else self.stage(node), counts=False
        )

    def addressed(self, node: Node, rows: Rows, order: Order) -> tuple[Rows, Order]:
        """Return the rows of a node and their order, measured."""
        stage = self.stage(node)
        if isinstance(rows, MeasuredRows):  # the node only changes the order
            stage.passes_on = rows.stage if rows.stage is not stage else None
            return rows, order
        return MeasuredRows(rows, stage), order

    def function_meter(self, node: Node, whole: Meter, *, splits: bool) -> Meter:
        """Return a meter for the function of a node in this pass, which also counts for all passes.

        Args:
            node: The node.
            whole: The meter of all passes.
            splits: Whether to measure how long the function waits.
        """
        stage = self.stage(node)
        if stage.function is None:
            stage.function = PassMeter(whole, splits=splits)
        return stage.function


@final
class InnerMeter(PlanMeter):
    """The meters of datasets that are made while another is read: those with the same stages count together."""

    def _key(self, node: Node) -> Hashable:
        return type(node), node.origin, node.depth
