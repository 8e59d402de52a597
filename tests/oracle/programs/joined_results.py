"""Reducing and gathering results of replicas that are ragged tensors or IndexedSlices, and casts of sparse tensors."""


def slices(tf, ask):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def made():
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        values = tf.ones([1, 2]) * (tf.cast(replica, tf.float32) + 1.0)
        return tf.IndexedSlices(values, tf.constant([1]), tf.constant([3, 2]))

    value = strategy.run(made)
    return {
        f"{op} along {axis}": ask(strategy.reduce, op, value, axis=axis)
        for op in ("SUM", "MEAN")
        for axis in (0, 1)
    }


def ragged(tf, ask):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    value = strategy.run(lambda: tf.ragged.constant([[1, 2], [3]]))
    return {f"axis {axis}": ask(strategy.gather, value, axis) for axis in (0, 1)}


def sparse(tf, ask):
    value = tf.sparse.from_dense([[1.5, 0.0], [0.0, -2.5]])
    return {
        "integers": ask(tf.cast, value, tf.int32),
        "bools": ask(tf.cast, value, tf.bool),
        "in a map": [
            tf.sparse.to_dense(row)
            for row in tf.data.Dataset.from_tensor_slices(value).map(lambda r: tf.cast(r, tf.int64))
        ],
    }
