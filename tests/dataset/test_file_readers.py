import gzip
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.specs import UNKNOWN

T = tf.data.TextLineDataset
F = tf.data.FixedLengthRecordDataset


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory with two text files, an empty one and a compressed one."""
    monkeypatch.chdir(tmp_path)
    for name, data in {"a.txt": b"a0\na1\na2", "b.txt": b"b0\r\nb1\r\n", "e.txt": b""}.items():
        Path(name).write_bytes(data)
    Path("a.gz").write_bytes(gzip.compress(b"z0\nz1\n"))
    return tmp_path


def texts(dataset):
    return list(dataset.as_numpy_iterator())


A, B = [b"a0", b"a1", b"a2"], [b"b0", b"b1"]


@pytest.mark.parametrize(
    "names",
    [
        ["a.txt", "e.txt", "b.txt"],
        ("a.txt", "b.txt"),
        [Path("a.txt"), b"b.txt"],
        np.array([["a.txt", "b.txt"]]),
        tf.constant(["a.txt", "b.txt"]),
        tf.data.Dataset.from_tensor_slices(["a.txt", "b.txt"]),
    ],
    ids=lambda names: type(names).__name__,
)
def test_filenames_can_be_passed_in_many_forms(folder, names):
    assert texts(T(names)) == A + B
    assert texts(T(names)) == texts(T(names))


@pytest.mark.parametrize("name", ["a.txt", b"a.txt", Path("a.txt"), tf.constant("a.txt")])
def test_one_name_is_enough(folder, name):
    assert texts(T(name)) == A


def test_a_reader_is_a_dataset_of_scalar_text(folder):
    dataset = T("a.txt")
    assert isinstance(dataset, tf.data.Dataset)
    assert dataset.element_spec == tf.TensorSpec([], tf.string)
    assert dataset.cardinality() == F("a.txt", 2).cardinality() == UNKNOWN
    assert texts(T([])) == []
    assert repr(dataset) == f"<TextLineDatasetV2 element_spec={dataset.element_spec!r}>"
    assert [batch.tolist() for batch in dataset.batch(2)] == [[b"a0", b"a1"], [b"a2"]]


def test_a_reader_is_sent_to_other_processes(folder):
    for dataset in (T(["a.txt"]), T(["a.txt", "b.txt"], num_parallel_reads=2), F("a.txt", 8)):
        again = pickle.loads(pickle.dumps(dataset))
        assert type(again) is type(dataset)
        assert texts(again) == texts(dataset)


def test_the_class_is_a_function_of_names(folder):
    names = tf.data.Dataset.list_files(["a.txt", "b.txt"], shuffle=False)
    assert texts(names.flat_map(T)) == A + B
    assert texts(names.interleave(T, cycle_length=2)) == [b"a0", b"b0", b"a1", b"b1", b"a2"]
    assert texts(names.flat_map(lambda name: F(name, 8).take(1))) == [
        b"a0\na1\na2",
        b"b0\r\nb1\r\n",
    ]


# The order in which TensorFlow 2.21 reads files of these sizes; i.j is line j of file i.
ORDERS = [
    ([3, 2, 3], 2, "0.0 1.0 0.1 1.1 0.2 2.0 2.1 2.2"),
    ([0, 4, 1, 2], 2, "1.0 2.0 1.1 1.2 3.0 1.3 3.1"),
    ([1, 0, 3, 0, 2], 3, "0.0 2.0 2.1 4.0 2.2 4.1"),
    ([0, 0, 1], 2, "2.0"),
    ([2, 1, 1, 4, 0, 3], 3, "0.0 1.0 2.0 0.1 3.0 5.0 3.1 5.1 3.2 5.2 3.3"),
    ([5, 1, 2, 2], 2, "0.0 1.0 0.1 0.2 2.0 0.3 2.1 0.4 3.0 3.1"),
    ([2, 1], tf.data.AUTOTUNE, "0.0 0.1 1.0"),
]


@pytest.mark.parametrize(("sizes", "parallel", "order"), ORDERS)
def test_several_files_are_read_in_turn_as_tensorflow_does(folder, sizes, parallel, order):
    for file, size in enumerate(sizes):
        Path(f"{file}").write_text("".join(f"{file}.{line}\n" for line in range(size)))
    names = [f"{file}" for file in range(len(sizes))]
    expected = order.encode().split()
    assert texts(T(names, num_parallel_reads=parallel)) == expected
    in_records = F(names, 4, num_parallel_reads=parallel)
    assert [record.strip() for record in texts(in_records)] == expected
    of_names = tf.data.Dataset.from_tensor_slices(names)
    assert texts(T(of_names, num_parallel_reads=parallel)) == expected


def test_compression_type_is_checked(folder):
    assert texts(T("a.gz", "GZIP")) == [b"z0", b"z1"]
    assert texts(F("a.gz", 3, compression_type="GZIP")) == [b"z0\n", b"z1\n"]
    for wrong in ("gzip", "NONE", "LZ4"):
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"but got '{wrong}'"):
            T("a.gz", wrong)
    with pytest.raises(TypeError, match="compression_type must be text"):
        T("a.gz", 3)


@pytest.mark.parametrize(
    ("how", "kind", "said"),
    [
        ({"num_parallel_reads": 0}, tf.errors.InvalidArgumentError, "num_parallel_reads"),
        ({"num_parallel_reads": -2}, tf.errors.InvalidArgumentError, "num_parallel_reads"),
        ({"num_parallel_reads": 1.5}, TypeError, "num_parallel_reads"),
        ({"buffer_size": -1}, tf.errors.InvalidArgumentError, "buffer_size"),
        ({"buffer_size": "x"}, TypeError, "buffer_size"),
    ],
)
def test_wrong_numbers_are_refused(how, kind, said):
    with pytest.raises(kind, match=said):
        T("a.txt", **how)
    with pytest.raises(kind, match=said):
        F("a.txt", 1, **how)


@pytest.mark.parametrize("sizes", [(0,), (-1,), (2, -1), (2, 0, -1)])
def test_sizes_of_records_are_checked(sizes):
    with pytest.raises(tf.errors.InvalidArgumentError, match="_bytes must be at least"):
        F("x", *sizes)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (3, "filenames must be a path or a list of paths, but got 3"),
        (None, "filenames must be a path or a list of paths, but got None"),
        (tf.data.Dataset.range(3), "but its elements are TensorSpec"),
        (tf.data.Dataset.from_tensors(["a"]), "must be a single path"),
        (tf.data.Dataset.from_tensors(("a", "b")), "but its elements are"),
    ],
)
def test_filenames_must_be_paths(names, said):
    with pytest.raises(TypeError, match=re.escape(said)):
        T(names)


def test_a_missing_file_is_an_error_when_its_turn_comes(folder):
    iterator = iter(T(["a.txt", "none.txt", "b.txt"]))
    assert [next(iterator).item() for _ in range(3)] == A
    with pytest.raises(tf.errors.NotFoundError, match=r"none.txt does not exist"):
        next(iterator)
    assert [element.item() for element in iterator] == B


@pytest.mark.parametrize("parallel", [None, 2])
def test_errors_of_files_can_be_ignored(folder, parallel):
    names = ["none.txt", "a.txt", "a.gz", "b.txt"]
    dataset = T(names, num_parallel_reads=parallel).ignore_errors()
    assert sorted(texts(dataset)) == A + B
    assert dataset.ignored_errors().count == 2
    assert "none.txt does not exist" in dataset.ignored_errors().skipped[0].reason


def test_records_are_shuffled_and_resumed_by_position(folder):
    Path("r").write_bytes(b"".join(b"%03d" % number for number in range(500)))
    dataset = F(["r", "r"], 3).shuffle(1000, seed=1, reshuffle_each_iteration=False)
    whole = texts(dataset)
    assert sorted(whole) == sorted(2 * [b"%03d" % number for number in range(500)])
    iterator = iter(dataset)
    first = [next(iterator).item() for _ in range(333)]
    again = iter(dataset)
    again.set_state(iterator.get_state())
    assert first + [element.item() for element in again] == whole
    assert texts(F("r", 3).shard(100, 7)) == [b"%03d" % number for number in range(7, 500, 100)]
    assert "by position, at once" in dataset.explain()


def test_explain_names_the_reader(folder):
    said = T(["a.txt", "b.txt"]).explain()
    assert "TextLineDataset(2 files)" in said
    assert "known only after the files are read" in said
    assert "resume: by position" in said
    assert "re-reading earlier elements" in T("a.gz", "GZIP").explain()
    assert "FixedLengthRecordDataset(1 file)" in F("a.txt", 8).explain()


def test_files_are_listed_sorted_or_in_a_new_order_each_pass(folder):
    files = tf.data.Dataset.list_files
    assert texts(files("*.txt", shuffle=False)) == [b"./a.txt", b"./b.txt", b"./e.txt"]
    assert texts(files(["b*", "none", f"{folder}/a.*"], shuffle=False))[0] == b"./b.txt"
    assert texts(files(Path("a.txt"), shuffle=False)) == [b"a.txt"]
    for number in range(50):
        Path(f"x{number}").touch()
    mixed = files("x*", seed=3)
    first, second = texts(mixed), texts(mixed)
    assert len(mixed) == 50
    assert sorted(first) == sorted(second) == texts(files("x*", shuffle=False))
    assert first != second != sorted(second)
    assert texts(files("x*", seed=3)) == first
    assert mixed.element_spec == tf.TensorSpec([], tf.string)


@pytest.mark.parametrize("pattern", ["none*", "none.txt", "", [], ["none*", "no-folder/*"]])
def test_a_pattern_without_matches_is_an_error_at_once(folder, pattern):
    with pytest.raises(tf.errors.InvalidArgumentError, match="No files matched pattern"):
        tf.data.Dataset.list_files(pattern)


def test_arguments_of_list_files_are_checked(folder):
    with pytest.raises(
        TypeError, match="file_pattern must be a path or a list of paths, but got 3"
    ):
        tf.data.Dataset.list_files(3)
    with pytest.raises(TypeError, match="shuffle must be True or False"):
        tf.data.Dataset.list_files("*", shuffle="no")


def test_lines_resume_inside_maps_of_files(folder):
    names = tf.data.Dataset.list_files("?.txt", shuffle=False)
    dataset = names.interleave(T, cycle_length=2).batch(2)
    whole = [batch.tolist() for batch in dataset]
    for passed in range(len(whole) + 1):
        iterator = iter(dataset)
        for _ in range(passed):
            next(iterator)
        again = iter(dataset)
        again.set_state(iterator.get_state())
        assert [batch.tolist() for batch in again] == whole[passed:]
