"""What programs with replicas write every day: values, variables and collectives at their edges."""

import collections


def _mirrored(tf, count=2):
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(count)])


def default_merge_call(tf, ask):
    strategy = tf.distribute.get_strategy()

    def where(strategy_of_call, *args):
        context = tf.distribute.get_replica_context()
        across = tf.distribute.in_cross_replica_context()
        return across, context is None, strategy_of_call is strategy, args

    def merge(fn, *args):
        return tf.distribute.get_replica_context().merge_call(fn, args=args)

    return {
        "in merge_call": ask(lambda: merge(where, 1)),
        "afterwards": ask(tf.distribute.in_cross_replica_context),
        "in run": ask(lambda: strategy.run(lambda: merge(where))),
        "reduce": ask(lambda: float(merge(lambda s: s.reduce("SUM", tf.constant(1.0), axis=None)))),
        "run": ask(lambda: merge(lambda s: s.run(tf.distribute.in_cross_replica_context))),
        "again": ask(lambda: merge(lambda s: merge(where))),
    }


def none_for_enums(tf, ask):
    strategies = {
        "nobody": None,
        "two": _mirrored(tf),
        "one": _mirrored(tf, 1),
        "device": tf.distribute.OneDeviceStrategy("CPU:0"),
    }

    def made(strategy, **how):
        if strategy is None:
            return _kinds(tf.Variable(1.0, **how))
        with strategy.scope():
            return _kinds(tf.Variable(1.0, **how))

    found = {}
    for name, strategy in strategies.items():
        for how in (
            {"aggregation": None},
            {"synchronization": None},
            {"aggregation": None, "synchronization": None},
            {"aggregation": "SUM"},
        ):
            found[f"{name}, {how}"] = ask(lambda s=strategy, how=how: made(s, **how))
    return found


def _kinds(variable):
    return variable.aggregation.name, variable.synchronization.name, float(variable.numpy())


def assigned_in_replicas(tf, ask):
    strategy = _mirrored(tf)
    kinds = tf.VariableAggregation
    given = {
        "5.0": lambda: 5.0,
        "5": lambda: 5,
        "a tensor": lambda: tf.constant(5.0),
    }
    found = {}
    for aggregation in (kinds.SUM, kinds.MEAN, kinds.ONLY_FIRST_REPLICA):
        for name, value in given.items():
            for method in ("assign", "assign_add", "assign_sub"):
                with strategy.scope():
                    variable = tf.Variable(1.0, aggregation=aggregation)

                def change(variable=variable, method=method, value=value):
                    getattr(variable, method)(value())

                def run(change=change, variable=variable):
                    strategy.run(change)
                    return float(variable.numpy())

                def compiled(change=change, variable=variable):
                    tf.function(lambda: strategy.run(change))()
                    return float(variable.numpy())

                key = f"{aggregation.name} {method} {name}"
                found[key] = ask(run)
                found[f"{key}, compiled"] = ask(compiled)
    return found


def unlike_tensors(tf, ask):
    strategy = _mirrored(tf)

    def by_replica(first, second):
        number = tf.distribute.get_replica_context().replica_id_in_sync_group
        return first() if number == 0 else second()

    def zeros(*shape, dtype=None):
        return lambda: tf.zeros(shape, dtype or tf.float32)

    def gather(first, second, axis=0):
        context = tf.distribute.get_replica_context()
        return context.all_gather(by_replica(first, second), axis)

    def reduce(first, second):
        return tf.distribute.get_replica_context().all_reduce("SUM", by_replica(first, second))

    return {
        "gather along another axis": ask(
            lambda: strategy.run(lambda: gather(zeros(2, 2), zeros(3, 2), 1))
        ),
        "gather other ranks": ask(lambda: strategy.run(lambda: gather(zeros(2), zeros(2, 2)))),
        "gather other dtypes": ask(
            lambda: strategy.run(lambda: gather(zeros(2), zeros(2, dtype=tf.int32)))
        ),
        "reduce": ask(lambda: strategy.run(lambda: reduce(zeros(2), zeros(3)))),
    }


def compiled_methods(tf, ask):
    strategy = _mirrored(tf)

    class Model:
        def __init__(self):
            self.factor = tf.constant(3.0)

        @tf.function
        def step(self, x):
            return x * self.factor

    model = Model()
    x = strategy.experimental_distribute_values_from_function(
        lambda c: tf.constant(float(c.replica_id_in_sync_group + 1))
    )

    def parts(value):
        return [float(part) for part in strategy.experimental_local_results(value)]

    return {
        "run": ask(lambda: parts(strategy.run(model.step, args=(x,)))),
        "in a function": ask(
            lambda: parts(tf.function(lambda x: strategy.run(model.step, args=(x,)))(x))
        ),
    }


def _batch(tf, strategy):
    data = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0, 4.0]).batch(4)
    return next(iter(strategy.experimental_distribute_dataset(data)))


def joined_parts(tf, ask):
    strategy = _mirrored(tf)
    x = _batch(tf, strategy)
    parts = strategy.experimental_local_results(x)
    with strategy.scope():
        variable = tf.Variable([5.0, 6.0])
    value = variable.read_value()
    total = strategy.reduce("SUM", x, axis=None)
    compiled = tf.function(lambda: strategy.reduce("SUM", x, axis=None))()

    def added(array):
        result = strategy.run(lambda own: own + array, args=(x,))
        return [part.numpy() for part in strategy.experimental_local_results(result)]

    return {
        "concat": ask(lambda: tf.concat(parts, 0).numpy()),
        "stack": ask(lambda: tf.stack(parts).numpy()),
        "sum": ask(lambda: sum(parts).numpy()),
        "a variable's copies": ask(
            lambda: tf.stack(strategy.experimental_local_results(variable)).numpy()
        ),
        "a sum and a part": ask((total + parts[1]).numpy),
        "closed over, a variable's value": ask(lambda: added(value)),
        "closed over, a sum": ask(lambda: added(total)),
        "closed over, a compiled sum": ask(lambda: added(compiled)),
    }


def assigned_values(tf, ask):
    strategy = _mirrored(tf)
    with strategy.scope():
        vector, scalar = tf.Variable([1.0, 2.0]), tf.Variable(1.0)
    value = vector.assign([3.0, 4.0])
    return {
        "numpy": ask(value.numpy),
        "shape": ask(lambda: tuple(value.shape)),
        "dtype": ask(lambda: value.dtype == tf.float32),
        "ndim": ask(lambda: value.ndim),
        "plus": ask((value + 1).numpy),
        "plus, reflected": ask((1 + value).numpy),
        "times itself": ask((value * value).numpy),
        "minus": ask((-value).numpy),
        "first": ask(lambda: float(value[0])),
        "equal": ask(lambda: value == value),  # noqa: PLR0124 - that is the question
        "bool": ask(lambda: bool(scalar.assign(1.0))),
        "assign_add": ask((scalar.assign_add(1.0) * 2).numpy),
        "a method of variables": ask(lambda: value.assign_add([1.0, 1.0])),
        "parts": ask(lambda: [part.numpy() for part in value.values]),
        "a value of parts, plus": ask(lambda: _batch(tf, strategy) + 1),
        "a value of parts, shape": ask(lambda: _batch(tf, strategy).shape),
    }


def containers(tf, ask):
    strategy = _mirrored(tf)
    x = _batch(tf, strategy)

    class OwnDict(dict):
        pass

    given = {
        "dict": OwnDict(a=x),
        "UserDict": collections.UserDict(a=x),
        "OrderedDict": collections.OrderedDict(a=x),
    }
    found = {}
    for name, value in given.items():

        def run(value=value):
            result = strategy.run(lambda own: type(own)({"b": own["a"] * 2}), args=(value,))
            parts = strategy.experimental_local_results(result["b"])
            return type(result).__name__, [part.numpy() for part in parts]

        def compiled(value=value):
            def step():
                return strategy.run(lambda own: type(own)({"b": own["a"] * 2}), args=(value,))

            result = tf.function(step)()
            parts = strategy.experimental_local_results(result["b"])
            return type(result).__name__, [part.numpy() for part in parts]

        found[name] = ask(run)
        found[f"{name}, compiled"] = ask(compiled)
    return found


def captured(tf, ask):
    strategy = _mirrored(tf)
    make = strategy.experimental_distribute_values_from_function
    values = {
        "uneven": make(lambda c: tf.ones([c.replica_id_in_sync_group + 1, 2])),
        "scalars": make(lambda c: tf.constant(float(c.replica_id_in_sync_group))),
        "even": _batch(tf, strategy),
    }

    def parts(value):
        return [part.numpy() for part in strategy.experimental_local_results(value)]

    found = {}
    for name, value in values.items():
        axis = None if name == "scalars" else 0
        reduce = tf.function(
            lambda value=value, axis=axis: strategy.reduce("SUM", value, axis=axis)
        )
        run = tf.function(lambda value=value: strategy.run(lambda own: own * 2, args=(value,)))
        found[f"{name}, reduced"] = ask(lambda reduce=reduce: reduce().numpy())
        found[f"{name}, run"] = ask(lambda run=run: parts(run()))
    gather = tf.function(lambda: strategy.gather(values["even"], 0))
    found["even, gathered"] = ask(lambda: gather().numpy())
    return found


def open_lengths(tf, ask):
    slices = tf.data.Dataset.from_tensor_slices

    def made(drop):
        short, long = (slices(tf.ones([6, width])).batch(4, drop) for width in (2, 3))
        return short.concatenate(long)

    def facts(count, drop):
        strategy = _mirrored(tf, count)
        cut = ask(lambda: strategy.experimental_distribute_dataset(made(drop)))
        taken = ask(lambda: strategy.distribute_datasets_from_function(lambda _: made(drop)))
        local = strategy.experimental_local_results
        return {
            "cut": ask(lambda: cut.element_spec),
            "cut, iterator": ask(lambda: iter(cut).element_spec),
            "cut, steps": ask(lambda: [local(step) for step in cut]),
            "taken": ask(lambda: taken.element_spec),
            "taken, steps": ask(lambda: [local(step) for step in taken]),
        }

    return {
        f"{count}, {'dropped' if drop else 'kept'}: {fact}": answer
        for count in (1, 2, 3)
        for drop in (False, True)
        for fact, answer in facts(count, drop).items()
    }
