"""Floats of images of bytes, computed in one pass, are those of NumPy to the last bit."""

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.runtime.functions.arithmetic import byte_programs
from evenfeed.runtime.functions.vectorise import Row, traced

RNG = np.random.default_rng(3)
SHAPE = (6, 5, 3)
BYTES = RNG.integers(0, 256, (4, *SHAPE), np.uint8)
MEAN, SPREAD = np.array([0.485, -0.0, 0.406], np.float32), np.array([0.2, 0.0, 3e-39], np.float32)
COLUMNS = np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3)

FUNCTIONS = {
    "normalised": lambda x: (tf.cast(x, tf.float32) / 255.0 - MEAN) / SPREAD,
    "scaled": lambda x: tf.cast(x, tf.float32) * np.float32(1 / 127.5) - 1.0,
    "constant first": lambda x: 2.5 / (MEAN - (1.5 + tf.cast(x, tf.float32))),
    "infinite": lambda x: (tf.cast(x, tf.float32) / 0.0 - np.inf) * 0.0,
    "by column": lambda x: tf.cast(x, tf.float32) * COLUMNS + 3.0,
}
OTHERS = {
    "by line": lambda x: tf.cast(x, tf.float32) * np.arange(6, dtype=np.float32)[:, None, None],
    "used twice": lambda x: tf.cast(x, tf.float32) * (tf.cast(x, tf.float32) + 1.0),
    "signs of zeros": lambda x: (
        tf.cast(x, tf.float32) * np.array([[[0.0]]] * 3 + [[[-0.0]]] * 3, "f4")
    ),
    "doubles": lambda x: tf.cast(x, tf.float64) / 255,
    "of two": lambda x: (tf.cast(x, tf.float32) / 255.0, tf.cast(x, tf.float32) / 3.0),
}
IMAGES = {
    "a batch": BYTES,
    "a list": list(BYTES),
    "crops": list(RNG.integers(0, 256, (4, 9, 8, 3), np.uint8)[:, 2:8, 1:6]),
    "mirrored": list(BYTES[:, :, ::-1]),
    "upside down": list(BYTES[:, ::-1]),
    "channels of more": list(RNG.integers(0, 256, (4, 6, 5, 4), np.uint8)[..., 1:]),
    "repeated": [np.broadcast_to(BYTES[0, :1], SHAPE)] * 4,
}


def arithmetic(function):
    def call(leaves):
        results = function(*leaves)
        return None, list(results) if isinstance(results, tuple) else [results]

    found = traced(call, [Row(SHAPE, np.dtype(np.uint8))]).arithmetic
    assert found is not None
    return found


def in_pieces(found, images):
    out = [np.full((4, *kind[0]), 7, kind[1]) for _, kind in found.body.results]
    with np.errstate(all="ignore"):
        return found._in_pieces([images], [], 4, lambda number, _: out[number])


@pytest.mark.parametrize("kind", IMAGES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_pass_gives_the_bits_of_numpy(monkeypatch, name, kind):
    pytest.importorskip("numba")
    found = arithmetic(FUNCTIONS[name])
    assert found.of_bytes is not None
    monkeypatch.setattr(byte_programs.SeenBytes, "values", 0)
    (expected,) = in_pieces(found, IMAGES[kind])
    monkeypatch.setattr(byte_programs.SeenBytes, "values", 1 << 40)
    (result,) = in_pieces(found, IMAGES[kind])
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(result), ~numbers)
    assert result[numbers].tobytes() == expected[numbers].tobytes()


@pytest.mark.parametrize("name", OTHERS)
def test_functions_of_another_kind_are_left_to_numpy(name):
    assert arithmetic(OTHERS[name]).of_bytes is None


@pytest.mark.parametrize("calls", [None, 2])
def test_a_map_with_other_parts_gives_the_numbers_of_numpy(monkeypatch, calls):
    pytest.importorskip("numba")
    monkeypatch.setattr(byte_programs.SeenBytes, "values", 1 << 40)
    seen = []
    run = byte_programs.ByteProgram.run
    monkeypatch.setattr(
        byte_programs.ByteProgram, "run", lambda *given: seen.append(run(*given)) or seen[-1]
    )
    images = RNG.integers(0, 256, (5, 300, 310, 3), np.uint8)
    labels = np.arange(5, dtype=np.int32)
    spread = np.array([0.2, 0.3, 0.4], np.float32)

    def prepared(label, image):
        return label, (tf.cast(image, tf.float32) / 255.0 - MEAN) / spread

    dataset = tf.data.Dataset.from_tensor_slices((labels, images))
    label, found = next(iter(dataset.map(prepared, num_parallel_calls=calls).batch(5)))
    assert label.tolist() == [0, 1, 2, 3, 4]
    expected = (images.astype(np.float32) / np.float32(255) - MEAN) / spread
    np.testing.assert_array_equal(found, expected)
    assert seen
    assert all(seen)
