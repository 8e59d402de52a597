"""What a program keeps for the nodes and functions of the plans that it reads, because these never change.

Everything here is found by an identity, and lives as long as a plan that contains it. So it is shared by all iterators
over a dataset and over the datasets derived from it, and by rewritten plans, unless the rewrite gives a node a new
identity.

Nothing here may refer to a plan or to user code, which may refer to the dataset: it would never be freed. The one
exception is a cache whose elements are datasets.
"""

import weakref
from collections import deque
from collections.abc import Callable, Iterable
from threading import Lock
from time import perf_counter, thread_time
from types import GeneratorType
from typing import Any, Final, NamedTuple, TypeAlias, cast, final

from evenfeed.core.concurrency.weak_table import WeakTable
from evenfeed.core.errors import EvenfeedError
from evenfeed.core.side_effects import Effects
from evenfeed.plan.checking import IgnoreErrors
from evenfeed.plan.flattening import GroupByWindow
from evenfeed.plan.node import Identity, Node
from evenfeed.plan.sources import FromGenerator


@final
class PassCounter:
    """Counts the passes over a random node, so that each can have its own order."""

    def __init__(self) -> None:
        self._next = 0
        self._lock = Lock()

    def take(self) -> int:
        """Return the number of a new pass."""
        with self._lock:
            number = self._next
            self._next += 1
            return number

    def peek(self) -> int:
        """Return the number of the next pass, without counting it."""
        return self._next


@final
class Memory:
    """Holds the elements that a cache keeps between passes.

    Attributes:
        content: The elements of a pass; None until a pass is complete.
        promised: The pass that a restored iterator expects to be cached, while it is read again.
        lock: Held while a complete pass is stored.
    """

    def __init__(self) -> None:
        self.content: Any = None
        self.promised: Any = None
        self.lock = Lock()

    @property
    def origin(self) -> Any:
        """The pass that is cached, or None."""
        return self.promised if self.content is None else self.content.origin


class Skipped(NamedTuple):
    """An element that was dropped because of an error.

    Attributes:
        file: The file it comes from; None if the error is not about a file.
        offset: The byte offset in the file, or in its decompressed content; None if unknown.
        reason: The error's class, message and notes.
    """

    file: str | None
    offset: int | None
    reason: str


@final
class Ignored:
    """The elements that were dropped in all passes over a dataset.

    Attributes:
        count: The number of dropped elements.
        skipped: The last thousand of them.
    """

    def __init__(self, count: int = 0, skipped: Iterable[Skipped] = ()) -> None:
        self.count = count
        self.skipped: deque[Skipped] = deque(skipped, maxlen=1000)
        self._lock = Lock()

    def add(self, error: BaseException) -> Skipped:
        """Record an error."""
        skipped = _skipped(error)
        with self._lock:
            self.count += 1
            self.skipped.append(skipped)
        return skipped

    def __reduce__(self) -> tuple[Any, ...]:
        return Ignored, (self.count, tuple(self.skipped))


def _skipped(error: BaseException) -> Skipped:
    known = isinstance(error, EvenfeedError)
    message = "\n".join([str(error), *getattr(error, "__notes__", [])])
    reason = f"{type(error).__name__}: {message}"
    return Skipped(error.file, error.offset, reason) if known else Skipped(None, None, reason)


# The processor time is measured at first, then once in so many times: it takes a system call.
_ALL_SPLIT: Final = 16
_SPLIT: Final = 8
# When calls of a function began: the time, and the processor time of the thread if that is measured.
CallStart: TypeAlias = tuple[float, float | None]


class Meter:
    """Counts the elements that a function has processed, and the time that this took.

    Attributes:
        rows: The number of elements.
        seconds: The time, summed over all threads.
        singly: How many of the elements were processed one by one.
    """

    def __init__(self) -> None:
        self.rows = 0
        self.seconds = 0.0
        self.singly = 0
        self._split = 0.0  # the part of `seconds` of which it is known how long the function waited
        self._waited = 0.0
        self._lock = Lock()

    def begin(self) -> CallStart:
        """Return the time at which calls begin, for `end`."""
        return perf_counter(), None

    def end(self, start: CallStart, rows: int, *, singly: bool = False) -> None:
        """Count the elements of calls that end now, in the thread in which they began."""
        began, processor = start
        seconds, waited = perf_counter() - began, None
        if processor is not None:
            waited = max(0.0, seconds - (thread_time() - processor))
        self.add(rows, seconds, waited=waited, singly=singly)

    def add(
        self, rows: int, seconds: float, *, waited: float | None = None, singly: bool = False
    ) -> None:
        """Count more elements.

        Args:
            rows: How many.
            seconds: The time that they took.
            waited: The part of it in which no processor ran the function; None if that was not measured.
            singly: Whether they were processed one by one.
        """
        with self._lock:
            self.rows += rows
            self.seconds += seconds
            self.singly += rows if singly else 0
            if waited is not None:
                self._split += seconds
                self._waited += waited

    def add_singly(self, rows: int) -> None:
        """Count elements that were processed one by one, among others that are counted with them."""
        with self._lock:
            self.singly += rows

    @property
    def waited(self) -> float:
        """About how long no processor ran the function: some of the calls are measured."""
        return self.seconds * self._waited / self._split if self._split else 0.0

    @property
    def rate(self) -> float | None:
        """Elements per second and thread; None before the first element."""
        return self.rows / self.seconds if self.seconds else None


@final
class PassMeter(Meter):
    """Counts what a function does in one pass, and adds it to the meter of all passes.

    Attributes:
        splits: Whether it measures how long the function waits.

    Args:
        whole: The meter of all passes.
        splits: Whether to measure that. It says nothing about compiled functions, which compute in other threads.
    """

    def __init__(self, whole: Meter, *, splits: bool) -> None:
        super().__init__()
        self.splits = splits
        self._whole = whole
        self._begun = 0

    def begin(self) -> CallStart:
        if not self.splits:
            return perf_counter(), None
        self._begun = begun = self._begun + 1
        is_split = begun <= _ALL_SPLIT or not begun % _SPLIT
        return perf_counter(), thread_time() if is_split else None

    def add(
        self, rows: int, seconds: float, *, waited: float | None = None, singly: bool = False
    ) -> None:
        super().add(rows, seconds, waited=waited, singly=singly)
        self._whole.add(rows, seconds, waited=waited, singly=singly)


@final
class CallRecord:
    """What the calls of a user function have shown.

    Attributes:
        effects: Its side effects.
        meter: How fast it runs, without compilations.
        was_called: Whether it was called in the latest pass.
        is_called_here: Whether AUTOTUNE calls it in the thread that reads; None until it has measured that.
        opened: How many datasets it has made.
        is_checked: Whether the template of these datasets has made the elements of a dataset that the function has made.
        joined: The program of the chain of maps that ends with it, if it was joined with others.
    """

    def __init__(self, effects: Effects | None = None) -> None:
        self.effects = Effects() if effects is None else effects
        self.meter = Meter()
        self.was_called = False
        self.is_called_here: bool | None = None
        self.opened = 0
        self.is_checked = False
        self.joined: object = None


@final
class LastGenerator:
    """Recognises a generator that the function of `from_generator` returns again, which cannot start over."""

    def __init__(self) -> None:
        self._last: Callable[[], object] = lambda: None

    def is_again(self, found: Any) -> bool:
        """Return True if this is the generator of the last call. Other iterables may start over."""
        if type(found) is not GeneratorType:
            return False
        again = self._last() is found
        self._last = weakref.ref(cast(Any, found))
        return again


_passes: Final = WeakTable[PassCounter]()
_memories: Final = WeakTable[Memory]()
_ignored: Final = WeakTable[Ignored]()
_effects: Final = WeakTable[Effects]()
_generators: Final = WeakTable[LastGenerator]()
_calls: Final = WeakTable[CallRecord]()


def passes_of(node: Node) -> PassCounter:
    """Return the counter of the passes over a random node."""
    return _passes.of(node.identity, PassCounter)


def memory_of(node: Node) -> Memory:
    """Return the memory of a cache."""
    return _memories.of(node.identity, Memory)


def ignored_by(node: Node) -> Ignored:
    """Return the errors that a node has ignored."""
    return _ignored.of(node.identity, Ignored)


def ignored_in(plan: Node) -> Ignored:
    """Return the errors that the last `ignore_errors` of a plan has ignored."""
    found = (node for node in plan.walk() if isinstance(node, IgnoreErrors))
    nearest = next(found, None)
    return Ignored() if nearest is None else ignored_by(nearest)


def effects_of(node: FromGenerator | GroupByWindow) -> Effects:
    """Return the side effects of a node's own functions, as far as they are known."""
    known = node.effects if isinstance(node, GroupByWindow) else Effects()
    return _effects.of(node.identity, known.copy)


def last_generator_of(node: FromGenerator) -> LastGenerator:
    """Return what is known of the generator that a node read last."""
    return _generators.of(node.identity, LastGenerator)


def calls_of(function: Identity) -> CallRecord:
    """Return what the calls of a user function have shown, given its identity."""
    return _calls.of(function, CallRecord)


def new_calls(function: Identity, effects: Effects) -> None:
    """Start the record of a function, with the effects that are known before the first call."""
    _calls.put(function, CallRecord(effects))
