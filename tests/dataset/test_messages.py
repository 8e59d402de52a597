"""What a new user types wrong is answered with what to type."""

import pytest

import evenfeed as tf

Dataset = tf.data.Dataset


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: Dataset.range(3).batch(batchsize=2),
            r"Dataset\.batch\(\) got an unexpected keyword",
        ),
        (lambda: Dataset.range(3).shuffle(), r"Dataset\.shuffle\(\) missing 1 required"),
        (
            Dataset.from_tensor_slices,
            r"Dataset\.from_tensor_slices\(\) missing 1 required",
        ),
        (
            lambda: Dataset.range(3).padded_batch(2, padding_values=-1.5),
            "a value that is int64, such as",
        ),
        (lambda: len(Dataset.range(3).filter(lambda x: x > 1)), "length is unknown"),
        (lambda: len(Dataset.range(3).repeat()), "length is infinite"),
    ],
)
def test_a_type_error_names_the_public_method_and_the_fix(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_an_attribute_error_of_a_function_is_the_one_that_is_shown():
    dataset = Dataset.from_tensor_slices(["a"]).map(lambda text: text.colour)
    for call in (lambda: dataset.element_spec, lambda: repr(dataset), lambda: list(dataset)):
        with pytest.raises(AttributeError, match="colour"):
            call()
    with pytest.raises(AttributeError, match="'Dataset' object has no attribute 'colour'"):
        dataset.colour  # noqa: B018


def test_the_method_that_needs_a_function_of_datasets_is_named():
    for method in ("flat_map", "interleave"):
        with pytest.raises(TypeError, match=f"passed to {method} must return a Dataset"):
            getattr(Dataset.range(3), method)(lambda x: x)


def test_a_list_of_dicts_is_a_dict_of_lists():
    with pytest.raises(ValueError, match=r"one dict of lists, .* instead of a list of dicts"):
        Dataset.from_tensor_slices([{"a": 1}, {"a": 2}])


def test_a_value_of_all_replicas_is_reduced_first():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    value = strategy.run(lambda: tf.distribute.get_replica_context().replica_id_in_sync_group)
    with pytest.raises(ValueError, match=r"call strategy\.reduce or strategy\.gather"):
        tf.reduce_sum(value)
