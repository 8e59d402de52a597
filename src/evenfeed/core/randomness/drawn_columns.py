"""Random operations in a traced function: each draws a column of numbers for a whole Block.

The numbers of an element follow from the seeds and from how much the operation has drawn before in the same pass. So
they are those that the function would draw if it were called with one element after another.
"""

import os
from collections import Counter
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from evenfeed.core import dtypes
from evenfeed.core.dtypes import DType
from evenfeed.core.randomness.philox import Draw, Stream
from evenfeed.core.randomness.random_bits import words_at
from evenfeed.core.randomness.seeds import OperationSeed, key_of_operation, seed_words
from evenfeed.core.specs import TensorSpec
from evenfeed.core.traced.kernel_stages import Kernel, results_of

_LOW_32 = 2**32 - 1


@final
class DrawsVary(BaseException):
    """A traced function draws more numbers for longer elements, so it must run per element. Users never see it."""


@final
@dataclass(frozen=True)
class RandomOperation:
    """A random operation in a function of a dataset.

    Attributes:
        place: Its number among the random operations of the function.
        kind: Its name.
        seeds: Its seeds; None if the operating system draws. A negative one stands for the place.
        blocks: How many blocks of its stream each call reserves, if it has a seed of its own.
    """

    place: int
    kind: str
    seeds: OperationSeed | None
    blocks: int

    @property
    def step(self) -> int:
        """How far each call moves on in the operation's sequence."""
        return self.blocks if self.has_own_seed else 1

    @property
    def has_own_seed(self) -> bool:
        """Whether its numbers are TensorFlow's: one stream for all calls."""
        return self.seeds is not None and self.seeds[1] >= 0

    def streams(self, turns: NDArray[np.int64]) -> Stream:
        """Return a stream for each call, given where the operation's sequence is at each."""
        zeros = np.zeros((len(turns), 1), dtypes.uint32)
        if self.seeds is not None and self.has_own_seed:
            first, second = seed_words(self.seeds)
            low, high = _words(turns & _LOW_32), _words(turns >> 32)
            return Stream(np, [zeros + first, zeros], [low, high, zeros + second, zeros])
        keys = self._keys(turns)
        return Stream(np, [keys[:, :1], keys[:, 1:]], [zeros] * 4)

    def _keys(self, turns: NDArray[np.int64]) -> NDArray[np.uint32]:
        if self.seeds is None:
            return np.frombuffer(os.urandom(8 * len(turns)), dtypes.uint32).reshape(-1, 2)
        return words_at(key_of_operation(self.kind, self.seeds), turns)


def _words(numbers: NDArray[np.int64]) -> NDArray[np.uint32]:
    return numbers.astype(dtypes.uint32)[:, None]


@final
@dataclass(frozen=True)
class DrawnColumn(Kernel):
    """Draws the numbers of one random operation for all elements of a Block."""

    operation: RandomOperation
    draw: Draw
    count: int
    dtype: DType

    def specs(self, *given: Any) -> list[Any]:
        del given
        return [TensorSpec([self.count], self.dtype)]

    def run(self, *columns: Any) -> list[Any]:
        """Return the numbers, given where the operation's sequence is at each element."""
        (turns,) = columns
        return [self.draw(self.operation.streams(turns), self.count, self.dtype)]


@final
@dataclass(frozen=True)
class TracedStream:
    """Stands for the stream of a random operation while a function is traced.

    Attributes:
        xp: `jax.numpy`.
        operation: The operation.
    """

    xp: Any
    operation: RandomOperation

    def drawn(self, draw: Draw, count: int, dtype: DType) -> Any:
        """Return the placeholder for the numbers that an element gets.

        Raises:
            DrawsVary: The function does not draw as many each time that it is traced.
        """
        try:
            found = results_of(DrawnColumn(self.operation, draw, count, dtype))
        except TypeError:
            raise DrawsVary from None
        assert found is not None
        # It is wider while the trace tries out wider integers.
        return found[0] if found[0].dtype.itemsize <= dtype.itemsize else found[0].astype(dtype)


@final
class Turns:
    """Where the random operations of a function are in their sequences, before the first element of a Block.

    Args:
        drawn: How much each operation has drawn in this pass.
        operations: The operations.
    """

    def __init__(self, drawn: Counter[Any], operations: tuple[RandomOperation, ...]) -> None:
        self._drawn = drawn
        self._operations = operations

    def at(self, operation: RandomOperation, start: int, count: int) -> NDArray[np.int64]:
        """Return where an operation is at each of `count` elements from `start`."""
        before = self._drawn[_key(operation)]
        return before + np.arange(start, start + count, dtype=np.int64) * operation.step

    def advance(self, count: int) -> None:
        """Move past `count` elements."""
        for operation in self._operations:
            self._drawn[_key(operation)] += count * operation.step


def _key(operation: RandomOperation) -> Any:
    return operation.place, operation.kind, operation.seeds
