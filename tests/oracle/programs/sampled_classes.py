"""Losses on samples of classes, labels of sequences, and pooling with places."""

import numpy as np

LOGITS = np.log(np.random.default_rng(3).dirichlet(np.ones(4), size=(5, 2))).astype(np.float32)


def samplers(tf, ask):
    random = tf.random
    pairs = [[1, 2], [3, 0]]
    log, even = random.log_uniform_candidate_sampler, random.uniform_candidate_sampler

    def expected(sampler, *args):
        return sampler(*args).true_expected_count

    def sorted_(sampler, *args):
        return tf.sort(sampler(*args).sampled_candidates)

    return {
        "all": ask(lambda: list(random.all_candidate_sampler(pairs, 2, 4, True))),
        "fields": list(random.all_candidate_sampler(pairs, 2, 4, True)._fields),
        "log, not unique": ask(expected, log, pairs, 2, 3, False, 10),
        "even, not unique": ask(expected, even, pairs, 2, 3, False, 10),
        "even, one": ask(expected, even, pairs, 2, 1, True, 4),
        "all of log": ask(sorted_, log, pairs, 2, 6, True, 6),
        "all of even": ask(sorted_, even, pairs, 2, 6, True, 6),
        "too many": ask(log, pairs, 2, 11, True, 10),
        "another number of classes": ask(log, pairs, 1, 1, True, 10),
        "no classes": ask(log, [[0]], 1, 1, True, 0),
        "out of range": ask(even, [[9]], 1, 1, True, 4),
        "hits": ask(lambda: list(tf.nn.compute_accidental_hits(pairs, [3, 1, 7, 2], 2))),
        "no hits": ask(lambda: list(tf.nn.compute_accidental_hits(pairs, [8, 9], 2))),
    }


def losses(tf, ask):
    weights = tf.reshape(tf.range(12.0), [6, 2]) / 10
    biases, inputs = tf.range(6.0) / 10, tf.constant([[1.0, 2.0], [3.0, -1.0]])
    labels = tf.constant([[1], [4]], tf.int64)
    sample = (
        tf.constant([0, 4, 5], tf.int64),
        tf.constant([[0.5], [0.25]]),
        tf.constant([0.1, 0.2, 0.3]),
    )
    two = (sample[0], tf.constant([[0.5, 0.1], [0.25, 0.2]]), sample[2])
    answers = {}
    for name in ("nce_loss", "sampled_softmax_loss"):
        loss = getattr(tf.nn, name)
        for removes in (False, True):
            answers[f"{name} {removes}"] = ask(
                loss,
                *(weights, biases, labels, inputs, 3, 6),
                sampled_values=sample,
                remove_accidental_hits=removes,
            )
        answers[f"{name} of two"] = ask(
            loss,
            *(weights, biases, tf.constant([[1, 2], [4, 0]], tf.int64), inputs, 3, 6),
            num_true=2,
            sampled_values=two,
        )
    return answers


def sequences(tf, ask):
    nn = tf.nn
    labels = tf.constant([[1, 2], [3, 0]])
    sparse = tf.sparse.from_dense([[1, 2], [2, 2]])

    def loss(*args, **kwargs):
        return ask(lambda: np.round(nn.ctc_loss(*args, **kwargs), 4) + 0)

    def decoded(*args, **kwargs):
        return ask(lambda: list(nn.ctc_greedy_decoder(*args, **kwargs)))

    best = np.eye(4, dtype=np.float32)[[[0, 3], [0, 1], [3, 1], [0, 2], [1, 2]]]
    return {
        "loss": loss(labels, LOGITS, [2, 1], [5, 5], blank_index=0),
        "shorter": loss(labels, LOGITS, [2, 1], [4, 3], blank_index=0),
        "the last is blank": loss([[1, 1], [2, 0]], LOGITS, [2, 2], [5, 4], blank_index=-1),
        "by row": loss(labels, np.swapaxes(LOGITS, 0, 1), [2, 1], [5, 5], False, blank_index=0),
        "no labels": loss(labels, LOGITS, [0, 0], [5, 3], blank_index=0),
        "default": loss(labels, LOGITS, [2, 1], [5, 5]),
        "sparse": loss(sparse, LOGITS, None, [5, 5], blank_index=0),
        "sparse without blank": ask(nn.ctc_loss, sparse, LOGITS, None, [5, 5]),
        "greedy": decoded(best, [5, 5]),
        "greedy, shorter": decoded(best, [4, 2]),
        "greedy, not merged": decoded(best, [5, 5], merge_repeated=False),
        "greedy, blank 0": decoded(best, [5, 5], blank_index=0),
        "greedy, too long": ask(nn.ctc_greedy_decoder, best, [6, 5]),
    }


def distances(tf, ask):
    words = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], ["a", "b", "c"], [3, 2])
    truth = tf.SparseTensor([[0, 0], [1, 0], [1, 1], [2, 0]], ["a", "c", "d", "x"], [3, 2])
    short = tf.SparseTensor([[0, 0]], ["a"], [4, 2])
    return {
        "normalized": ask(tf.edit_distance, words, truth),
        "counted": ask(tf.edit_distance, words, truth, normalize=False),
        "empty truth": ask(tf.edit_distance, words, short),
        "numbers": ask(
            tf.edit_distance,
            tf.sparse.from_dense([[[1, 2, 5], [3, 4, 0]]]),
            tf.sparse.from_dense([[[1, 3, 5], [4, 3, 4]]]),
        ),
        "dense": ask(tf.edit_distance, [["a"]], truth),
        "two dtypes": ask(tf.edit_distance, words, tf.SparseTensor([[0, 0]], [1], [3, 2])),
    }


def pooling(tf, ask):
    image = np.random.default_rng(5).permutation(2 * 5 * 4 * 2).reshape(2, 5, 4, 2)
    floats = image.astype(np.float32)

    def pooled(*args, **kwargs):
        return ask(lambda: list(tf.nn.max_pool_with_argmax(*args, **kwargs)))

    return {
        "VALID": pooled(floats, 2, 2, "VALID"),
        "SAME": pooled(floats, [3, 2], [2, 1], "SAME"),
        "all axes": pooled(floats, [1, 2, 3, 1], [1, 2, 2, 1], "SAME"),
        "in the batch": pooled(floats, 2, 2, "VALID", include_batch_in_index=True),
        "int32": pooled(floats, 2, 2, "VALID", output_dtype=tf.int32),
        "negative": pooled(-floats - 1, 3, 1, "SAME"),
        "ties": pooled(np.zeros([1, 4, 4, 1], np.float32), 3, 2, "SAME"),
    }
