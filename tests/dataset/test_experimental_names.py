import inspect

import pytest

import evenfeed as tf

Dataset, older = tf.data.Dataset, tf.data.experimental


def numbers(dataset):
    return [x.tolist() for x in dataset]


@pytest.mark.parametrize(
    ("name", "arguments", "method"),
    [
        ("unbatch", (), "unbatch"),
        ("unique", (), "unique"),
        ("take_while", (lambda x: x[0] < 4,), "take_while"),
        ("enumerate_dataset", (5,), "enumerate"),
        ("scan", (0, lambda s, x: (s + 1, x)), "scan"),
        ("ignore_errors", (), "ignore_errors"),
    ],
)
def test_an_older_name_does_what_the_method_does(name, arguments, method):
    dataset = Dataset.range(6)
    if name != "unique":
        dataset = dataset.batch(2)
    old = dataset.apply(getattr(older, name)(*arguments))
    new = getattr(dataset, method)(*arguments)
    assert old.element_spec == new.element_spec
    assert str(list(old)) == str(list(new))


def test_groups_and_buckets():
    windows = older.group_by_window(lambda x: x % 2, lambda _, rows: rows.batch(3), window_size=3)
    assert numbers(Dataset.range(6).apply(windows)) == [[0, 2, 4], [1, 3, 5]]
    rows = Dataset.from_generator(
        lambda: iter([[1], [1, 2, 3], [2]]), output_signature=tf.TensorSpec([None], tf.int32)
    )
    buckets = older.bucket_by_sequence_length(lambda row: tf.shape(row)[0], [2], [2, 2])
    assert numbers(rows.apply(buckets)) == [[[1], [2]], [[1, 2, 3]]]


def test_rejection_resample_returns_the_class_with_each_element():
    resampled = Dataset.range(40).apply(
        older.rejection_resample(lambda x: x % 2, [0.5, 0.5], [0.5, 0.5], seed=1)
    )
    assert all(kind == x % 2 for kind, x in resampled)


def test_the_signature_is_the_methods_without_the_dataset():
    assert list(inspect.signature(older.take_while).parameters)[:1] == ["predicate"]
    assert older.unbatch.__module__ == "evenfeed.data.experimental"
    assert "Dataset.unbatch" in older.unbatch.__doc__


def test_map_and_batch_takes_tensorflows_numbers_of_calls():
    mapped = older.map_and_batch(lambda x: x + 1, 2, num_parallel_batches=2, drop_remainder=True)
    assert numbers(Dataset.range(5).apply(mapped)) == [[1, 2], [3, 4]]


def test_choices_of_exhausted_datasets_are_skipped_by_default():
    data, choice = [Dataset.range(1), Dataset.range(10, 12)], Dataset.range(2).repeat(2)
    assert numbers(older.choose_from_datasets(data, choice)) == [0, 10, 11]
    assert numbers(older.choose_from_datasets(data, choice, stop_on_empty_dataset=True)) == [0, 10]


def test_parallel_calls_and_batches_cannot_both_be_passed():
    assert numbers(Dataset.range(3).apply(older.map_and_batch(abs, 2, 4))) == [[0, 1], [2]]
    with pytest.raises(ValueError, match=r"(?s)cannot both be passed.*test_experimental_names\.py"):
        older.map_and_batch(abs, 2, num_parallel_batches=4, num_parallel_calls=4)


@pytest.mark.parametrize("count", [0, -2])
def test_shuffle_and_repeat_counts_from_one(count):
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"(?s)at least 1.*test_experimental_names"
    ):
        older.shuffle_and_repeat(3, count=count)
