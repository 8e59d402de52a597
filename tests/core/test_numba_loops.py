import subprocess
import sys
from types import SimpleNamespace

import pytest

from evenfeed.core.text import numba_loops

PROGRAM = """
import sys
import evenfeed as tf
path, count, length = sys.argv[1], *map(int, sys.argv[2:])
with tf.io.TFRecordWriter(path) as writer:
    for row in range(count):
        writer.write(bytes(length + row % 7))
rows = sum(map(len, tf.data.TFRecordDataset(path).batch(1000).as_numpy_iterator())) if count else 0
print(rows, list(tf.data.Dataset.range(3000).batch(3000))[0][-1], "numba" in sys.modules)
"""


@pytest.mark.parametrize(
    ("count", "length", "loaded"),
    [(0, 0, False), (100, 0, False), (100, 20_000, False), (700, 0, True)],
)
def test_numba_is_loaded_for_many_records(tmp_path, count, length, loaded):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "file"), str(count), str(length)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout.split() == [str(count), "2999", str(loaded)]


def test_nothing_is_compiled_if_numba_cannot_be_imported(monkeypatch):
    assert numba_loops.is_worth_it(1000)
    monkeypatch.setitem(sys.modules, "numba", None)
    numba_loops._numba.cache_clear()
    try:
        assert not numba_loops.is_worth_it(1000)
    finally:
        numba_loops._numba.cache_clear()


def refusing(*refused):
    """Return a fake Numba that raises for unsupported options."""
    asked = []

    def njit(**options):
        asked.append(options)
        for name, error in refused:
            if name in options:
                raise error
        return lambda function: function

    return SimpleNamespace(njit=njit), asked


@pytest.mark.parametrize(
    ("refused", "left"),
    [
        ([], {"cache", "_nrt"}),
        ([("cache", RuntimeError("no locator"))], {"_nrt"}),
        ([("_nrt", KeyError("unknown"))], {"cache"}),
        ([("cache", RuntimeError("no locator")), ("_nrt", KeyError("unknown"))], set()),
    ],
)
def test_options_that_numba_refuses_are_left_out(monkeypatch, refused, left):
    numba, asked = refusing(*refused)
    monkeypatch.setattr(numba_loops, "_numba", lambda: numba)
    assert numba_loops.compiled(len) is len
    assert set(asked[-1]) == {"nogil", "error_model"} | left
