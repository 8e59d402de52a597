"""The order of the keys in what `parse_example` and kin return."""


def keys(tf, ask):
    fixed = tf.io.FixedLenFeature([], tf.int64, default_value=0)
    varying = tf.io.VarLenFeature(tf.int64)
    sequence = tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)
    features = {"z": fixed, "age": fixed, "tags": varying, "b": varying, "m": sequence}
    context = {"z": fixed, "tags": varying, "a": fixed, "b": varying}
    steps = {"y": sequence, "a": varying, "c": sequence, "d": varying}
    example = tf.train.Example().SerializeToString()
    several = tf.train.SequenceExample().SerializeToString()
    return {
        "one": ask(lambda: list(tf.io.parse_single_example(example, features))),
        "batch": ask(lambda: list(tf.io.parse_example([example], features))),
        "dense": ask(lambda: list(tf.io.parse_example([example], {"z": fixed, "a": fixed}))),
        "sequence": ask(
            lambda: [
                list(part) for part in tf.io.parse_single_sequence_example(several, context, steps)
            ]
        ),
        "sequences": ask(
            lambda: [
                list(part) for part in tf.io.parse_sequence_example([several], context, steps)[:2]
            ]
        ),
    }
