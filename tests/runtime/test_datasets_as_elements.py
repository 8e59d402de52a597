import json
import pickle

import pytest

import evenfeed as tf

Dataset = tf.data.Dataset
Optional = tf.experimental.Optional


def inner_datasets():
    return Dataset.from_tensor_slices([Dataset.range(2), Dataset.range(3), Dataset.range(1)])


def numbers(dataset):
    return [int(x) for x in dataset]


@pytest.mark.parametrize(
    "make",
    [
        inner_datasets,
        lambda: inner_datasets().batch(2).unbatch(),
        lambda: inner_datasets().cache().shuffle(3, seed=1),
        lambda: Dataset.from_generator(
            lambda: iter([Dataset.range(2), Dataset.range(3)]),
            output_signature=tf.data.DatasetSpec(tf.TensorSpec([], tf.int64)),
        ),
    ],
)
def test_resume_is_exact_between_and_within_inner_datasets(make):
    for dataset in (make(), make().flat_map(lambda inner: inner)):
        read = int if isinstance(dataset.element_spec, tf.TensorSpec) else numbers
        for place in range(3):
            iterator, again = iter(dataset), iter(dataset)
            for _ in range(place):
                next(iterator)
            again.set_state(json.loads(json.dumps(iterator.get_state())))
            assert [read(x) for x in again] == [read(x) for x in iterator]


def test_inner_datasets_can_be_sent_to_another_process():
    sent = pickle.loads(pickle.dumps(inner_datasets()))
    assert [numbers(inner) for inner in sent] == [[0, 1], [0, 1, 2], [0]]


def test_a_batch_of_datasets_says_what_it_holds():
    (batch,) = Dataset.from_tensor_slices([Dataset.range(2)]).batch(1)
    assert "DatasetBatch([<_RangeDataset" in repr(batch)


def test_an_optional_is_opened_before_it_is_batched():
    optionals = Dataset.from_tensors(Optional.from_value(1)).repeat(3)
    with pytest.raises(TypeError, match=r"cannot be batched.*\n.*\n.*get_value"):
        list(optionals.batch(2))
    with pytest.raises(TypeError, match="cannot be split into rows"):
        optionals.rebatch(2)
    assert [x.tolist() for x in optionals.map(lambda x: x.get_value()).batch(2)] == [[1, 1], [1]]


@pytest.mark.parametrize("value", [Dataset.range(3), Optional.from_value(1)])
def test_replicas_get_tensors_only(value):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with pytest.raises(TypeError, match=r"Only tensors can be distributed.*\n.*\n.*flat_map"):
        strategy.experimental_distribute_dataset(Dataset.from_tensors(value))


@pytest.mark.parametrize("value", [Dataset.range(3), Optional.from_value(1)])
def test_values_that_no_file_holds_are_refused(value, tmp_path):
    with pytest.raises(tf.errors.InvalidArgumentError, match="Files hold tensors"):
        Dataset.from_tensors(value).save(str(tmp_path / "saved"))


def test_datasets_in_one_list_have_elements_of_one_kind():
    with pytest.raises(ValueError, match=r"compatible elements.*int64.*float32"):
        Dataset.from_tensor_slices([Dataset.range(2), Dataset.from_tensors(1.5)])


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.data.Dataset.from_tensors([tf.data.Dataset.range(2), tf.data.Dataset.range(3)]),
        lambda: tf.data.Dataset.range(2, 4).map(tf.data.Dataset.range).batch(2),
    ],
)
def test_datasets_in_one_element_have_slices(make):
    slices = make().flat_map(tf.data.Dataset.from_tensor_slices)
    assert [int(x) for x in slices.flat_map(lambda inner: inner)] == [0, 1, 0, 1, 2]


@pytest.mark.parametrize(
    "dataset",
    [
        tf.data.Dataset.range(3).window(2),
        tf.data.Dataset.from_tensors((1, tf.experimental.Optional.from_value(1))),
    ],
)
def test_as_numpy_iterator_refuses_what_is_no_array_at_once(dataset):
    with pytest.raises(TypeError, match="as_numpy_iterator supports only NumPy values"):
        dataset.as_numpy_iterator()
