"""IndexedSlices, and the methods of variables that change some entries."""

import itertools
import warnings

import numpy as np

ROWS = (
    "scatter_add",
    "scatter_sub",
    "scatter_update",
    "scatter_max",
    "scatter_min",
    "scatter_mul",
    "scatter_div",
)
ENTRIES = (
    "scatter_nd_add",
    "scatter_nd_sub",
    "scatter_nd_update",
    "scatter_nd_max",
    "scatter_nd_min",
)
AGGREGATIONS = ("NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA")


def _value(variable):
    return np.asarray(variable.numpy())


def values(tf, ask):
    rows = tf.IndexedSlices(tf.constant([10.0, 20.0]), tf.constant([0, 2]), tf.constant([3]))
    open_rows = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([1], tf.int64))
    spec = tf.IndexedSlicesSpec

    def through_function():
        found = tf.function(lambda s: tf.IndexedSlices(s.values * 2, s.indices, s.dense_shape))(
            rows
        )
        return [found.values, found.indices, found.dense_shape]

    def repeated():
        return tf.convert_to_tensor(
            tf.IndexedSlices(tf.constant([1.0, 2.0, 4.0]), tf.constant([1, 0, 1]), tf.constant([3]))
        )

    return {
        "values": rows.values,
        "indices": rows.indices,
        "dense shape": rows.dense_shape,
        "no dense shape": open_rows.dense_shape,
        "shape": rows.shape,
        "dtype": rows.dtype,
        "negative": ask(lambda: (-rows).values),
        "is a tensor": tf.is_tensor(rows),
        "dense": ask(tf.convert_to_tensor, rows),
        "dense, repeated": ask(repeated),
        "dense without a shape": ask(tf.convert_to_tensor, open_rows),
        "dense of another dtype": ask(tf.convert_to_tensor, rows, tf.float64),
        "dense out of range": ask(
            lambda: tf.convert_to_tensor(
                tf.IndexedSlices(tf.constant([1.0]), tf.constant([5]), tf.constant([3]))
            )
        ),
        "sum": ask(tf.reduce_sum, rows),
        "add": ask(tf.add, rows, 1.0),
        "plus": ask(lambda: rows + 1.0),
        "assigned": ask(lambda: _value(tf.Variable([1.0, 2.0, 3.0]).assign_add(rows))),
        "in a function": ask(through_function),
        "flat": len(tf.nest.flatten(rows)),
        "components": ask(tf.nest.flatten, rows, expand_composites=True),
        "spec of it": repr(tf.type_spec_from_value(rows)),
        "spec without a shape": repr(tf.type_spec_from_value(open_rows)),
        "empty spec": repr(spec()),
        "full spec": repr(spec([4, None], tf.int32, tf.int32, tf.int64, [2])),
        "equal specs": spec([1]) == spec([1]),
        "other specs": [spec([1]) == spec([2]), spec([1]) == spec([1], tf.int32)],
        "compatible": [
            spec([None], tf.float32, tf.int32, tf.int32).is_compatible_with(rows),
            spec([None], tf.int32, tf.int32, tf.int32).is_compatible_with(rows),
        ],
        "value type": spec().value_type is tf.IndexedSlices,
    }


def _changed(tf, start, method, values, indices, way):  # noqa: PLR0913, PLR0917 - a whole case
    v = tf.Variable(start)

    def change():
        slices = tf.IndexedSlices(tf.constant(values), tf.constant(indices))
        return getattr(v, method)(slices)

    if way == "compiled":
        tf.function(lambda: (change(), 1)[1])()
        return _value(v)
    return [_value(change()), _value(v)]


def rows(tf, ask):
    cases = {
        "repeated": ([1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 5.0], [0, 2, 0]),
        "one value": ([1.0, 2.0, 3.0, 4.0], 10.0, [0, 2]),
        "one index": ([1.0, 2.0, 3.0, 4.0], 10.0, 1),
        "a table of indices": ([1.0, 2.0, 3.0, 4.0], [[9.0, 8.0]], [[1, 3]]),
        "matrix": ([[1.0, 2.0], [3.0, 4.0]], [[10.0, 2.0]], [1]),
        "integers": ([1, -27, 3, 4], [10, 2], [1, 1]),
        "no rows": ([1.0, 2.0], np.zeros([0], np.float32), np.zeros([0], np.int32)),
    }
    return {
        f"{method} {case} {way}": ask(_changed, tf, *given[:1], method, *given[1:], way)
        for method, (case, given), way in itertools.product(
            ROWS, cases.items(), ("eager", "compiled")
        )
        if way == "eager" or case in {"repeated", "integers"}
    }


def wrong_rows(tf, ask):
    start = [1.0, 2.0, 3.0]
    answers = {}
    for method in ROWS:
        for label, given in {
            "out of range": (start, [1.0], [7]),
            "negative": (start, [1.0], [-1]),
            "another dtype": (start, [1], [0]),
            "another shape": (start, [1.0, 2.0], [1]),
            "bools": ([True, False], [True], [1]),
            "float indices": (start, [1.0], [1.0]),
        }.items():
            answers[f"{method} {label}"] = ask(
                _changed, tf, given[0], method, given[1], given[2], "eager"
            )
        answers[f"{method} no slices"] = ask(
            lambda method=method: getattr(tf.Variable(start), method)([1.0])
        )
    return answers


def entries(tf, ask):
    matrix = [[1.0, 2.0], [3.0, 4.0]]
    cases = {
        "one each": (matrix, [[0, 1], [1, 0]], [10.0, 3.0]),
        "rows": (matrix, [[1]], [[10.0, 3.0]]),
        "repeated": ([1, 2, 3], [[1], [1]], [5, 7]),
        "out of range": (matrix, [[5]], [[10.0, 3.0]]),
        "another shape": (matrix, [[0, 1]], [10.0, 3.0]),
        "too deep": (matrix, [[0, 1, 0]], [10.0]),
    }

    def changed(start, method, indices, updates):
        v = tf.Variable(start)
        getattr(v, method)(indices, updates)
        return _value(v)

    v = tf.Variable(matrix)
    return {
        **{
            f"{method} {case}": ask(changed, given[0], method, *given[1:])
            for method, (case, given) in itertools.product(ENTRIES, cases.items())
        },
        "batch_scatter_update": ask(
            _changed, tf, matrix, "batch_scatter_update", [[10.0], [20.0]], [[1], [0]], "eager"
        ),
        "sparse_read": ask(v.sparse_read, [1, 0]),
        "sparse_read out of range": ask(v.sparse_read, [3]),
        "gather_nd": ask(v.gather_nd, [[1, 0], [0, 0]]),
    }


def slices(tf, ask):
    matrix = [[1.0, 2.0], [3.0, 4.0]]

    def assigned(key, value, start=None):
        v = tf.Variable(matrix if start is None else start)
        return [_value(v[key].assign(value)), _value(v)]

    def compiled():
        v = tf.Variable(matrix)

        def change(i):
            v[0].assign([9.0, 9.0])
            v[i, 1].assign(7.0)
            return v[0] * 2.0

        return [tf.function(change)(tf.constant(1)), _value(v)]

    def again():
        v = tf.Variable(matrix)
        first = v[0]
        first.assign([5.0, 6.0])
        first.assign([7.0, 8.0])
        return [first, _value(v)]

    four = [1.0, 2.0, 3.0, 4.0]
    return {
        "row": ask(assigned, 0, [5.0, 6.0]),
        "from the end": ask(assigned, -1, [5.0, 6.0]),
        "entry": ask(assigned, (1, 0), 9.0),
        "column": ask(assigned, (..., 0), [8.0, 9.0]),
        "range": ask(assigned, slice(1, 3), [8.0, 9.0], four),
        "steps": ask(assigned, slice(None, None, 2), [8.0, 9.0], four),
        "backwards": ask(assigned, slice(None, None, -1), [5.0, 6.0, 7.0, 8.0], four),
        "all": ask(assigned, ..., 3.0, 1.0),
        "new axis": ask(assigned, (None, 0), [[8.0, 9.0]]),
        "tensor index": ask(assigned, tf.constant(1), [8.0, 9.0]),
        "nothing": ask(assigned, slice(0, 0), np.zeros([0, 2], np.float32)),
        "one value": ask(assigned, 0, 5.0),
        "one row": ask(assigned, slice(0, 2), [[5.0, 6.0]]),
        "a leading axis of 1": ask(assigned, 0, [[5.0, 6.0]]),
        "too long": ask(assigned, 0, [5.0, 6.0, 7.0]),
        "too many rows": ask(assigned, 0, [[5.0, 6.0], [7.0, 8.0]]),
        "another dtype": ask(assigned, 0, tf.constant([5, 6])),
        "out of range": ask(assigned, 5, [5.0, 6.0]),
        "of a slice": ask(lambda: tf.Variable(matrix)[0][1].assign(1.0)),
        "of a tensor": ask(lambda: tf.constant(matrix)[0].assign(1.0)),
        "has assign": [
            hasattr(tf.Variable(matrix)[0], "assign"),
            hasattr(tf.constant(matrix)[0], "assign"),
        ],
        "compiled": ask(compiled),
        "kept and assigned again": ask(again),
        "read_value False": ask(lambda: assigned(0, [5.0, 6.0])[1]),
    }


def members(tf, ask):
    strategy = _strategy(tf)
    with strategy.scope():
        mirrored = tf.Variable([1.0, 2.0])
    plain = tf.Variable([1.0, 2.0])

    def loaded(v):
        v.load([5.0, 6.0])
        return _value(v)

    def counted():
        v = tf.Variable(1)
        return [v.count_up_to(3), v.count_up_to(3), _value(v), ask(v.count_up_to, 3)]

    answers = {
        "count_up_to": ask(counted),
        "count_up_to of floats": ask(plain.count_up_to, 3),
        "strategy": mirrored.distribute_strategy is strategy,
        "strategy of a plain one": ask(lambda: plain.distribute_strategy),
        "distributed": mirrored.is_distributed_variable,
    }
    for label, v in {"plain": plain, "mirrored": mirrored}.items():
        for name in ("initializer", "initial_value", "op", "graph"):
            answers[f"{name} {label}"] = ask(getattr, v, name)
        answers[f"create {label}"] = ask(lambda v=v: v.create)
        answers[f"is_initialized {label}"] = ask(v.is_initialized)
        answers[f"eval {label}"] = ask(v.eval)
        answers[f"to_proto {label}"] = ask(v.to_proto)
        answers[f"load {label}"] = ask(loaded, v)
    return answers


def _strategy(tf):
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def _ways(tf, strategy):
    def quietly(fn):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return fn()

    return {
        "eager": lambda fn: quietly(lambda: strategy.run(fn)),
        "compiled": lambda fn: quietly(tf.function(lambda: (strategy.run(fn), 1)[1])),
        "outside": quietly,
    }


def mirrored(tf, ask):
    strategy = _strategy(tf)
    answers = {}
    for synchronization, aggregation, method in itertools.product(
        ("ON_WRITE", "ON_READ"), AGGREGATIONS, ("scatter_add", "scatter_update", "scatter_div")
    ):
        for way, run in _ways(tf, strategy).items():
            if synchronization == "ON_READ" and way == "compiled":
                continue

            def both(
                synchronization=synchronization, aggregation=aggregation, method=method, run=run
            ):
                with strategy.scope():
                    v = tf.Variable(
                        [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
                        aggregation=getattr(tf.VariableAggregation, aggregation),
                        synchronization=getattr(tf.VariableSynchronization, synchronization),
                    )

                def fn():
                    context = tf.distribute.get_replica_context()
                    own = 0 if context is None else context.replica_id_in_sync_group
                    number = tf.cast(own, tf.float32) + 1.0
                    where = tf.stack([tf.cast(own, tf.int32), 2])
                    slices = tf.IndexedSlices(tf.stack([[number, 8.0], [2.0, number]]), where)
                    getattr(v, method)(slices)

                run(fn)
                return strategy.experimental_local_results(v)

            answers[f"{method} {synchronization} {aggregation} {way}"] = ask(both)
    return answers


def reduced(tf, ask):
    strategy = _strategy(tf)

    def step():
        own = tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)
        return tf.IndexedSlices(
            tf.stack([own + 1.0]), tf.stack([tf.cast(own, tf.int32)]), tf.constant([2])
        )

    def inside(op, way):
        def fn():
            found = tf.distribute.get_replica_context().all_reduce(op, step())
            return tf.convert_to_tensor(found)

        run = strategy.run if way == "eager" else tf.function(strategy.run)
        return strategy.experimental_local_results(run(fn))

    return {
        f"all_reduce {op} {way}": ask(inside, op, way)
        for op, way in itertools.product(("SUM", "MEAN"), ("eager", "compiled"))
    } | {
        f"reduce {op}": ask(
            lambda op=op: tf.convert_to_tensor(strategy.reduce(op, strategy.run(step), axis=None))
        )
        for op in ("SUM", "MEAN")
    }


def mirrored_slices(tf, ask):
    strategy = _strategy(tf)
    answers = {}
    for aggregation in AGGREGATIONS:
        for way, run in _ways(tf, strategy).items():

            def both(aggregation=aggregation, run=run):
                with strategy.scope():
                    v = tf.Variable(
                        [[1.0, 2.0], [3.0, 4.0]],
                        aggregation=getattr(tf.VariableAggregation, aggregation),
                    )

                def fn():
                    context = tf.distribute.get_replica_context()
                    own = 0 if context is None else context.replica_id_in_sync_group
                    v[0].assign(tf.stack([tf.cast(own, tf.float32), 8.0]))

                run(fn)
                return strategy.experimental_local_results(v)

            answers[f"{aggregation} {way}"] = ask(both)
    with strategy.scope():
        v = tf.Variable([1.0, 2.0])
    for name, args in {
        "scatter_nd_add": ([[0]], [1.0]),
        "batch_scatter_update": (tf.IndexedSlices(tf.constant([5.0]), tf.constant([0])),),
        "sparse_read": ([0],),
        "gather_nd": ([[0]],),
    }.items():
        answers[name] = ask(lambda name=name, args=args: _value(getattr(v, name)(*args)))
    return answers
