import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.failing import ERROR, outcome

import evenfeed as tf
from evenfeed.core.block import Block
from evenfeed.formats.tables.parquet_files import RowGroup
from evenfeed.runtime.positions import small_parts
from evenfeed.runtime.positions.small_parts import SmallParts

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

FILES, ROWS = 40, 5


def part(number, length):
    """Return rows of a number that says where they are from, and of a sequence as long as the row's place."""
    rows = [np.full(row, number) for row in range(length)]
    return Block((np.arange(length) + 100 * number, rows), length)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_the_rows_of_parts_are_those_that_were_added(lengths, chance):
    parts, left = SmallParts(len(lengths)), list(range(len(lengths)))
    chance.shuffle(left)
    while left:
        assert sorted(parts.missing(np.array(left * 2))) == sorted(left)
        some, left = left[:3], left[3:]
        parts.add({number: part(number, lengths[number]) for number in some})
    asked = [(n, row) for n, length in enumerate(lengths) for row in range(length)] * 2
    chance.shuffle(asked)
    numbers, rows = np.array(asked).T
    assert parts.holds(numbers)
    found = parts.gather(numbers, rows)
    np.testing.assert_array_equal(found.columns[0], 100 * numbers + rows)
    assert [list(row) for row in found.columns[1]] == [[n] * row for n, row in asked]
    for number, length in enumerate(lengths):
        run = parts.run(number, 0, length)
        assert run.columns[0].tolist() == [100 * number + row for row in range(length)]


def test_what_is_refused_or_too_large_is_not_asked_for_again():
    parts = SmallParts(3)
    parts.refuse(1)
    assert parts.missing(np.arange(3)).tolist() == [0, 2]
    assert not parts.holds(np.array([1]))
    assert parts.run(1, 0, 1) is None
    assert not parts.has_room(1 << 30)
    parts.reserve(small_parts._MOST_OF_ALL - 10)
    assert parts.has_room(10)
    assert not parts.has_room(11)


@pytest.fixture
def names(tmp_path):
    made = [str(tmp_path / f"{number:02}.parquet") for number in range(FILES)]
    for number, name in enumerate(made):
        n = np.arange(ROWS) + ROWS * number
        columns = {"n": n, "text": [f"t{one}" for one in n], "v": [[0.5] * (one % 3) for one in n]}
        pq.write_table(pa.table(columns), name)
    return made


def rows_of(dataset):
    return [(int(row["n"]), row["text"], tuple(row["v"].tolist())) for row in dataset]


@pytest.mark.parametrize("most", [0, 2000, small_parts._MOST_OF_ALL])
def test_shuffled_rows_of_small_files_do_not_depend_on_what_is_kept(names, monkeypatch, most):
    dataset = tf.data.Dataset.from_parquet(names)
    in_order = rows_of(dataset)
    shuffled = dataset.shuffle(100, seed=3, reshuffle_each_iteration=False).repeat(2)
    expected = rows_of(shuffled)
    monkeypatch.setattr(small_parts, "_MOST_OF_ALL", most)
    assert rows_of(shuffled) == expected
    assert sorted(expected) == sorted(in_order * 2)


@pytest.fixture
def decoded(monkeypatch):
    """The paths of the files that are decoded, in order."""
    paths, own = [], RowGroup.decoded
    monkeypatch.setattr(RowGroup, "decoded", lambda self: paths.append(self.path) or own(self))
    return paths


@pytest.mark.parametrize(
    "rounds",
    [
        lambda rows: rows.shuffle(50, seed=1).repeat(3),
        lambda rows: rows.shuffle(50, seed=1).ragged_batch(7).repeat(3),
        lambda rows: rows.shuffle(50, seed=1).map(lambda row: row["n"]).batch(7).repeat(3),
        lambda rows: rows.ragged_batch(7).repeat(3),
    ],
)
def test_files_are_decoded_once_for_all_rounds(names, decoded, rounds):
    list(rounds(tf.data.Dataset.from_parquet(names)))
    assert sorted(decoded) == names


def test_files_that_are_written_again_are_decoded_again_in_the_next_pass(names):
    dataset = tf.data.Dataset.from_parquet(names, ["n", "text"]).shuffle(50, seed=1).batch(7)
    before = [row for batch in dataset for row in batch["n"].tolist()]
    pq.write_table(pq.read_table(names[0]).set_column(1, "text", [["new"] * ROWS]), names[0])
    os.utime(names[0], ns=(1, 1))
    again = tf.data.Dataset.from_parquet(names, ["n", "text"]).shuffle(50, seed=1).batch(7)
    texts = [text for batch in again for text in batch["text"].tolist()]
    assert sorted(before) == list(range(FILES * ROWS))
    assert texts.count(b"new") == ROWS


def test_threads_that_read_the_same_files_get_their_own_rows(names):
    rows = tf.data.Dataset.from_parquet(names).map(lambda row: row["n"])
    one, two = (rows.shuffle(50, seed=seed).batch(3).repeat(20).prefetch(4) for seed in (1, 2))
    found = np.array(list(tf.data.Dataset.zip(one, two).unbatch()))
    for column in found.T:
        counts = np.bincount(column)
        assert counts.tolist() == [20] * FILES * ROWS


def test_a_damaged_file_among_small_ones_loses_its_own_rows(names):
    dataset = tf.data.Dataset.from_parquet(names).shuffle(100, seed=3).map(lambda row: row["n"])
    with open(names[7], "r+b") as file:
        file.seek(4)
        file.write(b"\xff" * 60)
    found = outcome(dataset, limit=FILES * ROWS + 1)
    assert ERROR in found
    lost = set(range(FILES * ROWS)) - set(found)
    assert lost == set(range(7 * ROWS, 8 * ROWS))


def test_an_error_names_the_file_and_the_byte_of_a_row_that_is_kept_with_others(names):
    def checked(row):
        if int(row["n"]) == 33:
            raise ValueError("no 33")
        return row["n"]

    dataset = tf.data.Dataset.from_parquet(names).shuffle(FILES * ROWS, seed=1)
    rows = dataset.map(checked, output_signature=tf.TensorSpec([], tf.int64))
    with pytest.raises(ValueError, match="no 33") as caught:
        list(rows)
    assert any("06.parquet" in note and "row 3" in note for note in caught.value.__notes__)
