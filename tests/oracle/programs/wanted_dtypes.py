"""NumPy values where a function wants one dtype: TensorFlow converts them, and refuses tensors of other dtypes."""

# pyright: basic

import numpy as np

IMAGE = np.arange(48).reshape(4, 4, 3)
BOX = np.array([[0.0, 0.0, 1.0, 1.0]])
SOUND = np.array([[0.5], [-0.25]])


def _each(ask, calls):
    return {label: ask(call) for label, call in calls.items()}


def counts(tf, ask):
    five, two = tf.data.Dataset.range(5), np.float64(2)
    calls = {
        "range": lambda: tf.data.Dataset.range(np.float32(3)),
        "take": lambda: five.take(two),
        "take, a Python float": lambda: five.take(2.0),
        "take, a float tensor": lambda: five.take(tf.constant(2.0)),
        "take, an array without axes": lambda: five.take(np.array(2.0)),
        "skip": lambda: five.skip(two),
        "repeat": lambda: five.repeat(np.float32(1)),
        "repeat, a bool": lambda: five.repeat(np.bool_(True)),
        "batch": lambda: five.batch(two),
        "batch, drop_remainder as a tensor": lambda: five.batch(
            2, drop_remainder=tf.constant(True)
        ),
        "batch, drop_remainder as a number": lambda: five.batch(2, drop_remainder=tf.constant(1)),
        "shard": lambda: five.shard(two, np.float32(1)),
        "shuffle": lambda: five.shuffle(np.float32(1)),
    }
    return {label: ask(lambda call=call: list(call())) for label, call in calls.items()}


def bools(tf, ask):
    ones, tensor = np.array([1, 0, 2]), tf.constant([1, 0, 2])
    calls = {
        "where": lambda: tf.where(ones, [1, 2, 3], 0),
        "where, a tensor": lambda: tf.where(tensor, [1, 2, 3], 0),
        "where, floats": lambda: tf.where(np.array([0.5, 0.0]), [1, 2], 0),
        "boolean_mask": lambda: tf.boolean_mask([1, 2, 3], ones),
        "boolean_mask, a tensor": lambda: tf.boolean_mask([1, 2, 3], tensor),
        "logical_not": lambda: tf.logical_not(ones),
        "logical_not, a tensor": lambda: tf.logical_not(tensor),
        "logical_and": lambda: tf.logical_and(ones, np.array([True, True, False])),
        "reduce_all": lambda: tf.reduce_all(ones),
        "reduce_any": lambda: tf.reduce_any(np.zeros(2)),
        "cond": lambda: tf.cond(np.array(1), lambda: 1, lambda: 2),
    }
    return _each(ask, calls)


def shapes(tf, ask):
    pair = np.array([2.0, 1.0])
    calls = {
        "reshape": lambda: tf.reshape([1, 2], pair),
        "reshape, Python floats": lambda: tf.reshape([1, 2], [2.0, 1.0]),
        "zeros": lambda: tf.zeros(pair),
        "fill": lambda: tf.fill(pair, 7),
        "transpose": lambda: tf.transpose([[1, 2]], np.array([1.0, 0.0])),
        "reduce_sum": lambda: tf.reduce_sum([[1, 2]], np.array(1.0)),
        "expand_dims": lambda: tf.expand_dims([1], np.float32(0)),
        "resize": lambda: list(tf.image.resize(IMAGE, np.array([2.0, 2.0])).shape),
    }
    return _each(ask, calls)


def pictures_and_sounds(tf, ask):
    image = IMAGE[None] / 48
    best = tf.image.non_max_suppression
    calls = {
        "encode_wav": lambda: tf.audio.encode_wav(SOUND, 8000),
        "encode_wav, integers": lambda: tf.audio.encode_wav(np.array([[1], [0]]), 8000),
        "encode_wav, a tensor": lambda: tf.audio.encode_wav(tf.constant(SOUND), 8000),
        "encode_jpeg": lambda: tf.io.is_jpeg(tf.io.encode_jpeg(IMAGE)),
        "encode_jpeg, a list": lambda: tf.io.is_jpeg(tf.io.encode_jpeg(IMAGE.tolist())),
        "encode_jpeg, a tensor": lambda: tf.io.encode_jpeg(tf.constant(IMAGE)),
        "non_max_suppression": lambda: best(BOX, np.array([0.9]), 1),
        "non_max_suppression, a tensor": lambda: best(tf.constant(BOX), [0.9], 1),
        "draw_bounding_boxes": lambda: tf.image.draw_bounding_boxes(image, BOX[None], None),
    }
    return _each(ask, calls)


def nested_lengths(tf, ask):
    cube, convert = np.arange(12).reshape(2, 2, 3), tf.RaggedTensor.from_tensor
    calls = {
        "a tuple of lists": lambda: convert(cube, ([2, 1], [1, 3, 0])),
        "a list of lists": lambda: convert(cube, [[2, 1], [1, 3, 0]]),
        "arrays": lambda: convert(cube, (np.array([1, 2]), np.array([3, 0, 1]))),
        "one list": lambda: convert(cube, ([2, 1],)),
        "numbers": lambda: convert(cube, (2, 1)),
        "too few": lambda: convert(cube, ([2, 1], [1, 3])),
        "too many axes": lambda: convert(cube, ([2, 1], [1, 3, 0], [1])),
    }
    return _each(ask, calls)


def sparse_shapes(tf, ask):
    def shape_after(shape):
        tensor = tf.SparseTensor([[0, 0], [1, 2]], [1, 2], [3, 4])
        tensor.set_shape(shape)
        return list(tensor.shape)

    shapes = {"the same": [3, 4], "a part": [None, 4], "none": None, "other": [3, 5], "rank": [3]}
    return {label: ask(shape_after, shape) for label, shape in shapes.items()}
