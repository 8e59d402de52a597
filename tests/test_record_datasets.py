import gzip
import json
import threading
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.resuming import assert_resumes

from evenfeed.core.errors import DataLossError, InvalidArgumentError, NotFoundError
from evenfeed.data import UNKNOWN_CARDINALITY, Dataset, TFRecordDataset
from evenfeed.dataset import plan_of
from evenfeed.formats.tfrecord.record_writer import TFRecordWriter
from evenfeed.formats.tfrecord.records import RecordReader
from evenfeed.io import FixedLenFeature, parse_example, parse_single_example
from evenfeed.runtime.build import build
from evenfeed.runtime.operators.files import ReadFiles
from evenfeed.runtime.positions.rows import Walk
from evenfeed.runtime.run import Run
from evenfeed.train import Example, Feature, Features, Int64List


@pytest.fixture
def paths(tmp_path):
    made = []
    for name, count in [("a", 4), ("b", 0), ("c", 3)]:
        with TFRecordWriter(tmp_path / name) as writer:
            for number in range(count):
                writer.write(f"{name}{number}")
        made.append(str(tmp_path / name))
    return made


def texts(dataset):
    return [record.item().decode() for record in dataset]


ALL = ["a0", "a1", "a2", "a3", "c0", "c1", "c2"]


def test_names_come_in_any_form(paths):
    forms = [
        paths,
        tuple(paths),
        np.array(paths),
        np.array(paths, object).reshape(3, 1),
        list(map(Path, paths)),
        Dataset.from_tensor_slices(paths),
    ]
    for form in forms:
        assert texts(TFRecordDataset(form)) == ALL
    for one in (paths[0], Path(paths[0]), paths[0].encode(), np.array(paths[0])):
        assert texts(TFRecordDataset(one)) == ALL[:4]
    assert texts(TFRecordDataset([])) == []


def test_it_is_a_dataset_of_unknown_size(paths):
    dataset = TFRecordDataset(paths)
    assert isinstance(dataset, Dataset)
    assert int(dataset.cardinality()) == UNKNOWN_CARDINALITY
    assert int(dataset.shuffle(3).skip(1).cardinality()) == UNKNOWN_CARDINALITY
    assert repr(dataset.element_spec) == "TensorSpec(shape=(), dtype=tf.string, name=None)"


def test_parallel_reads_take_a_record_of_each_file_in_turn(paths):
    turns = texts(TFRecordDataset(paths, num_parallel_reads=3))
    assert turns == ["a0", "c0", "a1", "c1", "a2", "c2", "a3"]
    assert texts(TFRecordDataset(paths, num_parallel_reads=1)) == ALL
    assert sorted(texts(TFRecordDataset(paths, num_parallel_reads=-1))) == ALL
    with pytest.raises(InvalidArgumentError, match="num_parallel_reads must be at least 1"):
        TFRecordDataset(paths, num_parallel_reads=0)


@settings(max_examples=10, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    turns=st.tuples(st.integers(2, 4), st.integers(1, 3)),
    bad=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 8)), max_size=3),
    compression=st.sampled_from(["", "GZIP"]),
)
def test_rounds_of_files_are_what_single_turns_are(
    tmp_path_factory, sizes, turns, bad, compression
):
    folder = tmp_path_factory.mktemp("turns")
    for name, size in enumerate(sizes):
        with TFRecordWriter(folder / str(name)) as writer:
            for number in range(size):
                writer.write(f"{name}-{number:02}")
        raw = bytearray((folder / str(name)).read_bytes())
        for row in [row for file, row in bad if file == name and row < size]:
            raw[20 * row + 12] ^= 1
        packed = gzip.compress(bytes(raw)) if compression else bytes(raw)
        (folder / str(name)).write_bytes(packed)
    names = Dataset.from_tensor_slices([str(folder / str(name)) for name in range(len(sizes))])
    read = partial(TFRecordDataset, compression_type=compression)
    plan = plan_of(names.interleave(read, *turns))
    assert_resumes(lambda: build(plan, Run(plan)), 5, 40)


def test_rounds_of_files_are_read_at_once(tmp_path, monkeypatch):
    for name in "abc":
        with TFRecordWriter(tmp_path / name) as writer:
            for number in range(500):
                writer.write(f"{name}{number}")
    asked = []
    read = RecordReader.read
    monkeypatch.setattr(RecordReader, "read", lambda *of: asked.append(of[2]) or read(*of))
    dataset = TFRecordDataset([str(tmp_path / name) for name in "abc"], num_parallel_reads=3)
    found = next(iter(dataset.batch(300))).tolist()
    assert found == [f"{name}{number}".encode() for number in range(100) for name in "abc"]
    assert len(asked) < 20
    assert sum(asked) <= 330


def test_few_long_records_are_read_at_a_time(tmp_path):
    with TFRecordWriter(tmp_path / "long") as writer:
        for _ in range(100):
            writer.write(bytes(100_000))
    for dataset in (TFRecordDataset(tmp_path / "long"), TFRecordDataset(tmp_path / "long").skip(0)):
        tracemalloc.start()
        assert sum(len(record.item()) for record in dataset) == 10**7
        assert tracemalloc.get_traced_memory()[1] < 5 * 10**6
        tracemalloc.stop()


def test_wrong_arguments_are_refused(paths):
    with pytest.raises(TypeError, match="filenames must be a path or a list of paths, but got 5"):
        TFRecordDataset(5)
    with pytest.raises(TypeError, match="filenames must hold paths, but its elements are"):
        TFRecordDataset(Dataset.range(3))
    with pytest.raises(TypeError, match="must be a single path"):
        TFRecordDataset(Dataset.from_tensor_slices([paths]))
    with pytest.raises(ValueError, match="compression_type"):
        TFRecordDataset(paths, "LZ4")
    with pytest.raises(TypeError, match="buffer_size must be a whole number"):
        TFRecordDataset(paths, buffer_size="x")


def test_a_missing_file_fails_when_it_is_reached(paths):
    for form in (lambda names: names, Dataset.from_tensor_slices):
        reading = iter(TFRecordDataset(form([paths[2], "/none", paths[0]])))
        assert [next(reading).item() for _ in range(3)] == [b"c0", b"c1", b"c2"]
        with pytest.raises(NotFoundError, match="/none"):
            next(reading)
        assert next(reading).item() == b"a0"


def test_records_have_positions_where_that_helps(paths):
    dataset = TFRecordDataset(paths)

    def operator(made):
        return type(build(plan_of(made), Run(plan_of(made))))

    assert operator(dataset) is ReadFiles
    assert operator(dataset.take(3).repeat(2)) is not Walk
    for made in (
        dataset.shuffle(3),
        dataset.skip(2),
        dataset.shard(2, 1),
        dataset.shuffle(2).repeat(),
    ):
        assert operator(made) is Walk
    assert texts(dataset.skip(2)) == ALL[2:]
    assert texts(dataset.skip(9)) == []
    assert texts(dataset.shard(3, 1)) == ALL[1::3]
    assert texts(dataset.skip(1).take(100).repeat(2)) == ALL[1:] * 2
    assert texts(dataset.skip(-1).repeat()) == []
    assert sorted(texts(dataset.shuffle(100, seed=1))) == ALL
    zipped = Dataset.zip(dataset.skip(5), Dataset.range(100))
    assert [(text.item(), int(number)) for text, number in zipped] == [(b"c1", 0), (b"c2", 1)]


def test_positions_change_neither_order_nor_errors(paths, monkeypatch):
    bad = bytearray(Path(paths[0]).read_bytes())
    bad[18 + 12] ^= 1
    Path(paths[0]).write_bytes(bytes(bad))

    def steps(dataset):
        reading, found = iter(dataset), []
        while True:
            try:
                found.append(next(reading).item())
            except StopIteration:
                return found
            except (DataLossError, NotFoundError) as error:
                found.append(type(error))

    def made():
        dataset = TFRecordDataset([paths[0], paths[2]])
        return [dataset.skip(0), dataset.shard(2, 1), dataset.shuffle(3, seed=5)]

    by_position = list(map(steps, made()))
    assert by_position[0] == [b"a0", DataLossError, b"a2", b"a3", b"c0", b"c1", b"c2"]
    assert by_position[1] == by_position[0][1::2]
    assert sorted(map(str, by_position[2])) == sorted(map(str, by_position[0]))
    monkeypatch.setattr("evenfeed.formats.tfrecord.records._MOST_COUNTED", 0)
    assert steps(made()[0]) == by_position[0]


def test_a_damaged_length_is_told_whatever_is_passed_over(paths):
    bad = bytearray(Path(paths[2]).read_bytes())
    bad[0] ^= 1
    Path(paths[2]).write_bytes(bytes(bad))
    dataset = TFRecordDataset(paths)
    for part in (dataset.skip(5), dataset.skip(99), dataset.shard(2, 0), dataset.shard(2, 1)):
        with pytest.raises(DataLossError, match="checksum of the record length"):
            list(part)
    assert len(list(dataset.take(3))) == 3


def test_errors_can_be_passed_over(paths):
    bad = bytearray(Path(paths[0]).read_bytes())
    bad[18 + 12] ^= 1
    Path(paths[0]).write_bytes(bytes(bad))
    dataset = TFRecordDataset([*paths, "/none"]).ignore_errors()
    assert texts(dataset) == [ALL[0], *ALL[2:]]
    skipped = dataset.ignored_errors().skipped
    assert [(row.file, row.offset) for row in skipped] == [(paths[0], 30), ("/none", None)]
    assert "the checksum of the record is wrong" in skipped[0].reason


def in_fixed_order(dataset):
    return dataset.shuffle(3, seed=1, reshuffle_each_iteration=False).batch(2)


@pytest.mark.parametrize("change", [lambda d: d, in_fixed_order])
def test_a_state_goes_on_in_another_iterator(paths, change):
    dataset = change(TFRecordDataset(paths))
    whole = [element.tolist() for element in dataset]
    reading = iter(dataset)
    for passed in range(len(whole) + 1):
        other = iter(dataset)
        other.set_state(json.loads(json.dumps(reading.get_state())))
        assert [element.tolist() for element in other] == whole[passed:]
        next(reading, None)


# What datasets do with elements, whether they are bytes of files or objects.
STEPS = {
    "as they are": lambda d, _: d,
    "batches": lambda d, _: d.batch(2),
    "batches of batches": lambda d, _: d.batch(2, drop_remainder=True).batch(2),
    "unbatch": lambda d, _: d.batch(3).unbatch(),
    "rebatch": lambda d, _: d.batch(3).rebatch(2),
    "padded": lambda d, _: d.padded_batch(3),
    "padded batches": lambda d, _: d.batch(3).padded_batch(2),
    "shuffle": lambda d, _: d.shuffle(3, seed=1, reshuffle_each_iteration=False),
    "shard, skip, take": lambda d, _: d.shard(2, 1).skip(1).take(2),
    "concatenate": lambda d, _: d.concatenate(d).concatenate(Dataset.from_tensors(b"end")),
    "zip": lambda d, _: Dataset.zip((d, d.batch(2))).map(lambda a, b: b),
    "repeat": lambda d, _: d.repeat(3).enumerate().map(lambda _, text: text),
    "cache": lambda d, _: d.cache().repeat(2),
    "cache in files": lambda d, path: d.cache(str(path / "cache")).repeat(2),
    "saved": lambda d, path: saved(d, str(path / "saved")),
    "snapshot": lambda d, path: d.snapshot(str(path / "snapshot")).repeat(2),
    "unique": lambda d, _: d.repeat(2).unique(),
    "windows": lambda d, _: d.window(3).flat_map(lambda window: window.batch(2)),
    "groups": lambda d, _: d.group_by_window(len, lambda _, group: group.batch(3), 3),
    "filter": lambda d, _: d.filter(lambda text: text != b"a2"),
    "in threads": lambda d, _: d.map(bytes.upper, num_parallel_calls=2, vectorize=False),
    "scan": lambda d, _: d.scan(np.int64(0), lambda n, text: (n + 1, text)),
    "prefetch": lambda d, _: d.prefetch(2).batch(2).prefetch(1),
    "interleave": lambda d, _: d.interleave(Dataset.from_tensors, cycle_length=2),
}


def saved(dataset, path):
    dataset.save(path)
    return Dataset.load(path)


@pytest.mark.parametrize("compression", ["", "GZIP"])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_records_move_as_texts_in_memory_do(tmp_path, step, compression):
    for name in "ac":
        with TFRecordWriter(tmp_path / name, compression) as writer:
            for text in ALL:
                if text.startswith(name):
                    writer.write(text)
    files = TFRecordDataset([tmp_path / "a", tmp_path / "c"], compression)
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    expected = list(step(Dataset.from_tensor_slices(ALL), tmp_path / "one").as_numpy_iterator())
    found = list(step(files, tmp_path / "two").as_numpy_iterator())
    assert [np.shape(one) for one in found] == [np.shape(one) for one in expected]
    assert [np.asarray(one, object).tolist() for one in found] == [
        np.asarray(one, object).tolist() for one in expected
    ]


def example(number):
    value = Feature(int64_list=Int64List(value=[number]))
    return Example(features=Features(feature={"n": value})).SerializeToString()


@pytest.fixture
def examples(tmp_path):
    """Two files of five examples, one of which is none; and where that begins."""
    made = []
    for name in "ab":
        with TFRecordWriter(tmp_path / name) as writer:
            for number in range(5):
                writer.write(b"junk" if (name, number) == ("b", 3) else example(number))
        made.append(str(tmp_path / name))
    raw = Path(made[1]).read_bytes()
    return made, (made[1], raw.index(b"junk") - 12)


WANTED = {"n": FixedLenFeature([], np.int64)}


def parse(record):
    return parse_single_example(record, WANTED)["n"]


def parse_slowly(record):
    return int(parse(record))  # a number is needed: it is not traced


def parse_batch(records):
    return parse_example(records, WANTED)["n"]


# Each with how many elements are left.
PARSED = {
    "singly": (lambda d: d.map(parse), 9),
    "in turn": (lambda d: d.map(parse, num_parallel_calls=2, vectorize=False), 9),
    "untraced": (lambda d: d.map(parse_slowly), 9),
    "shuffled": (lambda d: d.shuffle(4, seed=1).map(parse), 9),
    "behind": (lambda d: d.map(parse).shuffle(4).batch(1), 9),
    "batches": (lambda d: d.batch(2).map(parse_batch), 4),
    "shuffled batches": (lambda d: d.shuffle(10, seed=2).batch(5).map(parse_batch), 1),
    "untraced batches": (lambda d: d.batch(2).map(parse_batch, vectorize=False), 4),
    "cut anew": (lambda d: d.batch(3).unbatch().batch(2).map(parse_batch), 4),
    "among others": (lambda d: d.enumerate().map(lambda _, record: parse(record)), 9),
    "kept": (
        lambda d: d.cache().skip(1).repeat(1).prefetch(1).filter(lambda r: len(r) > 0).map(parse),
        8,
    ),
}


@pytest.mark.parametrize("case", PARSED.values(), ids=PARSED.keys())
def test_a_record_that_cannot_be_parsed_is_named_with_its_file_and_byte(examples, case):
    paths, bad = examples
    read, left = case
    dataset = read(TFRecordDataset(paths)).ignore_errors()
    assert len(list(dataset)) == left
    skipped = dataset.ignored_errors().skipped
    assert [(one.file, one.offset) for one in skipped] == [bad]
    assert "is not a valid Example" in skipped[0].reason
    assert f" of {bad[0]}, at byte {bad[1]}" in skipped[0].reason


def test_a_feature_that_is_missing_is_named_with_file_and_byte(examples):
    paths, _ = examples
    wanted = {"m": FixedLenFeature([], np.int64)}
    with pytest.raises(InvalidArgumentError, match="Feature 'm'") as caught:
        list(TFRecordDataset(paths).map(lambda record: parse_single_example(record, wanted)))
    assert (caught.value.file, caught.value.offset) == (paths[0], 0)


def test_compressed_records_are_read_ahead_in_threads(tmp_path):
    words = [bytes(np.random.default_rng(row).integers(0, 9, 2000, np.uint8)) for row in range(600)]
    paths = [str(tmp_path / name) for name in "abc"]
    for number, path in enumerate(paths):
        with TFRecordWriter(path, "GZIP") as writer:
            for word in words[number::3]:
                writer.write(word)
    dataset = TFRecordDataset(paths, "GZIP", num_parallel_reads=3)
    assert [record.item() for record in dataset] == words
    assert any(thread.name.startswith("evenfeed-files") for thread in threading.enumerate())
    raw = bytearray(Path(paths[1]).read_bytes())
    raw[len(raw) // 2] ^= 0xFF
    Path(paths[1]).write_bytes(bytes(raw))
    left = dataset.ignore_errors()
    found = [record.item() for record in left]
    assert found[:150] == words[:150]
    assert [word for word in found if word in set(words[::3])] == words[::3]
    assert [one.file for one in left.ignored_errors().skipped][:1] == [paths[1]]
