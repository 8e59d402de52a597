"""The jobs of `evenfeed bench`, as each library's own guide would write them. One process runs one library.

They are small cousins of those in the repository's `benchmarks`, which an installed package does not have.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import count, islice
from typing import Any, Final, TypeAlias

import numpy as np

_ROWS: Final = 100_000
_BATCH: Final = 512
_WORDS: Final = ["the", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog"]

# What a library measures: batches of `_BATCH` rows without end.
Batches: TypeAlias = Iterable[Any]
Jobs: TypeAlias = dict[str, Callable[[], Batches]]

TABLE: Final = "rows of 32 floats: shuffle, map, batch"
GENERATOR: Final = "a Python generator: batch"
LINES: Final = "lines of a text file: batch"
PYTHON: Final = "Python code for each row: batch"
JOBS: Final = (TABLE, GENERATOR, LINES, PYTHON)


def table() -> tuple[Any, Any]:
    """Return columns of floats and of labels."""
    x = np.random.default_rng(0).random((_ROWS, 32), dtype=np.float32)
    return x, np.arange(_ROWS)


def pairs() -> Iterator[tuple[int, float]]:
    """Yield a whole number and a fraction, without end."""
    for number in count():
        yield number, number * 0.5


def hashed(number: Any) -> Any:
    """Compute something that no compiler sees, as a tokenizer does."""
    return np.int64(sum(hash(f"{word}{int(number)}") & 0xFFFF for word in _WORDS))


def text_file(folder: str) -> str:
    """Write a file of lines, and return its name."""
    path = os.path.join(folder, "lines.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"line number {number} with some text in it\n" for number in range(_ROWS))
    return path


def _like_tf_data(module: str, path: str) -> Jobs:
    """Return the jobs for evenfeed and for TensorFlow: the same code, but for Python functions."""
    tf: Any = import_module(module)
    spec = tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.float32)

    def of_python() -> Batches:
        rows = tf.data.Dataset.range(1 << 40)
        if module == "evenfeed":
            return rows.map(hashed, tf.data.AUTOTUNE, output_signature=spec[0]).batch(_BATCH)
        calls = rows.map(lambda x: tf.numpy_function(hashed, [x], tf.int64), tf.data.AUTOTUNE)  # pyright: ignore
        return calls.batch(_BATCH)

    def of_table() -> Batches:
        rows = tf.data.Dataset.from_tensor_slices(table()).shuffle(_ROWS)
        rows = rows.map(lambda x, y: (x * 2 - 1, y))  # pyright: ignore
        return rows.batch(_BATCH, drop_remainder=True).repeat().prefetch(2)

    return {
        TABLE: of_table,
        GENERATOR: lambda: tf.data.Dataset.from_generator(pairs, output_signature=spec).batch(
            _BATCH
        ),
        LINES: lambda: (
            tf.data.TextLineDataset(path).batch(_BATCH, drop_remainder=True).repeat().prefetch(2)
        ),
        PYTHON: of_python,
    }


def _grain(path: str) -> Jobs:
    """Return the jobs for Grain, which reads rows by position: it has no generators and no lines."""
    del path
    grain: Any = import_module("grain")

    class Source:
        def __init__(self) -> None:
            self._x, self._y = table()

        def __len__(self) -> int:
            return _ROWS

        def __getitem__(self, index: int) -> Any:
            return self._x[index], self._y[index]

    def of_table() -> Batches:
        rows = grain.MapDataset.source(Source()).shuffle(seed=0)
        rows = rows.map(lambda row: (row[0] * 2 - 1, row[1]))  # pyright: ignore
        return rows.batch(_BATCH, drop_remainder=True).repeat().to_iter_dataset()

    def of_python() -> Batches:
        return grain.MapDataset.range(1 << 40).map(hashed).to_iter_dataset().batch(_BATCH)

    return {TABLE: of_table, PYTHON: of_python}


def _torch(path: str) -> Jobs:
    """Return the jobs for PyTorch's DataLoader, without worker processes, as it is by default."""
    torch: Any = import_module("torch")
    data: Any = import_module("torch.utils.data")

    class Table(data.Dataset):
        def __init__(self) -> None:
            self._x, self._y = map(torch.from_numpy, table())

        def __len__(self) -> int:
            return _ROWS

        def __getitem__(self, index: int) -> Any:
            return self._x[index] * 2 - 1, self._y[index]

    class Hashed(data.Dataset):
        def __len__(self) -> int:
            return 1 << 40

        def __getitem__(self, index: int) -> Any:
            return hashed(index)

    class Stream(data.IterableDataset):
        def __init__(self, rows: Callable[[], Iterator[Any]]) -> None:
            self._rows = rows

        def __iter__(self) -> Iterator[Any]:
            return self._rows()

    def lines() -> Iterator[Any]:
        with open(path, encoding="utf-8") as file:
            for line in file:
                yield line.rstrip("\n")

    loader = data.DataLoader
    return {
        TABLE: lambda: _again(lambda: loader(Table(), _BATCH, shuffle=True, drop_last=True)),
        GENERATOR: lambda: loader(Stream(pairs), _BATCH),
        LINES: lambda: _again(lambda: loader(Stream(lines), _BATCH, drop_last=True)),
        PYTHON: lambda: loader(Hashed(), _BATCH),
    }


def _again(made: Callable[[], Batches]) -> Batches:
    while True:
        yield from made()


def _numpy(path: str) -> Jobs:
    """Return the jobs as loops by hand, each for its own data: what a library could reach at best."""

    def of_table() -> Batches:
        (x, y), draw = table(), np.random.default_rng(0)
        while True:
            order = draw.permutation(_ROWS)
            for start in range(0, _ROWS - _BATCH + 1, _BATCH):
                chosen = order[start : start + _BATCH]
                yield x[chosen] * 2 - 1, y[chosen]

    def of_generator() -> Batches:
        rows = pairs()
        while True:
            first, second = zip(*islice(rows, _BATCH), strict=True)
            yield np.array(first, np.int64), np.array(second, np.float32)

    def of_lines() -> Batches:
        while True:
            with open(path, "rb") as file:
                while len(lines := list(islice(file, _BATCH))) == _BATCH:
                    yield np.array([line.rstrip(b"\n") for line in lines], object)

    def of_python() -> Batches:
        for start in count(0, _BATCH):
            yield np.array([hashed(number) for number in range(start, start + _BATCH)])

    return {TABLE: of_table, GENERATOR: of_generator, LINES: of_lines, PYTHON: of_python}


def _evenfeed(path: str) -> Jobs:
    return _like_tf_data("evenfeed", path)


def _tf_data(path: str) -> Jobs:
    return _like_tf_data("tensorflow", path)


# The libraries by name: the module that must be installed, the package that has its version, and the jobs.
LIBRARIES: Final[dict[str, tuple[str, str, Callable[[str], Jobs]]]] = {
    "evenfeed": ("evenfeed", "evenfeed", _evenfeed),
    "tf.data": ("tensorflow", "tensorflow", _tf_data),
    "Grain": ("grain", "grain", _grain),
    "torch": ("torch", "torch", _torch),
    "NumPy by hand": ("numpy", "numpy", _numpy),
}


def rate(batches: Batches, seconds: float) -> float:
    """Return the rows per second of a loop over batches, after half the time to warm up."""
    iterator = iter(batches)
    next(iterator)
    _read(iterator, seconds / 2)
    return _read(iterator, seconds)


def _read(iterator: Iterator[Any], seconds: float) -> float:
    start, rows, passed = time.perf_counter(), 0, 0.0
    while passed < seconds:
        next(iterator)
        rows += _BATCH
        passed = time.perf_counter() - start
    return rows / passed


def rates(library: str, seconds: float) -> dict[str, float]:
    """Run the jobs of a library in this process. Return the rows per second of each."""
    with tempfile.TemporaryDirectory(prefix="evenfeed-bench-") as folder:
        jobs = LIBRARIES[library][2](text_file(folder))
        return {name: rate(made(), seconds) for name, made in jobs.items()}


if __name__ == "__main__":
    print(json.dumps(rates(sys.argv[1], float(sys.argv[2]))))
