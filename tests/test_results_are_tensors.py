"""What functions return on the host are tensors: they have `numpy()`, as in TensorFlow."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evenfeed as tf

_TEXTS = ["a", "b"]
_SPARSE = tf.SparseTensor(indices=[[0, 1]], values=["a"], dense_shape=[1, 2])
_EXAMPLE = tf.train.Example(
    features=tf.train.Features(
        feature={"v": tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"a"]))}
    )
).SerializeToString()
_FIXED = {"v": tf.io.FixedLenFeature([], tf.string)}
_VARYING = {"v": tf.io.VarLenFeature(tf.string)}
_STEPS = {"v": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)}

RESULTS: dict[str, tuple[Callable[[], Any], Any]] = {
    "stack of text": (lambda: tf.stack(_TEXTS), [b"a", b"b"]),
    "concat of text": (lambda: tf.concat([["a"], ["b"]], 0), [b"a", b"b"]),
    "unstack of text": (lambda: tf.unstack(_TEXTS)[1], b"b"),
    "squeeze of text": (lambda: tf.squeeze(["a\0"]), b"a\0"),
    "map_fn of text": (lambda: tf.map_fn(tf.strings.upper, tf.constant(_TEXTS)), [b"A", b"B"]),
    "TensorArray of text": (
        lambda: tf.TensorArray(tf.string, 2).unstack(_TEXTS).stack(),
        [b"a", b"b"],
    ),
    "indices": (lambda: _SPARSE.indices, [[0, 1]]),
    "values": (lambda: _SPARSE.values, [b"a"]),
    "dense_shape": (lambda: _SPARSE.dense_shape, [1, 2]),
    "to_dense": (lambda: tf.sparse.to_dense(_SPARSE), [[b"", b"a"]]),
    "a sparse element": (
        lambda: next(iter(tf.data.Dataset.from_tensor_slices(_SPARSE))).values,
        [b"a"],
    ),
    "parse_single_example": (lambda: tf.io.parse_single_example(_EXAMPLE, _FIXED)["v"], b"a"),
    "parse_example": (lambda: tf.io.parse_example([_EXAMPLE], _FIXED)["v"], [b"a"]),
    "parsed values": (lambda: tf.io.parse_example([_EXAMPLE], _VARYING)["v"].values, [b"a"]),
    "parse_single_sequence_example": (
        lambda: tf.io.parse_single_sequence_example(b"", None, _STEPS)[1]["v"],
        [],
    ),
    "lengths of parse_sequence_example": (
        lambda: tf.io.parse_sequence_example([b""], None, _STEPS)[2]["v"],
        [0],
    ),
    "matching_files": (lambda: tf.io.matching_files("no-such-folder/*"), []),
}


@pytest.mark.parametrize("case", RESULTS)
def test_a_result_on_the_host_is_a_tensor(case: str):
    call, expected = RESULTS[case]
    found = call()
    assert tf.is_tensor(found)
    values = found.numpy()
    assert (values if isinstance(values, bytes) else values.tolist()) == expected


def test_the_content_of_a_file_is_a_tensor(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"content\0")
    assert tf.io.read_file(str(tmp_path / "a")).numpy() == b"content\0"
    names = tf.data.Dataset.from_tensor_slices([str(tmp_path / "a")])
    assert [x.numpy() for x in names.map(tf.io.read_file)] == [b"content\0"]
