"""Dropout that depends only on a seed, or on a function that draws."""


def dropouts(tf, ask):
    ones = tf.ones([3, 5])
    stateless, general = tf.nn.experimental.stateless_dropout, tf.nn.experimental.general_dropout
    draw = lambda: tf.random.Generator.from_seed(7).uniform
    half = tf.ones([9], tf.float16)
    return {
        "half": ask(lambda: stateless(ones, 0.5, [1, 0])),
        "most": ask(lambda: stateless(ones, rate=0.8, seed=[2, 0])),
        "none": ask(lambda: stateless(ones, 0.0, seed=[1, 0])),
        "all": ask(lambda: stateless(ones, 1.0, seed=[1, 0])),
        "rows": ask(lambda: stateless(ones, 2 / 3, [1, 0], noise_shape=[1, 5])),
        "philox": ask(lambda: stateless(ones, 0.5, [1, 0], "philox")),
        "a tensor as rate": ask(lambda: stateless(ones, tf.constant(0.5), [1, 0])),
        "float16": ask(lambda: stateless(half, 0.5, [1, 0])),
        "float64": ask(lambda: stateless(tf.ones([9], tf.float64), 0.5, [1, 0])),
        "ints": ask(lambda: stateless([1, 2], 0.5, [1, 0])),
        "ragged": ask(lambda: stateless(tf.ragged.constant([[1.0, 2.0], [3.0]]), 0.5, [1, 0])),
        "a generator": ask(lambda: general(ones, 0.5, draw())),
        "a generator, float16": ask(lambda: general(half, 0.5, draw())),
        "a generator, none": ask(lambda: general(ones, 0.0, draw())),
    }
