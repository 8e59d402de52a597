"""A compiled loop that computes floats from bytes. Importing this module imports Numba."""

from typing import Any, Final

from evenfeed.core.conversion import Array
from evenfeed.core.text.numba_loops import compiled

# Compiled code does not distinguish NumPy numbers from Python numbers.
# pyright: reportArgumentType=false, reportReturnType=false

# What is done with a value x and a number c.
ADD: Final = 0  # x + c
SUBTRACT: Final = 1  # x - c
MULTIPLY: Final = 2  # x * c
DIVIDE: Final = 3  # x / c
SUBTRACT_FROM: Final = 4  # c - x
DIVIDE_INTO: Final = 5  # c / x


@compiled
def compute(values: Array, step: Any, steps: Array, numbers: Array, out: Array) -> None:
    """Take several steps with each line of an image, while it is in the fastest cache.

    Args:
        values: The bytes from the first line to the end of the last.
        step: How far it is from one line to the next.
        steps: What to do.
        numbers: For each step, a number for each value of a line.
        out: The results: the lines of float32.
    """
    width = out.shape[1]
    for line in range(out.shape[0]):
        old, new = values[line * step : line * step + width], out[line]
        for at in range(width):
            new[at] = old[at]
        for number in range(len(steps)):
            _take(steps[number], numbers[number], new)


@compiled
def _take(step: Any, numbers: Array, line: Array) -> None:
    """Take one step with each value of a line."""
    width = line.shape[0]
    if step == ADD:
        for at in range(width):
            line[at] = line[at] + numbers[at]
    elif step == SUBTRACT:
        for at in range(width):
            line[at] = line[at] - numbers[at]
    elif step == MULTIPLY:
        for at in range(width):
            line[at] = line[at] * numbers[at]
    elif step == DIVIDE:
        for at in range(width):
            line[at] = line[at] / numbers[at]
    elif step == SUBTRACT_FROM:
        for at in range(width):
            line[at] = numbers[at] - line[at]
    else:
        for at in range(width):
            line[at] = numbers[at] / line[at]
