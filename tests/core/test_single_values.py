"""A single value of a host tensor is a tensor without axes, and is used like the number or the text that it holds."""

import copy
import json
import pickle

import jax
import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.promotion import PromotingTensor
from evenfeed.core.tensor_types import HostTensor, HostText, host_tensor


def batch_of(values):
    return next(iter(tf.data.Dataset.from_tensor_slices(values).batch(len(values))))


LABELS = [3, 1, 2]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "float32", "bfloat16"])
@pytest.mark.parametrize("kind", [HostTensor, PromotingTensor])
def test_indexing_and_iteration_give_tensors(dtype, kind):
    array = np.array([[0, 1], [1, 0]], tf.as_dtype(dtype))
    tensor = array.view(kind)
    for found in (
        tensor[0, 1],
        tensor[0][1],
        list(tensor[0])[1],
        tensor[..., 1][0],
        tensor[0, 1][()],
    ):
        assert type(found) is kind
        assert (found.shape, found.dtype) == ((), array.dtype)
        assert type(found.numpy()) is array.dtype.type
        assert found.numpy() == 1


def test_a_loop_over_a_batch_may_call_numpy():
    images = np.arange(12.0).reshape(3, 2, 2)
    dataset = tf.data.Dataset.from_tensor_slices((images, LABELS)).batch(2)
    seen = [
        (image.numpy().tolist(), label.numpy())
        for x, y in dataset
        for image, label in zip(x, y, strict=True)
    ]
    assert seen == [(image.tolist(), label) for image, label in zip(images, LABELS, strict=True)]
    assert [y[0].numpy() for _, y in dataset.take(3)] == [3, 2]


def test_arithmetic_and_reductions_give_tensors():
    y = batch_of(LABELS)
    results = [
        y[0] + y[1],
        1 + y[0],
        -y[0],
        abs(y[0]),
        y[0] ** 2,
        y[0] == y[1],
        y.sum(),
        y.mean(),
        y.any(),
    ]
    results += [
        y.argmax(),
        y.dot(y),
        y.take(0),
        y.searchsorted(2),
        y[0].round(),
        y @ y,
        np.argmax(y),
    ]
    assert [type(found) for found in results] == [HostTensor] * len(results)
    assert [found.numpy().tolist() for found in results] == [
        *[4, 4, -3, 3, 9, False, 6, 2.0, True],
        *[0, 14, 3, 2, 3, 14, 0],
    ]
    assert tf.reduce_sum(y).numpy() == 6
    assert tf.reduce_sum(y[0]).numpy() == 3


def test_a_single_number_is_used_like_a_number():
    y, x = batch_of(LABELS), batch_of([0.5, 1.25])
    assert {3: "three"}[y[0]] == "three"
    assert {y[0]: "three"}[3] == "three"
    assert set(y) == {1, 2, 3}
    assert (int(y[0]), float(x[1]), bool(x[0]), complex(x[0])) == (3, 1.25, True, 0.5)
    assert (["a", "b", "c"][y[1]], list(range(y[1])), "abc"[y[1] :]) == ("b", [0], "bc")
    assert f"{y[0]} {y[0]:03d} {x[1]:.1f}" == "3 003 1.2"
    assert "%d %.2f %s" % (y[0], x[1], x[0]) == "3 1.25 0.5"  # noqa: UP031 - users write it
    assert (round(x[1], 1), sum(y), max(y), sorted(y)) == (1.2, 6, 3, [1, 2, 3])
    assert y[0] in LABELS
    assert "yes" if y[0] > 2 else None
    assert json.dumps([int(label) for label in y]) == "[3, 1, 2]"
    np.testing.assert_equal(y[0], 3)
    np.testing.assert_array_equal(list(y), LABELS)
    assert jax.jit(lambda a: a * 2)(y[0]) == 6
    assert (y[y[1]], y[y[1] : y[0]].tolist()) == (1, [1, 2])


def test_a_single_number_is_a_copy():
    y = host_tensor(np.array(LABELS))
    first = y[0]
    y[0] = 9
    assert first == 3
    assert copy.deepcopy(first) == pickle.loads(pickle.dumps(first)) == 3


def test_several_values_have_no_hash():
    for tensor in (batch_of(LABELS), batch_of(["a", "b"])):
        with pytest.raises(TypeError, match="unhashable type: a tensor of several values"):
            hash(tensor)


def test_a_list_of_single_numbers_keeps_their_dtype():
    y = batch_of(np.array(LABELS, np.int64))
    again = tf.data.Dataset.from_tensors([y[0], y[2]])
    assert again.element_spec == tf.TensorSpec([2], tf.int64)


def test_a_single_text_is_bytes_with_the_members_of_a_tensor():
    texts = batch_of(["a", "b"])
    for text in (texts[0], *texts, host_tensor(np.array(b"a", object))):
        assert (text.shape, text.ndim, text.dtype, text.get_shape().as_list()) == (
            (),
            0,
            tf.string,
            [],
        )
        assert isinstance(text, tf.Tensor)
        assert tf.is_tensor(text)
        assert type(text.numpy()) is bytes
        assert [found.numpy() for found in (text == "a", text != b"a")].count(True) == 1
    assert (texts[0] == "a").numpy() == (texts[0] != "b").numpy() == np.True_
    assert {b"a": 1}[host_tensor(np.array(b"a", object))] == 1
    assert {"b": 2}[texts[1]] == 2


def test_a_single_text_takes_new_axes():
    (text,) = batch_of(["abc"])
    assert type(text) is HostText
    assert text[tf.newaxis].numpy().tolist() == [b"abc"]
    assert text[..., tf.newaxis].shape == (1,)
    assert text[tf.newaxis, tf.newaxis].shape == (1, 1)
    assert text[...].numpy() == text[()].numpy() == b"abc"
    assert (text[0], text[np.int64(1)], text[1:], text[::-1]) == (97, 98, b"bc", b"cba")
    with pytest.raises(IndexError, match="too many indices"):
        text[0, tf.newaxis]


def test_numpy_function_and_generators_see_numpy():
    seen = []

    def look(x, text):
        seen.extend([type(x), type(x[0]), type(text)])
        return x[0]

    dataset = tf.data.Dataset.from_tensors(([1.0, 2.0], "a"))
    found = dataset.map(lambda x, text: tf.numpy_function(look, [x, text], tf.float32))
    assert next(iter(found)).numpy() == 1.0
    assert set(seen) == {np.ndarray, np.float32, bytes}
    read = tf.data.Dataset.from_generator(
        lambda n: seen.append(type(n)) or iter([n]),
        args=[2],
        output_signature=tf.TensorSpec([], tf.int32),
    )
    assert next(iter(read)).numpy() == 2
    assert seen[-1] is np.int32


def test_batches_are_printed_with_the_digits_of_their_dtype():
    values = np.array([71.3, 0.1, 7.25], np.float32)
    (batch,) = tf.data.Dataset.from_tensor_slices(values).batch(3)
    assert (str(batch), f"{batch}", f"{batch[:2]}") == (str(values), str(values), "[71.3  0.1]")
