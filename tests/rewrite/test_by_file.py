"""Sharding by file: which files each worker reads."""

import pytest
from tests.feeding.distribution import with_policy
from tests.feeding.test_reading import text_files

import evenfeed as tf
from evenfeed.core.batch_split import Share
from evenfeed.core.errors import InvalidArgumentError, NotFoundError
from evenfeed.dataset import Dataset, plan_of
from evenfeed.plan.files import Files
from evenfeed.plan.ordering import Shard, Shuffle
from evenfeed.rewrite.by_file import by_file

Lines = tf.data.TextLineDataset


def read(dataset, worker, workers=2):
    plan = by_file(plan_of(dataset), Share(worker, workers, 1))
    return [x.decode() for x in Dataset(plan).as_numpy_iterator()]


def test_a_reader_reads_every_other_file(tmp_path):
    paths = text_files(tmp_path, [2, 1, 2])
    assert read(Lines(paths), 0) == ["a0", "a1", "c0", "c1"]
    assert read(Lines(paths).take(3).repeat(2), 1) == ["b0", "b0"]
    assert read(Lines(paths, num_parallel_reads=2), 0) == ["a0", "c0", "a1", "c1"]


def test_file_names_are_sharded_before_they_are_read_and_shuffled(tmp_path):
    paths = text_files(tmp_path, [1, 1, 1, 1])
    names = Dataset.from_tensor_slices(paths).shuffle(4, seed=3)
    plan = by_file(plan_of(names.flat_map(Lines)), Share(1, 2, 1))
    mixed = plan.children[0]
    assert isinstance(mixed, Shuffle)
    assert isinstance(mixed.child, Shard)
    assert sorted(read(names.flat_map(Lines), 1)) == ["b0", "d0"]
    assert sorted(read(names.map(lambda x: x).interleave(Lines), 0)) == ["a0", "c0"]


def test_each_input_is_sharded(tmp_path):
    paths = text_files(tmp_path, [1, 1, 1, 1])
    both = Lines(paths[:2]).concatenate(Lines(paths[2:]))
    assert read(both, 1) == ["b0", "d0"]
    pairs = Dataset.zip((Lines(paths[:2]), Lines(paths[2:])))
    plan = by_file(plan_of(pairs), Share(0, 2, 1))
    assert [len(part.files) for part in plan.walk() if isinstance(part, Files)] == [1, 1]


@pytest.mark.parametrize("known", [True, False])
def test_names_are_counted(tmp_path, known):
    names = Dataset.from_tensor_slices(text_files(tmp_path, [1, 1]))
    names = names if known else names.filter(lambda x: len(x) > 0)
    read(names.flat_map(Lines), 1)
    with pytest.raises(InvalidArgumentError, match="there are 2 files for 3 workers"):
        read(names.flat_map(Lines), 0, 3)
    assert by_file(plan_of(names.repeat().flat_map(Lines)), Share(0, 3, 1))


def test_rows_that_do_not_come_from_files_are_not_sharded(tmp_path):
    lines = Lines(text_files(tmp_path, [1, 1]))
    for other in (
        Dataset.range(3).batch(2),
        Dataset.zip((lines, Dataset.range(3))),
        lines.concatenate(Dataset.from_tensors("z")),
    ):
        with pytest.raises(NotFoundError, match="it does not read files here"):
            by_file(plan_of(other), Share(0, 2, 1))


@pytest.mark.parametrize(
    ("over", "name"),
    [
        (lambda lines: lines.enumerate(), "Enumerate"),
        (lambda lines: lines.scan(0, lambda s, x: (s, x)), "Scan"),
        (lambda lines: lines.take_while(lambda x: True), "TakeWhile"),
        (lambda lines: lines.unique(), "Unique"),
        (lambda lines: lines.ignore_errors(), "IgnoreErrors"),
    ],
)
def test_the_error_names_the_node_above_the_files(tmp_path, over, name):
    lines = over(Lines(text_files(tmp_path, [1, 1])))
    with pytest.raises(NotFoundError, match=f"the files are below {name}, which"):
        by_file(plan_of(lines), Share(0, 2, 1))


def test_flattened_windows_hold_neighbours(tmp_path):
    lines = Lines(text_files(tmp_path, [2, 3, 1, 1]))
    plan = by_file(plan_of(lines.window(2).flat_map(lambda w: w.batch(2))), Share(1, 2, 1))
    windows = [[x.decode() for x in window] for window in Dataset(plan).as_numpy_iterator()]
    assert windows == [["b0", "b1"], ["b2", "d0"]]


def test_csv_files_are_sharded(tmp_path):
    records = tf.data.experimental.CsvDataset(text_files(tmp_path, [2, 3, 1]), [tf.string])
    assert read(records.map(lambda x: x), 0) == ["a0", "a1", "c0"]


def test_unbatch_is_looked_through(tmp_path):
    lines = Lines(text_files(tmp_path, [2, 3, 1, 1]))
    assert read(lines.batch(2).unbatch(), 0) == ["a0", "a1", "c0"]
    assert read(lines.padded_batch(3, []).unbatch(), 1) == ["b0", "b1", "b2", "d0"]
    assert read(lines.batch(2).unbatch().map(lambda x: x).repeat(2), 0) == ["a0", "a1", "c0"] * 2


def test_a_cardinality_of_all_files_is_not_asserted_of_some(tmp_path):
    lines = Lines(text_files(tmp_path, [2, 3]))
    counted = lines.apply(tf.data.experimental.assert_cardinality(5))
    assert read(counted, 1) == ["b0", "b1", "b2"]
    assert len(list(counted)) == 5


def test_draws_differ_from_worker_to_worker(tmp_path):
    paths = text_files(tmp_path, [1, 1])
    data = (
        Lines(paths)
        .map(lambda _: 0)
        .random_map(
            lambda key, _: tf.cast(key.integers(1 << 30), tf.int32), seed=1, generator="numpy"
        )
    )
    first, second = (
        list(Dataset(by_file(plan_of(data), Share(w, 2, 1))).as_numpy_iterator()) for w in (0, 1)
    )
    assert first != second


def test_a_cache_of_files_is_not_the_users(tmp_path):
    data = with_policy(Lines(text_files(tmp_path, [1, 1])).cache(), "FILE")
    assert read(data, 1) == ["b0"]
    assert [x.decode() for x in data.as_numpy_iterator()] == ["a0", "b0"]
