"""Error notes name the element: by its number, and by its text if it has one."""

import re

import numpy as np
import pytest
from tests.images.pictures import jpeg

import evenfeed as tf

Dataset = tf.data.Dataset


def note_of(dataset):
    with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever the function raises
        list(dataset)
    return raised.value.__notes__[0]


@pytest.mark.parametrize("threads", [None, 2])
def test_a_broken_image_is_named_by_its_path(tmp_path, threads):
    for number in range(4):
        (tmp_path / f"{number}.jpg").write_bytes(b"no image" if number == 2 else jpeg())

    def decoded(path):
        return tf.io.decode_jpeg(tf.io.read_file(path), channels=3)

    files = Dataset.list_files(f"{tmp_path}/*.jpg", shuffle=False)
    note = note_of(files.map(decoded, num_parallel_calls=threads))
    assert note.startswith(
        f"while mapping element 2 ({tmp_path}/2.jpg) with decoded, asked for at "
    )


def failing(*_):
    raise ValueError("no")


@pytest.mark.parametrize(
    ("element", "name"),
    [
        ("name", " (name)"),
        (("", "label"), " (label)"),
        ((1, "grüße"), " (grüße)"),
        (b"\xff\x00", ""),
        ("line\n", ""),
        ("x" * 1000, ""),
        (["several", "texts"], ""),
    ],
)
def test_only_short_texts_are_names(element, name):
    spec = tf.TensorSpec([], tf.int64)
    elements = Dataset.from_tensors(element)
    note = note_of(elements.map(failing, output_signature=spec, vectorize=False))
    assert note.startswith(f"while mapping element 0{name} with failing, asked for at ")


def test_a_function_that_fails_where_it_is_traced_names_no_element():
    numbers = Dataset.from_tensor_slices(np.arange(3))
    with pytest.raises(ValueError, match="no") as raised:
        numbers.map(failing)
    assert "element" not in raised.value.__notes__[0]


@pytest.mark.parametrize(
    "number",
    [0, -(2**31), 2**31 - 1, 2**31, True, 0.1, -0.0, 5e9, 1e-46, float("inf"), float("nan")],
    ids=repr,
)
def test_numbers_that_an_untraced_function_returns_are_what_from_tensors_makes_of_them(number):
    def function(x):
        return number if int(x) == 0 else None

    (made,) = tf.data.Dataset.range(1).map(function)
    (expected,) = tf.data.Dataset.from_tensors(number)
    assert (made.dtype, made.shape) == (expected.dtype, ())
    assert made.tobytes() == expected.tobytes()


def encoded(text):
    """What a tokenizer does with anything but a str."""
    if not isinstance(text, str):
        raise TypeError("TextEncodeInput must be Union[TextInputSequence, ...]")
    return len(text)


@pytest.mark.parametrize(
    ("elements", "function", "hint"),
    [
        ({"id": [1], "text": ["a"]}, lambda row: row["txt"], "have the keys 'id', 'text'."),
        (({"x": [1.0]}, [0]), lambda row, _: row["y"], "have the keys 'x'."),
        (["a"], lambda text: re.split("b", text), "text.decode() is a str"),
        (["a"], encoded, "text.decode() is a str"),
        ({"x": [1.0]}, lambda row: {}["z"], "have the keys 'x'."),
    ],
)
def test_an_error_about_keys_or_text_says_what_the_elements_have(elements, function, hint):
    with pytest.raises((KeyError, TypeError)) as raised:
        list(Dataset.from_tensor_slices(elements).map(function))
    assert hint in raised.value.__notes__[-1]


def test_other_errors_have_no_hint():
    note = "while mapping"
    for elements, wrong in ((["a"], lambda _: 1 // 0), ({"x": [1]}, lambda row: int("a"))):
        with pytest.raises((ZeroDivisionError, ValueError)) as raised:
            list(Dataset.from_tensor_slices(elements).map(wrong))
        assert raised.value.__notes__[-1].startswith(note)
