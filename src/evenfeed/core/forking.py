"""Keeps iterators to the process that made them: a fork has none of the threads that read for them."""

import os
import weakref
from abc import ABC, abstractmethod
from typing import Final, final

from evenfeed.core.errors import FailedPreconditionError


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
