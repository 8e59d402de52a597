"""What every iterator over elements offers besides Python's own protocol."""

import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, NoReturn, Self, final

from evenfeed.core.callsite import where_raised
from evenfeed.core.errors import FailedPreconditionError, OutOfRangeError, described
from evenfeed.core.optional import ElementOptional, Optional


class _Thread(threading.local):
    """What a thread does instead of handing out elements, while a function is only looked at.

    Attributes:
        instead: Gets the iterator. Returns what stands for its next element, or None to read it; raises
            where there is no such thing.
    """

    instead: "Callable[[Iterator], Any] | None" = None


reading = _Thread()


def interruption(error: Exception, before: BaseException | None) -> BaseException | None:
    """Return the Ctrl-C that an error was raised in place of, outside of the user's own code.

    Python's locks do that where it comes between two of their lines: "release unlocked lock".

    Args:
        error: What was raised.
        before: What was being handled when the work began in which it was raised.
    """
    if where_raised(error) is not None:
        return None
    found: BaseException | None = error
    while isinstance(found, Exception) and found is not before:
        found = found.__cause__ or found.__context__
    return None if found is before else found


class Iterator(ABC):
    """What `iter(dataset)` returns: TensorFlow's ways to ask for the next element, on top of `__next__`.

    Examples:
        >>> import evenfeed as tf
        >>> iterator = iter(tf.data.Dataset.range(2))
        >>> isinstance(iterator, tf.data.Iterator), int(iterator.get_next())
        (True, 0)
    """

    # Who watched the function that made it, if one did.
    made_under: Any = None

    @property
    @abstractmethod
    def element_spec(self) -> Any:
        """The specs of an element's parts, in the structure of an element."""

    @abstractmethod
    def __next__(self) -> Any: ...

    def __iter__(self) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            described(
                "An iterator cannot be sent to another process, or be pickled.",
                fix="send the dataset and iterator.get_state(), and call set_state(state) on an iterator there.",
            )
        )

    def next(self) -> Any:
        """Return the next element, as `next(iterator)` does."""
        return self.__next__()

    def get_next(self) -> Any:
        """Return the next element; an OutOfRangeError after the last one."""
        try:
            return (
                self.__next__()
            )  # next() is a call of C code: Ctrl-C behind it would lose the element
        except StopIteration:
            raise OutOfRangeError(
                "The data has ended.",
                fix="iterate with a for loop, or ask get_next_as_optional().has_value().",
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
    """Something that must let go of what it holds in a fork."""

    @abstractmethod
    def after_fork(self) -> None:
        """Let go of what belongs to the parent; this process is a fork. Must not wait for locks."""


_known: Final[weakref.WeakSet[Forkable]] = weakref.WeakSet()


@final
class Owner:
    """The process that made an iterator.

    Args:
        of: Told when this process is a fork of that one.
    """

    __slots__ = ("_process",)

    def __init__(self, of: Forkable | None = None) -> None:
        self._process = os.getpid()
        if of is not None:
            _known.add(of)

    @property
    def is_here(self) -> bool:
        """Whether this is the process."""
        return self._process == os.getpid()

    def check(self) -> None:
        """Raise in a fork, where the iterator would wait for threads that are not there.

        Raises:
            FailedPreconditionError: This is another process.
        """
        if not self.is_here:
            raise FailedPreconditionError(
                f"The iterator was made by process {self._process}, and this is its fork {os.getpid()}: a fork "
                "has none of the threads that read for the iterator.",
                fix="start processes with multiprocessing.get_context('spawn'), and begin an iterator of "
                "its own in each: iter(dataset).",
            )


def _tell_all() -> None:
    for one in list(_known):
        one.after_fork()


os.register_at_fork(after_in_child=_tell_all)
