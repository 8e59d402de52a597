import numpy as np
import pytest

from evenfeed.core.text.text_columns import pieces, texts

HELD = np.random.default_rng(0).integers(0, 256, 100_000, np.uint8)


def slices(starts, stops):
    return [HELD[a:b].tobytes() for a, b in zip(starts, stops, strict=True)]


@pytest.mark.parametrize("count", [0, 1, 15, 16, 255, 256, 1000])
def test_texts_are_slices(count):
    starts = np.random.default_rng(1).integers(0, 90_000, count)
    stops = starts + np.random.default_rng(2).integers(0, 700, count)
    column = texts(HELD, starts, stops)
    assert column.dtype == object
    assert column.tolist() == slices(starts, stops)


@pytest.mark.parametrize("length", [0, 1, 7, 20_000])
def test_texts_of_one_length_are_slices(length):
    starts = np.random.default_rng(1).integers(0, 80_000, 40)
    assert texts(HELD, starts, starts + length).tolist() == slices(starts, starts + length)


@pytest.mark.parametrize("count", [1, 100])
def test_texts_have_the_shape_of_their_places(count):
    starts = np.arange(6 * count).reshape(3, 2, count)
    column = texts(HELD, starts, starts + 2)
    assert column.shape == (3, 2, count)
    assert column[2, 1, 0] == HELD[5 * count :][:2].tobytes()
    assert texts(HELD, starts[0, 0, 0, ...], np.array(3)).item() == HELD[:3].tobytes()


def test_texts_without_bytes():
    nowhere = np.zeros(300, np.int64)
    assert texts(np.empty(0, np.uint8), nowhere, nowhere).tolist() == [b""] * 300


def test_pieces_are_cut_out_of_any_bytes():
    for some in (HELD, HELD.tobytes()):
        assert pieces(some, np.array([5, 0, 5]), 3).tolist() == slices([5, 0, 5], [8, 3, 8])
