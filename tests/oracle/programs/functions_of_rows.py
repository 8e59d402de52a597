"""Functions that a dataset calls with rows of many lengths, and indices that are out of range for some elements."""

import numpy as np

# Each length comes again and again, so that programs for it are worth their while.
LENGTHS = [3, 0, 5, 1, 3, 7, 2, 0, 5, 3] * 12


def _rows(tf):
    numbers = np.arange(sum(LENGTHS)) * 7 % 23
    return tf.data.Dataset.from_tensor_slices(tf.RaggedTensor.from_row_lengths(numbers, LENGTHS))


def _read(dataset):
    """Return all elements, with the names of the errors that are raised between them."""
    found, iterator = [], iter(dataset)
    for _ in range(2 * len(LENGTHS)):
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except Exception as error:  # noqa: BLE001 - every error is an answer
            found.append(type(error).__name__)
    return found


def moved_and_counted(tf, ask):
    """Integers that are moved, compared and added up."""
    table = np.arange(23) * 3

    def padded(x):
        count = tf.shape(x)[0]
        return tf.pad(x[: tf.minimum(count, 4)], [[0, tf.maximum(4 - count, 0)]])

    functions = {
        "sum": tf.reduce_sum,
        "product": lambda x: tf.reduce_prod(x % 3 + 1),
        "largest": lambda x: tf.reduce_max(tf.concat([x, [5]], 0)),
        "all": lambda x: tf.reduce_all(x > 3),
        "any": lambda x: tf.reduce_any(x > 20),
        "size": tf.size,
        "reversed": lambda x: tf.reverse(x, [0]),
        "sorted": tf.sort,
        "order": lambda x: tf.argsort(x, stable=True),
        "sums so far": tf.cumsum,
        "sums to come": lambda x: tf.cumsum(x, reverse=True),
        "with ends": lambda x: tf.concat([[1], x, [2]], 0),
        "shifted": lambda x: (x[:-1], x[1:]),
        "every second": lambda x: x[::2],
        "looked up": lambda x: tf.gather(table, x),
        "vectors looked up": lambda x: tf.gather(table[:, None] * [1, 2], x),
        "one hot": lambda x: tf.one_hot(x % 4, 4),
        "padded": padded,
        "tiled": lambda x: tf.tile(x, [2]),
        "rolled": lambda x: tf.roll(x, 1, 0),
        "chosen": lambda x: tf.where(x > 9, x, -x),
        "products": lambda x: x[:, None] * x[None, :],
        "turned": lambda x: tf.transpose(tf.stack([x, x + 1])),
        "masked": lambda x: tf.boolean_mask(x, x > 9),
        "as floats": lambda x: tf.cast(x, tf.float32) / 8.0,
        "numbered": lambda x: {"x": x, "at": tf.range(tf.shape(x)[0]), "n": tf.size(x)},
        "first two": lambda x: tf.split(tf.concat([x, [0, 0]], 0)[:2], 2),
        "constant": lambda x: tf.zeros([3]),
    }
    return {
        label: ask(lambda f=function: list(_rows(tf).map(f)))
        for label, function in functions.items()
    }


def kept(tf, ask):
    """Rows that a predicate keeps, and their batches."""
    predicates = {
        "by length": lambda x: tf.size(x) > 2,
        "by sum": lambda x: tf.reduce_sum(x) % 2 == 0,
        "by value": lambda x: tf.reduce_any(x == 7),
    }
    batched = lambda f: list(_rows(tf).filter(f).map(lambda x: x + 1).padded_batch(4))
    return {label: ask(lambda f=f: batched(f)) for label, f in predicates.items()}


def failing_rows(tf, ask):
    """An index that is out of range for some lengths; the others are returned."""
    table = np.arange(20)
    functions = {
        "looked up": lambda x: tf.gather(table, x),
        "last": lambda x: x[-1],
        "third": lambda x: tf.gather(x, 2),
        "divided": lambda x: 6 // (tf.size(x) - 2),
    }
    return {
        label: ask(lambda f=function: _read(_rows(tf).map(f)))
        for label, function in functions.items()
    }


def indices_out_of_range(tf, ask):
    """Indices of the elements of a dataset, one of which is too large, negative, or needs more than 32 bits."""
    table, ones = np.arange(10) * 2, tf.ones([3])
    functions = {
        "gather": lambda x: tf.gather(table, x),
        "gather, batches": lambda x: tf.gather(
            tf.stack([table, table, table]), x[:, None], batch_dims=1
        ),
        "gather_nd": lambda x: tf.gather_nd(table, x[:, None]),
        "embedding_lookup": lambda x: tf.nn.embedding_lookup(table[:, None], x),
        "scatter_nd": lambda x: tf.scatter_nd(x[:, None], [1, 2, 3], [10]),
        "tensor_scatter_nd_update": lambda x: tf.tensor_scatter_nd_update(
            tf.zeros([10]), x[:, None], ones
        ),
        "tensor_scatter_nd_add": lambda x: tf.tensor_scatter_nd_add(
            tf.zeros([10]), x[:, None], ones
        ),
        "gather and scatter": lambda x: (
            tf.gather(table, x),
            tf.scatter_nd([[0]], [tf.reduce_sum(x)], [2]),
        ),
        "unsorted_segment_sum": lambda x: tf.math.unsorted_segment_sum([1, 2, 3], x, 10),
        "unsorted_segment_max": lambda x: tf.math.unsorted_segment_max([1, 2, 3], x, 10),
        "unsorted_segment_mean": lambda x: tf.math.unsorted_segment_mean([1.0, 2, 3], x, 10),
        "confusion_matrix": lambda x: tf.math.confusion_matrix(x, x, 10),
        "unravel_index": lambda x: tf.unravel_index(x, [2, 5]),
        "sparse_softmax": lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits(
            x, tf.ones([3, 10])
        ),
        "reverse_sequence": lambda x: tf.reverse_sequence(tf.ones([3, 9]), x, seq_axis=1),
        "one_hot": lambda x: tf.one_hot(x, 3),
    }
    given = {
        "too large": [2, 1, 10],
        "negative": [2, -1, 0],
        "33 bits": [1, 2, 2**32 + 1],
        "lowest": [1, -(2**63), 1],
    }
    answers = {}
    for label, bad in given.items():
        source = tf.data.Dataset.from_tensor_slices(np.array([[0, 1, 2], bad, [2, 1, 0]]))
        for name, function in functions.items():
            call = lambda f=function, s=source: _read(s.map(f))
            answers[f"{name}, {label}"] = ask(call)
    return answers
