"""Text that is appended to text: `+` with str, bytes, lists and tensors."""


def eager(tf, ask):
    one, two = tf.constant("a"), tf.constant(["é", ""])
    table = tf.constant([["c"], ["d"]])
    few, many = ["1", "2"], ["1", "2", "3"]
    return {
        "str behind": ask(lambda: one + "é"),
        "str before": ask(lambda: "é" + one),
        "bytes": ask(lambda: (one + b"\xff", b"\xff" + one)),
        "vector": ask(lambda: (two + "!", "!" + two)),
        "list": ask(lambda: (two + few, few + two)),
        "broadcast": ask(lambda: (two + table, table + one)),
        "unlike": ask(lambda: two + many),
        "number": ask(lambda: one + 1),
    }


def in_datasets(tf, ask):
    words = tf.data.Dataset.from_tensor_slices(["a", "é", ""])

    def read(dataset):
        return [element.numpy() for element in dataset], dataset.element_spec

    def grown(text):
        text += "?"
        return text

    return {
        "behind": ask(lambda: read(words.map(lambda t: t + "!"))),
        "before": ask(lambda: read(words.map(lambda t: "<" + t))),
        "itself": ask(lambda: read(words.map(lambda t: t + t))),
        "in place": ask(lambda: read(words.map(grown))),
        "batch": ask(lambda: read(words.batch(2).map(lambda t: "<" + t + ">"))),
        "first of a batch": ask(lambda: read(words.batch(2).map(lambda t: t + t[0]))),
        "reduce": ask(lambda: words.reduce("", lambda joined, t: joined + t + ",")),
        "filter": ask(lambda: read(words.filter(lambda t: t + "!" == "é!"))),
    }
