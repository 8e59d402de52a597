"""Gradients of a tape where functions have no derivative, and through functions that choose entries."""

from tests.oracle.programs.gradient_tape import _both


def at_kinks(tf, ask):
    """Gradients where a function has no derivative, or a formula for it is not smooth."""
    zeros, labels = tf.constant([0.0, 0.0, 0.0]), tf.constant([1.0, 0.0, 0.3])

    def of(function, x=zeros):
        def gradient():
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = function(x)
            return tape.gradient(y, x)

        return gradient

    sigmoid = tf.nn.sigmoid_cross_entropy_with_logits
    programs = {
        "sigmoid cross entropy": of(lambda x: sigmoid(labels=labels, logits=x)),
        "relu": of(tf.nn.relu),
        "relu6": of(tf.nn.relu6, tf.constant([0.0, 6.0, 1.0])),
        "selu": of(tf.nn.selu),
        "abs": of(tf.abs, tf.constant([-1.0, 0.0, 2.0])),
    }
    return _both(tf, ask, programs)


def of_chosen_entries(tf, ask):
    x = tf.constant([1.0, 2.0, 3.0])

    def masked():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(tf.boolean_mask(x, [True, False, True]) ** 2) + tf.reduce_sum(x)
        return tape.gradient(y, x)

    def partitioned():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = 3.0 * tf.dynamic_partition(x, [0, 1, 0], 2)[0]
        return tape.gradient(y, x)

    def stitched():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = 3.0 * tf.dynamic_stitch([[0, 2], [1]], [x[:2], x[2:]])
        return tape.gradient(y, x)

    return _both(tf, ask, {"a mask": masked, "partitions": partitioned, "stitched": stitched})
