"""The base class of iterators over elements, and what they do in a fork or while a function is probed."""

import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn, Self, final

from evenfeed.core.callsite import where_raised
from evenfeed.core.errors import FailedPreconditionError, OutOfRangeError, described
from evenfeed.core.optional import ElementOptional, Optional


class _Thread(threading.local):
    """What iterators do in this thread instead of reading, while a function is only probed.

    Attributes:
        instead: Called with the iterator. Returns a placeholder for its next element, or None to read the
            element; raises if there is no placeholder.
        starting: Called with an iterator before it begins a pass. Raises if nothing could be read: the pass would
            be counted.
    """

    instead: "Callable[[Iterator], Any] | None" = None
    starting: "Callable[[Iterator], object] | None" = None

    def check_start(self, iterator: "Iterator") -> None:
        """Raise if an iterator must not begin a pass now."""
        if self.starting is not None:
            self.starting(iterator)


reading = _Thread()


def interruption(error: Exception, before: BaseException | None) -> BaseException | None:
    """Return the KeyboardInterrupt that `error` hides, if it was raised outside of user code.

    If Ctrl-C interrupts Python's lock code between two lines, that code raises "release unlocked lock" instead.

    Args:
        error: The error that was raised.
        before: The exception that was being handled when the work started.
    """
    if where_raised(error) is not None:
        return None
    found: BaseException | None = error
    while isinstance(found, Exception) and found is not before:
        found = found.__cause__ or found.__context__
    return None if found is before else found


@final
@dataclass(frozen=True)
class StepRun:
    """Some consecutive elements of one shape, together.

    Attributes:
        count: How many there are.
        value: The structure of an element. Each array has a leading axis, with at least `count` entries.
        before: The position before them.
        device: The device that needs them, if they are on the host.
        read: What the iterator had read before, to be put back by `return_run`.
    """

    count: int
    value: Any
    before: Any = None
    device: Any = None
    read: Any = None


class Iterator(ABC):
    """What `iter(dataset)` returns: `__next__`, and TensorFlow's methods for the next element.

    Examples:
        >>> import evenfeed as tf
        >>> iterator = iter(tf.data.Dataset.range(2))
        >>> isinstance(iterator, tf.data.Iterator), int(iterator.get_next())
        (True, 0)
    """

    # The watcher of the function that created the iterator, if there was one.
    made_under: Any = None

    @property
    @abstractmethod
    def element_spec(self) -> Any:
        """The specs of an element's parts, in the structure of an element."""

    @abstractmethod
    def __next__(self) -> Any: ...

    @abstractmethod
    def get_state(self) -> dict[str, Any]:
        """Return the position after the last element, as JSON-compatible data."""

    @abstractmethod
    def set_state(self, state: dict[str, Any]) -> None:
        """Resume after the element at which `get_state` was called, in this or another process."""

    def peek_run(self, most: int, *, fills: bool = False) -> StepRun | None:
        """Return up to `most` next elements together. The position stays before them.

        None if the next element has to be read by itself: there is no other of its shape, or it is an error.

        Args:
            most: The most elements.
            fills: Whether the arrays always have the same length, also if there is just one element.
        """
        del most, fills
        return None

    def take_run(self, run: StepRun) -> bool:
        """Count what `peek_run` returned as delivered. Return False if another thread took some of it."""
        raise NotImplementedError(run)

    def return_run(self, run: StepRun) -> None:
        """Undo `take_run`, because what was delivered was not used. Does nothing if `take_run` did not take this run."""
        raise NotImplementedError(run)

    def __iter__(self) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            described(
                "An iterator cannot be pickled or sent to another process.",
                fix="send the dataset and iterator.get_state(), and call set_state(state) on a new iterator there.",
            )
        )

    def next(self) -> Any:
        """Return the next element, as `next(iterator)` does."""
        return self.__next__()

    def get_next(self) -> Any:
        """Return the next element. Raises OutOfRangeError after the last one."""
        try:
            return self.__next__()  # not next(): Ctrl-C after that C call would lose the element
        except StopIteration:
            raise OutOfRangeError(
                "The data has ended.",
                fix="iterate with a for loop, or check get_next_as_optional().has_value().",
            ) from None

    def get_next_as_optional(self) -> Optional:
        """Return the next element as an Optional, which is empty after the last one."""
        element = ElementOptional(None, self.element_spec)
        try:
            element.value = self.__next__()
        except StopIteration:
            return Optional.empty(self.element_spec)
        else:
            return element


class Forkable(ABC):
    """An object that must release its resources in a forked process."""

    @abstractmethod
    def after_fork(self) -> None:
        """Release what belongs to the parent process. Called in a fork; must not wait for locks."""


@final
class _This:
    """The number of this process. Asking the system at each read takes longer."""

    process: int = os.getpid()


_this: Final = _This()
_known: Final[weakref.WeakSet[Forkable]] = weakref.WeakSet()


@final
class Owner:
    """The process that created an iterator.

    Args:
        of: The object to notify in a fork of that process.
    """

    __slots__ = ("_process",)

    def __init__(self, of: Forkable | None = None) -> None:
        self._process = _this.process
        if of is not None:
            _known.add(of)

    @property
    def is_here(self) -> bool:
        """True if this process created the iterator."""
        return self._process == _this.process

    def check(self) -> None:
        """Raise in a fork, where the iterator would wait for threads that do not exist.

        Raises:
            FailedPreconditionError: Another process created the iterator.
        """
        if self._process != _this.process:
            raise FailedPreconditionError(
                f"Process {self._process} created the iterator, but its fork {_this.process} uses it: a fork "
                "does not have the threads that read for the iterator.",
                fix="start processes with multiprocessing.get_context('spawn'), and create a new iterator "
                "in each: iter(dataset).",
            )


def _notify_all() -> None:
    _this.process = os.getpid()
    for one in list(_known):
        one.after_fork()


os.register_at_fork(after_in_child=_notify_all)
