"""No function ends a gradient silently: values that an open tape follows are computed by JAX, or raise.

TensorFlow's gradients are in tests/oracle/programs/host_gradients.py.
"""

import numpy as np
import pytest

import evenfeed as tf

IMAGE = np.linspace(0.1, 0.9, 48, dtype=np.float32).reshape(4, 4, 3)
ROWS = tf.ragged.constant([[1.0, 2.0], [3.0]])
BOXES = np.array([[0, 0, 1, 1], [0, 2, 1, 3], [0, 4, 1, 5]], np.float32)
SPARSE = tf.SparseTensor([[0], [2]], [5.0, 7.0], [3])


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda x: tf.RaggedTensor.from_row_splits(x, [0, 1, 3]), "RaggedTensor.from_row_splits"),
        (lambda x: tf.RaggedTensor.from_tensor(x[None]), "RaggedTensor.from_tensor"),
        (ROWS.with_values, "RaggedTensor.with_values"),
        (lambda x: ROWS * x[0], "Arithmetic with a RaggedTensor"),
        (lambda x: ROWS + x[:2, None], "Arithmetic with a RaggedTensor"),
        (lambda x: tf.multiply(ROWS, x[0]), "multiply"),
        (lambda x: tf.gather(x, tf.ragged.constant([[0], [1, 2]])), "gather"),
        (lambda x: tf.ragged.stack([x, x[:2]]), "stack"),
        (lambda x: ROWS.to_tensor(x[0]), "RaggedTensor.to_tensor"),
        (lambda x: tf.SparseTensor([[0], [1], [2]], x, [3]), "SparseTensor"),
        (tf.sparse.from_dense, "from_dense"),
        (lambda x: SPARSE * x, "SparseTensor.__mul__"),
        (lambda x: SPARSE.with_values(x[:2]), "SparseTensor.with_values"),
        (lambda x: tf.image.rgb_to_hsv(x[None]), "rgb_to_hsv"),
        (lambda x: tf.image.adjust_hue(x[None, None], 0.1), "adjust_hue"),
        (lambda x: tf.image.stateless_random_hue(x[None, None], 0.1, (1, 2)), "random_hue"),
        (
            lambda x: tf.image.non_max_suppression_with_scores(BOXES, x, 3),
            "non_max_suppression_with_scores",
        ),
        (
            lambda x: tf.image.combined_non_max_suppression(
                BOXES[None, :, None], x[None, :, None], 3, 3
            ),
            "combined_non_max_suppression",
        ),
    ],
)
def test_a_function_without_a_gradient_names_itself_if_a_tape_follows_its_argument(call, name):
    x = tf.ones(3)
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(LookupError, match=f"{name} computes on the host") as error:
            call(2 * x)
        call(tf.stop_gradient(2 * x))
        with tape.stop_recording():
            call(2 * x)
        call(tf.ones(3))
    assert "test_followed_values.py:" in str(error.value)
    assert "evenfeed.stop_gradient(x)" in str(error.value)
    call(2 * x)


def test_indices_of_boxes_need_no_gradient():
    x, image = tf.constant([0.5, 0.9, 0.7]), tf.image
    with tf.GradientTape() as tape:
        tape.watch(x)
        kept = image.non_max_suppression(BOXES, 2 * x, 2)
        assert image.non_max_suppression_overlaps(np.eye(3), 2 * x, 2).tolist() == [1, 2]
        assert image.non_max_suppression_padded(BOXES, 2 * x, 2)[0].tolist() == [1, 2]
        loss = tf.reduce_sum(tf.gather(x, kept))
    assert tape.gradient(loss, x).tolist() == [0, 1, 1]


def test_values_that_users_read_end_the_gradient_as_in_tensorflow(capsys):
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(v * v)
        read = loss.numpy() + float(loss) + np.asarray(loss) + loss.item()
        tf.print(loss)
        tf.debugging.assert_greater(loss, 0.0)
        (element,) = tf.data.Dataset.from_tensors(v * v)
        text = tf.strings.as_string(loss)
        total = loss + tf.numpy_function(np.sum, [v * v], tf.float32) + element[0] + read
    assert text.numpy() == b"5.000000"
    assert float(total) == 5 + 5 + 1 + 4 * 5
    np.testing.assert_array_equal(tape.gradient(total, v), [2, 4])
    assert "5" in capsys.readouterr().err


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "compiled"])
def test_variables_become_images_with_gradients(wrap):
    v = tf.Variable(IMAGE)

    @wrap
    def step():
        with tf.GradientTape() as tape:
            y = tf.image.flip_left_right(tf.image.resize(v, [2, 2], antialias=True))
            loss = tf.reduce_sum(y[0])
        return y, tape.gradient(loss, v)

    y, gradient = step()
    resized = tf.image.resize(IMAGE, [2, 2], antialias=True)
    np.testing.assert_allclose(y, tf.image.flip_left_right(resized), rtol=1e-6)
    assert float(tf.reduce_sum(gradient)) == pytest.approx(6)
    assert float(tf.reduce_sum(abs(gradient[3]))) == 0


def test_a_padded_image_has_zeros_beside_values_that_are_not_finite():
    x = tf.constant(np.full([1, 1, 1], np.inf, np.float32))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.image.pad_to_bounding_box(x, 0, 1, 1, 3)
    np.testing.assert_array_equal(y[0, :, 0], [0, np.inf, 0])
    np.testing.assert_array_equal(tape.gradient(y, x), [[[1]]])


def test_a_python_function_is_recorded_and_may_read_values():
    v = tf.Variable(3.0)

    def squared(x):
        return x * x if x.numpy() > 2 else x

    with tf.GradientTape() as tape:
        y = tf.py_function(squared, [v], tf.float32)
    assert float(tape.gradient(y, v)) == 6


def test_a_target_of_the_host_says_why_it_has_no_gradient():
    v = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.numpy_function(np.sum, [v * v], tf.float32)
    with pytest.raises(ValueError, match=r"of the host: the tape does not know what it depends on"):
        tape.gradient(y, v)


def test_tapes_may_be_closed_in_any_order():
    v = tf.Variable(3.0)
    first, second = tf.GradientTape(), tf.GradientTape()
    first.__enter__()
    second.__enter__()
    one = v * v
    first.__exit__(None, None, None)
    two = one * v
    second.__exit__(None, None, None)
    after = two * v
    assert float(first.gradient(one, v)) == 6
    assert float(second.gradient(two, v)) == 27
    with tf.GradientTape() as third:
        later = v * v
    assert third.gradient(after, v) is None
    assert not first.record.is_open
    assert float(later) == 9
