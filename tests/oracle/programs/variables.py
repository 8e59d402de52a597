"""Variables outside of strategies: how they are made, read, assigned, compared and shown."""

import contextlib
import copy

import numpy as np


def made(tf, ask):
    v = tf.Variable
    return {
        "dtype of an int": ask(lambda: v(1).dtype),
        "dtype of a float": ask(lambda: v(1.5).dtype),
        "dtype of a bool": ask(lambda: v(True).dtype),
        "dtype of an array": ask(lambda: v(np.zeros(2)).dtype),
        "dtype asked for": ask(lambda: v(1, dtype=tf.float32).dtype),
        "dtype by name": ask(lambda: v(1, dtype="float16").dtype),
        "dtype that does not fit": ask(v, 1.5, dtype=tf.int32),
        "tensor of another dtype": ask(v, tf.constant(1), dtype=tf.float32),
        "value asked for": ask(lambda: v(1, dtype=tf.float32).numpy()),
        "bfloat16": ask(lambda: v(1, dtype=tf.bfloat16).numpy()),
        "shape of a list": ask(lambda: v([[1, 2], [3, 4]]).shape),
        "shape of a scalar": ask(lambda: v(1).shape),
        "shape asked for": ask(lambda: v([1, 2], shape=[None]).shape),
        "shape unknown": ask(lambda: v([1, 2], shape=tf.TensorShape(None)).shape),
        "shape that does not fit": ask(v, [1, 2], shape=[3]),
        "no value": ask(v),
        "None": ask(v, None),
        "None in a list": ask(v, [None, 1]),
        "of a function": ask(lambda: v(lambda: tf.constant([1.0, 2.0])).numpy()),
        "of a function, with a dtype": ask(lambda: v(lambda: 3, dtype=tf.float32).numpy()),
        "of a function with an argument": ask(v, lambda x: x),
        "of a variable": ask(lambda: v(v(3)).numpy()),
        "an object": ask(v, object()),
        "ragged": ask(v, [[1], [2, 3]]),
        "empty": ask(lambda: v([]).numpy()),
        "trainable": ask(lambda: v(1.0).trainable),
        "trainable int": ask(lambda: v(1).trainable),
        "not trainable": ask(lambda: v(1.0, trainable=False).trainable),
        "trainable None": ask(lambda: v(1.0, trainable=None).trainable),
        "trainable on read": ask(
            lambda: v(1.0, synchronization=tf.VariableSynchronization.ON_READ).trainable
        ),
        "trainable asked for on read": ask(
            v, 1.0, trainable=True, synchronization=tf.VariableSynchronization.ON_READ
        ),
        "synchronization": ask(lambda: v(1.0).synchronization.name),
        "aggregation": ask(lambda: v(1.0).aggregation.name),
        "aggregation asked for": ask(
            lambda: v(1.0, aggregation=tf.VariableAggregation.SUM).aggregation.name
        ),
        "synchronization of a wrong kind": ask(v, 1.0, synchronization="ON_READ"),
        "aggregation of a wrong kind": ask(v, 1.0, aggregation="SUM"),
        "aggregation 1": ask(v, 1.0, aggregation=17),
        "synchronization NONE": ask(
            lambda: v(1.0, synchronization=tf.VariableSynchronization.NONE).numpy()
        ),
        "name": ask(lambda: v(1, name="weights").name),
        "no name": ask(lambda: v(1).name),
        "the same name twice": ask(lambda: [v(1, name="w").name, v(2, name="w").name]),
        "empty name": ask(lambda: v(1, name="").name),
        "name with a colon": ask(lambda: v(1, name="a:0").name),
        "constraint": ask(lambda: v(1.0, constraint=abs).constraint is abs),
        "constraint that is no function": ask(v, 1.0, constraint=3),
        "unknown argument": ask(v, 1.0, colour="red"),
        "variable_def": ask(v, 1.0, variable_def=3),
        "positional trainable": ask(lambda: v(1.0, False).trainable),
        "int64 array": ask(lambda: v(np.array([1, 2**40])).numpy()),
        "complex": ask(lambda: v(1 + 2j).numpy()),
    }


def assigned(tf, ask):
    def after(start, change, **kwargs):
        v = tf.Variable(start, **kwargs)
        change(v)
        return v.numpy()

    def returned(change):
        v = tf.Variable([1.0, 2.0])
        return change(v) is v

    def kept():
        v = tf.Variable([1.0, 2.0])
        before = v.read_value()
        v.assign([5.0, 6.0])
        return [before, v.read_value(), v.value()]

    def source():
        mine = np.ones(4, np.float32)
        v = tf.Variable(mine)
        w = tf.Variable(np.zeros(4, np.float32))
        w.assign(mine)
        mine[:] = 7
        return [v.numpy(), w.numpy()]

    return {
        "assign": ask(after, [1, 2], lambda v: v.assign([3, 4])),
        "assign_add": ask(after, [1, 2], lambda v: v.assign_add([3, 4])),
        "assign_sub": ask(after, [1, 2], lambda v: v.assign_sub([3, 4])),
        "a number": ask(after, 1.0, lambda v: v.assign(3)),
        "a float to ints": ask(after, 1, lambda v: v.assign(3.5)),
        "a float added to ints": ask(after, 1, lambda v: v.assign_add(1.5)),
        "an array of another dtype": ask(after, 1.0, lambda v: v.assign(np.int32(3))),
        "a float64 array": ask(after, [1.0], lambda v: v.assign(np.array([3.5]))),
        "a tensor of another dtype": ask(after, 1.0, lambda v: v.assign(tf.constant(3))),
        "a tensor of another dtype added": ask(after, 1.0, lambda v: v.assign_add(tf.constant(3))),
        "another shape": ask(after, [1, 2], lambda v: v.assign([1, 2, 3])),
        "a scalar to a vector": ask(after, [1, 2], lambda v: v.assign(1)),
        "a scalar added to a vector": ask(after, [1, 2], lambda v: v.assign_add(1)),
        "a row added to rows": ask(after, [[1, 2], [3, 4]], lambda v: v.assign_add([1, 1])),
        "another length, where unknown": ask(
            after, [1, 2], lambda v: v.assign([1, 2, 3]), shape=[None]
        ),
        "another rank, where unknown": ask(
            after, [1, 2], lambda v: v.assign(5), shape=tf.TensorShape(None)
        ),
        "another rank, where a length is unknown": ask(
            after, [1, 2], lambda v: v.assign(5), shape=[None]
        ),
        "another length added, where unknown": ask(
            after, [1, 2], lambda v: v.assign_add([1, 2, 3]), shape=[None]
        ),
        "a variable": ask(after, [1, 2], lambda v: v.assign(tf.Variable([5, 6]))),
        "itself added": ask(after, [1, 2], lambda v: v.assign_add(v)),
        "None": ask(after, [1, 2], lambda v: v.assign(None)),
        "text": ask(after, [1, 2], lambda v: v.assign("a")),
        "a bool": ask(after, 1.0, lambda v: v.assign(True)),
        "bools added": ask(after, True, lambda v: v.assign_add(True)),
        "wraps around": ask(after, np.uint8(250), lambda v: v.assign_add(np.uint8(10))),
        "assign returns itself": ask(returned, lambda v: v.assign([1.0, 1.0])),
        "assign_add returns itself": ask(returned, lambda v: v.assign_add([1.0, 1.0])),
        "read_value False": ask(lambda: tf.Variable(1.0).assign(2.0, read_value=False)),
        "read_value False added": ask(lambda: tf.Variable(1.0).assign_add(2.0, read_value=False)),
        "chained": ask(lambda: tf.Variable(1.0).assign_add(2.0).assign_sub(0.5).numpy()),
        "a value that was read stays": ask(kept),
        "an array of the user's is copied": ask(source),
        "+= makes a tensor": ask(_inplace, tf),
        "item": ask(after, [1, 2], lambda v: v.__setitem__(0, 5)),
    }


def _inplace(tf):
    v = w = tf.Variable([1.0])
    v += 1.0
    return [v, w.numpy(), isinstance(v, tf.Variable)]


def functions(tf, ask):
    v = tf.Variable([3.0, 4.0])
    return {
        "square": ask(lambda: tf.square(v)),
        "reduce_sum": ask(lambda: tf.reduce_sum(v)),
        "reduce_mean": ask(lambda: tf.reduce_mean(v)),
        "reduce_max": ask(lambda: tf.reduce_max(v)),
        "cast": ask(lambda: tf.cast(v, tf.int32)),
        "convert_to_tensor": ask(lambda: tf.convert_to_tensor(v)),
        "convert_to_tensor, another dtype": ask(tf.convert_to_tensor, v, tf.int32),
        "constant": ask(lambda: tf.constant(v)),
        "stack": ask(lambda: tf.stack([v, v])),
        "stack with a list": ask(lambda: tf.stack([v, [1.0, 2.0]])),
        "concat": ask(lambda: tf.concat([v, v], 0)),
        "reshape": ask(lambda: tf.reshape(v, [2, 1])),
        "shape": ask(lambda: tf.shape(v)),
        "equal": ask(lambda: tf.equal(v, [3.0, 5.0])),
        "list of variables": ask(lambda: tf.convert_to_tensor([tf.Variable(1.0), 2.0])),
        "ensure_shape": ask(lambda: tf.ensure_shape(v, [2])),
        "function": ask(lambda: tf.function(lambda x: x + v)(1.0)),
        "passed to a function": ask(lambda: tf.function(lambda x: x * 2.0)(v)),
        "from a dataset": ask(
            lambda: [np.asarray(x) for x in tf.data.Dataset.from_tensor_slices(v)]
        ),
        "reduced": ask(lambda: tf.distribute.get_strategy().reduce("SUM", v, axis=0)),
        "type spec": ask(lambda: type(tf.type_spec_from_value(v)).__name__),
    }


def compiled(tf, ask):
    def steps(change, start=1.0, times=3):
        v = tf.Variable(start)

        @tf.function
        def step(x):
            return change(v, x)

        return [[step(tf.constant(2.0)) for _ in range(times)], v.numpy()]

    def reads(v, x):
        before = v.read_value()
        v.assign(x)
        return [before, v.read_value(), v + 1.0]

    return {
        "assign_add": ask(steps, lambda v, x: v.assign_add(x)),
        "assign": ask(steps, lambda v, x: v.assign(v * x)),
        "assign_sub": ask(steps, lambda v, x: v.assign_sub(x)),
        "order of reads and writes": ask(steps, reads),
        "returns nothing": ask(steps, lambda v, x: v.assign_add(x) is None and None),
        "returns the variable": ask(steps, lambda v, x: v),
        "another shape": ask(steps, lambda v, x: v.assign([1.0, 2.0])),
        "another dtype": ask(steps, lambda v, x: v.assign(tf.constant(1))),
        "a tensor's item": ask(steps, lambda v, x: v[0] + x, [1.0, 2.0]),
    }


def shown(tf, ask):
    v = tf.Variable
    return {
        "scalar": ask(lambda: repr(v(1.0))),
        "vector": ask(lambda: repr(v([1.0, 2.0], name="w"))),
        "matrix": ask(lambda: repr(v([[1, 2], [3, 4]]))),
        "bool": ask(lambda: repr(v(True))),
        "str": ask(lambda: str(v(1.0))),
        "empty": ask(lambda: repr(v([]))),
        "unknown shape": ask(lambda: repr(v([1, 2], shape=[None]))),
        "unknown rank": ask(lambda: repr(v([1, 2], shape=tf.TensorShape(None)))),
        "bfloat16": ask(lambda: repr(v(1, dtype=tf.bfloat16))),
        "int64": ask(lambda: repr(v(np.int64(3)))),
        "complex": ask(lambda: repr(v(1 + 2j))),
    }


def other_names(tf, ask):
    v = tf.Variable([1.0, 2.0], name="w")
    deep = copy.deepcopy(v)
    deep.assign([5.0, 6.0])
    return {
        "deepcopy is its own": [v.numpy(), deep.numpy()],
        "deepcopy has the name": deep.name,
        "deepcopy has a dtype": deep.dtype,
        "get_shape": ask(v.get_shape),
        "device": ask(lambda: v.device.endswith("CPU:0")),
        "numpy is a copy": ask(_written, tf),
        "numpy of a scalar": ask(lambda: type(tf.Variable(1.0).numpy()).__name__),
        "initialized_value": ask(v.initialized_value),
        "experimental_ref": ask(lambda: hasattr(v, "experimental_ref")),
        "assign by keyword": ask(lambda: tf.Variable(1).assign(value=2).numpy()),
        "assign_add by keyword": ask(lambda: tf.Variable(1).assign_add(delta=2).numpy()),
        "is a tensor": ask(lambda: tf.is_tensor(v) if hasattr(tf, "is_tensor") else True),
        "SaveSliceInfo": ask(lambda: isinstance(v, tf.Variable)),
        "set_shape": ask(lambda: v.set_shape([3])),
        "trainable cannot be set": ask(setattr, v, "trainable", False),
        "name cannot be set": ask(setattr, v, "name", "x"),
        "dtype cannot be set": ask(setattr, v, "dtype", tf.int32),
        "shape cannot be set": ask(setattr, v, "shape", [3]),
    }


def _written(tf):
    v = tf.Variable([1.0, 2.0])
    array = v.numpy()
    with contextlib.suppress(ValueError):
        array[0] = 7
    return v.numpy()


def creators(tf, ask):
    seen = []

    def note(label, **changes):
        def creator(next_creator, **kwargs):
            seen.append([label, sorted(k for k in kwargs if kwargs[k] is not None)])
            return next_creator(**{**kwargs, **changes})

        return creator

    def one():
        with tf.variable_creator_scope(note("a", trainable=False)):
            return tf.Variable(1.0).trainable

    def two():
        del seen[:]
        with (
            tf.variable_creator_scope(note("outer", name="x")),
            tf.variable_creator_scope(note("inner", name="y")),
        ):
            v = tf.Variable(1.0, name="z")
        return [v.name, [label for label, _ in seen]]

    def swallowed():
        with tf.variable_creator_scope(lambda next_creator, **kwargs: 7):
            return tf.Variable(1.0)

    def initial():
        given = []

        def creator(next_creator, **kwargs):
            value = kwargs["initial_value"]
            given.append(callable(value))
            return next_creator(**kwargs)

        with tf.variable_creator_scope(creator):
            return [given, tf.Variable(2.0).numpy(), tf.Variable(lambda: 3.0).numpy()]

    def asked():
        given = []

        def creator(next_creator, **kwargs):
            given.append(sorted(kwargs))
            return next_creator(**kwargs)

        with tf.variable_creator_scope(creator):
            tf.Variable(1.0, dtype=tf.float32)
        return "dtype" in given[0] and "aggregation" in given[0] and "shape" in given[0]

    return {
        "one": ask(one),
        "two": ask(two),
        "swallowed": ask(swallowed),
        "initial": ask(initial),
        "arguments": ask(asked),
    }


def in_datasets(tf, ask):
    """A variable is an element, and the state of a fold, with its own dtype."""
    answers = {}
    for dtype in (tf.int32, tf.int64, tf.float32, tf.float64):
        name = tf.TensorSpec([], dtype).dtype.name
        held = tf.Variable(1, dtype=dtype)
        held.assign(2)
        rows = tf.data.Dataset.range(3).map(lambda x, dtype=dtype: tf.cast(x, dtype))
        answers |= {
            f"{name} element": ask(lambda v=held: tf.data.Dataset.from_tensors(v).element_spec),
            f"{name} reduce": ask(lambda d=rows, v=held: d.reduce(v, lambda s, x: s + x)),
            f"{name} scan": ask(lambda d=rows, v=held: list(d.scan(v, lambda s, x: (s + x, s)))),
            f"{name} returned": ask(lambda d=rows, v=held: d.map(lambda x: v).element_spec),
        }
    return answers


def what_assign_returns_across_replicas(tf, ask):
    """Ask what a variable that is synchronised when read returns, outside of `run`."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def made(aggregation, value):
        with strategy.scope():
            return tf.Variable(
                value, synchronization=tf.VariableSynchronization.ON_READ, aggregation=aggregation
            )

    def assigned(aggregation, value):
        return tf.convert_to_tensor(made(aggregation, value * 0).assign(value))

    def assigned_in_function(aggregation, value):
        variable = made(aggregation, value * 0)
        return tf.function(lambda: tf.convert_to_tensor(variable.assign(value)))()

    kinds = ("SUM", "MEAN", "ONLY_FIRST_REPLICA")
    aggregations = {kind: getattr(tf.VariableAggregation, kind) for kind in kinds}
    return {
        f"{kind} {value} {way.__name__}": ask(lambda a=aggregation, v=value, w=way: w(a, v))
        for kind, aggregation in aggregations.items()
        for value in (1.0, 4)
        for way in (assigned, assigned_in_function)
    }
