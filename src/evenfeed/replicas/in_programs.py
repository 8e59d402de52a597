"""Meetings of plain Python replicas inside what a user compiles: `jit`, `scan`, `vmap`.

There the values of a collective exist only when the program runs. The program then calls back, and the
callbacks of all replicas meet. They are paired by their place in the trace of each replica and by
how often that place was reached, not by when they come: a program may run its parts in any order.
"""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.jax_door import jax
from evenfeed.replicas.crew import Crew
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.reduction import ReduceOp

# How many places each replica has traced. A compiled program outlives the run that it was traced in, so
# the places do too.
_places: Final = Counter[tuple[Replicas, int]]()

# The boards of the runs that are going on, by their replicas; a program does not know its run.
_boards: Final[dict[Replicas, list["Board"]]] = {}


def reduced_in_program(
    replicas: Replicas, replica: int, op: ReduceOp, values: list[Any]
) -> list[Any]:
    """Reduce what is traced: the program that it becomes part of calls back when it runs."""
    _places[replicas, replica] += 1
    place = _places[replicas, replica]

    def call(*arrays: Any) -> list[Array]:
        board = _boards[replicas][-1]
        return board.meet(place, replica, op, [np.asarray(array) for array in arrays])

    result = [jax.ShapeDtypeStruct(value.shape, value.dtype) for value in values]
    return list(jax.pure_callback(call, result, *values, vmap_method="broadcast_all"))


def used(replicas: Replicas) -> bool:
    """Tell whether any program of these replicas calls back."""
    return _places[replicas, 0] > 0


@contextmanager
def board_of(crew: Crew) -> Generator[None]:
    """Let the programs of a crew meet."""
    boards = _boards.setdefault(crew.replicas, [])
    boards.append(Board(crew))
    try:
        yield
    finally:
        boards.pop()


@final
class Board:
    """Where the programs of one run leave what they bring, and find what the others brought."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._lock = threading.Lock()
        self._times = Counter[tuple[int, int]]()
        self._brought: dict[tuple[int, int], dict[int, list[Array]]] = {}

    def meet(self, place: int, replica: int, op: ReduceOp, arrays: list[Array]) -> list[Array]:
        """Return the sums or means of what all replicas bring to this place at this time."""
        count = self._crew.replicas.count
        with self._lock:
            time = self._times[place, replica]
            self._times[place, replica] += 1
            brought = self._brought.setdefault((place, time), {})
            brought[replica] = arrays
            if len(brought) == count:
                del self._brought[place, time]  # the others hold it still
        self._crew.announce()
        self._crew.wait_in_program(
            lambda: len(brought) == count,
            lambda: [other for other in range(count) if other not in brought],
        )
        return [_reduced(op, [brought[r][i] for r in range(count)]) for i in range(len(arrays))]


def _reduced(op: ReduceOp, parts: list[Array]) -> Array:
    # In the order of the replicas: all of them get the same bits.
    total = sum(parts[1:], start=parts[0])
    return total if op is ReduceOp.SUM else np.asarray(total / len(parts), total.dtype)
