import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenfeed.core.block import Block, concatenated, cut_up, read_only
from evenfeed.core.text.text_columns import Origins, Texts, joined, pieces, texts

WORDS = [b"one", b"", b"three", b"\0\0", b"five"]


def of_file(path, words, first=0):
    """Return words at offset `first` of a file, with a dot after each."""
    made = Texts.of([word + b"." for word in words])
    origins = Origins.in_file(path, np.zeros(1, np.int64), np.array([first]))
    return Texts(made.data, made.starts, made.stops - 1, origins)


def objects(words):
    column = np.empty(len(words), object)
    column[:] = words
    return column


def test_texts_look_like_an_array_of_objects():
    column = Texts.of(WORDS)
    assert (column.shape, column.ndim, column.size, len(column)) == ((5,), 1, 5, 5)
    assert column.dtype == object
    assert column.tolist() == list(column) == np.asarray(column).tolist() == WORDS
    assert column.nbytes == 14 + 80
    assert Texts.of([]).tolist() == []


# Operations on a column, of Texts or of objects.
STEPS = {
    "cut": lambda column: column[1:4],
    "every other": lambda column: column[::2],
    "backwards": lambda column: column[::-1],
    "none": lambda column: column[2:2],
    "by number": lambda column: column[np.array([4, 0, 0])],
    "by flag": lambda column: column[np.array([True, False, True, False, True])],
    "taken": lambda column: column.take(np.array([3, 1]), axis=0),
    "a further axis": lambda column: column[None],
    "folded": lambda column: column[:4].reshape(2, 2),
    "flat": lambda column: column[:4].reshape(2, 2).ravel(),
    "a row": lambda column: column[:4].reshape(2, 2)[1, ...],
    "a text": lambda column: column[2, ...],
    "one of a row": lambda column: column[:4].reshape(2, 2)[1, 0, ...],
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_what_moves_objects_moves_texts(step):
    found, expected = step(Texts.of(WORDS)), step(objects(WORDS))
    assert found.shape == expected.shape
    assert found.dtype == object
    assert found.tolist() == expected.tolist()


def test_one_text_is_an_object():
    assert Texts.of(WORDS)[2] == b"three"
    assert Texts.of(WORDS[:4]).reshape(2, 2)[1, 0] == b"three"


def test_a_row_of_a_block_is_an_array():
    block = Block((Texts.of(WORDS), Texts.of(WORDS[:5] * 2).reshape(5, 2)), 5)
    text, pair = block.row(2)
    assert (type(text), text.shape, text.item()) == (np.ndarray, (), b"three")
    assert (type(pair), pair.tolist()) == (np.ndarray, [b"five", b"one"])


def test_a_copy_can_be_written_to():
    column = Texts.of(WORDS)
    copy = Block((column,), 5).copy().columns[0]
    copy[0] = b"other"
    assert column.tolist() == WORDS


def test_texts_and_objects_are_joined():
    one, two = Texts.of(WORDS[:2]), objects(WORDS[2:])
    for parts in ([one, two], [two[:0], one, two]):
        block = concatenated([Block((part,), len(part)) for part in parts])
        assert cut_up(block.columns[0]).tolist() == WORDS


def test_texts_take_the_place_of_others():
    block = Block((Texts.of(WORDS),), 5).replaced(np.array([0]), Block((Texts.of([b"new"]),), 1))
    assert block.columns[0].tolist() == [b"new", *WORDS[1:]]


def test_texts_are_read_only_already():
    block = Block((Texts.of(WORDS),), 5)
    assert read_only(block).columns[0] is block.columns[0]


def test_texts_of_one_length_are_a_matrix():
    column = Texts.of([b"abc", b"def", b"ghi"])
    for rows in ([0, 1, 2], [2, 0], [1], [2, 1, 0], [0, 0, 0]):
        found = column.take(np.array(rows))
        assert found.matrix().tolist() == [list(text) for text in found.tolist()]


def test_texts_survive_pickle():
    column = pickle.loads(pickle.dumps(of_file("file", WORDS, 7)))
    assert column.tolist() == WORDS
    assert column.origin(4) == ("file", 7 + 14)


def test_texts_know_their_origin():
    column = of_file("file", WORDS, 100)
    assert [column.origin(row) for row in range(5)] == [
        ("file", place) for place in (100, 104, 105, 111, 114)
    ]
    assert column[3:].origin(0) == ("file", 111)
    assert column.take(np.array([4, 2])).reshape(2, 1).origin(1) == ("file", 105)
    assert Texts.of(WORDS).origin(0) is None


@st.composite
def columns(draw):
    """Return texts of some files, cut and joined repeatedly; each text names its own place."""
    count = draw(st.integers(1, 6))
    words = [b"%d" % (7 * place) * draw(st.integers(0, 3)) for place in range(count)]
    name, first = draw(st.sampled_from("abc")), draw(st.integers(0, 50))
    column = of_file(name, words, first)
    places = np.cumsum([first, *(len(word) + 1 for word in words)]).tolist()
    return column, list(zip(words, [name] * count, places, strict=False))


@given(parts=st.lists(columns(), min_size=1, max_size=4), data=st.data())
def test_joined_texts_know_their_origins(parts, data):
    column, expected = parts[0]
    for other, there in parts[1:] or [parts[0]]:
        rows = data.draw(st.lists(st.integers(0, len(expected) - 1), max_size=4))
        some = column.take(np.array(rows, np.int64))
        kept = [expected[row] for row in rows]
        column, expected = joined([some, other, some[1:]]), [*kept, *there, *kept[1:]]
    found = [(column.text(row), *column.origin(row)) for row in range(len(column))]
    assert found == [(word, name, place) for word, name, place in expected]


def test_joined_texts_have_no_origin_if_one_of_them_has_none():
    assert joined([of_file("file", WORDS), Texts.of(WORDS)]).origin(0) is None
    assert joined([of_file("file", WORDS)[:2], Texts.of(WORDS)]).tolist() == [*WORDS[:2], *WORDS]


def test_pieces_of_one_column_are_joined_without_a_copy():
    column = of_file("file", WORDS)
    assert joined([column[3:], column[:1]]).data is column.data


def test_what_is_joined_is_trimmed():
    long = Texts.of([b"a" * 1000, b"b", b"c" * 1000])
    assert len(joined([long[1:2], Texts.of([b"d"])]).data) == 3


HELD = np.random.default_rng(0).integers(0, 256, 100_000, np.uint8)


def slices(starts, stops):
    return [HELD[a:b].tobytes() for a, b in zip(starts, stops, strict=True)]


@pytest.mark.parametrize("count", [0, 1, 15, 16, 255, 256, 1000])
def test_texts_are_slices(count):
    starts = np.random.default_rng(1).integers(0, 90_000, count)
    stops = starts + np.random.default_rng(2).integers(0, 700, count)
    column = texts(HELD, starts, stops)
    assert column.dtype == object
    assert column.tolist() == slices(starts, stops)


@pytest.mark.parametrize("length", [0, 1, 7, 20_000])
def test_texts_of_one_length_are_slices(length):
    starts = np.random.default_rng(1).integers(0, 80_000, 40)
    assert texts(HELD, starts, starts + length).tolist() == slices(starts, starts + length)


@pytest.mark.parametrize("count", [1, 100])
def test_texts_have_the_shape_of_their_places(count):
    starts = np.arange(6 * count).reshape(3, 2, count)
    column = texts(HELD, starts, starts + 2)
    assert column.shape == (3, 2, count)
    assert column[2, 1, 0] == HELD[5 * count :][:2].tobytes()
    assert texts(HELD, starts[0, 0, 0, ...], np.array(3)).item() == HELD[:3].tobytes()


def test_texts_without_bytes():
    nowhere = np.zeros(300, np.int64)
    assert texts(np.empty(0, np.uint8), nowhere, nowhere).tolist() == [b""] * 300


def test_pieces_are_cut_out_of_any_bytes():
    for some in (HELD, HELD.tobytes()):
        assert pieces(some, np.array([5, 0, 5]), 3).tolist() == slices([5, 0, 5], [8, 3, 8])
