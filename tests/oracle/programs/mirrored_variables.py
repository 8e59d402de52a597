"""Variables under MirroredStrategy: what they hold, and what becomes of what replicas assign."""

import itertools
import warnings

import numpy as np

AGGREGATIONS = ("NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA")


def _strategy(tf, replicas=2):
    return tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(replicas)])


def _variable(tf, strategy, value, aggregation, synchronization="AUTO", **kwargs):
    with strategy.scope():
        return tf.Variable(
            value,
            aggregation=getattr(tf.VariableAggregation, aggregation),
            synchronization=getattr(tf.VariableSynchronization, synchronization),
            **kwargs,
        )


def _id(tf):
    return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)


def _kind(value):
    return type(value).__name__


def _quietly(run):
    """Keep evenfeed's warnings to itself: of copies that may differ, and of what is not compiled."""

    def call(fn):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return run(fn)

    return call


def _ways(tf, strategy):
    """Run a replica's function as plain Python, and compiled."""
    return {
        "eager": _quietly(strategy.run),
        "compiled": _quietly(lambda fn: tf.function(lambda: strategy.run(fn))()),
    }


def assigned_inside(tf, ask):
    strategy = _strategy(tf)
    local = strategy.experimental_local_results
    answers = {}
    for synchronization, aggregation, method in itertools.product(
        ("ON_WRITE", "ON_READ"), AGGREGATIONS, ("assign", "assign_add", "assign_sub")
    ):
        for way, run in _ways(tf, strategy).items():

            def both(
                synchronization=synchronization, aggregation=aggregation, method=method, run=run
            ):
                v = _variable(tf, strategy, [10.0, 20.0], aggregation, synchronization)

                def fn():
                    change = tf.stack([_id(tf) + 1.0, 3.0])
                    return tf.convert_to_tensor(getattr(v, method)(change))

                returned = local(run(fn))
                again = local(run(lambda: v.read_value() * 1.0))
                outside = ask(v.read_value)
                return [returned, again, local(v), _plain_error(outside)]

            answers[f"{method} {synchronization} {aggregation} {way}"] = ask(both)
    return answers


def _plain_error(value):
    names = getattr(value, "names", None)
    return value if names is None else f"raises {names[0]}"


def whole_numbers(tf, ask):
    strategy = _strategy(tf)
    local = strategy.experimental_local_results
    answers = {}
    for synchronization, aggregation in itertools.product(("ON_WRITE", "ON_READ"), AGGREGATIONS):
        for way, run in _ways(tf, strategy).items():

            def both(synchronization=synchronization, aggregation=aggregation, run=run):
                v = _variable(tf, strategy, 10, aggregation, synchronization)

                def fn():
                    v.assign_add(tf.cast(_id(tf), tf.int32) + 1)

                run(fn)
                outside = ask(v.read_value)
                return [local(v), _plain_error(outside)]

            answers[f"{synchronization} {aggregation} {way}"] = ask(both)
    return answers


def assigned_outside(tf, ask):
    strategy = _strategy(tf)
    local = strategy.experimental_local_results
    answers = {}
    for synchronization, aggregation, method in itertools.product(
        ("ON_WRITE", "ON_READ"), AGGREGATIONS, ("assign", "assign_add", "assign_sub")
    ):
        for where in ("outside", "scope", "compiled"):

            def both(
                synchronization=synchronization, aggregation=aggregation, method=method, where=where
            ):
                v = _variable(tf, strategy, [10.0, 20.0], aggregation, synchronization)

                def change():
                    return getattr(v, method)(tf.constant([1.0, 3.0]))

                if where == "scope":
                    with strategy.scope():
                        change()
                elif where == "compiled":
                    tf.function(lambda: (change(), 1)[1])()
                else:
                    change()
                outside = ask(v.read_value)
                return [local(v), _plain_error(outside)]

            answers[f"{method} {synchronization} {aggregation} {where}"] = ask(both)
    return answers


def returned(tf, ask):
    strategy = _strategy(tf)

    def kind(method, synchronization="AUTO", aggregation="MEAN"):
        v = _variable(tf, strategy, 1.0, aggregation, synchronization)
        return hasattr(getattr(v, method)(2.0), "values")

    def inside(method):
        v = _variable(tf, strategy, 1.0, "MEAN")
        return strategy.experimental_local_results(
            strategy.run(lambda: getattr(v, method)(2.0 + _id(tf)) * 1.0)
        )

    def itself():
        v = _variable(tf, strategy, 1.0, "MEAN")
        return strategy.run(lambda: v) is v

    return {
        **{f"{m} has parts": ask(kind, m) for m in ("assign", "assign_add", "assign_sub")},
        **{f"{m} inside": ask(inside, m) for m in ("assign", "assign_add", "assign_sub")},
        "the variable itself": ask(itself),
        "read_value False": ask(
            lambda: _variable(tf, strategy, 1.0, "MEAN").assign(2.0, read_value=False) is None
        ),
    }


def facts(tf, ask):
    strategy = _strategy(tf)
    v = _variable(tf, strategy, [1.0, 2.0], "NONE", name="w")
    r = _variable(tf, strategy, 1.0, "SUM", "ON_READ")
    one = _strategy(tf, 1)
    single = _variable(tf, one, 1.0, "SUM")
    calls = []

    def start():
        calls.append(1)
        return tf.constant(3.0)

    def called():
        del calls[:]
        w = _variable(tf, strategy, start, "NONE")
        return [len(calls), strategy.experimental_local_results(w)]

    def random_start():
        w = _variable(tf, strategy, lambda: tf.random.uniform([3]), "NONE")
        first, second = strategy.experimental_local_results(w)
        return bool(np.array_equal(np.asarray(first), np.asarray(second)))

    return {
        "is Variable": isinstance(v, tf.Variable),
        "on read is Variable": isinstance(r, tf.Variable),
        "name": v.name,
        "dtype": v.dtype,
        "shape": v.shape,
        "trainable": v.trainable,
        "trainable on read": r.trainable,
        "aggregation": [v.aggregation.name, r.aggregation.name],
        "synchronization": [v.synchronization.name, r.synchronization.name],
        "numpy": v.numpy(),
        "numpy on read": r.numpy(),
        "values": [np.asarray(part) for part in v.values],
        "value": v.value(),
        "value on read": r.value(),
        "v + 1": v + 1.0,
        "1 - v": 1.0 - v,
        "v[0]": ask(lambda: v[0]),
        "v == v": ask(lambda: v == [1.0, 3.0]),
        "r * 2": r * 2.0,
        "float": ask(lambda: float(r)),
        "sum": tf.reduce_sum(v),
        "convert": tf.convert_to_tensor(v),
        "array": np.asarray(v),
        "is distributed": isinstance(v, tf.distribute.DistributedValues),
        "of one replica is distributed": isinstance(single, tf.distribute.DistributedValues),
        "of one replica": repr(single),
        "of one replica, on read SUM": ask(
            lambda: _variable(tf, one, 4.0, "SUM", "ON_READ").assign(6.0).numpy()
        ),
        "of one replica, on read NONE": ask(
            lambda: _variable(tf, one, 4.0, "NONE", "ON_READ").assign(6.0).numpy()
        ),
        "of one replica, on read SUM, added": ask(
            lambda: _variable(tf, one, 4.0, "SUM", "ON_READ").assign_add(6.0).numpy()
        ),
        "created in scope": [
            ask(strategy.extended.variable_created_in_scope, v),
            ask(one.extended.variable_created_in_scope, single),
            ask(strategy.extended.variable_created_in_scope, single),
            ask(strategy.extended.variable_created_in_scope, tf.Variable(1)),
        ],
        "a start that is called": ask(called),
        "a start that is random": ask(random_start),
        "synchronization NONE": ask(_variable, tf, strategy, 1.0, "NONE", "NONE"),
        "trainable asked for on read": ask(
            lambda: _variable(tf, strategy, 1.0, "SUM", "ON_READ", trainable=True).trainable
        ),
        "in list": ask(lambda: [v.ref().deref() is v, v.ref() == v.ref()]),
        "local results": strategy.experimental_local_results(v),
        "reduce SUM": ask(lambda: strategy.reduce("SUM", v, axis=None)),
        "reduce MEAN": ask(lambda: strategy.reduce("MEAN", v, axis=None)),
        "reduce SUM axis 0": ask(lambda: strategy.reduce("SUM", v, axis=0)),
        "reduce on read SUM": ask(lambda: strategy.reduce("SUM", r, axis=None)),
        "reduce on read MEAN": ask(lambda: strategy.reduce("MEAN", r, axis=None)),
        "reduce of one": ask(lambda: one.reduce("SUM", single, axis=None)),
    }


def shown(tf, ask):
    strategy = _strategy(tf)
    one = _strategy(tf, 1)
    make = _variable
    return {
        "mirrored": ask(lambda: repr(make(tf, strategy, 1.0, "NONE"))),
        "named": ask(lambda: repr(make(tf, strategy, [1, 2], "SUM", name="w"))),
        "matrix": ask(lambda: repr(make(tf, strategy, [[1, 2], [3, 4]], "SUM", name="w"))),
        "on read": ask(lambda: repr(make(tf, strategy, 1.0, "SUM", "ON_READ"))),
        "on read NONE": ask(lambda: repr(make(tf, strategy, 1.0, "NONE", "ON_READ"))),
        "of one": ask(lambda: repr(make(tf, one, 1.0, "NONE"))),
        "str": ask(lambda: str(make(tf, strategy, 1.0, "NONE"))),
    }


def wrong(tf, ask):
    strategy, other = _strategy(tf), _strategy(tf)
    v = _variable(tf, strategy, [1.0, 2.0], "MEAN")
    r = _variable(tf, strategy, 1.0, "SUM", "ON_READ")
    none = _variable(tf, strategy, 1.0, "NONE", "ON_READ")
    plain = tf.Variable(1.0)
    local = strategy.experimental_local_results

    def creates():
        made = []

        def fn():
            w = tf.Variable(5.0)
            made.append(w)
            return w + _id(tf)

        out = strategy.experimental_local_results(strategy.run(fn))
        return [out, len(made), len(strategy.experimental_local_results(made[0]))]

    def parts_assigned():
        w = _variable(tf, strategy, 1.0, "MEAN")
        x = strategy.run(lambda: _id(tf) + 1.0)
        w.assign(x)
        return local(w)

    def plain_in_run():
        w = tf.Variable(1.0)
        strategy.run(lambda: w.assign_add(_id(tf) + 1.0))
        return w.numpy()

    def plain_in_compiled_run():
        w = tf.Variable(1.0)
        tf.function(lambda: (strategy.run(lambda: w.assign_add(_id(tf) + 1.0)), 1)[1])()
        return w.numpy()

    def merged():
        w = _variable(tf, strategy, 1.0, "MEAN")

        def merge(st, x):
            st.extended.update(w, lambda copy, y: copy.assign_add(y), args=(x,))

        strategy.run(
            lambda: tf.distribute.get_replica_context().merge_call(merge, args=(_id(tf) + 1.0,))
        )
        return local(w)

    def merged_assign():
        w = _variable(tf, strategy, 1.0, "MEAN")
        strategy.run(
            lambda: tf.distribute.get_replica_context().merge_call(
                lambda st: w.assign(7.0) and None
            )
        )
        return local(w)

    def merged_reduced():
        w = _variable(tf, strategy, 1.0, "MEAN")

        def merge(st, x):
            total = st.extended.reduce_to("SUM", x, destinations=w)
            return st.extended.update(
                w, lambda copy, y: copy.assign_add(y), args=(total,), group=False
            )

        out = strategy.run(
            lambda: tf.distribute.get_replica_context().merge_call(merge, args=(_id(tf) + 1.0,))
        )
        del out
        return local(w)

    return {
        "another shape": ask(v.assign, [1.0]),
        "another shape inside": ask(lambda: local(strategy.run(lambda: v.assign([1.0])))),
        "a scalar inside": ask(lambda: local(strategy.run(lambda: v.assign(1.0)))),
        "a scalar added outside": ask(v.assign_add, 1.0),
        "a scalar added inside": ask(lambda: local(strategy.run(lambda: v.assign_add(1.0)))),
        "another dtype": ask(v.assign, tf.constant([1, 2])),
        "another dtype inside": ask(
            lambda: local(strategy.run(lambda: v.assign(tf.constant([1, 2]))))
        ),
        "in the run of another": ask(lambda: local(other.run(lambda: v.assign([1.0, 2.0])))),
        "read in the run of another": ask(lambda: local(other.run(lambda: v + 0.0))),
        "in the scope of another": ask(_assigned_in, other, v),
        "read in the scope of another": ask(_read_in, other, v),
        "on read in the run of another": ask(lambda: local(other.run(lambda: r + 0.0))),
        "on read NONE read outside": ask(none.read_value),
        "on read NONE numpy": ask(none.numpy),
        "on read NONE inside": ask(lambda: local(strategy.run(lambda: none.assign_add(1.0) * 1.0))),
        "on read NONE local results": ask(lambda: local(none)),
        "created in run": ask(creates),
        "parts assigned outside": ask(parts_assigned),
        "a plain one in run": ask(plain_in_run),
        "a plain one in a compiled run": ask(_quietly(lambda fn: fn()), plain_in_compiled_run),
        "a plain one's value": plain.numpy(),
        "updated in merge_call": ask(merged),
        "assigned in merge_call": ask(merged_assign),
        "reduced and updated in merge_call": ask(merged_reduced),
    }


def _assigned_in(strategy, variable):
    with strategy.scope():
        variable.assign([1.0, 2.0])


def _read_in(strategy, variable):
    with strategy.scope():
        return variable + 0.0


def creators(tf, ask):
    strategy = _strategy(tf)

    def under_scope():
        seen = []

        def creator(next_creator, **kwargs):
            seen.append(kwargs["name"])
            return next_creator(**{**kwargs, "trainable": False})

        with strategy.scope(), tf.variable_creator_scope(creator):
            v = tf.Variable(1.0, name="w")
        return [seen, v.trainable, len(strategy.experimental_local_results(v)), v.name]

    def around_scope():
        seen = []

        def creator(next_creator, **kwargs):
            seen.append(kwargs["name"])
            return next_creator(**kwargs)

        with tf.variable_creator_scope(creator), strategy.scope():
            v = tf.Variable(1.0, name="w")
        return [seen[:1], len(strategy.experimental_local_results(v))]

    return {"under scope": ask(under_scope), "around scope": ask(around_scope)}
