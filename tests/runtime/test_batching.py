import json
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.resuming import assert_resumes, rows_of
from tests.unknown import Watched

import evenfeed as tf
from evenfeed.core.block import Block
from evenfeed.core.errors import DataLossError, InvalidArgumentError
from evenfeed.core.specs import INFINITE, UNKNOWN
from evenfeed.plan.batching import Rebatch, Unbatch, padded_batch
from evenfeed.plan.grouping import Batch
from evenfeed.plan.ordering import Repeat
from evenfeed.plan.sources import FromGenerator, Range, Tensor
from evenfeed.runtime.caches.cache import KeepElements
from evenfeed.runtime.operators.batching import BatchLengths, PadBatches, RecutBatches, SplitBatches
from evenfeed.runtime.operators.sources import PullElements

VECTOR = tf.TensorSpec([None], tf.int32)
VECTORS = st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=8)


def source(values, spec=VECTOR):
    return FromGenerator(lambda: iter(values), spec)


def padded(values, size, shapes=None, fill=None, *, drop=False, spec=VECTOR):  # noqa: PLR0913
    node = padded_batch(source(values, spec), size, shapes, fill, drop_remainder=drop)
    return PadBatches(PullElements(node.child), node)


def values_of(operator, most=3):
    found = rows_of(operator, most)
    return [row if isinstance(row, type) else row[0][2] for row in found]


def test_elements_are_filled_up_to_the_longest_of_their_batch():
    assert values_of(padded([[1], [2, 2], [3]], 2)) == [[[1, 0], [2, 2]], [[3]]]


def test_a_short_batch_is_dropped_where_asked():
    assert values_of(padded([[1], [2, 2], [3]], 2, drop=True)) == [[[1, 0], [2, 2]]]


def test_shapes_and_values_are_the_users():
    assert values_of(padded([[1]], 1, [3], np.int32(7))) == [[[1, 7, 7]]]
    assert values_of(padded([[1]], 1, [-1], np.int32(7))) == [[[1]]]


def test_text_is_filled_up_with_empty_text():
    spec = tf.TensorSpec([None], tf.string)
    assert values_of(padded([["a"], ["b", "c"]], 2, spec=spec)) == [[[b"a", b""], [b"b", b"c"]]]


def test_too_long_an_element_is_an_error_and_the_next_batch_follows():
    assert values_of(padded([[1], [2, 2], [3]], 1, [1])) == [[[1]], DataLossError, [[3]]]


def test_an_element_of_another_rank_is_an_error():
    spec = tf.TensorSpec(None, tf.int32)
    assert values_of(padded([[1], [[2]], [3]], 1, [None], spec=spec)) == [
        [[1]],
        InvalidArgumentError,
        [[3]],
    ]


@pytest.mark.parametrize(
    ("shapes", "fill", "spec", "kind"),
    [
        (None, 1, tf.TensorSpec([None], tf.int64), TypeError),
        (None, 1.5, VECTOR, TypeError),
        (None, np.array([1], np.int32), VECTOR, ValueError),
        ([None, None], None, VECTOR, ValueError),
        ([1], None, tf.TensorSpec([2], tf.int32), ValueError),
        (None, None, tf.TensorSpec(None, tf.int32), ValueError),
        (([None],), None, (VECTOR, VECTOR), ValueError),
    ],
)
def test_padding_that_cannot_be_is_refused_when_it_is_asked_for(shapes, fill, spec, kind):
    with pytest.raises(kind):
        padded_batch(source([], spec), 2, shapes, fill, drop_remainder=False)


def test_one_padding_value_serves_all_parts():
    node = padded_batch(source([], (VECTOR, VECTOR)), 2, None, np.int32(5), drop_remainder=True)
    assert [value.item() for value in node.values] == [5, 5]
    assert node.element_spec == (tf.TensorSpec([2, None], tf.int32),) * 2


@given(VECTORS, st.integers(1, 3), st.booleans())
def test_padded_batches_resume(values, size, drop):
    found = assert_resumes(lambda: padded(values, size, drop=drop))
    rows = [row for batch in found for row in batch[0][2]]
    kept = len(values) // size * size if drop else len(values)
    assert [row[: len(value)] for row, value in zip(rows, values, strict=False)] == values[:kept]


def split(values, spec=VECTOR):
    node = Unbatch(source(values, spec))
    return SplitBatches(PullElements(node.child), node)


def cached(count=50):
    rows = [np.arange(number % 7, dtype=np.int32) for number in range(count)]
    made = tf.data.Dataset.from_generator(lambda: iter(rows), output_signature=VECTOR).cache()
    return made.shuffle(9, seed=3).padded_batch(4).repeat()


def test_padded_batches_of_a_cache_are_read_together_and_resume_anywhere():
    iterator, states, found = iter(cached()), [], []
    for _ in range(30):  # more than two rounds: the cache is complete after the first
        states.append(json.loads(json.dumps(iterator.get_state())))
        found.append(next(iterator).tolist())
    for number, state in enumerate(states[:-1]):  # here the cache is empty
        again = iter(cached())
        again.set_state(state)
        assert [batch.tolist() for batch in islice(again, 2)] == found[number : number + 2]


def test_a_padded_batch_that_fails_has_its_place_among_those_read_with_it():
    lengths = [1, 2, 1, 1, 9, 1, 2, 2, 1, 9, 1]
    values = tf.data.Dataset.from_generator(
        lambda: (np.ones(length) for length in lengths), output_signature=tf.TensorSpec([None])
    ).cache()
    for _ in values:
        pass
    iterator = iter(values.padded_batch(2, padded_shapes=[2]))
    found = []
    for _ in range(7):
        try:
            found.append(next(iterator).shape[0])
        except DataLossError:
            found.append("failed")
        except StopIteration:
            found.append("end")
    assert found == [2, 2, "failed", 2, "failed", 1, "end"]


def test_padded_batches_read_ahead_only_where_nobody_notices(monkeypatch):
    asked, pulled = [], []

    def numbers():
        for number in range(100):
            pulled.append(number)
            yield [number]

    rows = tf.data.Dataset.from_generator(numbers, output_signature=VECTOR)
    iterator = iter(rows.padded_batch(5))
    for batches in range(1, 5):
        next(iterator)
        assert len(pulled) == 5 * batches
    read = KeepElements.read
    monkeypatch.setattr(
        KeepElements, "read", lambda self, most: asked.append(most) or read(self, most)
    )
    kept = rows.cache()
    for _ in range(2):
        asked.clear()
        assert len(list(kept.padded_batch(5))) == 20
    assert max(asked) > 5
    asked.clear()
    list(rows.cache().padded_batch(5))
    assert set(asked) == {5}


def test_batches_are_cut_into_rows():
    assert values_of(split([[1, 2], [], [3]])) == [1, 2, 3]


def test_batches_of_one_shape_are_cut_without_a_copy():
    column = np.arange(12).reshape(3, 4)

    class Once(Watched):
        def read(self, most):
            return None if self.asked else super().read(most) and block

    block = Block((column,), 3)
    operator = SplitBatches(Once(0), Unbatch(source([])))
    assert np.shares_memory(operator.read(20).columns[0], column)


def test_parts_of_unlike_lengths_are_an_error_in_its_place():
    values = [([1], [1]), ([1, 2], [1]), ([5], [5])]
    assert values_of(split(values, (VECTOR, VECTOR))) == [1, InvalidArgumentError, 5]


@given(VECTORS)
def test_unbatch_resumes(values):
    found = assert_resumes(lambda: split(values))
    assert [row[0][2] for row in found] == [x for value in values for x in value]


@pytest.mark.parametrize(
    ("child", "size"),
    [
        (Batch(Range(0, 10), 3, drop_remainder=True), 9),
        (Batch(Range(0, 10), 3), UNKNOWN),
        (Repeat(Batch(Range(0, 10), 3), -1), INFINITE),
        (Tensor(0, [np.arange(4)]), 4),
        (source([]), UNKNOWN),
    ],
)
def test_the_size_is_known_where_all_batches_are_full(child, size):
    assert Unbatch(child).size == size


@pytest.mark.parametrize("node", [Unbatch, lambda child: Rebatch(child, (2,))])
def test_scalars_and_unlike_parts_are_refused(node):
    with pytest.raises(ValueError, match="cannot split scalars"):
        node(Range(0, 3))
    with pytest.raises(ValueError, match="the same first dimension"):
        node(Tensor((0, 0), [np.arange(2), np.arange(3)]))


def cut(values, *sizes, drop=False):
    node = Rebatch(source(values), sizes, drop_remainder=drop)
    return RecutBatches(SplitBatches(PullElements(node.child), node), node)


@given(VECTORS, st.lists(st.integers(1, 4), min_size=1, max_size=3), st.booleans())
def test_rebatch_resumes_and_keeps_the_rows(values, sizes, drop):
    found = [row[0][2] for row in assert_resumes(lambda: cut(values, *sizes, drop=drop))]
    rows = [x for value in values for x in value]
    assert [x for batch in found for x in batch] == rows[: sum(map(len, found))]
    full = found if drop else found[:-1]
    assert [len(batch) for batch in full] == [sizes[i % len(sizes)] for i in range(len(full))]
    assert drop or sum(map(len, found)) == len(rows)


def test_a_batch_of_unlike_rows_is_an_error():
    spec = tf.TensorSpec([None, None], tf.int32)
    node = Rebatch(source([[[1]], [[1, 2]], [[5], [5]]], spec), (2,))
    operator = RecutBatches(SplitBatches(PullElements(node.child), node), node)
    assert values_of(operator) == [InvalidArgumentError, [[5], [5]]]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((2, 1), [InvalidArgumentError, [[4]], [[5], [6]]]),
        ((2, 1, 3), [InvalidArgumentError, [[4]], [[5], [6]]]),
        ((1, 2), [[[1, 2]], [[3], [4]], [[5]], [[6]]]),
        ((2, 0), [InvalidArgumentError, [], [[4], [5]], [], [[6]]]),
        ((9, 0), [InvalidArgumentError]),
    ],
)
def test_a_batch_of_unlike_rows_has_had_its_turn(sizes, expected):
    spec = tf.TensorSpec([None, None], tf.int32)
    node = Rebatch(source([[[1, 2]], [[3], [4], [5], [6]]], spec), sizes)

    def make():
        return RecutBatches(SplitBatches(PullElements(node.child), node), node)

    found = assert_resumes(make)
    assert [row if isinstance(row, type) else row[0][2] for row in found] == expected


def test_rows_between_batches_that_fail_are_kept():
    def uneven(n):
        return tf.data.Dataset.range(n).batch(2).batch(2)

    # 3 fails, for [0, 1] and [2] make no batch. 5 gives [[0, 1], [2, 3]], and [[4]].
    inner = tf.data.Dataset.from_tensor_slices([3, 4, 5, 3]).flat_map(uneven)
    twice = inner.flat_map(lambda x: tf.data.Dataset.from_tensors(x).repeat(2))
    rows = tf.data.Dataset.zip(tf.data.Dataset.range(12), twice).batch(2).rebatch([2, 1])
    found = [number.tolist() for number, _ in rows.ignore_errors()]
    assert found == [[1, 2], [3], [6]]


@pytest.mark.parametrize(
    ("sizes", "drop", "length"),
    [
        ((3,), True, 3),
        ((3,), False, None),
        ((5,), False, 5),
        ((1, 2), True, None),
        ((2, 2), True, 2),
    ],
)
def test_the_length_of_a_new_batch_is_known_where_all_have_one(sizes, drop, length):
    node = Rebatch(Batch(Range(0, 10), 5, drop_remainder=True), sizes, drop_remainder=drop)
    assert node.element_spec == tf.TensorSpec([length], tf.int64)
    assert node.size == UNKNOWN


@pytest.mark.parametrize("sizes", [(), (0,), (0, 0), (2, -1)])
def test_batch_sizes_that_give_no_batches_are_refused(sizes):
    with pytest.raises(
        InvalidArgumentError, match="Batch sizes must be at least 0, and at least one"
    ):
        Rebatch(Batch(Range(0, 10), 5), sizes)


@pytest.mark.parametrize("passed", range(7))
@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([2, 0], [[0, 1], [], [2, 3], [], [4]]),
        ([0, 3], [[], [0, 1, 2], [], [3, 4]]),
        ([1, 0, 0, 4], [[0], [], [], [1, 2, 3, 4]]),
        ([0, 1, 4], [[], [0], [1, 2, 3, 4], []]),
    ],
)
def test_a_batch_of_size_zero_reads_nothing(sizes, expected, passed):
    rows = tf.data.Dataset.range(5).map(lambda x: (x, None, {"a": tf.stack([x, x])}))
    dataset = rows.batch(3).rebatch(sizes)
    iterator = iter(dataset)
    found = [x for x, _, _ in islice(iterator, passed)]
    again = iter(dataset)
    again.set_state(json.loads(json.dumps(iterator.get_state())))
    rest = list(again)
    assert [x.tolist() for x in found] + [x.tolist() for x, _, _ in rest] == expected
    assert all(d["a"].shape == [len(x), 2] and d["a"].dtype == "int64" for x, _, d in rest)


def test_a_batch_of_no_datasets_or_texts_has_none():
    words = tf.data.Dataset.from_tensor_slices(["a", "b"]).batch(2).rebatch([0, 2])
    assert [word.tolist() for word in words] == [[], [b"a", b"b"], []]
    windows = tf.data.Dataset.range(2).window(1).batch(2).rebatch([0, 1]).unbatch()
    assert [[int(x) for x in window] for window in windows] == [[0], [1]]


def test_a_rest_that_is_dropped_may_have_any_shapes():
    rows = tf.data.Dataset.range(9).batch(2).batch(2)
    assert [x.tolist() for x in rows.rebatch(3, drop_remainder=True)] == [[[0, 1], [2, 3], [4, 5]]]


@pytest.mark.parametrize(
    "cut",
    [
        lambda dataset: dataset.batch(32).unbatch(),
        lambda dataset: dataset.batch(32).rebatch(16).unbatch(),
        lambda dataset: dataset.padded_batch(32).unbatch(),
    ],
)
def test_sizes_do_not_multiply_where_batches_are_cut_up_again_and_again(cut):
    pulled = []

    def numbers():
        for number in range(10**6):
            pulled.append(number)
            yield number

    number = tf.TensorSpec([], tf.int64)
    dataset = tf.data.Dataset.from_generator(numbers, output_signature=number)
    for _ in range(3):
        dataset = cut(dataset)
    assert [int(x) for x in islice(dataset, 40)] == list(range(40))
    assert len(pulled) == 64


def test_batches_of_different_lengths_are_split_together():
    lengths = [3, 0, 1, 5, 2]
    rows = [np.arange(n) + 10 * n for n in lengths]
    spec = tf.TensorSpec([None], tf.int64)
    listed = tf.data.Dataset.from_generator(lambda: rows, output_signature=spec)
    ragged = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([row.tolist() for row in rows]))
    expected = np.concatenate(rows).tolist()
    for dataset in (listed, ragged):
        batch = next(iter(dataset.unbatch().batch(len(expected))))
        assert batch.tolist() == expected
        both = dataset.map(lambda row: (row, row * 2)).unbatch()
        assert [(int(x), int(y)) for x, y in both] == [(x, 2 * x) for x in expected]
    plan = source([row.tolist() for row in rows])
    split = SplitBatches(PullElements(plan), Unbatch(plan))
    # The first batch shows how long they are; then three are read for up to nine rows.
    assert [split.read(9).length for _ in range(2)] == [3, 6]


def test_a_batch_whose_parts_differ_fails_alone():
    pair = (tf.TensorSpec([None], tf.int64), tf.TensorSpec([None], tf.int64))
    rows = [([1, 2], [3, 4]), ([5], [6, 7]), ([8], [9])]
    dataset = tf.data.Dataset.from_generator(lambda: rows, output_signature=pair).unbatch()
    found = [(int(x), int(y)) for x, y in dataset.ignore_errors()]
    assert found == [(1, 3), (2, 4), (8, 9)]


def test_one_short_batch_does_not_mislead_about_the_length_of_the_others():
    lengths = BatchLengths()
    assert lengths.batches_for(8000) == 1
    lengths.learn(np.arange(5, 60))
    lengths.learn(np.array([1]))
    assert 8000 / 32 * 0.9 < lengths.batches_for(8000) < 8000 / 32


@pytest.mark.parametrize("found", [[10] * 20, [10], [0] * 20, [0] * 19 + [1]])
def test_no_more_batches_are_read_than_there_may_be_rows(found):
    lengths = BatchLengths()
    lengths.learn(np.array(found))
    assert 1 <= lengths.batches_for(8000) <= 8000 // max(1, *found)
    assert lengths.batches_for(1) == 1
