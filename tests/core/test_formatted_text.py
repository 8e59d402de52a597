"""A text in a map that becomes a `str` with its quotes: a warning names the line, unless the line only prints it."""

import logging
import warnings

import pytest

import evenfeed as tf


def texts_of(function):
    dataset = tf.data.Dataset.from_tensor_slices(["one", "two"]).map(function)
    return list(dataset.as_numpy_iterator())


@pytest.mark.parametrize(
    "function",
    [
        lambda text: f"<s>{text}</s>",
        lambda text: "<s>%s</s>" % text,  # noqa: UP031
        lambda text: "<s>" + str(text) + "</s>",
    ],
)
def test_a_text_that_is_formatted_with_its_quotes_warns_once_at_the_line(function):
    with pytest.warns(
        UserWarning, match=r"turned into a str .*: b'one'\. .*text.decode\(\)"
    ) as found:
        assert texts_of(function) == [b"<s>b'one'</s>", b"<s>b'two'</s>"]
    assert [warning.filename for warning in found] == [__file__]


def printed(text):
    print(f"element: {text}")  # noqa: T201
    logging.getLogger().info("element: %s", text)
    if not text:
        raise ValueError(f"no text: {text}")
    return text


@pytest.mark.parametrize(
    "function",
    [
        printed,
        lambda text: text.decode(),
        lambda text: f"{text.numpy().decode()}",
        lambda text: str(text, "utf-8"),
    ],
)
def test_a_text_that_is_decoded_or_only_printed_does_not_warn(function):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert texts_of(function) == [b"one", b"two"]
