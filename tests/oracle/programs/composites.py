"""Values that consist of several tensors, in `tf.nest` with `expand_composites`."""


def _values(tf):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    parts = strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant([context.replica_id_in_sync_group, 7])
    )
    same = strategy.run(lambda: tf.constant(3))
    dataset = tf.data.Dataset.from_tensor_slices({"a": [1, 2], "b": [3.0, 4.0]}).batch(2)
    step = next(iter(strategy.experimental_distribute_dataset(dataset)))
    sparse = tf.SparseTensor([[0, 1]], [3], [2, 2])
    return parts, same, step, sparse


def flattened(tf, ask):
    parts, same, step, sparse = _values(tf)
    flat = tf.nest.flatten
    return {
        "per replica": ask(lambda: flat(parts, expand_composites=True)),
        "per replica, closed": ask(lambda: len(flat(parts))),
        "the same on all": ask(lambda: flat(same, expand_composites=True)),
        "a step": ask(lambda: flat(step, expand_composites=True)),
        "sparse": ask(lambda: flat(sparse, expand_composites=True)),
        "sparse, closed": ask(lambda: len(flat(sparse))),
        "in a structure": ask(lambda: flat({"b": [1, parts], "a": sparse}, expand_composites=True)),
        "a spec": ask(lambda: flat(tf.type_spec_from_value(parts), expand_composites=True)),
        "an Optional": ask(
            lambda: len(flat(tf.experimental.Optional.from_value(1), expand_composites=True))
        ),
        "a dataset": ask(lambda: len(flat(tf.data.Dataset.range(2), expand_composites=True))),
        "a variable": ask(lambda: len(flat(tf.Variable(1.0), expand_composites=True))),
        "is_nested": ask(lambda: tf.nest.is_nested(parts)),
    }


def packed(tf, ask):
    parts, same, _, sparse = _values(tf)
    nest = tf.nest

    def repacked(structure, leaves):
        made = nest.pack_sequence_as(structure, leaves, expand_composites=True)
        return nest.flatten(made, expand_composites=True)

    def mapped(*structures):
        made = nest.map_structure(lambda *xs: sum(xs), *structures, expand_composites=True)
        return nest.flatten(made, expand_composites=True)

    return {
        "per replica": ask(repacked, parts, [tf.constant(5), tf.constant(6)]),
        "too few": ask(repacked, parts, [tf.constant(5)]),
        "in a structure": ask(repacked, {"a": parts, "b": 1}, [tf.constant(5), tf.constant(6), 7]),
        "sparse": ask(repacked, sparse, [[[0, 0]], [4], [2, 2]]),
        "mapped": ask(mapped, parts),
        "mapped, two": ask(mapped, parts, parts),
        "mapped, with the same on all": ask(mapped, parts, same),
    }


def compared(tf, ask):
    parts, same, _, sparse = _values(tf)

    def alike(one, two):
        return tf.nest.assert_same_structure(one, two, expand_composites=True)

    return {
        "itself": ask(alike, parts, parts),
        "the same on all": ask(alike, parts, same),
        "sparse": ask(alike, parts, sparse),
        "a number": ask(alike, parts, 1),
        "a list": ask(alike, parts, [1, 2]),
        "a list first": ask(alike, [1, 2], parts),
    }
