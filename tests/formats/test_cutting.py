import mmap

import numpy as np
import pytest

from evenfeed.formats.cutting import texts


@pytest.mark.parametrize("count", [0, 1, 255, 256, 1000])
def test_texts_are_slices(count, tmp_path):
    held = np.random.default_rng(0).bytes(100_000)
    (tmp_path / "file").write_bytes(held)
    starts = np.random.default_rng(1).integers(0, 90_000, count)
    stops = starts + np.random.default_rng(2).integers(0, 700, count)
    expected = [held[start:stop] for start, stop in zip(starts, stops, strict=True)]
    with (tmp_path / "file").open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    for some in (held, mapped):
        column = texts(some, starts, stops)
        assert column.dtype == object
        assert column.tolist() == expected


def test_texts_without_bytes():
    nowhere = np.zeros(300, np.int64)
    assert texts(b"", nowhere, nowhere).tolist() == [b""] * 300
