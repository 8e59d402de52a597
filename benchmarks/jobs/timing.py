"""What all jobs have in common: one variant is run in this process, and its figure printed as JSON."""

import json
import sys
import time
from collections.abc import Callable, Iterable
from itertools import islice
from statistics import median
from typing import Any

Variants = dict[str, Callable[[float], dict[str, float]]]
Step = Callable[[], Any]


def main(variants: Variants) -> None:
    """Run the variant that the first argument names, for about as many seconds as the second says."""
    name, seconds = sys.argv[1], float(sys.argv[2])
    print(json.dumps(variants[name](seconds)))


def rate(
    elements: Iterable[Any], rows_of: Callable[[Any], int], seconds: float, step: int = 32
) -> dict[str, float]:
    """Return the rows per second of a loop over the elements, after a warm-up.

    Args:
        elements: More than can be read in the time.
        rows_of: How many rows an element stands for.
        seconds: How long to measure.
        step: How many elements to read between two looks at the clock.
    """
    iterator = iter(elements)
    next(iterator)
    _looped(iterator, rows_of, seconds / 2, step)
    return {"rate": _looped(iterator, rows_of, seconds, step)}


def _looped(
    iterator: Iterable[Any], rows_of: Callable[[Any], int], seconds: float, step: int
) -> float:
    start, rows, passed = time.perf_counter(), 0, 0.0
    while passed < seconds:
        rows += sum(map(rows_of, islice(iterator, step)))
        passed = time.perf_counter() - start
    return rows / passed


def rates_of(
    steps: dict[str, Step], seconds: float, block: Callable[[Any], Any], count: int = 4
) -> dict[str, float]:
    """Let steps take turns for some seconds; return how many per second each made, as the median of rounds.

    Args:
        steps: The steps by their names.
        seconds: How long to measure each.
        block: Waits for what a step returned.
        count: How many steps a round has.
    """
    times = times_of(steps, seconds, block, count)
    return {name: count / median(taken) for name, taken in times.items()}


def paired(
    steps: dict[str, Step], seconds: float, block: Callable[[Any], Any], count: int
) -> dict[str, float]:
    """Return rates as `rates_of` does, whose ratios are the medians of the ratios in each round.

    A machine that is slower for some seconds is so for all: ratios of a round vary less than times do.
    """
    times = times_of(steps, seconds, block, count)
    *others, last = steps
    rate = count / median(times[last])
    ratios = {
        name: median(theirs / mine for mine, theirs in zip(times[name], times[last], strict=True))
        for name in others
    }
    return {last: rate} | {name: ratio * rate for name, ratio in ratios.items()}


def times_of(
    steps: dict[str, Step], seconds: float, block: Callable[[Any], Any], count: int
) -> dict[str, list[float]]:
    """Let steps take turns for some seconds; return how long each took in each round."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for step in steps.values():
        for _ in range(3):
            block(step())
    end = time.perf_counter() + seconds * len(steps)
    while not all(times.values()) or time.perf_counter() < end:
        for name, step in steps.items():
            start = time.perf_counter()
            for _ in range(count):
                result = step()
            block(result)
            times[name].append(time.perf_counter() - start)
    return times
