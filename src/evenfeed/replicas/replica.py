"""What one replica can do while its function runs: meet the others."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, final

from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.reduction import ReduceOp


@contextmanager
def noted(note: str) -> Generator[None]:
    """Add a note to an error of the user's function."""
    try:
        yield
    except Exception as error:
        error.add_note(note)
        raise


class Replica(ABC):
    """One replica of a function that runs."""

    replicas: Replicas

    @property
    @abstractmethod
    def index(self) -> Any:
        """Which one: a number, or a tensor in a compiled function."""

    @property
    def place(self) -> int:
        """Which of this worker's, where code runs for one of them."""
        return 0

    @abstractmethod
    def all_reduce(self, op: ReduceOp, arrays: Sequence[Any]) -> list[Any]:
        """Return the sums or means of what all replicas pass, in one collective."""

    @abstractmethod
    def all_gather(self, arrays: Sequence[Any], axis: int) -> list[Any]:
        """Return what all replicas pass, joined along an axis."""

    @abstractmethod
    def from_first(self, array: Any) -> Any:
        """Return what replica 0 passes."""

    @abstractmethod
    def merge(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call `function` once, across replicas, with what all pass, and return this one's share."""


@final
class Alone(Replica):
    """The only replica: it meets nobody."""

    def __init__(
        self, replicas: Replicas, across: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self.replicas = replicas
        self._across = across

    @property
    def index(self) -> int:
        """Return 0."""
        return 0

    def all_reduce(self, op: ReduceOp, arrays: Sequence[Any]) -> list[Any]:  # noqa: ARG002 - of one, either
        """Return the arrays."""
        return list(arrays)

    def all_gather(self, arrays: Sequence[Any], axis: int) -> list[Any]:  # noqa: ARG002 - there is one
        """Return the arrays."""
        return list(arrays)

    def from_first(self, array: Any) -> Any:
        """Return the array."""
        return array

    def merge(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call the function."""
        with self._across():
            return function(*args, **kwargs)
