"""Gamma, Poisson and binomial numbers: their shapes, dtypes and errors, and numbers that are certain."""


def shapes(tf, ask):
    r = tf.random

    def kind(function, *args, **kwargs):
        found = function(*args, **kwargs)
        return [list(found.shape), found.dtype]

    return {
        "gamma": ask(kind, r.gamma, [3], [0.5, 1.5]),
        "gamma with beta": ask(kind, r.gamma, [], [[0.5], [1.5]], [1.0, 2.0]),
        "gamma float64": ask(kind, r.gamma, [3], 0.5, dtype=tf.float64),
        "poisson": ask(kind, r.poisson, [3], [0.5, 1.5]),
        "poisson int32": ask(kind, r.poisson, [2, 3], 4.0, dtype=tf.int32),
        "stateless_gamma": ask(kind, r.stateless_gamma, [3, 2], [1, 2], [0.5, 1.5]),
        "stateless_gamma too short": ask(kind, r.stateless_gamma, [3], [1, 2], [0.5, 1.5]),
        "stateless_poisson": ask(kind, r.stateless_poisson, [3, 2], [1, 2], [0.5, 1.5]),
        "stateless_poisson float": ask(
            kind, r.stateless_poisson, [3], [1, 2], 0.5, dtype=tf.float32
        ),
        "stateless_poisson too short": ask(kind, r.stateless_poisson, [3], [1, 2], [0.5, 1.5]),
        "stateless_binomial": ask(kind, r.stateless_binomial, [3, 2], [1, 2], [1.0, 2.0], 0.5),
        "none": ask(r.poisson, [3], 0.0),
        "all": ask(r.stateless_binomial, [3], [1, 2], 10.0, 1.0),
        "a wrong seed": ask(r.stateless_gamma, [3], [1, 2, 3], 0.5),
    }
