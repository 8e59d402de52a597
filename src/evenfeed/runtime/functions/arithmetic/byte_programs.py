"""Functions that make floats of images of bytes, as `(cast(image, float32) / 255 - mean) / deviation` does, in one pass.

NumPy passes over memory once for each step, and a float image does not fit in the fastest cache.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.lazy import LazyModule
from evenfeed.core.text.numba_loops import is_installed
from evenfeed.runtime.functions.arithmetic.column_steps import ColumnStep, cast

if TYPE_CHECKING:
    from evenfeed.runtime.functions.arithmetic import byte_loops
else:
    byte_loops = LazyModule("evenfeed.runtime.functions.arithmetic.byte_loops")

# About 50 photographs of 224 x 224 pixels: fewer are not worth the time in which Numba is loaded.
_ENOUGH: Final = 1 << 23
# The numbers of a line and those of each step fit in the fastest cache together.
_MOST_IN_LINE: Final = 1 << 12

# The names of the steps in `byte_loops`: with the value first, and with the value second.
_NAMES: Final[dict[Callable[..., Any], tuple[str, str]]] = {
    np.add: ("ADD", "ADD"),
    np.subtract: ("SUBTRACT", "SUBTRACT_FROM"),
    np.multiply: ("MULTIPLY", "MULTIPLY"),
    np.true_divide: ("DIVIDE", "DIVIDE_INTO"),
}


class SeenBytes:
    """The number of values that this process has computed with NumPy."""

    values = 0


@final
@dataclass(frozen=True, slots=True, eq=False)
class ByteProgram:
    """A function of one column of images of bytes.

    Attributes:
        column: The column of the images.
        shape: The shape of an image.
        steps: The names of the steps.
        numbers: For each step, a number for each value of a line.
    """

    column: int
    shape: tuple[int, ...]
    steps: Sequence[str]
    numbers: Array

    def run(self, columns: Sequence[Array | list[Array]], out: Array) -> bool:
        """Write the results for all images; return False if NumPy shall compute them."""
        if not _are_worth_it(out.size):
            return False
        kinds = np.array([getattr(byte_loops, name) for name in self.steps])
        lines = out.reshape(len(out), self.shape[0], -1)
        for image, new in zip(columns[self.column], lines, strict=True):
            values, step = _in_lines(image)
            byte_loops.compute(values, step, kinds, self.numbers, new)
        return True


def byte_program(
    steps: Sequence[ColumnStep],
    values: Sequence[Any],
    by_row: Collection[int],
    given: Sequence[tuple[tuple[int, ...], Any]],
    result: tuple[int, tuple[tuple[int, ...], Any]],
) -> ByteProgram | None:
    """Return the program for steps that each take the result of the one before, and a constant; None for others.

    Args:
        steps: The steps, in order.
        values: A slot for each value; those of constants are filled.
        by_row: The slots of values that differ from row to row.
        given: The shapes and dtypes of the columns and variables.
        result: The slot of the result, and the shape and dtype of its rows.
    """
    slot, (shape, dtype) = result
    if dtype != np.float32 or len(shape) != 3 or not 0 < prod(shape[1:]) <= _MOST_IN_LINE:
        return None
    if len(steps) < 2 or getattr(steps[0].apply, "func", None) is not cast:
        return None
    first, *others = steps
    (column,) = first.sources
    if column not in by_row or column >= len(given) or given[column] != (shape, np.uint8):
        return None
    at, names, numbers = first.target, list[str](), list[Array]()
    for step in others:
        found = _step(step, at, values, by_row, shape)
        if found is None:
            return None
        names.append(found[0])
        numbers.append(found[1])
        at = step.target
    return ByteProgram(column, shape, names, np.array(numbers)) if at == slot else None


def _step(
    step: ColumnStep,
    at: int,
    values: Sequence[Any],
    by_row: Collection[int],
    shape: tuple[int, ...],
) -> tuple[str, Array] | None:
    """Return the name of a step that takes a value and a constant, and the constant for a line; None for others."""
    if step.apply not in _NAMES or len(step.sources) != 2 or at not in step.sources:
        return None
    place = list(step.sources).index(at)
    other = step.sources[1 - place]
    constant: Array | None = None if other in by_row else values[other]
    if constant is None or constant.dtype != np.float32:
        return None
    line = np.ascontiguousarray(np.broadcast_to(constant, shape)).reshape(shape[0], -1)
    bits = line.view(np.uint32)  # 0.0 equals -0.0
    return (_NAMES[step.apply][place], line[0]) if (bits == bits[0]).all() else None


def _in_lines(image: Array) -> tuple[Array, int]:
    """Return the bytes from the first line to the end of the last, and how far it is from line to line."""
    height, width, channels = image.shape
    length, step = width * channels, image.strides[0]
    if image.strides[1:] != (channels, 1) or step < length:
        return np.ascontiguousarray(image).reshape(-1), length
    extent = (height - 1) * step + length
    return np.lib.stride_tricks.as_strided(image, (extent,), (1,), writeable=False), step


def _are_worth_it(values: int) -> bool:
    if SeenBytes.values < _ENOUGH:
        SeenBytes.values += values
        return False
    return is_installed()
