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


WORDS = tf.strings.split(["a bc", "", "d"])
UNIFORM = tf.RaggedTensor.from_uniform_row_length(tf.ragged.constant([[1], [], [2, 3], [4]]), 2)
KEPT = {
    "nested": Dataset.from_tensor_slices(NESTED),
    "rows": Dataset.from_tensor_slices(tf.ragged.constant([[1.5], [], [2.5, 3.5]])),
    "words": Dataset.from_tensors(WORDS).repeat(3),
    "uniform": Dataset.from_tensors(UNIFORM.with_row_splits_dtype(tf.int32)),
    "sparse": Dataset.from_tensors(SPARSE).repeat(2),
    "batches": Dataset.from_tensor_slices((tf.ragged.constant([[1], [], [2, 3]]), [1, 2, 3])).batch(
        2
    ),
}


def parts(value):
    found = tf.nest.flatten(value, expand_composites=True)
    return [(np.asarray(part).tolist(), np.asarray(part).dtype) for part in found]


def uniform_lengths(value):
    return [x.uniform_row_length for x in tf.nest.flatten(value) if isinstance(x, tf.RaggedTensor)]


@pytest.mark.parametrize("way", ["save", "gzip", "snapshot", "cache"])
@pytest.mark.parametrize("name", KEPT)
def test_files_return_exactly_what_was_written(name, way, tmp_path):
    dataset, path = KEPT[name], str(tmp_path / "kept")
    if way in ("save", "gzip"):
        dataset.save(path, compression="GZIP" if way == "gzip" else None)
        loaded = Dataset.load(path)
        assert loaded.element_spec == dataset.element_spec
    else:
        loaded = dataset.snapshot(path) if way == "snapshot" else dataset.cache(path)
        list(loaded)
    expected = list(dataset)
    found = list(loaded)
    assert list(map(parts, found)) == list(map(parts, expected))
    assert list(map(uniform_lengths, found)) == list(map(uniform_lengths, expected))
    assert all(dataset.element_spec == loaded.element_spec for _ in found)


def test_a_loaded_dataset_of_ragged_tensors_checks_the_asked_spec(tmp_path):
    path = str(tmp_path / "kept")
    KEPT["words"].save(path)
    assert Dataset.load(path, WORDS_SPEC).element_spec == WORDS_SPEC
    with pytest.raises(InvalidArgumentError, match="do not have the element_spec"):
        Dataset.load(path, tf.RaggedTensorSpec([None, None], tf.int32))


WORDS_SPEC = tf.RaggedTensorSpec([None, None], tf.string)


def test_each_replica_gets_its_rows_on_the_host():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    rows = Dataset.from_tensor_slices((tf.ragged.constant([[1, 2], [], [3], [4], [5]]), range(5)))
    steps = strategy.experimental_distribute_dataset(rows.batch(4))
    found = list(steps)
    assert [[x.to_list() for x in step[0].values] for step in found] == [
        [[[1, 2], []], [[3], [4]]], [[[5]], []],
    ]  # fmt: skip
    assert [[x.tolist() for x in step[1].values] for step in found] == [[[0, 1], [2, 3]], [[4], []]]
    for step in found:
        spec = steps.element_spec[0]
        assert all(map(tf.TypeSpec.is_compatible_with, spec.value_specs, step[0].values))
    sums = strategy.run(lambda x, y: tf.reduce_sum(x.flat_values) + tf.reduce_sum(y), found[0])
    assert [int(x) for x in sums.values] == [4, 12]


def test_each_replica_gets_its_rows_of_a_sparse_tensor():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    rows = Dataset.from_tensor_slices(tf.SparseTensor([[0, 0], [1, 2], [2, 1]], [1, 2, 3], [3, 4]))
    steps = strategy.experimental_distribute_dataset(rows.batch(2))
    dense = [[tf.sparse.to_dense(x).tolist() for x in step.values] for step in steps]
    assert dense == [[[[1, 0, 0, 0]], [[0, 0, 2, 0]]], [[[0, 3, 0, 0]], []]]


def test_elements_are_taken_whole_from_a_dataset_of_each_worker():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    rows = Dataset.from_tensor_slices(tf.ragged.constant([[1, 2], [], [3], [4], [5]]))
    steps = strategy.distribute_datasets_from_function(lambda context: rows.batch(2))
    assert [[x.to_list() for x in step.values] for step in steps] == [
        [[[1, 2], []], [[3], [4]]], [[[5]], []],
    ]  # fmt: skip


def test_a_compiled_step_sees_the_values_of_each_ragged_tensor():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    rows = Dataset.from_tensor_slices(tf.ragged.constant([[1], [2], [3], [4]]))

    @tf.function
    def step(x):
        return strategy.run(lambda part: tf.reduce_sum(part.flat_values), (x,))

    steps = strategy.experimental_distribute_dataset(rows.batch(2))
    assert [[int(x) for x in step(x).values] for x in steps] == [[1, 2], [3, 4]]


@pytest.mark.parametrize("value", [NESTED, SPARSE], ids=["ragged", "sparse"])
def test_partial_batches_are_padded_only_if_they_are_dense(value):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    options = tf.distribute.InputOptions(pad_partial_batches=True)
    dataset = Dataset.from_tensors(value).batch(2)
    with pytest.raises(TypeError, match=r"can only pad tensors(.*\n)*.*to_tensor\(\)"):
        _ = strategy.experimental_distribute_dataset(dataset, options).element_spec


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
