"""Errors name the file row that the failed element came from, however it was read."""

from pathlib import Path

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.block import Block
from evenfeed.core.text.text_columns import Origins, Texts
from evenfeed.errors import InvalidArgumentError
from evenfeed.runtime.provenance import RowOrigin, merged_origin, text_origin, with_origin

ROWS = 7


@pytest.fixture
def paths(tmp_path):
    found = [str(tmp_path / name) for name in "ab"]
    for first, path in enumerate(found):
        Path(path).write_bytes(b"".join(b"%03d" % (10 * first + row) for row in range(ROWS)))
    return found


def unless(bad):
    def checked(text):
        if int(text) in bad:
            raise InvalidArgumentError(f"{int(text)} is bad")
        return np.int64(text)

    return checked


def numbers(dataset, *bad, threads=None):
    spec = tf.TensorSpec([], tf.int64)
    return dataset.map(
        unless(bad), num_parallel_calls=threads, output_signature=spec, vectorize=False
    )


def skipped(dataset):
    list(dataset := dataset.ignore_errors())
    return [(Path(file).name, offset) for file, offset, _ in dataset.ignored_errors().skipped]


WAYS = {
    "as they come": lambda d: numbers(d, 3, 16),
    "in reading order of lines": lambda d: numbers(d.take(99), 3, 16),
    "by position": lambda d: numbers(d.skip(0), 3, 16),
    "shuffled": lambda d: numbers(d.shuffle(20, seed=1), 3, 16),
    "sharded": lambda d: numbers(d.shard(1, 0), 3, 16),
    "mapped twice": lambda d: numbers(d, 3, 16).map(lambda x: x + 1),
    "mapped before": lambda d: numbers(d.map(lambda x: x), 3, 16),
    "filtered": lambda d: d.filter(lambda text: unless({3, 16})(text) >= 0),
    "errors ignored before": lambda d: numbers(d.ignore_errors(), 3, 16),
    "in threads": lambda d: numbers(d, 3, 16, threads=3),
    "shuffled, in threads": lambda d: numbers(d.shuffle(20, seed=1), 3, 16, threads=3),
    "concatenated": lambda d: numbers(d.take(ROWS).concatenate(d.skip(ROWS)), 3, 16),
}


@pytest.mark.parametrize("way", WAYS)
def test_who_fails_names_the_row(paths, way):
    dataset = WAYS[way](tf.data.FixedLengthRecordDataset(paths, 3))
    assert sorted(skipped(dataset)) == [("a", 9), ("b", 18)]


def test_rows_of_inner_datasets_are_named(paths):
    names = tf.data.Dataset.from_tensor_slices(paths)
    records = names.flat_map(lambda name: tf.data.FixedLengthRecordDataset(name, 3))
    assert skipped(numbers(records, 3, 16)) == [("a", 9), ("b", 18)]


@pytest.mark.parametrize("block", [1, 2, 3])
@pytest.mark.parametrize("batch", [1, 5])
def test_rows_that_are_read_in_turn_are_named(paths, block, batch):
    names = tf.data.Dataset.from_tensor_slices([*paths, *paths])
    reader = lambda name: tf.data.FixedLengthRecordDataset(name, 3)  # noqa: E731 - as users write it
    records = names.interleave(reader, cycle_length=3, block_length=block)
    dataset = numbers(records, 3, 16).ignore_errors()
    list(dataset.batch(batch))
    found = [(Path(file).name, offset) for file, offset, _ in dataset.ignored_errors().skipped]
    assert sorted(found) == [("a", 9), ("a", 9), ("b", 18), ("b", 18)]
    parallel = tf.data.FixedLengthRecordDataset(paths, 3, num_parallel_reads=2)
    assert sorted(skipped(numbers(parallel, 3, 16))) == [("a", 9), ("b", 18)]


@pytest.mark.parametrize("threads", [None, 2])
@pytest.mark.parametrize("change", [lambda d: d, lambda d: d.skip(0)])
def test_a_batch_is_named_by_its_first_row(paths, threads, change):
    dataset = change(tf.data.FixedLengthRecordDataset(paths, 3)).batch(4)

    def checked(texts):
        return np.array([unless({5, 16})(text) for text in texts])

    spec = tf.TensorSpec([None], tf.int64)
    dataset = dataset.map(checked, threads, output_signature=spec, vectorize=False)
    assert skipped(dataset) == [("a", 12), ("b", 15)]
    with pytest.raises(InvalidArgumentError) as raised:
        list(dataset)
    note = f"the element is the batch from row 4 on of {paths[0]}, at byte 12"
    assert note in raised.value.__notes__


def test_rows_of_two_files_side_by_side_are_not_blamed(paths):
    both = tf.data.Dataset.zip(*(tf.data.FixedLengthRecordDataset(path, 3) for path in paths))
    dataset = both.map(
        lambda one, _: unless({3})(one),
        output_signature=tf.TensorSpec([], tf.int64),
        vectorize=False,
    )
    dataset = dataset.ignore_errors()
    assert len(list(dataset)) == ROWS - 1
    assert dataset.ignored_errors().skipped[0][:2] == (None, None)


def test_lines_are_named_by_their_bytes(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"1\r\n22\n333\n4444\n")
    dataset = numbers(tf.data.TextLineDataset(str(path)), 22, 4444)
    assert skipped(dataset) == [("lines", 3), ("lines", 10)]


def test_the_repeated_row_is_named_again(paths):
    dataset = numbers(tf.data.FixedLengthRecordDataset(paths, 3).shuffle(20).repeat(2), 3)
    assert skipped(dataset) == [("a", 9), ("a", 9)]


WORDS = Texts.of([b"a", b"bb", b"ccc", b"dddd"])
RECORDS = Texts(
    WORDS.data,
    WORDS.starts,
    WORDS.stops,
    Origins.in_file("file", np.zeros(1, np.int64), np.array([10])),
)
WRONG = InvalidArgumentError("wrong")


@pytest.mark.parametrize("error", [WRONG, ValueError("users'")])
def test_a_text_knows_where_it_was(error):
    block = Block((np.arange(4), RECORDS), 4)
    assert text_origin(block, 2, error) == RowOrigin("file", "a record", 13)


def test_an_error_about_one_of_several_texts_names_that():
    block = Block((RECORDS.reshape(2, 2),), 2)
    wrong = InvalidArgumentError("wrong").at_record(1)
    assert text_origin(block, 1, wrong) == RowOrigin("file", "a record", 16, "record 1")
    assert text_origin(block, 1, WRONG) is None


@pytest.mark.parametrize("record", [-1, 2, 9])
def test_a_record_that_the_element_does_not_have_is_not_looked_for(record):
    block = Block((RECORDS.reshape(2, 2),), 2)
    assert text_origin(block, 0, InvalidArgumentError("wrong").at_record(record)) is None


@pytest.mark.parametrize(
    "columns", [(RECORDS, RECORDS), (WORDS,), (np.asarray(RECORDS),), ([1, 2, 3, 4],), (None,)]
)
def test_what_comes_from_nowhere_or_from_two_places_is_not_named(columns):
    assert text_origin(Block(columns, 4), 0, WRONG) is None
    assert text_origin(None, 0, WRONG) is None


def test_what_a_text_knows_completes_what_is_known_of_its_row():
    row, text = RowOrigin("file", "row 3"), RowOrigin("file", "a record", 13)
    assert merged_origin(row, text) == RowOrigin("file", "row 3", 13)
    assert merged_origin(None, text) is text
    assert merged_origin(row, None) is row
    assert merged_origin(RowOrigin("file", "row 3", 5), text).offset == 5
    one = RowOrigin("file", "a record", 20, "record 2")
    assert merged_origin(RowOrigin("file", "the batch from row 3 on", 5), one) is one


def test_an_error_that_names_a_file_keeps_it():
    error = InvalidArgumentError("no").in_file("here", 3)
    assert with_origin(error, RowOrigin("there", "row 1")) is error
    assert (error.file, error.offset) == ("here", 3)
    assert not hasattr(error, "__notes__")


def test_an_error_of_pythons_own_gets_a_note():
    assert with_origin(ValueError("no"), None).args == ("no",)
    assert with_origin(ValueError("no"), RowOrigin("there", "row 1", 7)).__notes__ == [
        "the element is row 1 of there, at byte 7"
    ]
