"""The shapes and dtypes of what the replicas of all workers hold: no program may have shapes that others have not."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, final
from weakref import WeakKeyDictionary, ref
from zlib import crc32

from evenfeed.core.conversion import is_tensor
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.replicas.mesh import Replicas
from evenfeed.tensors.creation import convert_to_tensor


class Look(NamedTuple):
    """What a part looks like to a program."""

    shape: tuple[int, ...]
    dtype: str

    @property
    def is_text(self) -> bool:
        """Whether it is text, which stays on the host."""
        return self.dtype == "object"


def look_of(part: Any) -> Look | None:
    """Return the look of a part; None where it is no tensor."""
    if isinstance(part, (bool, int, float, complex)):
        part = convert_to_tensor(part)
    return Look(tuple(part.shape), str(part.dtype)) if is_tensor(part) else None


def looks_of_all(
    replicas: Replicas, values: Sequence[Sequence[Any]]
) -> list[tuple[Look | None, ...]]:
    """Return for each value the looks of its parts on all replicas. All workers must come to here.

    Args:
        replicas: Whose parts they are.
        values: For each value the parts of this worker's replicas.
    """
    own = [[look_of(part) for part in parts] for parts in values]
    if not replicas.spans:
        return [tuple(looks) for looks in own]
    heard = replicas.told("the shapes of values", own)
    if len(set(map(len, heard))) > 1:
        raise InvalidArgumentError(
            f"The workers bring different numbers of values here: {list(map(len, heard))}.",
            fix="let all workers run the same program on values of the same structure.",
        )
    return [
        tuple(look and Look(tuple(look[0]), look[1]) for parts in rows for look in parts)
        for rows in zip(*heard, strict=True)
    ]


# Arrays of which workers know that they look the same on all of them, by the replicas that computed with them.
_ALIKE: Final[WeakKeyDictionary[Replicas, dict[int, ref[Any]]]] = WeakKeyDictionary()


def remember_alike(replicas: Replicas, array: Any) -> None:
    """Know that an array looks the same on all workers, such as a result of a program of all."""
    known, number = _ALIKE.setdefault(replicas, {}), id(array)
    known[number] = ref(array, lambda _: known.pop(number, None))


@final
class PlainArrays:
    """Arrays of each worker's own that a program is given: they must have one shape on all workers.

    An array that was compared before is not compared again, as long as it lives.

    Args:
        replicas: Who runs the program.
    """

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._known = _ALIKE.setdefault(replicas, {})

    def are_alike(self, arrays: Sequence[Any]) -> bool:
        """Tell whether the arrays look the same on all workers. All of them must come to here."""
        own = [array for array in arrays if getattr(array, "is_fully_addressable", True)]
        if all(map(self._knows, own)):
            return True
        number = crc32(repr(list(map(look_of, own))).encode())
        if (
            len(set(self._replicas.told("the arrays that a compiled function is given", number)))
            > 1
        ):
            return False
        for array in own:
            remember_alike(self._replicas, array)
        return True

    def _knows(self, array: Any) -> bool:
        found = self._known.get(id(array))
        return found is not None and found() is array
