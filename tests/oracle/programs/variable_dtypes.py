"""Variables under MirroredStrategy keep their dtype, whatever replicas assign."""

import itertools

_DTYPES = ("bool", "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float64", "complex64")


def _ways(tf, strategy):
    return {
        "eager": strategy.run,
        "compiled": lambda fn: tf.function(lambda: strategy.run(fn))(),
        "function": lambda fn: strategy.run(tf.function(fn)),
    }


def _answers(tf, ask, aggregation, dtypes, ways):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    local = strategy.experimental_local_results
    answers = {}
    for dtype, synchronization, way in itertools.product(dtypes, ("ON_WRITE", "ON_READ"), ways):

        def both(dtype=dtype, synchronization=synchronization, way=way):
            with strategy.scope():
                v = tf.Variable(
                    tf.cast([1, 1], dtype),
                    aggregation=aggregation,
                    synchronization=getattr(tf.VariableSynchronization, synchronization),
                )

            def fn():
                own = tf.distribute.get_replica_context().replica_id_in_sync_group
                return tf.convert_to_tensor(v.assign(tf.cast(tf.stack([own, 1]), dtype)))

            returned = local(_ways(tf, strategy)[way](fn))
            read = v.read_value()
            outside = tf.function(lambda: tf.convert_to_tensor(v))()
            return [returned, local(v), read, outside, v.dtype]

        answers[f"{dtype} {synchronization} {way}"] = ask(both)
    return answers


def only_first(tf, ask):
    aggregation = tf.VariableAggregation.ONLY_FIRST_REPLICA
    return _answers(tf, ask, aggregation, _DTYPES, ("eager", "compiled", "function"))


def summed(tf, ask):
    # Compiled, TensorFlow's error for bools has another class.
    numbers = _answers(tf, ask, tf.VariableAggregation.SUM, _DTYPES[1:], ("eager", "compiled"))
    return numbers | _answers(tf, ask, tf.VariableAggregation.SUM, ["bool"], ["eager"])
