"""What all curves have in common: one point of one variant is measured in this process, and printed as JSON."""

import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

# Measures a variant at a place on the axis, for about so many seconds: how much it does per second.
Variant = Callable[[int, float], float]
Variants = dict[str, Variant]

_PARTS = 3  # of the time; the best one counts
_CHUNK = 0.001  # in seconds: how often to look at the clock


def main(variants: Variants) -> None:
    """Measure the variant and the place that the arguments name, for about as many seconds as the third says."""
    name, place, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    print(json.dumps({"rate": variants[name](place, seconds)}))


def rate(elements: Iterable[Any], weight_of: Callable[[Any], int], seconds: float) -> float:
    """Return how much a loop over the elements does per second, after a warm-up of half the time.

    Elements that end are an error of the curve: each repeats its rows, or has more of them than can be read.
    """
    loop = _Loop(iter(elements), weight_of)
    loop.run(seconds / 2)
    return max(loop.run(seconds / _PARTS) for _ in range(_PARTS))


class _Loop:
    """Reads elements, and looks at the clock seldom."""

    def __init__(self, iterator: Iterator[Any], weight_of: Callable[[Any], int]) -> None:
        self._iterator = iterator
        self._weight_of = weight_of
        self._step = 1

    def run(self, seconds: float) -> float:
        """Read for some seconds; return how much was read per second."""
        start = last = time.perf_counter()
        done = 0
        while True:
            weights = list(map(self._weight_of, islice(self._iterator, self._step)))
            if len(weights) < self._step:
                raise RuntimeError(f"the elements ended after {done + sum(weights)} rows")
            done += sum(weights)
            now = time.perf_counter()
            if now - last < _CHUNK / 2:
                self._step *= 2
            elif now - last > 2 * _CHUNK:
                self._step = max(1, self._step // 2)
            last = now
            if now - start >= seconds:
                return done / (now - start)


def pass_rate(
    start: Callable[[], Iterable[Any]], weight_of: Callable[[Any], int], seconds: float
) -> float:
    """Return how much whole passes do per second, from their start to their end: the best of two or more."""
    best, end = 0.0, time.perf_counter() + 1.5 * seconds
    for number in range(1000):
        begun = time.perf_counter()
        done = sum(map(weight_of, start()))
        now = time.perf_counter()
        best = max(best, done / (now - begun))
        if number and now > end:
            break
    return best
