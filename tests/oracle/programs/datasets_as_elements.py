"""Datasets and Optionals that are elements of datasets."""

import numpy as np


def _numbers(dataset):
    return [int(x) for x in dataset]


def _flat(dataset):
    return _numbers(dataset.flat_map(lambda inner: inner))


def sources(tf, ask):
    ds = tf.data.Dataset
    one, two, three = ds.range(1), ds.range(2), ds.range(3)
    spec = tf.data.DatasetSpec(tf.TensorSpec([], tf.int64))

    def generated(values, signature=spec):
        return ds.from_generator(lambda: iter(values), output_signature=signature)

    made = {
        "from_tensors": lambda: ds.from_tensors(three),
        "from_tensor_slices": lambda: ds.from_tensor_slices([two, three, one]),
        "from_generator": lambda: generated([two, three]),
        "window": lambda: ds.range(5).window(2),
    }
    facts = {}
    for name, make in made.items():
        facts[f"{name} spec"] = ask(lambda make=make: make().element_spec)
        facts[f"{name} size"] = ask(lambda make=make: int(make().cardinality()))
        facts[f"{name} elements"] = ask(lambda make=make: [_numbers(inner) for inner in make()])
    return facts | {
        "in a tuple": ask(lambda: ds.from_tensors((three, 5)).element_spec),
        "in a dict": ask(
            lambda: ds.from_tensor_slices({"a": [one, two], "b": [1, 2]}).element_spec
        ),
        "of unlike lengths": ask(lambda: ds.from_tensor_slices(([one, two], [1, 2, 3]))),
        "of unlike dtypes": ask(lambda: ds.from_tensor_slices([one, ds.from_tensors(1.0)])),
        "of unlike shapes": ask(
            lambda: (
                ds.from_tensor_slices([ds.from_tensors([1]), ds.from_tensors([1, 2])]).element_spec
            )
        ),
        "a dataset cut into slices": ask(lambda: ds.from_tensor_slices(three)),
        "a number from a generator": ask(lambda: list(generated([5]))),
        "floats from a generator": ask(lambda: list(generated([ds.from_tensors(1.5)]))),
        "in a tuple from a generator": ask(
            lambda: [
                (int(n), _numbers(d))
                for n, d in generated([(7, two)], (tf.TensorSpec([], tf.int32), spec))
            ]
        ),
    }


def transformations(tf, ask):
    ds = tf.data.Dataset

    def inner():
        return ds.from_tensor_slices([ds.range(2), ds.range(3), ds.range(1)])

    def size(dataset):
        return dataset.cardinality()

    return {
        "flat_map": ask(lambda: _flat(inner())),
        "interleave": ask(lambda: _numbers(inner().interleave(lambda d: d, cycle_length=3))),
        "map to numbers": ask(lambda: _numbers(inner().map(size))),
        "map by reduce": ask(
            lambda: _numbers(inner().map(lambda d: d.reduce(np.int64(0), lambda a, b: a + b)))
        ),
        "filter": ask(lambda: _flat(inner().filter(lambda d: size(d) > 1))),
        "take_while": ask(lambda: _flat(inner().take_while(lambda d: size(d) != 1))),
        "reduce": ask(lambda: int(inner().reduce(np.int64(0), lambda s, d: s + size(d)))),
        "scan": ask(lambda: _numbers(inner().scan(np.int64(0), lambda s, d: (s + size(d), s)))),
        "group_by_window": ask(
            lambda: _numbers(
                inner().group_by_window(
                    lambda d: size(d) % 2,
                    lambda _, group: group.flat_map(lambda d: d),
                    window_size=2,
                )
            )
        ),
        "zip": ask(
            lambda: _numbers(
                ds.zip((inner(), ds.range(3))).flat_map(lambda d, n: d.map(lambda x: x + 10 * n))
            )
        ),
        "enumerate": ask(
            lambda: _numbers(inner().enumerate().flat_map(lambda n, d: d.map(lambda x: x + 10 * n)))
        ),
        "concatenate": ask(lambda: _flat(inner().concatenate(inner()))),
        "take, skip, shard, repeat": ask(
            lambda: _flat(inner().skip(1).repeat(2).shard(2, 0).take(2))
        ),
        "cache and prefetch": ask(lambda: _flat(inner().cache().repeat(2).prefetch(1))),
        "choose": ask(lambda: _flat(ds.choose_from_datasets([inner(), inner()], ds.range(2)))),
        "shuffle": ask(lambda: sorted(_flat(inner().shuffle(3)))),
        "window": ask(lambda: _flat(inner().window(2).flat_map(lambda w: w))),
        "window spec": ask(lambda: inner().window(2).element_spec),
        "get_single_element": ask(
            lambda: _numbers(ds.from_tensors(ds.range(3)).get_single_element())
        ),
        "as_numpy_iterator": ask(lambda: list(inner().as_numpy_iterator())),
        "padded_batch": ask(lambda: inner().padded_batch(2)),
        "unique": ask(lambda: list(inner().unique())),
    }


def maps(tf, ask):
    ds, optional = tf.data.Dataset, tf.experimental.Optional
    numbers = ds.range(4)

    def counts():
        return numbers.map(ds.range)

    def pairs():
        return numbers.map(lambda x: (x, {"d": ds.from_tensors(x).repeat(2)}))

    return {
        "spec": ask(lambda: counts().element_spec),
        "size": ask(lambda: int(counts().cardinality())),
        "elements": ask(lambda: [_numbers(d) for d in counts()]),
        "flat": ask(lambda: _flat(counts())),
        "twice": ask(lambda: _flat(counts().map(lambda d: d.map(lambda x: x + 1)))),
        "in a structure": ask(lambda: pairs().element_spec),
        "in a structure, flat": ask(lambda: _numbers(pairs().flat_map(lambda x, y: y["d"]))),
        "parallel": ask(lambda: _flat(numbers.map(ds.range, num_parallel_calls=2))),
        "batches": ask(lambda: _flat(counts().batch(3).map(lambda x: x).unbatch())),
        "of nothing": ask(lambda: ds.range(0).map(ds.range).element_spec),
        "a dataset from outside": ask(lambda: _flat(ds.range(2).map(lambda _: numbers))),
        "slices": ask(
            lambda: list(
                ds.from_tensors([1.5, 2.5]).map(ds.from_tensor_slices).flat_map(lambda d: d)
            )
        ),
        "windows of windows": ask(
            lambda: _flat(ds.range(8).window(4).map(lambda w: w.window(2)).flat_map(lambda w: w))
        ),
        "a generator": ask(
            lambda: _flat(
                numbers.map(
                    lambda x: ds.from_generator(
                        lambda n: iter(range(n)),
                        args=(x,),
                        output_signature=tf.TensorSpec([], tf.int64),
                    )
                )
            )
        ),
        "scan": ask(
            lambda: _flat(numbers.scan(np.int64(0), lambda s, x: (s + x, ds.range(s + x))))
        ),
        "Optionals": ask(
            lambda: _numbers(numbers.map(optional.from_value).map(lambda x: x.get_value()))
        ),
        "Optionals' spec": ask(
            lambda: numbers.map(lambda x: optional.from_value((x, 1.5))).element_spec
        ),
        "empty Optionals": ask(
            lambda: [
                bool(x.has_value())
                for x in numbers.map(lambda _: optional.empty(tf.TensorSpec([], tf.float32)))
            ]
        ),
        "a look into windows": ask(
            lambda: list(
                numbers.window(2).flat_map(
                    lambda w: ds.from_tensors(w.batch(2).get_single_element())
                )
            )
        ),
    }


def batches(tf, ask):
    ds = tf.data.Dataset

    def inner():
        return ds.from_tensor_slices([ds.range(2), ds.range(3), ds.range(1)])

    return {
        "spec": ask(lambda: inner().batch(2).element_spec),
        "spec of full ones": ask(lambda: inner().batch(2, drop_remainder=True).element_spec),
        "size": ask(lambda: int(inner().batch(2).cardinality())),
        "unbatch": ask(lambda: _flat(inner().batch(2).unbatch())),
        "unbatch spec": ask(lambda: inner().batch(2).unbatch().element_spec),
        "map between": ask(lambda: _flat(inner().batch(2).map(lambda x: x).unbatch())),
        "beside numbers": ask(
            lambda: _numbers(
                ds.zip((inner(), ds.range(3)))
                .batch(2)
                .unbatch()
                .flat_map(lambda d, n: d.map(lambda x: x + 10 * n))
            )
        ),
        "of batches": ask(lambda: _flat(inner().repeat(2).batch(3).batch(2).unbatch().unbatch())),
        "of batches of unlike lengths": ask(lambda: list(inner().batch(2).batch(2))),
        "rebatch": ask(lambda: _flat(inner().batch(3).rebatch(2).unbatch())),
        "rebatch spec": ask(lambda: inner().batch(3).rebatch(2).element_spec),
    }


def optionals(tf, ask):
    ds, optional = tf.data.Dataset, tf.experimental.Optional
    there = optional.from_value((1, 2.5))
    empty = optional.empty(tf.TensorSpec([], tf.float32))
    spec = tf.OptionalSpec(tf.TensorSpec([], tf.int32))

    def generated():
        return ds.from_generator(lambda: iter([optional.from_value(4)]), output_signature=spec)

    return {
        "spec": ask(lambda: ds.from_tensors(there).element_spec),
        "values": ask(lambda: [x.get_value() for x in ds.from_tensors(there).repeat(2)]),
        "map": ask(lambda: list(ds.from_tensors(there).map(lambda x: x.get_value()))),
        "flat_map": ask(
            lambda: list(
                ds.from_tensors(optional.from_value([1, 2])).flat_map(
                    lambda x: ds.from_tensor_slices(x.get_value())
                )
            )
        ),
        "filter": ask(lambda: list(ds.from_tensors(empty).filter(lambda x: x.has_value()))),
        "empty": ask(lambda: [bool(x.has_value()) for x in ds.from_tensors(empty)]),
        "in a tuple": ask(lambda: [(x.get_value(), n) for x, n in ds.from_tensors((there, 3))]),
        "from_generator": ask(lambda: [x.get_value() for x in generated()]),
        "cache": ask(lambda: [x.get_value() for x in generated().cache().repeat(2)]),
        "as_numpy_iterator": ask(lambda: list(generated().as_numpy_iterator())),
        "padded_batch": ask(lambda: generated().padded_batch(2)),
    }


def made_with_values(tf, ask):
    """Datasets whose arguments and shapes hang on the values of elements."""
    ds = tf.data.Dataset

    def zeros(n):
        return tf.zeros([n], tf.int64)

    def rows(n):
        return ds.range(3).map(zeros).padded_batch(n)

    functions = {
        "batch": lambda n: ds.range(4).batch(n),
        "batch, full": lambda n: ds.range(4).batch(n, drop_remainder=True),
        "batch of fewer": lambda n: ds.range(4).batch(n + 1),
        "range with a step": lambda n: ds.range(0, 6, n),
        "shard": lambda n: ds.range(6).shard(n, 0),
        "window": lambda n: ds.range(4).window(n).flat_map(lambda window: window.batch(9)),
        "shuffle": lambda n: ds.range(4).shuffle(n).map(lambda x: x * 0),
        "rebatch": lambda n: ds.range(4).batch(2).rebatch(n),
        "padded_batch": rows,
        "padded shapes": lambda n: (
            ds.range(2).map(zeros).padded_batch(2, tf.convert_to_tensor([n + 1]))
        ),
        "shape": lambda n: ds.from_tensors((zeros(n), n)),
        "two shapes": lambda n: ds.from_tensors(tf.zeros([n, n + 1])),
        "slices": lambda n: ds.from_tensor_slices(tf.zeros([2, n])),
    }
    facts = {}
    for name, make in functions.items():
        ways = {
            "flat_map": lambda make=make: ds.range(1, 4).flat_map(make),
            "interleave": lambda make=make: ds.range(1, 4).interleave(make, cycle_length=2),
            "map": lambda make=make: ds.range(1, 4).map(make).flat_map(lambda made: made),
            "group_by_window": lambda make=make: ds.range(1, 4).group_by_window(
                lambda x: x, lambda key, _: make(key), 1
            ),
            "of nothing": lambda make=make: ds.range(0).flat_map(make),
        }
        for way, dataset in ways.items():
            facts[f"{name} in {way}"] = ask(lambda dataset=dataset: list(dataset()))
            facts[f"{name} in {way}, spec"] = ask(lambda dataset=dataset: dataset().element_spec)
    facts["far from 0"] = ask(
        lambda: list(ds.range(6, 8).flat_map(lambda n: ds.range(4).batch(n - 5)))
    )
    facts["get_single_element"] = ask(
        lambda: list(ds.range(1, 3).map(lambda n: ds.range(n, n + 1).get_single_element()))
    )
    facts["get_single_element of none"] = ask(
        lambda: list(ds.range(3).map(lambda n: ds.range(n).get_single_element()).ignore_errors())
    )
    return facts


def of_other_structures(tf, ask):
    """Datasets whose elements have other names or another nesting at a later element."""
    ds = tf.data.Dataset
    others = {
        "another name": lambda x: {"b": x},
        "a dict in a dict": lambda x: {"a": {"b": x}},
        "a tuple": lambda x: (x,),
        "a tensor": lambda x: x,
    }
    facts = {}
    for name, other in others.items():

        def make(n, other=other):
            if n == 4:
                return ds.from_tensors(n).map(other)
            return ds.from_tensors(n).map(lambda x: {"a": x})

        ways = {
            "flat_map": lambda make=make: ds.range(6).flat_map(make),
            "interleave": lambda make=make: ds.range(6).interleave(make),
            "group_by_window": lambda make=make: ds.range(6).group_by_window(
                lambda x: x, lambda key, _: make(key), 1
            ),
        }
        for way, dataset in ways.items():
            facts[f"{name} in {way}"] = ask(lambda dataset=dataset: list(dataset()))
    return facts
