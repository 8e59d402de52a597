"""Initializers, `get_variable`, and moving averages."""

import contextlib

import numpy as np


def _values(variable):
    return np.asarray(variable.numpy())


def initializers(tf, ask):
    normal, uniform = tf.random_normal_initializer, tf.random_uniform_initializer
    constant, zeros, ones = tf.constant_initializer, tf.zeros_initializer, tf.ones_initializer
    drawn = normal(seed=3)([3])
    return {
        "normal": drawn,
        "normal again": [bool(np.array_equal(normal(seed=3)([3]), drawn))],
        "normal moved": normal(1.0, 2.0, seed=5)([2, 2]),
        "normal float64": normal(seed=3)([2], tf.float64),
        "normal int": ask(normal(), [2], tf.int32),
        "normal without a seed": list(normal()([2]).shape),
        "uniform": uniform(seed=3)([3]),
        "uniform between": uniform(2.0, 3.0, seed=9)([2, 2]),
        "uniform ints": uniform(0, 9, seed=3)([4], tf.int32),
        "uniform ints of fractions": ask(uniform(seed=3), [3], tf.int32),
        "uniform bools": ask(uniform(seed=3), [3], tf.bool),
        "constant": constant(5)([2, 2]),
        "constant list": constant([1, 2, 3, 4])([2, 2]),
        "constant as float": constant([1, 2])([2], tf.float32),
        "constant too few": ask(constant([1, 2, 3]), [2]),
        "constant fraction as int": ask(constant([1.5]), [1], tf.int32),
        "constant text": ask(constant("a"), [2], tf.string),
        "constant dict": ask(constant, {1: 2}),
        "zeros": zeros()([2]),
        "zeros bool": zeros()([2], tf.bool),
        "zeros text": ask(zeros(), [2], tf.string),
        "ones": ones()([2], tf.int32),
        "ones text": ask(ones(), [2], tf.string),
        "part": normal(seed=3)([4], partition_shape=[2], partition_offset=[0]),
        "part of a constant": ask(lambda: constant(2)([4], partition_shape=[2])),
        "unknown keyword": ask(lambda: zeros()([4], size=3)),
        "configs": [
            normal(seed=3).get_config(),
            uniform(seed=3).get_config(),
            constant([1]).get_config(),
            zeros().get_config(),
        ],
        "from a config": normal.from_config(normal(2.0, seed=1).get_config()).get_config(),
    }


def named(tf, ask):
    v1 = tf.compat.v1

    def get(*args, **kwargs):
        v = v1.get_variable(*args, **kwargs)
        return [v.name, v.dtype, v.trainable, _values(v)]

    def scoped(reuse=None):
        with v1.variable_scope("s", reuse=reuse) as scope:
            v = v1.get_variable("x", [2], initializer=tf.zeros_initializer())
            return v, scope

    def nested():
        with (
            v1.variable_scope("o", initializer=tf.ones_initializer(), dtype=tf.float64),
            v1.variable_scope("i"),
        ):
            return get("x", [2])

    def entered_again():
        with v1.variable_scope("a") as scope:
            pass
        with v1.variable_scope("b"), v1.variable_scope(scope):
            return v1.get_variable("x", [1]).name

    def drawn():
        tf.random.set_seed(1)
        found = v1.get_variable("g", [3])
        tf.random.set_seed(None)
        return found

    def bounds(shape):
        values = np.abs(_values(v1.get_variable("g", shape)))
        return round(float(values.max()), 2)

    first, scope = scoped()

    def default_name():
        with v1.variable_scope(None, default_name="d") as scope:
            return scope.name

    return {
        "in a scope": [first.name, scope.name, scope.original_name_scope],
        "in a scope again": scoped(v1.AUTO_REUSE)[0] is first,
        "reused": scoped(reuse=True)[0] is first,
        "nested": ask(nested),
        "entered again": ask(entered_again),
        "a value": ask(get, "q", initializer=tf.constant([1, 2])),
        "a number": ask(get, "q", initializer=3.5),
        "a value and a shape": ask(get, "q", [2], initializer=tf.constant([1, 2])),
        "no shape": ask(get, "q"),
        "a class": ask(get, "q", [2], initializer=tf.zeros_initializer),
        "a function": ask(
            get, "q", [2], initializer=lambda shape, dtype=None, **_: tf.ones(shape, dtype)
        ),
        "int": ask(get, "q", [2], dtype=tf.int32),
        "bool": ask(get, "q", [2], dtype=tf.bool),
        "not trainable": ask(get, "q", [2], trainable=False, initializer=tf.ones_initializer()),
        "drawn with a seed": ask(drawn),
        "bound of a vector": bounds([3000]),
        "bound of a matrix": bounds([100, 200]),
        "bound of a kernel": bounds([3, 3, 20, 30]),
        "default name": ask(default_name),
        "no name": ask(v1.variable_scope, None),
    }


def names_in_scopes(tf, ask):
    v, v1 = tf.Variable, tf.compat.v1

    class Layer(tf.Module):
        def __init__(self, name=None):
            super().__init__(name)
            with self.name_scope:
                self.w = v(1.0, name="w")

        @tf.Module.with_name_scope
        def made_later(self):
            return v(1.0, name="b").name

    def both():
        return [v(1.0).name, v1.get_variable("x", [1]).name]

    def in_scopes(*scopes):
        with contextlib.ExitStack() as stack:
            for scope in scopes:
                stack.enter_context(scope)
            return both()

    def module():
        with tf.name_scope("a"):
            layer = Layer("layer")
        return [layer.w.name, layer.name_scope.name, layer.made_later(), Layer().w.name]

    def function():
        made = []

        @tf.function
        def f():
            with tf.name_scope("in"):
                if not made:
                    made.append(v(1.0, name="w"))
            return made[0] + 1.0

        with tf.name_scope("out"):
            f()
        return made[0].name

    def average():
        with tf.name_scope("a"):
            made, of = v(1.0, name="w"), tf.train.ExponentialMovingAverage(0.9)
            of.apply([made])
        return of.average(made).name

    def entered_again():
        with v1.variable_scope("s"), v1.variable_scope("t") as scope:
            pass
        return in_scopes(v1.variable_scope(scope))

    names, variables = tf.name_scope, v1.variable_scope
    return {
        "none": both(),
        "a name scope": in_scopes(names("a")),
        "two": in_scopes(names("a"), names("b")),
        "an absolute one": in_scopes(names("a"), names("b/")),
        "an empty one": in_scopes(names("a"), names("")),
        "a variable scope": in_scopes(variables("s")),
        "two variable scopes": in_scopes(variables("s"), variables("t")),
        "both": in_scopes(names("a"), variables("s")),
        "both, the other way": in_scopes(variables("s"), names("a")),
        "without names": in_scopes(variables("s", auxiliary_name_scope=False)),
        "a variable scope again": ask(entered_again),
        "a module": ask(module),
        "a function": ask(function),
        "an average": ask(average),
    }


def started_by_arguments(tf, ask):
    def calls(make, *values, **kwargs):
        kept = []

        @tf.function
        def f(x):
            if not kept:
                make(kept, x)
            kept[0].assign_add(tf.ones_like(kept[0]))
            return kept[0] * x

        return [[f(tf.constant(x)) for x in values], [one.numpy() for one in kept]]

    v = tf.Variable

    def each_call():
        return tf.function(lambda x: v(x) * 1.0)(tf.constant(1.0))

    def dependent(kept, x):
        kept.append(v(x))
        kept.append(v(lambda: 3.0))

    return {
        "the argument": ask(calls, lambda kept, x: kept.append(v(x)), 2.0, 3.0),
        "computed": ask(calls, lambda kept, x: kept.append(v(2.0 * x + 1.0)), 2.0, 3.0),
        "of a shape": ask(calls, lambda kept, x: kept.append(v(tf.ones_like(x))), [1.0, 2.0]),
        "two variables": ask(calls, dependent, 2.0, 3.0),
        "not trainable": ask(calls, lambda kept, x: kept.append(v(x, trainable=False)), 2.0),
        "in each call": ask(each_call),
    }


def averages(tf, ask):
    make = tf.train.ExponentialMovingAverage

    def two_steps(start=(1.0, 2.0), dtype=None, **kwargs):
        v = tf.Variable(start, dtype=dtype)
        average = make(**{"decay": 0.9, **kwargs})
        average.apply([v])
        first = _values(average.average(v))
        v.assign(tf.cast([3.0, 3.0], v.dtype))
        average.apply([v])
        return [first, _values(average.average(v))]

    def compiled():
        v, average = tf.Variable([1.0, 2.0]), make(0.5)
        average.apply([v])

        @tf.function
        def step():
            v.assign_add([2.0, 2.0])
            average.apply([v])
            return average.average(v) * 1.0

        return [step(), step()]

    def made_in_a_function():
        v, average = tf.Variable([1.0, 2.0]), make(0.5)
        step = tf.function(lambda: (v.assign_add([2.0, 2.0]), average.apply([v]), 1)[2])
        step()
        step()
        return _values(average.average(v))

    def names():
        v, average = tf.Variable(1.0, name="w"), make(0.9, name="avg")
        before = average.average(v)
        average.apply([v])
        kept = average.average(v)
        restored = average.variables_to_restore([v])
        return [
            before,
            kept.name,
            kept.trainable,
            average.average_name(v),
            average.name,
            list(restored),
            restored["w/avg"] is v,
        ]

    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def mirrored(aggregation, where):
        with strategy.scope():
            v = tf.Variable([1.0, 2.0], aggregation=getattr(tf.VariableAggregation, aggregation))
            average = make(0.5)
            average.apply([v])
        v.assign([9.0, 10.0])
        if where == "run":
            strategy.run(lambda: average.apply([v]))
        elif where == "compiled":
            tf.function(lambda: (strategy.run(lambda: average.apply([v])), 1)[1])()
        else:
            with strategy.scope():
                average.apply([v])
        return strategy.experimental_local_results(average.average(v))

    return {
        "two steps": ask(two_steps),
        "unbiased": ask(two_steps, zero_debias=True),
        "float64": ask(two_steps, dtype=tf.float64),
        "float16": ask(two_steps, dtype=tf.float16),
        "a variable for decay": ask(lambda: two_steps(decay=tf.Variable(0.5))),
        **{f"after {n} updates": ask(two_steps, num_updates=n) for n in (0, 5, 1000)},
        "a variable for updates": ask(lambda: two_steps(num_updates=tf.Variable(5))),
        "compiled": ask(compiled),
        "made in a function": ask(made_in_a_function),
        "names": ask(names),
        "an integer": ask(make(0.9).apply, [tf.Variable(1)]),
        "a tensor": ask(make(0.9).apply, [tf.constant(1.0)]),
        **{
            f"mirrored {aggregation} {where}": ask(mirrored, aggregation, where)
            for aggregation in ("NONE", "MEAN", "SUM")
            for where in ("outside", "run", "compiled")
        },
    }
