"""Bytes equal the str that they encode in UTF-8: eagerly, per element, and in a kernel."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import evenfeed as tf
from evenfeed.core.handles import Handle
from evenfeed.core.tensor_types import HostText, TextTensor
from evenfeed.core.text.text_columns import Texts
from evenfeed.core.text.text_values import texts_in
from evenfeed.core.text.traced_texts import CompareTexts, Constant
from evenfeed.core.traced.kernel_stages import Stage

WORDS = [b"", b"a", b"aa", b"ab", "ä".encode(), b"a\0", b"a longer text", b"\xff"]
words = st.sampled_from(WORDS)


def column(texts):
    out = np.empty(len(texts), object)
    out[:] = texts
    return out


@given(st.lists(words, min_size=1), words)
def test_texts_that_are_not_cut_up_compare_as_objects_do(texts, other):
    expected = [text == other for text in texts]
    for found in (Texts.of(texts), column(texts)):
        assert CompareTexts(True, Constant((), (other,))).run(found)[0].tolist() == expected
        assert CompareTexts(False, Constant((), (other,))).run(found)[0].tolist() == [
            not e for e in expected
        ]


@given(st.lists(st.tuples(words, words), min_size=1))
def test_two_columns_are_compared_row_by_row(pairs):
    one, two = (column(texts) for texts in zip(*pairs, strict=True))
    (found,) = CompareTexts(True).run(one, two)
    assert found.tolist() == [a == b for a, b in pairs]


def test_rows_of_texts_broadcast_to_a_constant_and_to_each_other():
    rows = np.array([[b"a", b"b"], [b"b", b"b"]], object)
    (found,) = CompareTexts(True, Constant((2, 1), (b"a", b"b"))).run(rows)
    assert found.tolist() == [[[True, False], [False, True]], [[False, False], [True, True]]]
    (found,) = CompareTexts(True).run(rows, column([b"b", b"b"]))
    assert found.tolist() == [[False, True], [True, True]]


def test_rows_of_several_lengths_are_compared_one_by_one():
    ragged = [column([b"a"]), column([b"b", b"a"])]
    (found,) = CompareTexts(False, Constant((), (b"a",))).run(ragged)
    assert [row.tolist() for row in found] == [[False], [True, False]]


@pytest.mark.parametrize(
    ("shape", "other", "expected"),
    [
        ([], [], []),
        ([None], [], [None]),
        ([None], [1], [None]),
        ([None], [3], [3]),
        ([1], [None], [None]),
        ([2, 1], [3], [2, 3]),
        ([None, 2], [1, 1], [None, 2]),
    ],
)
def test_the_shape_of_a_comparison_is_known_as_far_as_those_of_the_texts(shape, other, expected):
    given = [tf.TensorSpec(one, tf.string) for one in (shape, other)]
    assert CompareTexts(True).specs(*given) == [tf.TensorSpec(expected, tf.bool)]


@pytest.mark.parametrize("other", [3, 2.5, True, np.arange(2), np.int64(1), [1], tf.constant(1.0)])
def test_text_is_not_compared_with_numbers(other):
    for text in (tf.constant("a"), tf.constant(["a", "b"]), HostText(b"a")):
        with pytest.raises(TypeError, match=r"Text cannot be compared with .*\n.*\n  fix: compare"):
            _ = text == other
        with pytest.raises(TypeError, match="Text cannot be compared"):
            _ = text != other


def test_any_other_object_decides_whether_it_equals_text():
    class Anything:
        def __eq__(self, other):
            return True

        __hash__ = None

    assert tf.constant("a") == Anything()
    assert HostText(b"a") == Anything()
    assert not HostText(b"a") == object()  # noqa: SIM201 - the operator is what is tested


def test_a_single_text_is_bytes_in_every_other_way():
    text = HostText("Hündin".encode())
    assert isinstance(text, bytes)
    assert text.decode() == "Hündin"
    assert type(text.numpy()) is bytes
    assert (text.dtype, text.shape) == (tf.string, ())
    assert {"Hündin".encode(): 1}[text] == 1
    assert b"x" + text == "xHündin".encode()
    assert (np.array([b"x", b"y"], object) + HostText(b"z")).tolist() == [b"xz", b"yz"]
    assert pickle.loads(pickle.dumps(text)) == text


def test_a_key_of_a_dict_that_is_not_ascii_must_be_bytes():
    assert HostText(b"cat") in {"cat"}  # bytes and an ASCII str have the same hash in CPython
    assert HostText("ü".encode()) not in {"ü"}
    assert HostText("ü".encode()) in {"ü".encode()}


def test_items_of_a_text_tensor_are_text():
    texts = tf.constant(["ä", "b"])
    assert type(texts) is TextTensor
    assert texts[0] == "ä"
    assert [text == "b" for text in texts] == [False, True]
    assert type(texts[:1]) is TextTensor
    assert (texts[:1] == "ä").all()


def test_a_text_tensor_may_hold_anything_that_numpy_computes_of_it():
    found = tf.constant(["a", "b"]) == "a"
    assert found.dtype == np.bool_
    assert (found == True).tolist() == [True, False]  # noqa: E712 - numbers compare as NumPy's do
    assert found.numpy().tolist() == [True, False]
    assert (tf.constant(["1", "2"]).astype(np.int32) == 2).tolist() == [False, True]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("ä", "ä".encode()),
        (["a", b"b"], [b"a", b"b"]),
        ((("a",), ("b",)), [[b"a"], [b"b"]]),
        (np.array(["a"]), [b"a"]),
        (tf.constant("a"), b"a"),
        ([tf.constant("a"), HostText(b"b")], [b"a", b"b"]),
    ],
)
def test_text_is_found_in_every_kind_of_value(value, expected):
    found = texts_in(value)
    assert found is not None
    assert found.tolist() == expected


@pytest.mark.parametrize("value", [None, 1, [1, "a"], np.arange(2), object(), ["a", ["b"]]])
def test_what_is_not_all_text_is_none(value):
    assert texts_in(value) is None


def test_a_handle_of_text_knows_what_needs_no_value():
    stage = Stage((), lambda _: False)
    text = Handle(0, stage, tf.TensorSpec([2], tf.string))
    assert isinstance(text, tf.Tensor)
    assert (text.dtype, text.shape) == (tf.string, (2,))
    assert not isinstance(Handle(0, stage), tf.Tensor)
    with pytest.raises(AttributeError, match="shape"):
        _ = Handle(0, stage, tf.TensorSpec([None], tf.string)).shape


@pytest.mark.parametrize("data", [b"abc", b"", b"a\0", b"\xff"])
def test_numpy_takes_a_single_text_as_it_takes_bytes(data):
    text = HostText(data)
    assert (repr(text), str(text), f"{text}") == (repr(data), str(data), f"{data}")
    assert np.asarray(text) == np.asarray(data)
    assert np.array([text, b"x"]).tolist() == np.array([data, b"x"]).tolist()
    assert np.frombuffer(text, np.uint8).tolist() == list(data)


@pytest.mark.parametrize("make", [bytes, HostText, np.bytes_])
def test_zeros_at_the_end_of_a_text_stay(make):
    assert tf.constant(make(b"a\0")).numpy() == b"a\0"
    assert tf.constant([make(b"a\0")]).tolist() == [b"a\0"]
    handed_on = tf.data.Dataset.from_tensors(make(b"a\0")).map(lambda t: t if len(t) else b"")
    assert [t.numpy() for t in handed_on] == [b"a\0"]
