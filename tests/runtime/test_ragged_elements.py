import pickle

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError

Dataset = tf.data.Dataset
RAGGED = tf.ragged.constant([[1, 2, 3], [], [4], [5, 6], [7]])
NESTED = tf.ragged.constant([[[1], [2, 3]], [], [[4]], [[5, 6]], []])
SPARSE = tf.SparseTensor([[0, 1], [3, 0], [4, 2]], [1, 2, 3], [5, 3])
PLANS = {
    "rows": lambda x: x,
    "batches": lambda x: x.batch(2),
    "rebatched": lambda x: x.batch(3).rebatch(2),
    "unbatched": lambda x: x.batch(2).unbatch(),
    "shuffled": lambda x: x.shuffle(3, 1, reshuffle_each_iteration=False).batch(2),
    "repeated": lambda x: x.repeat(2).batch(3),
    "mapped": lambda x: x.map(lambda row: row).enumerate(),
    "cached": lambda x: x.cache().batch(2),
    "zipped": lambda x: Dataset.zip((x, Dataset.range(9))).batch(2),
}


def plain(value):
    """Return ragged and sparse tensors as lists, which can be compared."""
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, tf.SparseTensor):
        return plain((value.indices, value.values, value.dense_shape))
    return value.to_list() if isinstance(value, tf.RaggedTensor) else value.tolist()


@pytest.mark.parametrize("made", PLANS.values(), ids=list(PLANS))
@pytest.mark.parametrize("value", [RAGGED, NESTED, SPARSE], ids=["ragged", "nested", "sparse"])
def test_an_iterator_goes_on_where_its_state_was_taken(made, value):
    source = Dataset.from_tensor_slices(value)
    if value is RAGGED and made is PLANS["mapped"]:
        source = source.map(lambda row: tf.ragged.stack([row, row]))
    dataset = made(source)
    expected = list(map(plain, dataset))
    iterator, other = iter(dataset), iter(dataset)
    for number in range(len(expected)):
        other.set_state(iterator.get_state())
        assert list(map(plain, other)) == expected[number:]
        assert plain(next(iterator)) == expected[number]


def test_rows_do_not_share_memory_that_can_be_written_to():
    for row in Dataset.from_tensor_slices(RAGGED):
        row_or_copy = np.asarray(row)
        if row_or_copy.flags.writeable:
            row_or_copy[...] = 9
    for rows in Dataset.from_tensor_slices(NESTED):
        values = np.asarray(rows.flat_values)
        if values.flags.writeable:
            values[...] = 9
    assert RAGGED.to_list() == [[1, 2, 3], [], [4], [5, 6], [7]]
    assert NESTED.to_list() == [[[1], [2, 3]], [], [[4]], [[5, 6]], []]


def test_an_empty_batch_has_no_rows():
    for value in (RAGGED, NESTED, SPARSE):
        dataset = Dataset.from_tensors(value).rebatch([0, 5])
        empty = next(iter(dataset))
        assert empty.shape[0] == 0
        assert dataset.element_spec.is_compatible_with(empty)


def test_a_function_that_asks_for_the_class_gets_a_ragged_tensor():
    kinds = Dataset.from_tensor_slices(NESTED).map(lambda x: isinstance(x, tf.RaggedTensor))
    assert [bool(kind) for kind in kinds] == [True] * 5


def test_text_in_ragged_rows_is_computed_in_place():
    words = Dataset.from_tensor_slices(["a b", "c"]).batch(2).map(tf.strings.split)
    assert [x.to_list() for x in words.map(tf.strings.upper)] == [[[b"A", b"B"], [b"C"]]]


@pytest.mark.parametrize("value", [NESTED, SPARSE], ids=["ragged", "sparse"])
def test_they_are_distributed_and_saved_only_if_they_are_dense(value, tmp_path):
    dataset = Dataset.from_tensors(value)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with pytest.raises(
        TypeError, match=r"Only tensors can be distributed.*\n(.*\n)*.*to_tensor\(\)"
    ):
        strategy.experimental_distribute_dataset(dataset)
    with pytest.raises(InvalidArgumentError, match=r"(?s)Files hold tensors.*to_tensor\(\)"):
        dataset.save(str(tmp_path / "saved"))


def test_tensors_of_other_ranks_cannot_be_batched():
    spec = tf.SparseTensorSpec(None, tf.int32)
    values = [tf.SparseTensor([[0]], [1], [2]), tf.SparseTensor([[0, 0]], [1], [2, 2])]
    dataset = Dataset.from_generator(lambda: values, output_signature=spec)
    with pytest.raises(InvalidArgumentError, match=r"of the ranks \[1, 2\] cannot be batched"):
        list(dataset.batch(2))


def test_specs_survive_pickling():
    for spec in (
        tf.SparseTensorSpec([None, 2], tf.int32),
        tf.RaggedTensorSpec([2, None], tf.string),
    ):
        assert pickle.loads(pickle.dumps(spec)) == spec
        assert hash(pickle.loads(pickle.dumps(spec))) == hash(spec)
