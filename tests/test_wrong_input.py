"""What is no dataset, no function and no state is refused with a line to type."""

import pytest

import evenfeed as tf

Dataset = tf.data.Dataset


@pytest.mark.parametrize(
    "use",
    [
        lambda dataset: dataset.map(3),
        lambda dataset: dataset.filter("x > 1"),
        lambda dataset: dataset.flat_map(None),
        lambda dataset: dataset.reduce(0, 5),
    ],
)
def test_what_is_no_function_is_refused(use):
    with pytest.raises(
        TypeError, match=r"Expected a function, but got .*\n.*\n  fix: pass a function"
    ):
        use(Dataset.range(3))


def test_only_a_dataset_can_follow_another():
    with pytest.raises(TypeError, match=r"Expected a Dataset, but got \[1, 2\]"):
        Dataset.range(3).concatenate([1, 2])


@pytest.mark.parametrize("state", ["{}", {}, None, {"at": 3}])
def test_what_is_no_state_is_refused(state):
    iterator = iter(Dataset.range(3))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"state must be an iterator state"):
        iterator.set_state(state)
    assert int(next(iterator)) == 0


def test_a_state_of_another_version_or_dataset_is_refused():
    state = iter(Dataset.range(3)).get_state()
    iterator = iter(Dataset.range(4))
    with pytest.raises(tf.errors.InvalidArgumentError, match="over a different dataset"):
        iterator.set_state(state)
    with pytest.raises(tf.errors.InvalidArgumentError, match="has version 99"):
        iterator.set_state(state | {"version": 99})


@pytest.mark.parametrize("value", ["no", 0, None, 1.0])
@pytest.mark.parametrize(
    "batched",
    [
        lambda dataset, drop: dataset.batch(2, drop_remainder=drop),
        lambda dataset, drop: dataset.padded_batch(2, drop_remainder=drop),
        lambda dataset, drop: dataset.batch(3).rebatch(2, drop_remainder=drop),
        lambda dataset, drop: dataset.window(2, drop_remainder=drop),
    ],
)
def test_drop_remainder_is_true_or_false(batched, value):
    with pytest.raises(TypeError, match="drop_remainder must be True or False, but got"):
        batched(Dataset.range(5), value)


def test_a_cache_stands_at_a_path():
    with pytest.raises(TypeError, match="filename must be a path, but got 3"):
        Dataset.range(3).cache(3)
