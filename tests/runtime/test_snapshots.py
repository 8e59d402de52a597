import json
import os

import attrs
import pytest

import evenfeed as tf
from evenfeed.core.errors import NotFoundError
from evenfeed.dataset import Dataset


@attrs.define
class Record:
    x: object
    y: object


def numbers(dataset):
    return [int(x) for x in dataset]


@pytest.mark.parametrize("compression", ["AUTO", "GZIP", None])
def test_the_first_pass_writes_and_later_ones_read(tmp_path, compression):
    calls = []

    def noted(x):
        calls.append(x)
        return x

    dataset = Dataset.range(5).map(noted, vectorize=False)
    kept = dataset.snapshot(tmp_path, compression=compression)
    calls.clear()
    assert numbers(kept.repeat(3)) == list(range(5)) * 3
    assert numbers(kept) == list(range(5))
    assert len(calls) == 5
    assert len(kept) == 5


def test_a_pass_that_ends_early_writes_nothing(tmp_path):
    kept = Dataset.range(5).snapshot(tmp_path)
    assert numbers(kept.take(3)) == [0, 1, 2]
    iterator = iter(kept)
    next(iterator)
    assert len(list(tmp_path.rglob("*.json"))) == 0
    del iterator
    assert os.listdir(tmp_path) == []
    assert numbers(kept) == list(range(5))
    assert len(list(tmp_path.rglob("dataset.json"))) == 1


def test_a_pass_with_an_element_that_fails_is_not_kept(tmp_path):
    wrong = [2]

    def sometimes(x):
        if x in wrong:
            raise KeyError("mine")
        return x

    kept = Dataset.range(5).map(sometimes, vectorize=False).snapshot(tmp_path)
    assert numbers(kept.ignore_errors()) == [0, 1, 3, 4]
    assert not list(tmp_path.rglob("dataset.json"))
    wrong.clear()
    assert numbers(kept) == [0, 1, 2, 3, 4]
    assert list(tmp_path.rglob("dataset.json"))


def test_an_order_is_kept_as_it_was(tmp_path):
    kept = Dataset.range(20).shuffle(20).snapshot(tmp_path)
    first = numbers(kept)
    assert sorted(first) == list(range(20))
    assert numbers(kept) == numbers(Dataset.range(20).shuffle(20).snapshot(tmp_path)) == first


def test_another_dataset_writes_its_own(tmp_path):
    assert numbers(Dataset.range(3).snapshot(tmp_path)) == [0, 1, 2]
    assert numbers(Dataset.range(4).snapshot(tmp_path)) == [0, 1, 2, 3]
    assert numbers(Dataset.range(3).map(lambda x: x + 1).snapshot(tmp_path)) == [1, 2, 3]
    assert numbers(Dataset.range(3).map(lambda x: x + 2).snapshot(tmp_path)) == [2, 3, 4]
    assert len(os.listdir(tmp_path)) == 4


def test_two_iterators_at_once_both_get_all_and_one_snapshot_stays(tmp_path):
    kept = Dataset.range(5).snapshot(tmp_path)
    one, two = iter(kept), iter(kept)
    found = [(int(a), int(b)) for a, b in zip(one, two, strict=False)]
    assert found == [(x, x) for x in range(5)]
    assert numbers(one) == numbers(two) == []
    assert numbers(kept) == list(range(5))
    assert len(list(tmp_path.rglob("*.pages"))) == 1


def test_a_snapshot_in_shards_is_read_in_turn_or_as_asked(tmp_path):
    one = Dataset.range(7).snapshot(tmp_path, shard_func=lambda x: tf.cast(x > 1, tf.int64))
    assert [numbers(one), numbers(one)] == [list(range(7)), [0, 2, 1, 3, 4, 5, 6]]
    two = Dataset.range(7).snapshot(
        tmp_path,
        shard_func=lambda x: tf.cast(x > 1, tf.int64),
        reader_func=lambda shards: shards.flat_map(lambda shard: shard),
    )
    assert numbers(two) == list(range(7))


@pytest.mark.parametrize(
    ("reader_func", "kind"),
    [
        (lambda shards: shards + 1, TypeError),
        (lambda shards: 7, TypeError),
        (lambda shards: shards, ValueError),
        (lambda shards: shards.flat_map(lambda shard: shard.map(lambda x: x * 1.5)), ValueError),
    ],
)
def test_a_reader_function_is_refused_where_it_is_given(tmp_path, reader_func, kind):
    with pytest.raises(kind):
        tf.data.Dataset.range(3).snapshot(tmp_path, reader_func=reader_func)


def test_objects_of_a_class_come_back_as_they_are(tmp_path):
    kept = Dataset.from_tensor_slices(Record([1, 2], [3, 4])).snapshot(tmp_path)
    for _ in range(2):
        assert [type(record) for record in kept] == [Record, Record]


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("how", [{}, {"shard_func": lambda x: x % 2}])
def test_a_position_is_found_again_in_the_child_and_in_the_files(tmp_path, warm, how):
    def dataset():
        return Dataset.range(9).shuffle(9).snapshot(tmp_path, **how)

    if warm:
        numbers(dataset())
    for stop in range(10):
        iterator = iter(dataset())
        found = [int(next(iterator)) for _ in range(stop)]
        state = json.loads(json.dumps(iterator.get_state()))
        rest = [int(next(iterator)) for _ in range(9 - stop)]
        again = iter(dataset())
        again.set_state(state)
        if stop or warm:
            assert numbers(again) == rest
        assert sorted(found + rest) == list(range(9))
        if not warm:
            del iterator, again
            for file in tmp_path.rglob("*.json"):
                file.unlink()


def test_a_restored_pass_writes_nothing(tmp_path):
    dataset = Dataset.range(9).snapshot(tmp_path)
    iterator = iter(dataset)
    next(iterator)
    state = iterator.get_state()
    del iterator
    again = iter(dataset)
    again.set_state(state)
    assert numbers(again) == list(range(1, 9))
    assert not list(tmp_path.rglob("dataset.json"))
    assert numbers(dataset) == list(range(9))
    assert list(tmp_path.rglob("dataset.json"))


def begun_in_a_snapshot_that_is_gone(dataset, folder):
    """Return the state after the first element of a snapshot, and delete the snapshot."""
    numbers(dataset)
    iterator = iter(dataset)
    next(iterator)
    for file in folder.rglob("*.json"):
        file.unlink()
    return iterator.get_state()


def test_a_position_in_a_snapshot_that_is_gone_is_found_by_reading_again(tmp_path):
    dataset = Dataset.range(9).shuffle(9).snapshot(tmp_path)
    order = numbers(dataset)
    again = iter(dataset)
    again.set_state(begun_in_a_snapshot_that_is_gone(dataset, tmp_path))
    assert [int(x) for x in again] == order[1:]


def test_a_position_in_a_snapshot_with_an_order_of_its_own_that_is_gone_is_an_error(tmp_path):
    dataset = Dataset.range(9).snapshot(
        tmp_path, reader_func=lambda shards: shards.flat_map(lambda shard: shard)
    )
    state = begun_in_a_snapshot_that_is_gone(dataset, tmp_path)
    with pytest.raises(NotFoundError, match="snapshot that was being read is no longer in"):
        iter(dataset).set_state(state)
