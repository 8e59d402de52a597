"""pack puts rows of tokens side by side in sequences of a fixed length."""

import json

import numpy as np
import pytest

import evenfeed as tf
from evenfeed import nest
from evenfeed.data import Dataset
from evenfeed.runtime.operators import first_fit

ROWS = [[1, 2, 3], [4, 5], [], [6], [7, 8, 9, 10, 11, 12], [13]]


def rows_of(rows, dtype=tf.int32):
    return Dataset.from_tensor_slices(tf.ragged.constant(rows, dtype))


def read(dataset):
    return [[part.tolist() for part in element] for element in dataset]


def tokens(dataset):
    return [element[0].tolist() for element in dataset]


def test_each_row_goes_into_the_first_sequence_with_room():
    assert read(rows_of(ROWS).pack(4)) == [
        [[1, 2, 3, 6], [1, 1, 1, 2], [0, 1, 2, 0]],
        [[7, 8, 9, 10], [1, 1, 1, 1], [0, 1, 2, 3]],
        [[4, 5, 11, 12], [1, 1, 2, 2], [0, 1, 0, 1]],
        [[13, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]],
    ]


def test_a_row_without_room_finishes_the_oldest_sequence():
    rows = [[1, 1], [2, 2], [3, 3], [4]]
    assert tokens(rows_of(rows).pack(3, num_bins=1)) == [[1, 1, 0], [2, 2, 0], [3, 3, 4]]
    assert tokens(rows_of(rows).pack(3, num_bins=2)) == [[1, 1, 0], [2, 2, 4], [3, 3, 0]]


def test_concat_cuts_the_joined_rows():
    assert read(rows_of(ROWS).pack(4, "concat")) == [
        [[1, 2, 3, 4], [1, 1, 1, 2], [0, 1, 2, 0]],
        [[5, 6, 7, 8], [1, 2, 3, 3], [0, 0, 0, 1]],
        [[9, 10, 11, 12], [1, 1, 1, 1], [0, 1, 2, 3]],
        [[13, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0]],
    ]


@pytest.mark.parametrize("strategy", ["first_fit", "concat"])
def test_only_what_is_not_full_at_the_end_is_dropped(strategy):
    packed = rows_of(ROWS).pack(4, strategy, drop_remainder=True)
    assert sorted(token for row in tokens(packed) for token in row) == list(range(1, 13))
    assert tokens(rows_of([[1, 2], [3, 4]]).pack(2, strategy, drop_remainder=True)) == [
        [1, 2],
        [3, 4],
    ]


@pytest.mark.parametrize("strategy", ["first_fit", "concat"])
def test_no_rows_and_no_tokens_make_no_sequences(strategy):
    assert read(rows_of(ROWS).take(0).pack(4, strategy)) == []
    assert read(rows_of([[], []]).pack(4, strategy)) == []


def test_rows_that_are_too_long_are_split_truncated_or_refused():
    rows = rows_of([[1, 2, 3, 4, 5], [6]])
    assert tokens(rows.pack(2)) == [[1, 2], [3, 4], [5, 6]]
    assert tokens(rows.pack(2, too_long="truncate")) == [[1, 2], [6, 0]]
    assert tokens(rows.pack(4, "concat", too_long="truncate")) == [[1, 2, 3, 4], [6, 0, 0, 0]]
    for strategy in ("first_fit", "concat"):
        refusing = rows.pack(2, strategy, too_long="error")
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            next(iter(refusing))
        assert "it has 5 tokens, but a sequence has room for 2 tokens" in str(caught.value)
        assert 'too_long="split"' in str(caught.value)
        assert "test_packing.py" in str(caught.value)
        assert tokens(refusing.ignore_errors()) == [[6, 0]]


def test_a_dict_gets_ids_and_positions_for_each_of_its_parts():
    rows = rows_of([[1, 2, 3], [4]]).map(lambda row: {"inputs": row, "targets": row[1:]})
    packed = rows.pack({"inputs": 4, "targets": 3}, padding_values=-1)
    (element,) = packed
    assert {name: part.tolist() for name, part in element.items()} == {
        "inputs": [1, 2, 3, 4],
        "inputs_segment_ids": [1, 1, 1, 2],
        "inputs_positions": [0, 1, 2, 0],
        "targets": [2, 3, -1],
        "targets_segment_ids": [1, 1, 0],
        "targets_positions": [0, 1, 0],
    }
    assert list(element) == list(packed.element_spec)


def test_a_tuple_gets_a_triple_for_each_of_its_parts():
    rows = rows_of([[1, 2], [3, 4, 5]])
    pairs = Dataset.zip(rows, rows.map(lambda row: tf.cast(row, tf.float32) / 2))
    (one, two), (last, _) = pairs.pack(3, "concat", padding_values=(9, 0.5))
    assert [part.tolist() for part in one] == [[1, 2, 3], [1, 1, 2], [0, 1, 0]]
    assert [part.tolist() for part in two] == [[0.5, 1, 1.5], [1, 1, 2], [0, 1, 0]]
    assert last[0].tolist() == [4, 5, 9]


def test_segments_have_one_number_in_all_parts_even_where_one_is_empty():
    rows = rows_of([[1], [2, 3], [4]]).map(lambda row: (row, row[1:]))
    ((_, ids, _), (_, other_ids, _)), *_ = rows.pack((4, 2))
    assert (ids.tolist(), other_ids.tolist()) == ([1, 2, 2, 3], [2, 0])


@pytest.mark.parametrize("strategy", ["first_fit", "concat"])
@pytest.mark.parametrize(
    "values",
    [
        np.arange(1, 6, dtype=np.int64) * 2**40,
        np.linspace(0, 1, 5, dtype=np.float32),
        np.array([True, False, True, True, False]),
        np.arange(5).astype(tf.bfloat16),
        np.arange(5, dtype=np.uint8),
        np.array([b"a", b"rose", b"is", b"a", b"rose"], object),
        np.arange(5).astype(np.complex128),
    ],
    ids=lambda values: str(values.dtype),
)
def test_tokens_keep_their_dtype(strategy, values):
    rows = Dataset.from_tensor_slices(tf.RaggedTensor.from_row_lengths(values, [2, 3]))
    found = np.concatenate([element[0] for element in rows.pack(5, strategy)])
    assert (found.dtype, found.tolist()) == (values.dtype, values.tolist())


def test_rows_of_all_kinds_are_packed():
    spec = tf.TensorSpec(None, tf.int32)  # of unknown rank
    lists = Dataset.from_generator(lambda: [[1], [2, 3], []], output_signature=spec)
    assert tokens(lists.pack(4)) == [[1, 2, 3, 0]]
    dense = Dataset.from_tensor_slices([[1, 2], [3, 4]])
    assert tokens(dense.pack(4)) == [[1, 2, 3, 4]]
    words = Dataset.from_tensor_slices(["a rose is", "a rose"]).map(tf.strings.split)
    assert tokens(words.pack(6)) == [[b"a", b"rose", b"is", b"a", b"rose", b""]]


def test_a_row_that_is_no_vector_is_an_error_and_the_others_are_packed():
    spec = tf.TensorSpec(None, tf.int32)
    rows = Dataset.from_generator(lambda: [[1], [[2, 3]], [4]], output_signature=spec)
    with pytest.raises(tf.errors.InvalidArgumentError, match="but the row is not one"):
        next(iter(rows.pack(2)))
    assert tokens(rows.pack(2).ignore_errors()) == [[1, 4]]


def test_concat_refuses_rows_whose_parts_have_different_lengths():
    rows = rows_of([[1, 2], [3]]).map(lambda row: {"a": row, "b": row[1:]})
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        next(iter(rows.pack(2, "concat")))
    assert "they have 2 in ['a'], 1 in ['b']" in str(caught.value)
    assert 'strategy="first_fit"' in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"length": 0}, ValueError, "length must be at least 1, but got 0"),
        ({"length": 2.5}, TypeError, "length must be a whole number"),
        ({"length": (2, 2)}, TypeError, "length must be a whole number"),
        ({"num_bins": 0}, ValueError, "num_bins must be at least 1, but got 0"),
        ({"num_bins": 5000}, ValueError, "num_bins must be at most 1,024, but got 5,000"),
        ({"strategy": "best"}, ValueError, "strategy must be 'first_fit' or 'concat'"),
        ({"too_long": "drop"}, ValueError, "too_long must be 'split' or 'truncate' or 'error'"),
        ({"drop_remainder": 1}, TypeError, "drop_remainder must be True or False"),
        ({"padding_values": 0.5}, TypeError, "is float32, but the component is int32"),
    ],
)
def test_wrong_arguments_are_refused_when_they_are_passed(arguments, error, text):
    with pytest.raises(error, match=text):
        rows_of(ROWS).pack(**{"length": 4, **arguments})


def test_what_cannot_be_packed_is_refused_when_the_plan_is_built():
    with pytest.raises(TypeError, match="pack\\(\\) needs rows of tokens, which are vectors"):
        Dataset.range(3).pack(4)
    with pytest.raises(TypeError, match="call unbatch\\(\\) on batches of rows"):
        rows_of(ROWS).batch(2).pack(4)
    with pytest.raises(TypeError, match="turn the texts into tokens"):
        Dataset.from_tensor_slices(["a b"]).pack(4)
    with pytest.raises(TypeError, match="a list is a tuple of its numbers"):
        Dataset.range(3).map(lambda x: [int(x), 1]).pack(4)
    taken = rows_of(ROWS).map(lambda row: {"a": row, "a_positions": row})
    with pytest.raises(ValueError, match="pack\\(\\) adds 'a_positions' to each element"):
        taken.pack(4)
    pair = rows_of(ROWS).map(lambda row: (row, row))
    with pytest.raises(ValueError, match="one length, or strategy"):
        pair.pack((2, 3), "concat")


def test_the_shapes_are_known_and_the_number_is_not():
    packed = rows_of(ROWS).pack(4)
    ids = tf.TensorSpec([4], tf.int32)
    assert packed.element_spec == (ids, ids, ids)
    assert packed.cardinality() == tf.data.UNKNOWN_CARDINALITY
    assert rows_of(ROWS).repeat().pack(4).cardinality() == tf.data.INFINITE_CARDINALITY
    assert packed.batch(2, drop_remainder=True).element_spec[0].shape == [2, 4]


def test_a_position_stays_small_and_goes_back_to_the_oldest_open_sequence_only():
    random = np.random.default_rng(0)
    lengths = random.integers(1, 60, 2000)
    flat = np.arange(lengths.sum())
    rows = Dataset.from_tensor_slices(tf.RaggedTensor.from_row_lengths(flat, lengths))
    for strategy in ("first_fit", "concat"):
        packed = rows.pack(64, strategy, num_bins=16)
        whole = tokens(packed)
        iterator = iter(packed)
        for count in range(0, len(whole), 97):
            state = json.loads(json.dumps(iterator.get_state()))
            assert len(json.dumps(state)) < 1000
            resumed = iter(packed)
            resumed.set_state(state)
            assert tokens(resumed) == whole[count:]
            for _ in range(97):
                next(iterator, None)


@pytest.mark.parametrize("parts", [1, 2])
def test_compiled_loops_place_rows_as_plain_python_does(parts, monkeypatch):
    random = np.random.default_rng(1)
    lengths = random.integers(0, 40, 1500)
    flat = np.arange(1, lengths.sum() + 1)
    rows = Dataset.from_tensor_slices(tf.RaggedTensor.from_row_lengths(flat, lengths))
    if parts == 2:
        rows = rows.batch(100).map(lambda batch: (batch, batch[:, ::2])).unbatch()
    packed = rows.pack(32 if parts == 1 else (32, 15), num_bins=7)
    compiled = [nest.flatten(element) for element in packed]
    monkeypatch.setattr(first_fit, "is_worth_it", lambda rows: False)
    plain = [nest.flatten(element) for element in packed]
    assert len(plain) == len(compiled) > 500
    for one, two in zip(plain, compiled, strict=True):
        np.testing.assert_equal(one, two)
    iterator = iter(packed)
    for _ in range(300):
        next(iterator)
    resumed = iter(packed)
    monkeypatch.undo()  # a position suits both
    resumed.set_state(iterator.get_state())
    np.testing.assert_array_equal(nest.flatten(next(resumed))[0], compiled[300][0])


def test_python_code_is_called_for_no_more_rows_than_a_sequence_needs():
    called = []

    def row(x):
        called.append(int(x))
        return np.full(10, x)

    spec = tf.TensorSpec([None], tf.int64)
    packed = Dataset.range(1000).map(row, output_signature=spec).pack(40, "concat")
    next(iter(packed))
    assert len(called) == 4


def test_explain_names_the_arguments_and_says_what_is_read_again():
    rows = rows_of(ROWS)
    text = rows.pack(4, num_bins=3, too_long="truncate").explain()
    assert "pack(4, 'first_fit', num_bins=3, too_long='truncate')" in text
    assert "pack reads the rows of open sequences again" in text
    assert (
        "pack(4, 'concat', drop_remainder=True)"
        in rows.pack(4, "concat", drop_remainder=True).explain()
    )
