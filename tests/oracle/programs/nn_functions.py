"""Functions of neural networks: values, dtypes and errors, on tensors and in a map."""

# pyright: basic

import numpy as np

X = np.array([[-1.5, 0.5, 2.0], [0.25, -0.75, 1.0]])
IMAGE = np.arange(32, dtype=np.float32).reshape(1, 4, 4, 2) / 8 - 2
FILTER = np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2) / 16


def _each(ask, calls):
    return {label: ask(*call) for label, call in calls.items()}


def activations(tf, ask):
    names = [
        "relu",
        "relu6",
        "leaky_relu",
        "elu",
        "selu",
        "gelu",
        "silu",
        "swish",
        "crelu",
        "softmax",
        "log_softmax",
    ]
    calls = {
        f"{name} {label}": (getattr(tf.nn, name), value)
        for name in names
        for label, value in {"float64": X, "text": "a", "bool": True}.items()
        if (name, label) not in {("silu", "text"), ("swish", "text")}  # UnimplementedError there
    }
    calls |= {
        "relu ints": (tf.nn.relu, [-1, 2]),
        "leaky_relu ints": (tf.nn.leaky_relu, [-1, 2]),
        "leaky_relu 0.5": (tf.nn.leaky_relu, X, 0.5),
        "gelu approximate": (tf.nn.gelu, X, True),
        "silu beta": (lambda: tf.nn.silu(X, beta=np.float64(2.0)),),
        "softmax along 0": (tf.nn.softmax, X, 0),
        "softmax along 2": (tf.nn.softmax, X, 2),
        "softmax ints": (tf.nn.softmax, [1, 2]),
        "bias_add": (tf.nn.bias_add, X, np.array([1.0, 2.0, 3.0])),
        "bias_add unlike": (tf.nn.bias_add, X, np.array([1.0, 2.0])),
        "bias_add channels first": (
            lambda: tf.nn.bias_add(np.zeros((1, 2, 2)), np.array([1.0, 2.0]), data_format="NC..."),
        ),
    }
    return _each(ask, calls)


def losses(tf, ask):
    z = np.array([[0.0, 1.0, 0.0], [0.25, 0.25, 0.5]])
    sparse = tf.nn.sparse_softmax_cross_entropy_with_logits
    return _each(
        ask,
        {
            "sigmoid": (lambda: tf.nn.sigmoid_cross_entropy_with_logits(labels=z, logits=X),),
            "sigmoid unlike": (
                lambda: tf.nn.sigmoid_cross_entropy_with_logits(labels=z[0], logits=X),
            ),
            "sigmoid none": (lambda: tf.nn.sigmoid_cross_entropy_with_logits(labels=z),),
            "weighted": (tf.nn.weighted_cross_entropy_with_logits, z, X, np.float64(2.0)),
            "softmax": (tf.nn.softmax_cross_entropy_with_logits, z, X),
            "softmax along 0": (tf.nn.softmax_cross_entropy_with_logits, z, X, 0),
            "sparse": (sparse, [2, 0], X),
            "sparse int64": (sparse, np.array([2, 0]), X.astype(np.float32)),
            "sparse beyond": (sparse, [3, 0], X),
            "sparse unlike": (sparse, [[2, 0]], X),
            "sparse floats": (sparse, [2.0, 0.0], X),
            "log_poisson": (tf.nn.log_poisson_loss, z, X),
            "log_poisson full": (tf.nn.log_poisson_loss, 3 * z, X, True),
            "l2_loss": (tf.nn.l2_loss, X),
            "l2_loss ints": (tf.nn.l2_loss, [1, 2]),
            "average": (tf.nn.compute_average_loss, [1.0, 2.0, 6.0]),
            "average weights": (tf.nn.compute_average_loss, [1.0, 2.0], [1.0, 0.0]),
            "average of 8": (lambda: tf.nn.compute_average_loss([1.0, 3.0], global_batch_size=8),),
            "average of 0": (tf.nn.compute_average_loss, np.zeros(0, np.float32)),
            "average of one": (tf.nn.compute_average_loss, 1.0),
            "average of 1.5": (lambda: tf.nn.compute_average_loss([1.0], global_batch_size=1.5),),
            "average of -1": (lambda: tf.nn.compute_average_loss([1.0], global_batch_size=-1),),
            "regularization": (tf.nn.scale_regularization_loss, [1.0, 2.0]),
        },
    )


def losses_of_replicas(tf, ask):
    strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(4)])

    def step():
        losses = tf.constant([1.0, 3.0])
        average = tf.nn.compute_average_loss(losses)
        known = tf.nn.compute_average_loss(losses, global_batch_size=8)
        return average, known, tf.nn.scale_regularization_loss(tf.constant(2.0))

    def reduced(run):
        return [strategy.reduce("SUM", part, axis=None) for part in run()]

    def across():
        with strategy.scope():
            return tf.nn.compute_average_loss([1.0])

    return {
        "eager": ask(reduced, lambda: strategy.run(step)),
        "compiled": ask(reduced, tf.function(lambda: strategy.run(step))),
        "across replicas": ask(across),
    }


def normalization(tf, ask):
    return _each(
        ask,
        {
            "moments": (lambda: tf.nn.moments(tf.constant(X), [0]),),
            "moments kept": (lambda: tf.nn.moments(tf.constant(X), [0, 1], keepdims=True),),
            "weighted_moments": (tf.nn.weighted_moments, X, [1], np.array([[1.0, 2.0, 1.0]])),
            "normalize_moments": (tf.nn.normalize_moments, 2.0, 4.0, 10.0, None),
            "sufficient_statistics": (lambda: tf.nn.sufficient_statistics(X, [0])[:3],),
            "batch_normalization": (
                lambda: tf.nn.batch_normalization(
                    tf.constant(X), np.ones(3), np.full(3, 4.0), np.ones(3), np.full(3, 2.0), 0.001
                ),
            ),
            "batch_normalization bare": (
                lambda: tf.nn.batch_normalization(
                    tf.constant(X), np.ones(3), np.full(3, 4.0), None, None, 0.001
                ),
            ),
            "lrn": (lambda: tf.nn.lrn(IMAGE, depth_radius=1),),
            "l2_normalize": (tf.nn.l2_normalize, X, 1),
            "l2_normalize zeros": (tf.nn.l2_normalize, np.zeros(2)),
            "dropout none": (lambda: tf.nn.dropout(X, rate=0.0),),
            "dropout all": (lambda: tf.nn.dropout(X, rate=1.5),),
            "dropout ints": (lambda: tf.nn.dropout([1, 2], rate=0.5),),
            "dropout values": (lambda: set(tf.nn.dropout(tf.ones(99), 0.5).numpy()) == {0.0, 2.0},),
            "embedding_lookup": (lambda: tf.nn.embedding_lookup(tf.constant(X), [[1], [0]]),),
            "embedding_lookup max_norm": (
                lambda: tf.nn.embedding_lookup(tf.constant(X), [1, 0], max_norm=1.0),
            ),
            "embedding_lookup beyond": (lambda: tf.nn.embedding_lookup(tf.constant(X), [2]),),
        },
    )


def convolutions(tf, ask):
    row, cube = IMAGE.reshape(1, 16, 2), IMAGE.reshape(1, 2, 4, 2, 2)
    conv = tf.nn.conv2d
    return _each(
        ask,
        {
            "same": (conv, IMAGE, FILTER, 1, "SAME"),
            "valid 2": (conv, IMAGE, FILTER, [1, 2, 2, 1], "VALID"),
            "dilated": (lambda: conv(IMAGE, FILTER, 1, "VALID", dilations=2),),
            "padded": (conv, IMAGE, FILTER, 2, [[0, 0], [1, 0], [0, 1], [0, 0]]),
            "unknown padding": (conv, IMAGE, FILTER, 1, "NOPE"),
            "channels unlike": (conv, IMAGE, FILTER[:, :, :0], 1, "SAME"),
            "conv1d": (tf.nn.conv1d, row, FILTER[0], 2, "SAME"),
            "conv3d": (tf.nn.conv3d, cube, FILTER[None], [1] * 5, "SAME"),
            "convolution": (tf.nn.convolution, row, FILTER[0]),
            "depthwise": (tf.nn.depthwise_conv2d, IMAGE, FILTER, [1, 1, 1, 1], "SAME"),
            "separable": (
                tf.nn.separable_conv2d,
                IMAGE,
                FILTER,
                np.ones((1, 1, 4, 1), np.float32),
                [1, 1, 1, 1],
                "VALID",
            ),
            "atrous": (tf.nn.atrous_conv2d, IMAGE, FILTER, 2, "VALID"),
            "transpose": (tf.nn.conv2d_transpose, IMAGE, FILTER, [1, 8, 8, 2], 2, "SAME"),
        },
    )


def pooling(tf, ask):
    row, cube = IMAGE.reshape(1, 16, 2), IMAGE.reshape(1, 2, 4, 2, 2)
    return {
        f"{kind} {label}": ask(getattr(tf.nn, f"{kind}_pool{name}"), *call)
        for kind in ("max", "avg")
        for label, (name, *call) in {
            "valid": ("", IMAGE, 2, 2, "VALID"),
            "same": ("2d", IMAGE, 3, 2, "SAME"),
            "unlike axes": ("2d", IMAGE, [1, 2, 1, 1], [1, 1, 2, 1], "VALID"),
            "1d": ("1d", row, 4, 4, "VALID"),
            "3d": ("3d", cube, 2, 2, "SAME"),
        }.items()
    }


def in_a_map(tf, ask):
    dataset = tf.data.Dataset.from_tensor_slices(X)
    names = [
        "relu",
        "relu6",
        "leaky_relu",
        "elu",
        "selu",
        "gelu",
        "silu",
        "softmax",
        "log_softmax",
        "l2_loss",
    ]

    def of(x):
        return {
            **{name: getattr(tf.nn, name)(x) for name in names},
            "moments": tf.nn.moments(x, [0])[1],
            "sparse": tf.nn.sparse_softmax_cross_entropy_with_logits([1], x[None]),
            "softmax_ce": tf.nn.softmax_cross_entropy_with_logits(
                tf.one_hot(1, 3, dtype=x.dtype), x
            ),
            "sigmoid_ce": tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.ones_like(x), logits=x),
            "lookup": tf.nn.embedding_lookup(tf.constant(X), tf.argmax(x)[None] // 2),
            "l2_normalize": tf.nn.l2_normalize(x),
        }

    mapped = dataset.map(of)
    elements = list(mapped)
    return {
        name: (spec, [element[name] for element in elements])
        for name, spec in mapped.element_spec.items()
    }
