"""Results of `run` that no program can hold: IndexedSlices, text, ragged and sparse tensors."""


def _mirrored(tf):
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def _ways(tf, strategy, step):
    """Return the results of a step that runs as plain Python, in a `function` and as a `function`."""
    return {
        "plain": lambda: strategy.run(step),
        "in a function": tf.function(lambda: strategy.run(step)),
        "a function": lambda: strategy.run(tf.function(step)),
    }


def slices(tf, ask):
    strategy = _mirrored(tf)

    def step():
        index = tf.distribute.get_replica_context().replica_id_in_sync_group
        rows = tf.constant([[1.0, 2.0]]) * (tf.cast(index, tf.float32) + 1)
        return tf.IndexedSlices(rows, tf.constant([0]), tf.constant([3, 2]))

    def dense(results):
        return [tf.convert_to_tensor(part) for part in results]

    def nested(value):
        return [list(part) for part in strategy.experimental_local_results({"a": value})]

    answers = {}
    for way, run in _ways(tf, strategy, step).items():
        local = strategy.experimental_local_results
        answers[f"{way}: local results"] = ask(lambda run=run, local=local: dense(local(run())))
        answers[f"{way}: in a dict"] = ask(lambda run=run: nested(run()))
        answers[f"{way}: gather"] = ask(lambda run=run: strategy.gather(run(), axis=0))
    context = tf.distribute.get_replica_context
    answers["all_gather"] = ask(lambda: strategy.run(lambda: context().all_gather(step(), axis=0)))
    return answers


def tensors_of_the_host(tf, ask):
    strategy = _mirrored(tf)
    steps = {
        "a text": lambda: tf.constant("a"),
        "texts": lambda: tf.constant(["a", "b"]),
        "ragged": lambda: tf.ragged.constant([[1], [2, 3]]),
        "sparse": lambda: tf.sparse.from_dense([1, 0]),
        "in a dict": lambda: {"number": tf.constant(1), "text": tf.constant("a")},
    }
    return {
        f"{label}: {way}": ask(lambda run=run: strategy.experimental_local_results(run()))
        for label, step in steps.items()
        for way, run in _ways(tf, strategy, step).items()
    }
