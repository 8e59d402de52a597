"""The first element of a shuffled range of 10^9 rows, after the import: time, and memory over the import's."""

import resource
import time
from collections.abc import Callable, Iterable
from typing import Any

from timing import main

ROWS = 10**9
BUFFER = 10**6  # TensorFlow fills its buffer first: 10^9 elements would not fit into memory


def evenfeed(_: float) -> dict[str, float]:
    """Shuffle all rows."""
    from evenfeed.data import Dataset

    return _measured(lambda: Dataset.range(ROWS).shuffle(ROWS))


def tensorflow(_: float) -> dict[str, float]:
    """Shuffle a thousandth of the rows."""
    from tensorflow.data import Dataset

    return _measured(lambda: Dataset.range(ROWS).shuffle(BUFFER))


def grain(_: float) -> dict[str, float]:
    """Shuffle all rows."""
    import grain

    return _measured(lambda: grain.MapDataset.range(ROWS).shuffle(seed=0).to_iter_dataset())


def _measured(make: Callable[[], Iterable[Any]]) -> dict[str, float]:
    before, start = _peak(), time.perf_counter()
    next(iter(make()))
    return {"seconds": time.perf_counter() - start, "bytes": _peak() - before}


def _peak() -> int:
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


VARIANTS = {"evenfeed": evenfeed, "tf.data": tensorflow, "Grain": grain}

if __name__ == "__main__":
    main(VARIANTS)
