"""Functions of text give the same results on many texts at once, by compiled loops and Arrow, as on a few by Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenfeed as tf
from evenfeed.core.text import numba_loops
from evenfeed.core.text.text_columns import Texts
from evenfeed.text_ops.characters import TextPart

DRAWN = np.random.default_rng(0)
WORDS = [
    "",
    "a",
    "eight_by",
    "nine_byte",
    "nine_bytf",
    "sixteen_bytes_16",
    "Bc",
    "def",
    "Word12",
    "x" * 17,
    "Y" * 40,
    "z" * 70,
    "w" * 200,
    "é",
    "\x00",
    "a\x0bb",
]
LINES = [
    DRAWN.choice([" ", "\t", "  ", "", "ab", " \n"]).join(DRAWN.choice(WORDS, size))
    for size in DRAWN.integers(0, 9, 700)
]
NUMBERS = [
    *map(str, DRAWN.normal(size=500)),
    *map(str, DRAWN.integers(-9, 9, 50)),
    "1e40",
    "-0",
    ".5",
    "5.",
    "1e-46",
    *(f"{number:.3f}" for number in DRAWN.normal(size=200)),
    *(f"{number:.2e}" for number in DRAWN.normal(size=100)),
    "16777217",  # halfway between two float32
    "16777217.00000000000001",  # nearer to the second
    "9007199254740993",  # halfway between two float64
    "123456789012345678901234567890",
    "0.000000000000000000000000001",
    "+1E+2",
    "-0.0",
]
INTEGERS = [
    *map(str, DRAWN.integers(-(2**31), 2**31, 600)),
    "-0",
    "+7",
    "007",
    "2147483647",
    "-2147483648",
]
LARGE = [
    *map(str, DRAWN.integers(-(2**63), 2**63 - 1, 300)),
    "9223372036854775807",
    "1000000000000000000",
]


def table(kind):
    words = tf.lookup.KeyValueTensorInitializer(WORDS, np.arange(len(WORDS)) * 3)
    if kind == "vocabulary":
        return tf.lookup.StaticVocabularyTable(words, 7)
    if kind == "text":
        words = tf.lookup.KeyValueTensorInitializer(WORDS, [word + "!" for word in WORDS])
        return tf.lookup.StaticHashTable(words, "?")
    return tf.lookup.StaticHashTable(words, -1)


FUNCTIONS = {
    "lower": tf.strings.lower,
    "upper": tf.strings.upper,
    "strip": tf.strings.strip,
    "length": tf.strings.length,
    "split": tf.strings.split,
    "split_at": lambda x: tf.strings.split(x, "a"),
    "split_at_two": lambda x: tf.strings.split(x, "  "),
    "split_once": lambda x: tf.strings.split(x, maxsplit=1),
    "bytes_split": tf.strings.bytes_split,
    "fast": lambda x: tf.strings.to_hash_bucket_fast(x, 2**40),
    "plain": lambda x: tf.strings.to_hash_bucket(x, 2**40),
    "strong": lambda x: tf.strings.to_hash_bucket_strong(x, 2**40, [1, 2]),
    "replace": lambda x: tf.strings.regex_replace(x, "[a-d ]+", "-"),
    "match": lambda x: tf.strings.regex_full_match(x, ".*b.*"),
    "vocabulary": table("vocabulary").lookup,
    "hash table": table("hash").lookup,
    "table of text": table("text").lookup,
    "words": lambda x: table("vocabulary").lookup(tf.strings.split(x)),
    "split twice": lambda x: tf.strings.split(tf.strings.split(x), "b"),
}  # fmt: skip


def listed(value):
    return value.to_list() if isinstance(value, tf.RaggedTensor) else value.tolist()


def in_parts(function, texts):
    return [
        row
        for start in range(0, len(texts), 100)
        for row in listed(function(texts[start : start + 100]))
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_many_texts_give_what_few_give(name):
    function = FUNCTIONS[name]
    texts = np.array([line.encode() for line in LINES], object)
    many, few = function(texts), function(texts[:9])
    assert many.dtype == few.dtype
    assert listed(many) == in_parts(function, texts)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_columns_of_a_dataset_give_what_few_texts_give(name):
    function = FUNCTIONS[name]
    expected = in_parts(function, np.array([line.encode() for line in LINES], object))
    lines = tf.data.Dataset.from_tensor_slices(LINES)
    assert [row for batch in lines.batch(300).map(function) for row in listed(batch)] == expected
    assert [listed(row) for row in lines.map(function)] == expected
    matrix = lines.batch(7).batch(10).map(function)
    assert [row for whole in matrix for batch in listed(whole) for row in batch] == expected
    assert matrix.element_spec.is_compatible_with(next(iter(matrix)))


@pytest.mark.parametrize(
    ("texts", "dtype"),
    [
        (NUMBERS, tf.float32),
        (NUMBERS, tf.float64),
        (INTEGERS, tf.int32),
        (INTEGERS, tf.int64),
        (LARGE, tf.int64),
        ([str(number % 2**64) for number in map(int, LARGE)], tf.uint64),
    ],
)
def test_many_numbers_are_read_like_few(texts, dtype):
    found = tf.strings.to_number(texts, dtype)
    few = [tf.strings.to_number(text, dtype).item() for text in texts]
    np.testing.assert_array_equal(found, np.array(few, dtype))
    assert found.dtype == dtype


@pytest.mark.parametrize("odd", ["nan", "nan(1)", " 1 ", "+2", "0x1f", "0x1p3", "INF", "1e999"])
def test_one_odd_spelling_among_many_numbers_is_read_too(odd):
    found = tf.strings.to_number([*["1.5"] * 300, odd])
    np.testing.assert_array_equal(found[300], tf.strings.to_number(odd))


@pytest.mark.parametrize("wrong", ["", "nan(1", "0x1p", "0x.", "1_0", "1.2.3", "--1"])
def test_one_wrong_text_among_many_numbers_raises(wrong):
    for dtype in (tf.float32, tf.int64):
        with pytest.raises(tf.errors.InvalidArgumentError, match="could not correctly convert"):
            tf.strings.to_number([*["1"] * 300, wrong], dtype)


@pytest.mark.parametrize("dtype", [tf.uint32, tf.uint64])
@pytest.mark.parametrize("wrong", ["-0", "-1", " -0", "9" * 5000])
def test_an_unsigned_number_has_no_minus_and_an_end(wrong, dtype):
    for texts in ([wrong], [*["1"] * 300, wrong]):
        with pytest.raises(tf.errors.InvalidArgumentError, match="could not correctly convert"):
            tf.strings.to_number(texts, dtype)


@pytest.mark.filterwarnings("error")
def test_odd_and_huge_numbers_in_a_long_column_warn_of_nothing():
    texts = [
        "1e22",
        "9e307",
        "1e20",
        "99999999999999999e22",
        "nan",
        "0x1p3",
        "1e-300",
        "1" * 30,
    ] * 100
    with np.errstate(all="warn"):
        found = tf.strings.to_number(texts)
    few = [tf.strings.to_number(text).item() for text in texts[:8]]
    np.testing.assert_array_equal(found, np.array(few * 100, np.float32))
    assert np.isinf(few[3])


@pytest.mark.parametrize("wrong", ["1.5", "0x1f", "1e3", "4294967296"])
def test_one_text_that_is_no_integer_raises(wrong):
    with pytest.raises(tf.errors.InvalidArgumentError, match="could not correctly convert"):
        tf.strings.to_number([*["1"] * 300, wrong], tf.int32)


def test_without_numba_the_results_are_the_same(monkeypatch):
    lines = np.array([line.encode() for line in LINES], object)
    expected = {name: listed(function(lines)) for name, function in FUNCTIONS.items()}
    monkeypatch.setattr(numba_loops, "_numba", lambda: None)
    assert {name: listed(function(lines)) for name, function in FUNCTIONS.items()} == expected


def test_a_traced_split_is_a_ragged_tensor_for_isinstance():
    def words(line):
        found = tf.strings.split(line)
        return found.to_tensor() if isinstance(found, tf.RaggedTensor) else found

    batches = tf.data.Dataset.from_tensor_slices(["a b", "c"]).batch(2).map(words)
    assert next(iter(batches)).tolist() == [[b"a", b"b"], [b"c", b""]]


def test_a_traced_split_stays_vectorised_when_other_parts_are_numbers():
    rows = tf.data.Dataset.from_tensor_slices((["a b", "c"], [1.0, 2.0])).batch(2)
    pairs = rows.map(lambda line, x: (tf.strings.split(line), x * 2))
    assert "vectorised" in pairs.explain()
    words, numbers = next(iter(pairs))
    assert words.to_list() == [[b"a", b"b"], [b"c"]]
    assert numbers.tolist() == [2.0, 4.0]


@given(
    st.lists(st.binary(max_size=6), min_size=1, max_size=9),
    st.one_of(st.integers(-7, 7), st.just(-(1 << 62))),
    st.one_of(st.integers(-2, 7), st.just((1 << 63) - 1)),
)
def test_a_part_in_a_buffer_is_the_part_of_each_text(values, start, count):
    kernel = TextPart(start, count, characters=False)
    found = kernel.in_buffer(Texts.of(values))
    if found is None:
        with pytest.raises(tf.errors.InvalidArgumentError, match="out of range"):
            kernel.each(values)
    else:
        assert np.asarray(found).tolist() == kernel.each(values).tolist()


@pytest.mark.parametrize("file", [True, False])
def test_single_results_that_come_one_by_one_are_compared_on_whole_blocks(tmp_path, file):
    for number in range(40):
        (tmp_path / f"{number:02}").write_text("x" * (number % 3))
    prefix = len(str(tmp_path)) + 1

    def seen(path):
        return tf.equal(tf.io.read_file(path) if file else tf.strings.substr(path, prefix, 1), "x")

    paths = tf.data.Dataset.from_tensor_slices([str(p) for p in sorted(tmp_path.iterdir())])
    dataset = paths.map(seen)
    assert [bool(one) for one in dataset] == [file and number % 3 == 1 for number in range(40)]
    assert "one by one" not in dataset.explain()
