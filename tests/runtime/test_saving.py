import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import namedtuple
from pathlib import Path

import attrs
import numpy as np
import pytest
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core import dtypes
from evenfeed.core.errors import (
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
)
from evenfeed.dataset import Dataset, plan_of
from evenfeed.plan.files import Files
from evenfeed.runtime.positions.rows import Walk

Pair = namedtuple("Pair", "y x")
INT = tf.TensorSpec([], tf.int32)


@attrs.define
class Record:
    x: object
    y: object


def numbers(dataset):
    return [int(x) for x in dataset]


def plain(dataset):
    return [
        tf.nest.map_structure(
            lambda x: None if x is None else (str(x.dtype), x.shape, x.tolist()), element
        )
        for element in dataset
    ]


COLUMNS = {
    "bfloat16": np.arange(3).astype(dtypes.bfloat16),
    "bool": np.array([True, False, True]),
    "complex": np.arange(3) * 1j,
    "empty": np.zeros((3, 0)),
    "images": np.arange(3 * 12).reshape(3, 2, 2, 3).astype(np.uint8),
    "int4": np.arange(3).astype(dtypes.int4),
    "large": np.arange(2**33, 2**33 + 3),
    "text": np.array([b"a", b"", b"\0 long"], object),
    "texts": np.array([[b"a", b"b"]] * 3, object),
}


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_elements_of_every_kind_come_back(tmp_path, compression):
    dataset = Dataset.from_tensor_slices(Pair((COLUMNS, None), np.arange(3)))
    dataset.save(tmp_path, compression=compression)
    loaded = Dataset.load(tmp_path, compression=compression)
    assert loaded.element_spec == dataset.element_spec
    assert plain(loaded) == plain(dataset)
    assert plain(loaded.skip(1).shard(2, 1)) == plain(dataset.skip(1).shard(2, 1))
    assert len(loaded) == 3


@pytest.mark.parametrize("compression", [None, "GZIP"])
@pytest.mark.parametrize(
    "signature", [tf.TensorSpec([None], tf.int32), tf.TensorSpec(None, tf.string)]
)
def test_elements_of_unlike_shapes_come_back(tmp_path, compression, signature):
    def rows():
        yield from (
            [[1], [2, 3], [], [4]] if signature.dtype != tf.string else ["a", ["b", "c"], []]
        )

    dataset = Dataset.from_generator(rows, output_signature=signature)
    dataset.save(tmp_path, compression=compression)
    assert Dataset.load(tmp_path).element_spec == signature
    assert plain(Dataset.load(tmp_path)) == plain(dataset)


def test_a_single_element_and_none_at_all(tmp_path):
    Dataset.from_tensors([1, 2]).save(tmp_path)
    assert plain(Dataset.load(tmp_path)) == plain(Dataset.from_tensors([1, 2]))
    Dataset.range(0).save(tmp_path)
    empty = Dataset.load(tmp_path)
    assert numbers(empty) == numbers(empty.shuffle(3)) == numbers(empty.repeat()) == []
    assert len(empty) == 0


def test_a_loaded_dataset_is_read_by_position(tmp_path):
    Dataset.range(100_000).save(tmp_path, shard_func=lambda x: x % 3)
    dataset = Dataset.load(tmp_path).shuffle(100_000, seed=1).repeat().skip(150_000)
    iterator = iter(dataset)
    assert type(iterator._operator) is Walk
    first = [int(next(iterator)) for _ in range(5)]
    state = json.loads(json.dumps(iterator.get_state()))
    rest = [int(next(iterator)) for _ in range(5)]
    again = iter(dataset)
    again.set_state(state)
    assert [int(next(again)) for _ in range(5)] == rest
    assert len(json.dumps(state)) < 300
    assert len(set(first + rest)) == 10
    assert sorted(numbers(Dataset.load(tmp_path).shuffle(100_000))) == list(range(100_000))


def test_a_state_outlives_the_move_of_a_folder(tmp_path):
    Dataset.range(9).save(tmp_path / "a")
    iterator = iter(Dataset.load(tmp_path / "a"))
    next(iterator)
    (tmp_path / "a").rename(tmp_path / "b")
    again = iter(Dataset.load(tmp_path / "b"))
    again.set_state(iterator.get_state())
    assert numbers(again) == list(range(1, 9))


def test_shards_come_in_turn_or_as_asked(tmp_path):
    Dataset.range(7).save(tmp_path, shard_func=lambda x: tf.cast(x > 1, tf.int64))
    assert numbers(Dataset.load(tmp_path)) == [0, 2, 1, 3, 4, 5, 6]
    in_order = Dataset.load(tmp_path, reader_func=lambda shards: shards.flat_map(lambda x: x))
    assert numbers(in_order) == list(range(7))
    seen = []

    def backwards(shards):
        seen.append((shards.element_spec, len(shards)))
        return shards.shuffle(2, seed=3).interleave(lambda x: x, cycle_length=1)

    mixed = Dataset.load(tmp_path, reader_func=backwards)
    assert sorted(numbers(mixed)) == list(range(7))
    assert seen == [(tf.data.DatasetSpec(tf.TensorSpec([], tf.int64)), 2)]


def test_a_position_in_what_a_reader_function_made_is_found_again(tmp_path):
    Dataset.range(20).save(tmp_path, shard_func=lambda x: x % 4)

    def read():
        return Dataset.load(tmp_path, reader_func=lambda s: s.shuffle(4).flat_map(lambda x: x))

    iterator = iter(read())
    found = [int(next(iterator)) for _ in range(7)]
    state = json.loads(json.dumps(iterator.get_state()))
    again = iter(read())
    again.set_state(state)
    assert found + numbers(again) == found + numbers(iterator)


@pytest.mark.parametrize(
    ("wrong", "kind", "match"),
    [
        (lambda shards: 3, TypeError, "must return a Dataset"),
        (
            lambda shards: shards,
            InvalidArgumentError,
            "but returns DatasetSpec",
        ),
        (
            lambda shards: shards.flat_map(lambda x: x).map(lambda x: (x, x)),
            ValueError,
            "saved elements and the elements of reader_func differ",
        ),
        (
            lambda shards: shards.flat_map(lambda x: x).map(lambda x: tf.cast(x, tf.float32)),
            InvalidArgumentError,
            "reader_func must return elements with the saved spec",
        ),
        (7, TypeError, "Expected a function"),
    ],
)
def test_a_reader_function_that_reads_something_else_is_refused(tmp_path, wrong, kind, match):
    Dataset.range(7).save(tmp_path)
    with pytest.raises(kind, match=match):
        Dataset.load(tmp_path, reader_func=wrong)


@pytest.mark.parametrize(
    "function", [lambda x: 1.5, lambda x: np.zeros(2, np.int64), lambda x: (x, x)]
)
def test_a_shard_is_a_whole_number(tmp_path, function):
    for write in (Dataset.range(3).save, Dataset.range(3).snapshot):
        with pytest.raises(TypeError, match="shard_func must return the number of a shard"):
            write(tmp_path, shard_func=function)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("of", [str, os.fsencode, lambda path: tf.constant(str(path))])
def test_a_folder_may_be_text_bytes_or_a_tensor(tmp_path, of):
    Dataset.range(3).save(of(tmp_path / "saved"))
    assert [int(x) for x in Dataset.load(of(tmp_path / "saved"))] == [0, 1, 2]
    assert [int(x) for x in Dataset.range(3).snapshot(of(tmp_path / "kept"))] == [0, 1, 2]
    assert [int(x) for x in Dataset.range(3).cache(of(tmp_path / "cache"))] == [0, 1, 2]


def test_what_is_no_folder_is_said_before_what_is_not_there_yet():
    with pytest.raises(TypeError, match="path must be a path"):
        Dataset.range(3).save(Dataset.range(3), checkpoint_args={})


def test_an_error_leaves_what_was_there(tmp_path):
    Dataset.range(3).save(tmp_path)

    def failing(x):
        if x == 700:
            raise KeyError("mine")
        return x

    for wrong in (
        {"dataset": Dataset.range(999).map(failing, vectorize=False)},
        {"dataset": Dataset.range(999), "shard_func": lambda x: np.int64(failing(int(x)) % 3)},
    ):
        dataset = wrong.pop("dataset")
        with pytest.raises(KeyError, match="mine") as caught:
            dataset.save(tmp_path, **wrong)
        assert "element 700" in caught.value.__notes__[0]
        assert numbers(Dataset.load(tmp_path)) == [0, 1, 2]
        assert len(list(tmp_path.rglob("*.pages"))) == 1


def test_an_endless_dataset_is_refused(tmp_path):
    with error_saying(
        InvalidArgumentError,
        "The dataset is infinite, so it cannot be saved.",
        fix="call take(count) first.",
    ):
        Dataset.range(3).repeat().save(tmp_path / "a")
    assert os.listdir(tmp_path) == []


def test_datasets_as_elements_are_refused(tmp_path):
    with pytest.raises(InvalidArgumentError, match="Files hold tensors"):
        Dataset.range(4).window(2).save(tmp_path / "a")
    assert os.listdir(tmp_path) == []


def test_wrong_arguments_are_refused(tmp_path):
    with pytest.raises(TypeError, match="path must be a path, but got 3"):
        Dataset.range(3).save(3)
    with pytest.raises(TypeError, match="path must be a path, but got None"):
        Dataset.load(None)
    for write in (Dataset.range(3).save, Dataset.range(3).snapshot):
        with pytest.raises(InvalidArgumentError, match="compression must be GZIP, AUTO or None"):
            write(tmp_path, compression="SNAPPY")
        with pytest.raises(TypeError, match="compression must be text"):
            write(tmp_path, compression=3)
    with pytest.raises(UnimplementedError, match="cannot be interrupted and resumed yet"):
        Dataset.range(3).save(tmp_path, checkpoint_args={})
    with pytest.raises(NotFoundError, match="There is no saved dataset"):
        Dataset.load(tmp_path)


def test_a_dataset_can_be_saved_over_what_it_reads(tmp_path):
    Dataset.range(3).save(tmp_path)
    dataset = Dataset.load(tmp_path).map(lambda x: x + 1)
    dataset.save(tmp_path)
    assert numbers(Dataset.load(tmp_path)) == [1, 2, 3]


def test_objects_of_a_class_need_their_spec(tmp_path):
    dataset = Dataset.from_tensor_slices(Record([1, 2], [3, 4]))
    dataset.save(tmp_path)
    with pytest.raises(InvalidArgumentError, match="pass element_spec=Record"):
        Dataset.load(tmp_path)
    loaded = Dataset.load(tmp_path, element_spec=Record(INT, INT))
    assert [(int(r.x), int(r.y)) for r in loaded] == [(1, 3), (2, 4)]


def test_a_spec_that_the_elements_do_not_have_is_refused(tmp_path):
    Dataset.range(3).save(tmp_path)
    with error_saying(
        InvalidArgumentError,
        f"The elements in {tmp_path} do not have the element_spec …",
        fix="omit element_spec: the directory stores it.",
    ):
        Dataset.load(tmp_path, element_spec=INT)


def test_loading_waits_for_another_program(tmp_path):
    def later():
        time.sleep(0.3)
        Dataset.range(3).save(tmp_path)

    thread = threading.Thread(target=later)
    thread.start()
    assert numbers(Dataset.load(tmp_path, wait=True)) == [0, 1, 2]
    thread.join()


@pytest.mark.parametrize("compression", [None, "GZIP"])
def test_damage_is_found_where_it_is_read(tmp_path, compression):
    Dataset.range(100_000).save(tmp_path, compression=compression)
    (file,) = tmp_path.rglob("*.pages")
    content = bytearray(file.read_bytes())
    content[100] ^= 1
    file.write_bytes(content)
    dataset = Dataset.load(tmp_path)
    assert numbers(dataset.skip(99_990)) == list(range(99_990, 100_000))
    with pytest.raises(
        DataLossError, match=rf"{file} is damaged: the checksum of the page at byte 64"
    ):
        next(iter(dataset))
    left = numbers(dataset.ignore_errors().skip(10))
    assert 0 < len(left) < 100_000
    assert left[-1] == 99_999


WRITER = """
import sys, time
import evenfeed as tf

def slow():
    for i in range(100):
        yield [i] * 30_000
        if i == 9:
            print("writing", flush=True)
        time.sleep(0.001 if i < 10 else 0.1)

spec = tf.TensorSpec([30_000], tf.int32)
dataset = tf.data.Dataset.from_generator(slow, output_signature=spec)
if sys.argv[2] == "save":
    dataset.save(sys.argv[1])
else:
    for _ in dataset.snapshot(sys.argv[1]):
        pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["save", "snapshot"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_writer_that_is_stopped_leaves_nothing_that_is_taken_for_whole(tmp_path, way, number):
    path = tmp_path / "a"
    program = subprocess.Popen(
        [sys.executable, "-c", WRITER, path, way],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert program.stdout.readline() == b"writing\n"
    program.send_signal(number)
    assert program.wait(20) != 0
    program.stdout.close()
    assert not list(Path(path).rglob("dataset.json"))
    if number == signal.SIGINT:
        assert not list(Path(path).rglob("*.pages"))
    elif way == "save":
        with pytest.raises(NotFoundError, match="its writer was interrupted"):
            Dataset.load(path)
    Dataset.range(3).save(path)
    assert numbers(Dataset.load(path)) == [0, 1, 2]


def test_a_loaded_plan_says_which_files_it_reads(tmp_path):
    Dataset.range(5).save(tmp_path, shard_func=lambda x: x % 2)
    plan = plan_of(Dataset.load(tmp_path))
    assert isinstance(plan, Files)
    assert [(file.rows, file.extent[0]) for file in plan.files] == [(3, 0), (2, 0)]
    assert all(os.path.getsize(file.path) == file.extent[1] for file in plan.files)
