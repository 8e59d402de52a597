"""Strategies: which is current, what their extensions do, and what they refuse."""

import numpy as np


def _mirrored(tf, replicas=2):
    return tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(replicas)])


def _one(tf):
    return tf.distribute.OneDeviceStrategy("CPU:0")


def _state(tf, strategy):
    distribute = tf.distribute
    context = distribute.get_replica_context()
    return [
        distribute.has_strategy(),
        distribute.in_cross_replica_context(),
        distribute.get_strategy() is strategy,
        context is None,
        None if context is None else context.num_replicas_in_sync,
    ]


def contexts(tf, ask):
    strategy, other = _mirrored(tf), _one(tf)
    seen = {"outside": _state(tf, strategy)}
    with strategy.scope() as given:
        seen["scope"] = _state(tf, strategy)
        seen["scope gives the strategy"] = given is strategy
        with strategy.scope():
            seen["scope twice"] = _state(tf, strategy)
        seen["scope again"] = _state(tf, strategy)
    with other.scope():
        seen["one device"] = _state(tf, other)
    inside = []
    strategy.run(lambda: inside.append(_state(tf, strategy)))
    seen["run"] = inside[0]
    del inside[:]
    other.run(lambda: inside.append(_state(tf, other)))
    seen["run on one device"] = inside[0]
    del inside[:]
    default = tf.distribute.get_strategy()
    default.run(lambda: inside.append(_state(tf, default)))
    seen["run of the default"] = inside[0]
    with default.scope():
        seen["scope of the default"] = _state(tf, default)
    traced = []

    @tf.function
    def step():
        traced.append(_state(tf, strategy))
        strategy.run(lambda: traced.append(_state(tf, strategy)) or tf.constant(1))
        return tf.constant(1)

    step()
    seen["function"] = traced[0]
    seen["run in a function"] = traced[1]
    with strategy.scope():
        del traced[:]
        tf.function(lambda: (traced.append(_state(tf, strategy)), tf.constant(1))[1])()
        seen["function in scope"] = traced[0]
    merged = []
    strategy.run(
        lambda: tf.distribute.get_replica_context().merge_call(
            lambda given: merged.append([*_state(tf, strategy), given is strategy])
        )
    )
    seen["merge_call"] = merged[0]
    seen["after"] = _state(tf, strategy)
    return seen


def scopes(tf, ask):
    strategy, other, one = _mirrored(tf), _mirrored(tf), _one(tf)
    default = tf.distribute.get_strategy()

    def nested(outer, inner):
        with outer.scope(), inner.scope():
            return "fine"

    def entered_in_run(outer, inner):
        def fn():
            with inner.scope():
                return 1

        return outer.run(fn) is not None

    def run_in_scope(outer, inner):
        with outer.scope():
            return inner.run(lambda: 1) is not None

    def set_in_scope():
        with strategy.scope():
            tf.distribute.experimental_set_strategy(other)

    def set_in_run():
        strategy.run(lambda: tf.distribute.experimental_set_strategy(None))

    def set_twice():
        tf.distribute.experimental_set_strategy(strategy)
        try:
            tf.distribute.experimental_set_strategy(other)
            first = tf.distribute.get_strategy() is other
            with other.scope():
                inside = tf.distribute.get_strategy() is other
        finally:
            tf.distribute.experimental_set_strategy(None)
        return [first, inside, tf.distribute.has_strategy()]

    def scope_of_another_when_set():
        tf.distribute.experimental_set_strategy(strategy)
        try:
            with other.scope():
                return tf.distribute.get_strategy() is other
        finally:
            tf.distribute.experimental_set_strategy(None)

    def kept(of):
        outer, inner, seen = of.scope(), of.scope(), []
        with outer:
            with inner, outer:
                seen.append(_state(tf, of))
            seen.append(_state(tf, of))
        seen.append(_state(tf, of))
        with inner:
            seen.append(_state(tf, of))
        return [*seen, _state(tf, of)]

    answers = {
        "kept": ask(kept, strategy),
        "kept on one": ask(kept, one),
        "the same": ask(nested, strategy, strategy),
        "another": ask(nested, strategy, other),
        "one in mirrored": ask(nested, strategy, one),
        "the default in mirrored": ask(nested, strategy, default),
        "mirrored in the default": ask(nested, default, strategy),
        "scope in run": ask(entered_in_run, strategy, strategy),
        "scope of another in run": ask(entered_in_run, strategy, other),
        "scope in run on one": ask(entered_in_run, one, one),
        "scope in run of the default": ask(entered_in_run, default, strategy),
        "run in scope": ask(run_in_scope, strategy, strategy),
        "run of another in scope": ask(run_in_scope, strategy, other),
        "run of the default in scope": ask(run_in_scope, strategy, default),
        "run in run": ask(lambda: strategy.run(lambda: strategy.run(lambda: 1)) is not None),
        "run in run on one": ask(lambda: one.run(lambda: one.run(lambda: 1))),
        "run in run of the default": ask(lambda: default.run(lambda: default.run(lambda: 1))),
        "run of another in run": ask(
            lambda: strategy.run(lambda: other.run(lambda: 1)) is not None
        ),
        "set in scope": ask(set_in_scope),
        "set in run": ask(set_in_run),
        "set twice": ask(set_twice),
        "scope of another when set": ask(scope_of_another_when_set),
        "set what is none": ask(tf.distribute.experimental_set_strategy, 3),
        "has a strategy after": tf.distribute.has_strategy(),
    }
    tf.distribute.experimental_set_strategy(None)
    return answers


def facts(tf, ask):
    strategies = {
        "mirrored": _mirrored(tf),
        "mirrored on one": _mirrored(tf, 1),
        "one device": _one(tf),
        "default": tf.distribute.get_strategy(),
    }
    answers = {}
    for label, strategy in strategies.items():
        extended = strategy.extended
        answers |= {
            f"{label}: replicas": strategy.num_replicas_in_sync,
            f"{label}: resolver": strategy.cluster_resolver,
            f"{label}: is Strategy": isinstance(strategy, tf.distribute.Strategy),
            f"{label}: extended": isinstance(extended, tf.distribute.StrategyExtended),
            f"{label}: worker devices": ask(
                lambda extended=extended: [name[-5:] for name in extended.worker_devices]
            ),
            f"{label}: parameter devices": ask(
                lambda extended=extended: [name[-5:] for name in extended.parameter_devices]
            ),
            f"{label}: static shapes": extended.experimental_require_static_shapes,
            f"{label}: local results": strategy.experimental_local_results(3),
            f"{label}: repr says the class": type(strategy).__name__ in repr(strategy),
            f"{label}: run": ask(
                lambda strategy=strategy: strategy.experimental_local_results(
                    strategy.run(lambda x: x + 1, args=(tf.constant(1),))
                )
            ),
            f"{label}: options": ask(
                lambda strategy=strategy: strategy.experimental_local_results(
                    strategy.run(lambda: 1, options=tf.distribute.RunOptions())
                )
            ),
        }
    return answers


def extended(tf, ask):
    strategy = _mirrored(tf)
    more = strategy.extended
    local = strategy.experimental_local_results
    with strategy.scope():
        v = tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN)
        w = tf.Variable(10.0)
    x = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(context.replica_id_in_sync_group + 1.0)
    )

    def kept(value):
        return [np.asarray(part) for part in local(value)]

    def in_scope(function):
        with strategy.scope():
            return function()

    def updated(**kwargs):
        w.assign(10.0)
        in_scope(lambda: more.update(w, lambda copy, y: copy.assign_add(y), args=(x,), **kwargs))
        return kept(w)

    def updated_by_name():
        w.assign(10.0)
        in_scope(lambda: more.update(w, lambda copy, y: copy.assign(y), kwargs={"y": x}))
        return kept(w)

    def colocated():
        with strategy.scope(), more.colocate_vars_with(v):
            return kept(tf.Variable(3.0))

    def in_run(function):
        return strategy.run(function) is not None

    return {
        "reduce_to a variable": ask(lambda: kept(in_scope(lambda: more.reduce_to("SUM", x, v)))),
        "reduce_to a device": ask(
            lambda: kept(in_scope(lambda: more.reduce_to("MEAN", x, "/cpu:0")))
        ),
        "reduce_to itself": ask(lambda: kept(in_scope(lambda: more.reduce_to("SUM", x, x)))),
        "reduce_to of a tensor, SUM": ask(
            lambda: kept(in_scope(lambda: more.reduce_to("SUM", tf.constant(1.0), v)))
        ),
        "reduce_to of a tensor, MEAN": ask(
            lambda: kept(in_scope(lambda: more.reduce_to("MEAN", tf.constant(1.0), v)))
        ),
        "reduce_to of a nest": ask(
            lambda: kept(in_scope(lambda: more.reduce_to("SUM", [x, x], v))[0])
        ),
        "reduce_to outside of scope": ask(lambda: kept(more.reduce_to("SUM", x, v))),
        "broadcast_to a variable": ask(
            lambda: kept(in_scope(lambda: more.broadcast_to(tf.constant(2.0), v)))
        ),
        "broadcast_to a device": ask(
            lambda: kept(in_scope(lambda: more.broadcast_to(tf.constant(2.0), "/cpu:0")))
        ),
        "broadcast_to a number": ask(lambda: kept(in_scope(lambda: more.broadcast_to(2.0, v)))),
        "update": ask(updated, group=False),
        "update by name": ask(updated_by_name),
        "update outside of scope": ask(
            lambda: more.update(w, lambda copy, y: copy.assign(y), args=(x,)) is not None
        ),
        "update in run": ask(in_run, lambda: more.update(w, lambda copy: copy.assign(1.0))),
        "reduce_to in run": ask(in_run, lambda: more.reduce_to("SUM", 1.0, v)),
        "update of a number": ask(in_scope, lambda: more.update(3, lambda copy: copy)),
        "colocate_vars_with": ask(colocated),
        "colocate_vars_with a number": ask(
            in_scope, lambda: more.colocate_vars_with(3).__enter__()
        ),
        "value_container": ask(lambda: more.value_container(v) is v),
        "value_container of a tensor": ask(lambda: more.value_container(tf.constant(3.0))),
        "call_for_each_replica": ask(
            lambda: kept(in_scope(lambda: more.call_for_each_replica(lambda y: y + 1, args=(x,))))
        ),
    }


def made(tf, ask):
    make = tf.distribute.MirroredStrategy
    distribute = tf.distribute
    cpus = tf.config.list_logical_devices("CPU")
    return {
        "no devices": ask(lambda: make([]).num_replicas_in_sync == len(cpus)),
        "None": ask(lambda: make(None).num_replicas_in_sync == len(cpus)),
        "a tuple": ask(lambda: make(("CPU:0", "CPU:1")).num_replicas_in_sync),
        "logical devices": ask(lambda: make(cpus[:2]).num_replicas_in_sync),
        **{
            f"{name}": ask(
                lambda name=name: (
                    make(
                        ["CPU:0", "CPU:1"], cross_device_ops=getattr(distribute, name)()
                    ).num_replicas_in_sync
                )
            )
            for name in ("NcclAllReduce", "HierarchicalCopyAllReduce", "ReductionToOneDevice")
        },
        "NcclAllReduce(2)": ask(lambda: distribute.NcclAllReduce(num_packs=2) is not None),
        "NcclAllReduce(-1)": ask(lambda: distribute.NcclAllReduce(num_packs=-1) is not None),
        "HierarchicalCopyAllReduce(-1)": ask(
            lambda: distribute.HierarchicalCopyAllReduce(-1) is not None
        ),
        "ReductionToOneDevice of a device": ask(
            lambda: distribute.ReductionToOneDevice(reduce_to_device="/cpu:0") is not None
        ),
        "kinds": [
            issubclass(getattr(distribute, name), distribute.CrossDeviceOps)
            for name in ("NcclAllReduce", "HierarchicalCopyAllReduce", "ReductionToOneDevice")
        ],
        "text for ops": ask(lambda: make(["CPU:0", "CPU:1"], cross_device_ops="nccl") is not None),
        "one device": ask(lambda: distribute.OneDeviceStrategy(device="/cpu:0") is not None),
        "one device, none": ask(distribute.OneDeviceStrategy),
        "one device, a list": ask(lambda: distribute.OneDeviceStrategy(["CPU:0"]) is not None),
        "ValueContext": ask(
            lambda: [
                distribute.experimental.ValueContext(1, 3).replica_id_in_sync_group,
                distribute.experimental.ValueContext(1, 3).num_replicas_in_sync,
            ]
        ),
        "ValueContext without arguments": ask(
            lambda: distribute.experimental.ValueContext().num_replicas_in_sync
        ),
        "RunOptions": ask(lambda: list(distribute.RunOptions()._fields)),
        "RunOptions values": ask(lambda: list(distribute.RunOptions())),
        "unknown RunOption": ask(distribute.RunOptions, colour="red"),
    }
