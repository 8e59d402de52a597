"""Random numbers: the bits of stateless functions, of generators and of eager functions with seeds."""

# pyright: basic

from functools import partial

import numpy as np

SEEDS = {"small": (1, -2), "wide": (2**40, 3), "zero": (0, 0)}
LOGITS = np.log([[0.1, 0.2, 0.7], [0.5, 0.2, 0.3]])


def stateless(tf, ask):
    draws = tf.random
    calls = {
        "uniform": partial(draws.stateless_uniform, [5]),
        "uniform of no numbers": partial(draws.stateless_uniform, [0, 3]),
        "one number": partial(draws.stateless_uniform, []),
        "uniform in bounds": partial(
            draws.stateless_uniform, [2, 3], minval=-1.0, maxval=[1, 2, 3.0]
        ),
        **{
            f"uniform {dtype}": partial(draws.stateless_uniform, [5], dtype=getattr(tf, dtype))
            for dtype in ("float16", "bfloat16", "float64")
        },
        **{
            f"{dtype} below 10": partial(
                draws.stateless_uniform, [7], minval=-3, maxval=10, dtype=getattr(tf, dtype)
            )
            for dtype in ("int32", "int64")
        },
        **{
            f"any {dtype}": partial(
                draws.stateless_uniform, [5], minval=None, maxval=None, dtype=getattr(tf, dtype)
            )
            for dtype in ("int32", "int64", "uint32", "uint64")
        },
        **{
            f"{kind} {dtype}": partial(
                getattr(draws, f"stateless_{kind}"),
                [2, 5],
                mean=1.0,
                stddev=2.0,
                dtype=getattr(tf, dtype),
            )
            for kind in ("normal", "truncated_normal")
            for dtype in ("float16", "float32", "float64")
        },
        "shuffle": partial(draws.experimental.stateless_shuffle, np.arange(12).reshape(6, 2)),
        "categorical": partial(draws.stateless_categorical, LOGITS, 5),
        "categorical int32": partial(draws.stateless_categorical, LOGITS[:1], 9, dtype=tf.int32),
        "fold_in": lambda seed: draws.fold_in(seed, 3),
        "split": lambda seed: draws.split(tf.constant(seed, tf.int64), 3),
        "philox": partial(draws.stateless_uniform, [3], alg="philox"),
    }
    return {
        f"{label}, {name} seed": ask(call, seed=seed)
        for label, call in calls.items()
        for name, seed in SEEDS.items()
    }


def many_truncated_normals(tf, ask):
    return {"": ask(lambda: tf.random.stateless_truncated_normal([2000], (5, 6))[::97])}


def in_a_map(tf, ask):
    def drawn(number):
        seed = tf.stack([number, number])
        return (
            tf.random.stateless_uniform([3], seed),
            tf.random.stateless_uniform([], seed, 0, 100, tf.int64),
            tf.random.stateless_normal([2], seed),
            tf.random.stateless_truncated_normal([2], seed),
            tf.random.stateless_categorical(LOGITS, 4, seed),
            tf.random.experimental.stateless_shuffle(tf.range(4), seed),
        )

    return {"": ask(lambda: list(tf.data.Dataset.range(3).map(drawn)))}


def eager_functions_with_seeds(tf, ask):
    def after_seed(first, *calls):
        tf.random.set_seed(first)
        found = [call() for call in calls]
        tf.random.set_seed(None)
        return found

    draws = tf.random
    calls = {
        "uniform": partial(draws.uniform, [3]),
        "normal": partial(draws.normal, [3]),
        "int32": partial(draws.uniform, [3], 0, 10, tf.int32),
        "truncated_normal": partial(draws.truncated_normal, [3]),
        "categorical": partial(draws.categorical, LOGITS, 3),
        "shuffle": partial(draws.shuffle, np.arange(5)),
    }
    return {
        **{
            f"{label}, global seed": ask(after_seed, 1, call, call) for label, call in calls.items()
        },
        **{
            f"{label}, both seeds": ask(after_seed, 1, *[partial(call, seed=2)] * 2)
            for label, call in calls.items()
        },
        "both zero": ask(after_seed, 0, partial(calls["uniform"], seed=0)),
    }


def generators(tf, ask):
    make = tf.random.Generator
    starts = {
        "seed": lambda: make.from_seed(1234),
        "wide seed": lambda: make.from_seed(2**70 + 5),
        "negative seed": lambda: make.from_seed(-5),
        "vector seed": lambda: make.from_seed([7, 8]),
        "state": lambda: make.from_state([-1, -1, 7], "philox"),
        "key and counter": lambda: make.from_key_counter(2**64 - 1, [4, 5], "philox"),
        "copy": lambda: make(copy_from=make.from_seed(3)),
        "split": lambda: make.from_seed(3).split(2)[1],
        "reset": lambda: reset(make.from_seed(1)),
    }

    def reset(generator):
        generator.reset_from_seed(4)
        generator.reset([1, 2, 3])
        generator.reset_from_key_counter(5, [6, 7])
        return generator

    def drawn(start):
        generator = start()
        return [
            np.array(generator.state),
            generator.key,
            generator.algorithm,
            generator.uniform([5]),
            generator.uniform([2], 0, 10, tf.int32),
            generator.uniform([2], None, None, tf.int64),
            generator.normal([2, 3]),
            generator.truncated_normal([3], 1.0, 2.0),
            generator.uniform_full_int([2]),
            generator.make_seeds(2),
            generator.skip(3),
            np.array(generator.state),
        ]

    def compiled():
        generator = make.from_seed(6)
        step = tf.function(lambda: generator.uniform([3]))
        return [step(), step(), generator.uniform([3])]

    return {
        **{label: ask(drawn, start) for label, start in starts.items()},
        "in a function": ask(compiled),
        "create_rng_state": ask(tf.random.create_rng_state, [12, 34], "philox"),
    }


def generators_of_a_strategy(tf, ask):
    def drawn():
        strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
        with strategy.scope():
            generator = tf.random.Generator.from_seed(9)
        return [
            generator.uniform([2]),
            strategy.run(lambda: generator.uniform([2])),
            strategy.run(tf.function(lambda: generator.uniform([2]))),
            generator.uniform([2]),
        ]

    return {"": ask(drawn)}


def errors(tf, ask):
    draws = tf.random
    calls = {
        "a seed of one number": lambda: draws.stateless_uniform([2], 1),
        "a seed of three numbers": lambda: draws.stateless_uniform([2], (1, 2, 3)),
        "an integer without bounds": lambda: draws.stateless_uniform([2], (1, 2), dtype=tf.int32),
        "uint32 in bounds": lambda: draws.stateless_uniform([2], (1, 2), 0, 3, tf.uint32),
        "int8": lambda: draws.stateless_uniform([2], (1, 2), 0, 3, tf.int8),
        "bounds in reverse": lambda: draws.stateless_uniform([2], (1, 2), 3, 3, tf.int32),
        "normal integers": lambda: draws.stateless_normal([2], (1, 2), 0, 1, tf.int32),
        "logits of rank 1": lambda: draws.stateless_categorical([0.5, 0.5], 2, (1, 2)),
        "no classes": lambda: draws.stateless_categorical(np.zeros([2, 0]), 2, (1, 2)),
        "fewer than no samples": lambda: draws.stateless_categorical(LOGITS, -1, (1, 2)),
        "classes as floats": lambda: draws.stateless_categorical(LOGITS, 2, (1, 2), tf.float32),
        "unknown algorithm": lambda: draws.stateless_uniform([2], (1, 2), alg="mersenne"),
        "algorithm of another type": lambda: draws.stateless_uniform([2], (1, 2), alg=1.5),
        "a short state": lambda: draws.Generator.from_state([1, 2], "philox"),
        "a state without algorithm": lambda: draws.Generator(state=[1, 2, 3]),
        "shuffle of nothing": lambda: draws.experimental.stateless_shuffle(
            np.zeros([0, 2]), (1, 2)
        ),
    }
    return {label: ask(call) for label, call in calls.items()}
