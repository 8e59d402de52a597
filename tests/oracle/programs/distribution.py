"""Distribution over replicas: who gets which rows, and what the library says about them."""

import numpy as np

REPLICAS = (1, 2, 3, 4)
MOST = 6  # enough steps to see how an endless dataset goes on


def _strategy(tf, replicas):
    return tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(replicas)])


def _facts(tf, ask, make):
    return {
        f"{replicas}: {fact}": answer
        for replicas in REPLICAS
        for fact, answer in _on(_strategy(tf, replicas), ask, make).items()
    }


def _on(strategy, ask, make):
    distributed = ask(lambda: strategy.experimental_distribute_dataset(make()))
    return {
        "made": ask(lambda: strategy.experimental_distribute_dataset(make()) is not None),
        "element_spec": ask(lambda: distributed.element_spec),
        "cardinality": ask(lambda: int(distributed.cardinality)),
        "steps": ask(lambda: _steps(strategy, distributed)),
    }


def _steps(strategy, distributed):
    local = strategy.experimental_local_results
    return [local(element) for _, element in zip(range(MOST), distributed, strict=False)]


def numbers(tf, ask):
    data = tf.data.Dataset
    return {
        f"{label} on {key}": answer
        for label, make in {
            "even": lambda: data.range(24).batch(12),
            "uneven": lambda: data.range(20).batch(10),
            "partial": lambda: data.range(16).batch(12),
            "even dropped": lambda: data.range(24).batch(12, drop_remainder=True),
            "uneven dropped": lambda: data.range(20).batch(10, drop_remainder=True),
            "even dropped twice": lambda: data.range(24).batch(12, drop_remainder=True).repeat(2),
            "partial dropped": lambda: data.range(16).batch(12, drop_remainder=True),
            "one row left": lambda: data.range(13).batch(12),
            "fewer rows than replicas": lambda: data.range(3).batch(8),
            "one row": lambda: data.range(1).batch(4),
            "batches of one": lambda: data.range(3).batch(1),
            "batches of one dropped": lambda: data.range(3).batch(1, drop_remainder=True),
            "empty": lambda: data.range(0).batch(4),
            "batches of batches": lambda: data.range(16).batch(2).batch(4),
            "endless": lambda: data.range(5).repeat().batch(4),
            "endless dropped": lambda: data.range(5).repeat().batch(12, drop_remainder=True),
            "endless dropped uneven": lambda: data.range(5).repeat().batch(7, drop_remainder=True),
            "batched then endless": lambda: data.range(5).batch(4).repeat(),
            "batched, dropped, endless": lambda: data.range(5).batch(4, True).repeat(),
        }.items()
        for key, answer in _facts(tf, ask, make).items()
    }


def structures(tf, ask):
    slices = tf.data.Dataset.from_tensor_slices
    return {
        f"{label} on {key}": answer
        for label, make in {
            "tuple": lambda: slices(([1, 2, 3, 4, 5], [1.5, 2.5, 3.5, 4.5, 5.5])).batch(4),
            "dict": lambda: slices({"b": [1, 2, 3, 4], "a": [5, 6, 7, 8]}).batch(4),
            "nested": lambda: slices({"x": ([1, 2, 3], {"y": [4, 5, 6]})}).batch(2),
            "rows": lambda: slices(np.arange(12, dtype=np.float32).reshape(6, 2)).batch(4),
            "texts": lambda: slices(list("abcdefg")).batch(4),
            "text and numbers": lambda: slices((list("abcd"), [1, 2, 3, 4])).batch(4),
            "bools": lambda: slices([True, False, True]).batch(3),
            "None part": lambda: slices(([1, 2, 3, 4], None)).batch(4),
            "empty rows": lambda: slices(np.zeros((4, 0), np.float32)).batch(4),
            "uint8": lambda: slices(np.arange(5, dtype=np.uint8)).batch(5),
        }.items()
        for key, answer in _facts(tf, ask, make).items()
    }


def unbatched(tf, ask):
    data = tf.data.Dataset
    return {
        f"{label} on {key}": answer
        for label, make in {
            "scalars": lambda: data.range(4),
            "vectors": lambda: data.from_tensors([1, 2, 3, 4]),
            "vectors that do not divide": lambda: data.from_tensors([1, 2, 3, 4, 5]),
            "endless vectors": lambda: data.from_tensors([1, 2, 3, 4]).repeat(),
            "rows": lambda: data.from_tensor_slices(np.arange(8, dtype=np.int32).reshape(2, 4)),
        }.items()
        for key, answer in _facts(tf, ask, make).items()
    }


def printed(tf, ask):
    slices = tf.data.Dataset.from_tensor_slices
    elements = {
        "ints": [1, 2, 3, 4],
        "int64": np.arange(5),
        "floats": [1.5, 2.25, 3.0],
        "rows": np.arange(8, dtype=np.int32).reshape(4, 2),
        "bools": [True, False, True],
        "texts": ["a", "b", "c"],
        "one": [7],
        "many": np.arange(3000, dtype=np.int32),
        "small floats": np.array([1e-7, 1.0, 123456.789], np.float32),
        "NaN": np.array([np.nan, np.inf], np.float32),
    }
    strategy = _strategy(tf, 2)

    def text(value):
        dataset = slices(value).batch(len(value))
        return str(next(iter(strategy.experimental_distribute_dataset(dataset))))

    context = tf.distribute.InputContext(3, 1, 6)
    answers = {label: ask(text, value) for label, value in elements.items()}
    return {**answers, "input context": ask(str, context)}


def per_replica(tf, ask):
    strategy = _strategy(tf, 2)
    dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(4))
    value = next(iter(dataset))
    local = strategy.experimental_local_results
    return {
        "values": value.values,
        "spec": tf.type_spec_from_value(value),
        "local results": local(value),
        "local results of a structure": local((value, {"a": value})),
        "local results of a number": local(3),
        "local results of a list": local([1, 2]),
        "local results of None": ask(local, None),
        "isinstance DistributedValues": isinstance(value, tf.distribute.DistributedValues),
        "len": ask(len, value),
        "item": ask(lambda: value[0]),
    }


def iterators(tf, ask):
    strategy = _strategy(tf, 2)
    dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(6).batch(4))
    iterator = iter(dataset)
    local = strategy.experimental_local_results
    return {
        "first": ask(lambda: local(next(iterator))),
        "get_next": ask(lambda: local(iterator.get_next())),
        "get_next after the end": ask(iterator.get_next),
        "next after the end": ask(next, iterator),
        "optional": ask(lambda: local(iter(dataset).get_next_as_optional().get_value())),
        "optional after the end": ask(lambda: bool(iterator.get_next_as_optional().has_value())),
        "element_spec": iterator.element_spec,
        "again from the first": ask(lambda: local(next(iter(dataset)))),
        "next of the dataset": ask(next, dataset),
        "len of the dataset": ask(len, dataset),
        "map on the dataset": ask(lambda: dataset.map(abs)),
        "optional spec": ask(lambda: iter(dataset).get_next_as_optional().element_spec),
    }


def strategies(tf, ask):
    make = tf.distribute.MirroredStrategy
    return {
        "replicas": ask(lambda: make(["CPU:0", "CPU:1", "CPU:2"]).num_replicas_in_sync),
        "other spellings": ask(lambda: make(["cpu:0", "/cpu:1"]).num_replicas_in_sync),
        "full names": ask(
            lambda: make(["/job:localhost/replica:0/task:0/device:CPU:1"]).num_replicas_in_sync
        ),
        "duplicates": ask(make, ["CPU:0", "CPU:0"]),
        "no such kind": ask(make, ["GPX:0"]),
        "one name as text": ask(make, "CPU:0"),
        "distribute a list": ask(
            lambda: make(["CPU:0", "CPU:1"]).experimental_distribute_dataset([1, 2])
        ),
    }
