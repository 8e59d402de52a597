"""Compiled functions that take and return text."""

# pyright: basic


def functions_of_text(tf, ask):
    shout = tf.function(lambda text: tf.strings.join([text, "!"]))
    spec = tf.TensorSpec([], tf.string)
    length = tf.function(lambda text: tf.strings.length(text) + 0, input_signature=[spec])
    one = tf.function(lambda text, x: (tf.strings.to_number(text) + x, tf.strings.as_string(x)))
    keys = tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2])
    table = tf.lookup.StaticHashTable(keys, -1)
    found = tf.function(lambda text: table.lookup(text) + 0)
    equal = tf.function(lambda text: tf.where(text == "a", 1, 2))
    text, texts = tf.constant("abc"), tf.constant(["a", "b"])
    calls = {
        "a text": lambda: shout(text),
        "texts": lambda: shout(texts),
        "str": lambda: shout("abc"),
        "another text": lambda: shout(tf.constant("d")),
        "concrete, traced with a text": lambda: shout.get_concrete_function(text)(tf.constant("d")),
        "concrete, traced with a spec": lambda: shout.get_concrete_function(spec)(text),
        "concrete, of any length": lambda: shout.get_concrete_function(
            tf.TensorSpec([None], tf.string)
        )(texts),
        "signature": lambda: length(text),
        "signature and str": lambda: length("abcd"),
        "signature and a number": lambda: length(tf.constant(1)),
        "signature and texts": lambda: length(texts),
        "signature, concrete": lambda: length.get_concrete_function()(text),
        "structured_input_signature": lambda: (
            length.get_concrete_function().structured_input_signature
        ),
        "text and number": lambda: one(tf.constant("2"), tf.constant(1.5)),
        "lookup": lambda: found(tf.constant(["a", "z"])),
        "lookup, concrete": lambda: found.get_concrete_function(texts)(texts),
        "comparison": lambda: equal(texts),
        "in a map": lambda: list(tf.data.Dataset.from_tensor_slices(["a", "b"]).map(shout)),
    }
    return {label: ask(call) for label, call in calls.items()}
