"""The figures of one stage of a pipeline."""

from dataclasses import dataclass, replace
from typing import final

from evenfeed.live.watching import Stats


@final
@dataclass(frozen=True)
class StageStats(Stats):
    """What one stage of a pipeline has done, in one iterator.

    A stage is either busy, or waits for the stages below it, or for room in its buffer. Times are sums over its
    threads and processes, so a stage that works in several may be busy for longer than the pipeline has run.

    Attributes:
        number: Counts from 1, as in `explain()`.
        name: The call that made it, such as `batch(32)`.
        line: The line of your program that made it; empty if unknown.
        inputs: The numbers of the stages that it reads.
        elements: How many elements it has returned; those that your program has got, if it is the last stage.
        elements_per_second: The same, divided by the time that the iterator has run.
        bytes: About how many bytes these elements have.
        busy_seconds: The time in which it worked, or its code waited for something, such as a server.
        cpu_seconds: About the part of it in which a processor ran its code. Known for Python code that runs per
            element; None for other stages, which may compute in threads that they share.
        input_wait_seconds: The time in which it waited for the stages below.
        room_wait_seconds: The time in which the thread of a prefetch waited, because its buffer was full.
        buffered: How many elements were in its buffer on average; None if it has no buffer.
        buffer_size: How many elements fit into its buffer; None if it has none.
        workers: How many threads or processes work in it at a time.
        kind: "thread", "threads" or "processes".
        method: The method that made it, such as `batch`.
        way: How its function runs: "vectorised", "per element", or empty if it has none.
        is_tuned: Whether AUTOTUNE found that threads are no faster, so that its function runs in the reading thread.
        inside: The number of the stage that makes the dataset it belongs to, such as a flat_map; None for others.
    """

    number: int
    name: str
    line: str
    inputs: tuple[int, ...]
    elements: int
    elements_per_second: float
    bytes: int
    busy_seconds: float
    cpu_seconds: float | None
    input_wait_seconds: float
    room_wait_seconds: float
    buffered: float | None
    buffer_size: int | None
    workers: int
    kind: str
    method: str
    way: str = ""
    is_tuned: bool = False
    inside: int | None = None

    def since(self, before: "StageStats", seconds: float) -> "StageStats":
        """Return what it has done since `before`, that many seconds ago."""
        elements = self.elements - before.elements
        return replace(
            self,
            elements=elements,
            elements_per_second=elements / seconds if seconds else 0.0,
            bytes=self.bytes - before.bytes,
            busy_seconds=self.busy_seconds - before.busy_seconds,
            cpu_seconds=None
            if self.cpu_seconds is None
            else max(0.0, self.cpu_seconds - (before.cpu_seconds or 0.0)),
            input_wait_seconds=self.input_wait_seconds - before.input_wait_seconds,
            room_wait_seconds=self.room_wait_seconds - before.room_wait_seconds,
        )

    def without(self, early: int) -> "StageStats":
        """Return the figures without elements that were read too early to count."""
        if not early or not self.elements:
            return self
        left = max(0, self.elements - early)
        return replace(
            self,
            elements=left,
            elements_per_second=self.elements_per_second * left / self.elements,
            bytes=self.bytes * left // self.elements,
        )
