"""Shapes and dtypes of the parts on all workers: every worker must compile the same program."""

from collections.abc import Sequence
from typing import Any, NamedTuple, final
from weakref import ref
from zlib import crc32

from evenfeed.core.conversion import is_tensor
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.replicas.mesh import Replicas
from evenfeed.tensors.creation import convert_to_tensor


class Aval(NamedTuple):
    """The shape and dtype of a part."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def is_text(self) -> bool:
        """Whether it is text. Text stays on the host."""
        return self.dtype == "object"


def aval_of(part: Any) -> Aval | None:
    """Return the shape and dtype of a part; None if it is not a tensor."""
    if isinstance(part, (bool, int, float, complex)):
        part = convert_to_tensor(part)
    return Aval(tuple(part.shape), str(part.dtype)) if is_tensor(part) else None


def avals_of_all(
    replicas: Replicas, values: Sequence[Sequence[Any]]
) -> list[tuple[Aval | None, ...]]:
    """Return the shapes and dtypes of each value's parts on all replicas. All workers must call this.

    Args:
        replicas: The replicas that hold the parts.
        values: For each value, the parts of this worker's replicas.
    """
    own = [[aval_of(part) for part in parts] for parts in values]
    if not replicas.spans:
        return [tuple(avals) for avals in own]
    received = replicas.session.exchange("the shapes of values", own)
    if len(set(map(len, received))) > 1:
        raise InvalidArgumentError(
            f"Workers must pass the same number of values, but they pass {list(map(len, received))}.",
            fix="make all workers run the same program on values of the same structure.",
        )
    return [
        tuple(aval and Aval(tuple(aval[0]), aval[1]) for aval in replicas.by_replica(rows))
        for rows in zip(*received, strict=True)
    ]


def remember_alike(replicas: Replicas, array: Any) -> None:
    """Record that an array has the same shape and dtype on all workers, as a result of a common program has."""
    known, number = replicas.session.same_on_all, id(array)
    known[number] = ref(array, lambda _: known.pop(number, None))


@final
class PlainArrays:
    """Checks that the plain arrays passed to a program have the same shape on all workers.

    Each array object is compared only once.

    Args:
        replicas: The replicas that run the program.
    """

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._known = replicas.session.same_on_all

    def are_alike(self, arrays: Sequence[Any]) -> bool:
        """Return True if the arrays have the same shapes and dtypes on all workers. All workers must call this."""
        own = [array for array in arrays if getattr(array, "is_fully_addressable", True)]
        if all(map(self._knows, own)):
            return True
        number = crc32(repr(list(map(aval_of, own))).encode())
        subject = "the arrays that a compiled function is given"
        if len(set(self._replicas.session.exchange(subject, number))) > 1:
            return False
        for array in own:
            remember_alike(self._replicas, array)
        return True

    def _knows(self, array: Any) -> bool:
        found = self._known.get(id(array))
        return found is not None and found() is array
