"""What becomes of the replicas' parts: reduce, gather, local results, and values made by a function."""

import itertools

import numpy as np

AXES = {"None": None, "0": 0, "1": 1, "-1": -1, "(0, 1)": (0, 1), "(0, -1)": (0, -1), "[0]": [0]}


def _strategy(tf, replicas=2):
    return tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(replicas)])


def _parts(tf, strategy, values, dtype=None):
    made = [tf.constant(value, dtype) for value in values]
    return strategy.experimental_distribute_values_from_function(
        lambda context: made[context.replica_id_in_sync_group]
    )


def _asked(ask):
    """Return an `ask` whose answers show the parts of values."""

    def asked(function, *args, **kwargs):
        answer = ask(function, *args, **kwargs)
        return _opened(answer)

    return asked


def _opened(value):
    if isinstance(value, dict):
        return {key: _opened(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(map(_opened, value))
    return list(value.values) if type(value).__name__ in ("PerReplica", "Mirrored") else value


def _given(strategy, values):
    return strategy.experimental_distribute_values_from_function(
        lambda context: values[context.replica_id_in_sync_group]
    )


def axes(tf, ask):
    ask = _asked(ask)
    answers = {}
    for replicas in (2, 3):
        strategy = _strategy(tf, replicas)
        rows = np.arange(replicas * 6, dtype=np.float32).reshape(replicas, 2, 3)
        value = _parts(tf, strategy, list(rows))
        for op, (label, axis) in itertools.product(("SUM", "MEAN"), AXES.items()):
            answers[f"{op} {label} on {replicas}"] = ask(strategy.reduce, op, value, axis=axis)
    strategy = _strategy(tf)
    value = _parts(tf, strategy, [[1.0, 2.0], [3.0, 4.0]])
    for op in ("SUM", "MEAN"):
        answers |= {
            f"{op} axis 1 of vectors": ask(strategy.reduce, op, value, axis=1),
            f"{op} axis -2 of vectors": ask(strategy.reduce, op, value, axis=-2),
            f"{op} axis of text": ask(strategy.reduce, op, value, axis="a"),
            f"{op} axis 0.5": ask(strategy.reduce, op, value, axis=0.5),
            f"{op} axis ()": ask(strategy.reduce, op, value, axis=()),
            f"{op} axis of a tensor": ask(strategy.reduce, op, value, axis=tf.constant(0)),
            f"{op} the same axis twice": ask(strategy.reduce, op, value, axis=(0, 0)),
            f"{op} axis 0 of scalars": ask(
                strategy.reduce, op, _parts(tf, strategy, [1.0, 2.0]), axis=0
            ),
        }
    return answers


def dtypes(tf, ask):
    ask = _asked(ask)
    strategy = _strategy(tf)
    kinds = [
        "bool",
        "int8",
        "uint8",
        "int32",
        "uint32",
        "int64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ]
    answers = {}
    for name, op, axis in itertools.product(kinds, ("SUM", "MEAN"), (None, 0)):

        def reduced(name=name, op=op, axis=axis):
            dtype = getattr(tf, name)
            parts = [tf.cast(tf.constant(row), dtype) for row in ([1, 2], [4, 0])]
            return strategy.reduce(op, _given(strategy, parts), axis=axis)

        answers[f"{op} {axis} of {name}"] = ask(reduced)
    return answers


def uneven(tf, ask):
    ask = _asked(ask)
    strategy = _strategy(tf, 3)
    cases = {
        "lengths": [[1.0, 2.0, 3.0], [4.0], [5.0, 6.0]],
        "an empty part": [[1.0, 2.0], [], [6.0]],
        "all empty": [[], [], []],
    }
    answers = {}
    for (label, values), op in itertools.product(cases.items(), ("SUM", "MEAN")):
        value = _parts(tf, strategy, values, tf.float32)
        answers[f"{op} 0 of {label}"] = ask(strategy.reduce, op, value, axis=0)
        answers[f"{op} None of {label}"] = ask(strategy.reduce, op, value, axis=None)
    rows = [
        np.ones((2, 2), np.float32),
        4 * np.ones((1, 2), np.float32),
        np.zeros((0, 2), np.float32),
    ]
    value = _parts(tf, strategy, rows)
    for op, axis in itertools.product(("SUM", "MEAN"), (0, 1, (0, 1), -1)):
        answers[f"{op} {axis} of rows"] = ask(strategy.reduce, op, value, axis=axis)
    whole = _parts(tf, strategy, [[1, 2, 3], [4], [5, 6]])
    answers["MEAN 0 of whole numbers"] = ask(strategy.reduce, "MEAN", whole, axis=0)
    return answers


def other_values(tf, ask):
    ask = _asked(ask)
    strategy = _strategy(tf)
    plain = {
        "a tensor": tf.constant([1.0, 3.0]),
        "a number": 2.0,
        "an int": 3,
        "a list": [1.0, 3.0],
        "an array": np.float32([1, 3]),
        "a nest of tensors": {"a": tf.constant([1.0, 3.0])},
        "a tuple of values": (
            _parts(tf, strategy, [1.0, 2.0]),
            _parts(tf, strategy, [3.0, 5.0]),
        ),
        "a dict of vectors": {"a": _parts(tf, strategy, [[1.0, 2.0], [3.0, 4.0]])},
        "None": None,
        "text": "a",
        "parts that are numbers": _given(strategy, [1.0, 2.0]),
        "parts that are ints": _given(strategy, [1, 2]),
        "parts that are lists": _given(strategy, [[1.0, 2.0], [3.0, 4.0]]),
        "parts that are arrays": _given(strategy, [np.float32([1, 2]), np.float32([3, 4])]),
        "parts that are text": _given(strategy, ["a", "b"]),
        "parts that are None": _given(strategy, [None, None]),
        "parts of two dtypes": _given(strategy, [tf.constant(1.0), tf.constant(2)]),
    }
    return {
        f"{op} {axis} of {label}": ask(strategy.reduce, op, value, axis=axis)
        for (label, value), op, axis in itertools.product(plain.items(), ("SUM", "MEAN"), (None, 0))
    }


def on_one(tf, ask):
    ask = _asked(ask)
    answers = {}
    for label, strategy in {
        "mirrored": _strategy(tf, 1),
        "one device": tf.distribute.OneDeviceStrategy("CPU:0"),
        "default": tf.distribute.get_strategy(),
    }.items():
        values = {
            "a tensor": tf.constant([1.0, 3.0]),
            "ints": tf.constant([1, 2]),
            "a number": 2.0,
            "an int": 3,
            "a list": [1.0, 3.0],
            "a nest": {"a": tf.constant([1.0, 3.0])},
            "nothing": tf.constant([]),
        }
        for (what, value), op, axis in itertools.product(
            values.items(), ("SUM", "MEAN"), (None, 0)
        ):
            answers[f"{label}: {op} {axis} of {what}"] = ask(strategy.reduce, op, value, axis=axis)
        answers |= {
            f"{label}: gather": ask(strategy.gather, tf.constant([1, 2]), axis=0),
            f"{label}: gather a scalar": ask(strategy.gather, tf.constant(1), axis=0),
            f"{label}: local results": ask(strategy.experimental_local_results, tf.constant(1)),
            f"{label}: local results of a nest": ask(
                strategy.experimental_local_results, {"a": tf.constant(1)}
            ),
            f"{label}: values": ask(
                lambda strategy=strategy: strategy.experimental_distribute_values_from_function(
                    lambda context: tf.constant(
                        [context.replica_id_in_sync_group, context.num_replicas_in_sync]
                    )
                )
            ),
            f"{label}: values of numbers": ask(
                lambda strategy=strategy: strategy.experimental_distribute_values_from_function(
                    lambda context: 3
                )
            ),
        }
    return answers


def gathered(tf, ask):
    ask = _asked(ask)

    def joined(values, axis, dtype=None):
        # A collective that fails breaks TensorFlow's later ones: those questions come last.
        strategy = _strategy(tf)
        return strategy.gather(_parts(tf, strategy, values, dtype), axis)

    def nest():
        strategy = _strategy(tf)
        return strategy.gather({"a": _parts(tf, strategy, [[1], [2]])}, axis=0)

    def arrays():
        strategy = _strategy(tf)
        return strategy.gather(_given(strategy, [np.int32([1]), np.int32([2])]), axis=0)

    def in_function(values):
        strategy = _strategy(tf)
        return tf.function(lambda x: strategy.gather(x, axis=0))(_parts(tf, strategy, values))

    rows = [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    return {
        "axis 0": ask(joined, rows, 0),
        "axis 1": ask(joined, rows, 1),
        "axis -1": ask(joined, rows, -1),
        "axis by name": ask(lambda: _strategy(tf).gather(tf.constant([1]), axis=0)),
        "axis None": ask(joined, rows, None),
        "scalars": ask(joined, [1.0, 2.0], 0),
        "text": ask(joined, [["a"], ["b", "c"]], 0),
        "bools": ask(joined, [[True], [False]], 0),
        "bfloat16": ask(joined, [[1], [2]], 0, tf.bfloat16),
        "a tensor": ask(lambda: _strategy(tf).gather(tf.constant([1, 2]), axis=0)),
        "arrays": ask(arrays),
        "in a function": ask(in_function, rows),
        "axis 2": ask(joined, rows, 2),
        "other dimensions": ask(joined, [[[1.0], [2.0]], [[3.0]]], 1),
        "other ranks": ask(joined, [[[1.0]], [2.0]], 0),
        "a nest": ask(nest),
    }


def compiled(tf, ask):
    ask = _asked(ask)
    strategy = _strategy(tf)
    value = _parts(tf, strategy, [[1.0, 2.0], [3.0, 5.0]])
    lengths = _parts(tf, strategy, [[1.0, 2.0, 3.0], [4.0]])
    scalars = _parts(tf, strategy, [1.0, 2.0])
    ints = _parts(tf, strategy, [[1, 2], [3, 5]])
    answers = {}
    for op, axis in itertools.product(("SUM", "MEAN"), (None, 0, -1)):

        @tf.function
        def step(x, op=op, axis=axis):
            return strategy.reduce(op, x, axis=axis)

        @tf.function
        def computed(x, op=op, axis=axis):
            return strategy.reduce(op, strategy.run(lambda y: y * 2, args=(x,)), axis=axis)

        for label, given in {
            "vectors": value,
            "ints": ints,
            "uneven": lengths,
            "scalars": scalars,
        }.items():
            answers[f"{op} {axis} of {label}"] = ask(step, given)
            if label != "uneven":
                answers[f"{op} {axis} of {label} from run"] = ask(computed, given)
    answers["a number"] = ask(tf.function(lambda: strategy.reduce("MEAN", 2.0, axis=None)))
    answers["a tensor's sum"] = ask(
        tf.function(lambda: strategy.reduce("SUM", tf.constant(2.0), axis=None))
    )
    return answers


def local_results(tf, ask):
    ask = _asked(ask)
    strategy = _strategy(tf)
    local = strategy.experimental_local_results
    value = _parts(tf, strategy, [1.0, 2.0])
    return {
        "a value": ask(local, value),
        "a tensor": ask(local, tf.constant(1.0)),
        "None": ask(local, None),
        "text": ask(local, "a"),
        "a list": ask(local, [value, 3]),
        "a tuple": ask(local, (value, value)),
        "a dict": ask(local, {"a": value}),
        "an empty list": ask(local, []),
        "a list of tensors": ask(local, [tf.constant(1), tf.constant(2)]),
    }


def values_from_function(tf, ask):
    ask = _asked(ask)
    strategy = _strategy(tf)
    local = strategy.experimental_local_results

    def made(function):
        return local(strategy.experimental_distribute_values_from_function(function))

    def seen():
        contexts = []
        strategy.experimental_distribute_values_from_function(
            lambda context: contexts.append(
                [context.replica_id_in_sync_group, context.num_replicas_in_sync]
            )
        )
        return contexts

    def in_scope():
        with strategy.scope():
            return made(lambda context: context.replica_id_in_sync_group)

    return {
        "contexts": ask(seen),
        "numbers": ask(made, lambda c: c.replica_id_in_sync_group),
        "floats": ask(made, lambda c: c.replica_id_in_sync_group * 1.5),
        "text": ask(made, lambda c: "ab"[c.replica_id_in_sync_group]),
        "text tensors": ask(made, lambda c: tf.constant("ab"[c.replica_id_in_sync_group])),
        "None": ask(made, lambda c: None),
        "arrays": ask(made, lambda c: np.full(2, c.replica_id_in_sync_group)),
        "lists": ask(made, lambda c: [c.replica_id_in_sync_group, 1]),
        "dicts": ask(made, lambda c: {"a": tf.constant(c.replica_id_in_sync_group), "b": 1}),
        "other lengths": ask(made, lambda c: tf.zeros([c.replica_id_in_sync_group])),
        "other structures": ask(made, lambda c: [1] * (c.replica_id_in_sync_group + 1)),
        "the same for all": ask(made, lambda c: 7),
        "in scope": ask(in_scope),
        "no function": ask(made, 3),
        "a function without arguments": ask(made, lambda: 3),
        "an error": ask(made, lambda c: 1 // 0),
        "in run": ask(lambda: strategy.run(lambda: made(lambda c: 1))),
        "repr": ask(
            lambda: repr(
                strategy.experimental_distribute_values_from_function(
                    lambda c: tf.constant(c.replica_id_in_sync_group)
                )
            )
        ),
        "in a function": ask(
            tf.function(lambda: made(lambda c: tf.constant(c.replica_id_in_sync_group)))
        ),
    }


def operations(tf, ask):
    ask = _asked(ask)
    strategy = _strategy(tf)
    value = _parts(tf, strategy, [1.0, 2.0])
    kinds, wanted = tf.distribute.ReduceOp, tf.VariableAggregation
    return {
        **{
            name: ask(strategy.reduce, name, value, axis=None)
            for name in ("SUM", "sum", "Mean", "MAX", "", "s")
        },
        "None": ask(strategy.reduce, None, value, axis=None),
        "a number": ask(strategy.reduce, 1, value, axis=None),
        "no axis": ask(strategy.reduce, "SUM", value),
        "members": sorted(kind.name for kind in kinds),
        "values": sorted(str(kind.value) for kind in kinds),
        **{
            f"of {aggregation.name}": ask(
                lambda aggregation=aggregation: kinds.from_variable_aggregation(aggregation).name
            )
            for aggregation in (wanted.NONE, wanted.SUM, wanted.MEAN, wanted.ONLY_FIRST_REPLICA)
        },
        "in run": ask(lambda: strategy.run(lambda: strategy.reduce("SUM", 1.0, axis=None))),
        "gather in run": ask(lambda: strategy.run(lambda: strategy.gather([1.0], axis=0))),
        "aggregation members": [a.name for a in (wanted.NONE, wanted.SUM, wanted.MEAN)],
        "synchronization values": [
            getattr(tf.VariableSynchronization, name).value
            for name in ("AUTO", "NONE", "ON_WRITE", "ON_READ")
        ],
        "aggregation values": [
            getattr(wanted, name).value for name in ("NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA")
        ],
    }
