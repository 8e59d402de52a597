"""Bad input, one table row per kind: the class of the error, and what its text names.

Each file has some rows, and either one of them or the file itself is bad. Reading returns the rows before the bad one,
then raises. With `ignore_errors`, it returns all good rows and lists what was skipped.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.formats.bad_input import AT, EXAMPLES, RECORDS, SOME, example, examples, read_records
from tests.formats.bad_tables import SAMPLES, TABLES, TEXTS

import evenfeed as tf

TABLE = [*RECORDS, *EXAMPLES, *TEXTS, *TABLES, *SAMPLES]


def full_text(error: Exception) -> str:
    return "\n".join([str(error), *getattr(error, "__notes__", [])])


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "file")


READ = [bad for bad in TABLE if bad.rows is not None]
MADE = [bad for bad in TABLE if bad.rows is None]


@pytest.mark.parametrize("bad", MADE, ids=lambda bad: bad.what)
def test_what_is_seen_when_the_dataset_is_made_is_said_then(bad, path):
    bad.write(path)
    with pytest.raises(bad.error) as raised:
        bad.read(path)
    check(raised.value, bad, path)


@pytest.mark.parametrize("bad", READ, ids=lambda bad: bad.what)
def test_the_error_comes_in_its_turn_and_the_next_rows_follow(bad, path):
    bad.write(path)
    iterator = iter(bad.read(path))
    for _ in range(bad.rows[0]):
        next(iterator)
    with pytest.raises(bad.error) as raised:
        next(iterator)
    check(raised.value, bad, path)
    assert len(list(iterator)) == bad.rows[1]


@pytest.mark.parametrize("bad", READ, ids=lambda bad: bad.what)
def test_what_is_ignored_is_listed_with_the_file_the_byte_and_the_reason(bad, path):
    bad.write(path)
    dataset = bad.read(path).ignore_errors()
    assert len(list(dataset)) == sum(bad.rows)
    ignored = dataset.ignored_errors()
    assert ignored.count == len(ignored.skipped) == 1
    file, offset, reason = ignored.skipped[0]
    assert file == path
    check_offset(offset, bad, path)
    assert reason.startswith(bad.error.__name__)
    assert all(part in reason for part in (path, *bad.says))


def check(error, bad, path):
    """Check the class of an error, and that it names the file, the place and what is wrong."""
    assert type(error) is bad.error
    text = full_text(error)
    assert all(part in text for part in (path, *bad.says)), text
    assert error.file == path
    check_offset(error.offset, bad, path)


def check_offset(offset, bad, path):
    if bad.offset is SOME:
        assert 0 < offset < Path(path).stat().st_size
    else:
        assert offset == bad.offset


def read_examples_in_python(path: str) -> tf.data.Dataset:
    def parsed(record: Any) -> Any:
        return np.float32(
            tf.train.Example.FromString(record).features.feature["x"].float_list.value[1]
        )

    signature = tf.TensorSpec([], tf.float32)
    return read_records(path).map(parsed, vectorize=False, output_signature=signature)


def test_an_error_of_a_users_own_says_which_row_it_was(path):
    examples(example(x=[1.0]))(path)
    dataset = read_examples_in_python(path)
    with pytest.raises(IndexError) as raised:
        list(dataset)
    assert f"the element is row 1 of {path}, at byte {AT}" in full_text(raised.value)
    assert len(list(dataset.ignore_errors())) == 2
