"""Random operations in functions of a dataset: when their numbers come again, and when a position can be saved."""

import tempfile
import warnings

import numpy as np


def _quietly(ask):
    """Ask without warnings: functions that draw have one here."""

    def asked(function, *args):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ask(function, *args)

    return asked


def _numbers(dataset):
    return [np.asarray(x).tolist() for x in dataset]


def _facts(tf, build, global_seed):
    """Return which numbers are the same: in two passes, two iterators in turns, two rounds, two datasets."""
    tf.random.set_seed(global_seed)
    dataset = build(tf.data.Dataset.range(4))
    first, second = _numbers(dataset), _numbers(dataset)
    one, two = iter(dataset), iter(dataset)
    turns = [np.asarray(next(turn)).tolist() for turn in (one, two, one, two)]
    rounds = _numbers(dataset.repeat(2))
    tf.random.set_seed(None if global_seed is None else global_seed + 1)
    later = _numbers(dataset)
    tf.random.set_seed(global_seed)
    again = _numbers(build(tf.data.Dataset.range(4)))
    tf.random.set_seed(None)
    return {
        "a pass repeats the one before": first == second,
        "elements differ": len({str(x) for x in first}) == len(first),
        "iterators do not see each other": turns == [first[0], first[0], first[1], first[1]],
        "a round repeats the one before": rounds[: len(first)] == rounds[len(first) :],
        "rounds begin alike": rounds[: len(first)] == first,
        "a later global seed changes nothing": later == first,
        "the same program gives the same": again == first,
    }


def seeds(tf, ask):
    ask = _quietly(ask)
    dataset, uniform = tf.data.Dataset, tf.random.uniform

    def compiled(seed):
        @tf.function
        def draw(x):
            return uniform([], seed=seed)

        return draw

    builds = {
        "map": lambda seed: lambda d: d.map(lambda x: uniform([], seed=seed)),
        "normal": lambda seed: lambda d: d.map(lambda x: tf.random.normal([2], seed=seed)),
        "whole numbers": lambda seed: lambda d: d.map(
            lambda x: uniform([], 0, 2**30, tf.int32, seed=seed)
        ),
        "beside text": lambda seed: lambda d: dataset.from_tensor_slices(["a", "b", "c"]).map(
            lambda x: uniform([], seed=seed)
        ),
        "two maps": lambda seed: lambda d: d.map(lambda x: uniform([], seed=seed)).map(
            lambda x: (x, uniform([], seed=seed))
        ).map(lambda x, y: tf.stack([x, y])),
        "flat_map": lambda seed: lambda d: d.flat_map(
            lambda x: dataset.from_tensors(uniform([], seed=seed))
        ),
        "a map in flat_map": lambda seed: lambda d: d.flat_map(
            lambda x: dataset.range(2).map(lambda x: uniform([], seed=seed))
        ),
        "scan": lambda seed: lambda d: d.scan(
            np.float32(0), lambda s, x: (s, uniform([], seed=seed))
        ),
        "a compiled function": lambda seed: lambda d: d.map(compiled(seed)),
        "below a batch": lambda seed: lambda d: d.map(lambda x: uniform([], seed=seed)).batch(2),
    }  # fmt: skip
    asked = {"none": (None, None), "own": (3, None), "global": (None, 7), "both": (3, 7)}
    return {
        f"{label}, seed: {which}": ask(_facts, tf, build(own), whole)
        for label, build in builds.items()
        for which, (own, whole) in asked.items()
    }


def around(tf, ask):
    """What is drawn elsewhere, and what is not."""
    ask = _quietly(ask)
    dataset, uniform = tf.data.Dataset, tf.random.uniform

    def like_eager():
        tf.random.set_seed(7)
        eager = [float(uniform([], seed=1)) for _ in range(3)]
        tf.random.set_seed(7)
        mapped = _numbers(dataset.range(3).map(lambda x: uniform([], seed=1)))
        after = [float(uniform([], seed=1)) for _ in range(3)]
        tf.random.set_seed(None)
        return mapped == eager, after == eager

    def leaves_others_alone():
        tf.random.set_seed(7)
        first = _numbers(dataset.range(9).shuffle(9)), float(uniform([]))
        tf.random.set_seed(7)
        _numbers(dataset.range(9).map(lambda x: uniform([])))
        second = _numbers(dataset.range(9).shuffle(9)), float(uniform([]))
        tf.random.set_seed(None)
        return first == second

    def one_operation_twice():
        pairs = dataset.range(3).map(lambda x: tf.stack([uniform([], seed=3), uniform([], seed=3)]))
        return [float(a) == float(b) for a, b in pairs]

    def reduced():
        total = [
            float(dataset.range(3).reduce(np.float32(0), lambda s, x: s + uniform([], seed=3)))
            for _ in range(2)
        ]
        return total[0] == total[1]

    def filtered():
        kept = dataset.range(50).filter(lambda x: uniform([], seed=3) < 0.5)
        return _numbers(kept) == _numbers(kept)

    def shuffled_inside(seed, whole):
        tf.random.set_seed(whole)
        made = dataset.range(3).flat_map(lambda x: dataset.range(6).shuffle(6, seed=seed))
        first, second = _numbers(made), _numbers(made)
        tf.random.set_seed(None)
        return first == second, first[:6] == first[6:12]

    return {
        "the numbers of eager code": ask(like_eager),
        "other operations": ask(leaves_others_alone),
        "one operation twice": ask(one_operation_twice),
        "in reduce": ask(reduced),
        "in filter": ask(filtered),
        "a shuffle inside, own seed": ask(shuffled_inside, 3, None),
        "a shuffle inside, global seed": ask(shuffled_inside, None, 7),
        "a shuffle inside, no seed": ask(shuffled_inside, None, None),
    }


def _saved(tf, build, policy=None):
    """Save the position of an iterator, by the means of either library."""
    dataset = build()
    if policy is not None:
        options = tf.data.Options()
        options.experimental_external_state_policy = getattr(
            tf.data.experimental.ExternalStatePolicy, policy
        )
        dataset = dataset.with_options(options)
    iterator = iter(dataset)
    next(iterator)
    if hasattr(iterator, "get_state"):
        iterator.get_state()
    else:
        with tempfile.TemporaryDirectory() as folder:
            tf.train.Checkpoint(iterator=iterator).write(f"{folder}/state")
    return "saved"


def saving(tf, ask):
    ask = _quietly(ask)
    numbers, uniform = tf.data.Dataset.range(6), tf.random.uniform
    v, source = tf.Variable(0, dtype=tf.int64), iter(tf.data.Dataset.range(99))

    def drawn():
        return numbers.map(lambda x: uniform([]))

    def after_a_pass(dataset):
        _numbers(dataset)
        return _saved(tf, lambda: dataset)

    def kept(keep):
        with tempfile.TemporaryDirectory() as folder:
            return _saved(tf, lambda: keep(drawn(), folder))

    def kept_before(keep):
        with tempfile.TemporaryDirectory() as folder:
            return after_a_pass(keep(drawn(), folder))

    def generate():
        yield from range(6)

    @tf.function
    def counted(x):
        return v.assign_add(1) + x

    datasets = {
        "plain": lambda: numbers.map(lambda x: x + 1),
        "draws": drawn,
        "draws, own seed": lambda: numbers.map(lambda x: uniform([], seed=3)),
        "draws in threads": lambda: numbers.map(lambda x: uniform([]), num_parallel_calls=2),
        "draws, prefetched": lambda: drawn().prefetch(1),
        "draws in filter": lambda: numbers.filter(lambda x: uniform([]) < 2.0),
        "draws in take_while": lambda: numbers.take_while(lambda x: uniform([]) < 2.0),
        "draws in flat_map": lambda: numbers.flat_map(
            lambda x: tf.data.Dataset.from_tensors(uniform([]))
        ),
        "draws in a map in flat_map": lambda: numbers.flat_map(
            lambda x: tf.data.Dataset.range(2).map(lambda x: uniform([]))
        ),
        "draws in interleave": lambda: numbers.interleave(
            lambda x: tf.data.Dataset.from_tensors(uniform([]))
        ),
        "draws in scan": lambda: numbers.scan(np.float32(0), lambda s, x: (s, uniform([]))),
        "draws for keys": lambda: numbers.group_by_window(
            lambda x: uniform([], 0, 2, tf.int64), lambda key, group: group.batch(2), 2
        ),
        "draws in groups": lambda: numbers.group_by_window(
            lambda x: x % 2, lambda key, group: group.map(lambda x: uniform([])), 2
        ),
        "assigns": lambda: numbers.map(lambda x: v.assign_add(1)),
        "assigns in a compiled function": lambda: numbers.map(counted),
        "reads": lambda: numbers.map(lambda x: x + v),
        "pulls": lambda: numbers.map(lambda x: next(source)),
        "makes an iterator": lambda: numbers.map(lambda x: next(iter(tf.data.Dataset.range(9)))),
        "calls Python": lambda: numbers.map(lambda x: tf.numpy_function(lambda y: y, [x], tf.int64)),
        "a generator": lambda: tf.data.Dataset.from_generator(
            generate, output_signature=tf.TensorSpec([], tf.int64)
        ),
        "shuffled": lambda: numbers.shuffle(3),
        "shuffled inside": lambda: numbers.flat_map(lambda x: tf.data.Dataset.range(6).shuffle(3)),
        "resampled": lambda: numbers.rejection_resample(lambda x: tf.cast(x % 2, tf.int32), [0.5, 0.5]),
    }  # fmt: skip
    return {label: ask(_saved, tf, build) for label, build in datasets.items()} | {
        f"draws, {policy}": ask(_saved, tf, drawn, policy) for policy in ("FAIL", "WARN", "IGNORE")
    } | {
        "assigns, IGNORE": ask(_saved, tf, lambda: numbers.map(lambda x: v.assign_add(1)), "IGNORE"),
        "cached": ask(_saved, tf, lambda: drawn().cache()),
        "cached before": ask(lambda: after_a_pass(drawn().cache())),
        "cached in files": ask(kept, lambda d, folder: d.cache(f"{folder}/kept")),
        "cached in files before": ask(kept_before, lambda d, folder: d.cache(f"{folder}/kept")),
        "a snapshot": ask(kept, lambda d, folder: d.snapshot(folder)),
        "a snapshot before": ask(kept_before, lambda d, folder: d.snapshot(folder)),
    }  # fmt: skip
