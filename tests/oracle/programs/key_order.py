"""The order of the keys of dicts that go through functions and replicas: programs unpack `batch.values()`."""


def _batch(tf):
    return {
        "x": tf.constant([1.0]),
        "label": tf.constant([2.0]),
        "all": {"z": tf.constant(3.0), "y": tf.constant(4.0)},
    }


def _keys(value):
    return [list(value), list(value["all"])]


def functions(tf, ask):
    def first(batch):
        x, *_ = batch.values()
        return x

    def doubled(batch):
        return {key: batch[key] for key in ("x", "label", "all")}

    return {
        "argument": ask(lambda: tf.function(first)(_batch(tf))),
        "result": ask(lambda: _keys(tf.function(doubled)(_batch(tf)))),
        "in a tuple": ask(
            lambda: _keys(tf.function(lambda b: (1, [doubled(b)]))(_batch(tf))[1][0])
        ),
        "keywords": ask(
            lambda: tf.function(lambda **k: next(iter(k.values())))(
                b=tf.constant(1), a=tf.constant(2)
            )
        ),
    }


def replicas(tf, ask):
    strategies = {
        "two": tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]),
        "one": tf.distribute.OneDeviceStrategy("CPU:0"),
    }
    answers = {}
    for name, strategy in strategies.items():
        answers |= {f"{name}: {label}": answer for label, answer in _on(tf, ask, strategy).items()}
    return answers


def _on(tf, ask, strategy):
    def step(batch):
        x, *_ = batch.values()
        return {"x": x, "label": batch["label"], "all": batch["all"]}

    def context():
        return tf.distribute.get_replica_context()

    def summed():
        return _keys(context().all_reduce("SUM", _batch(tf)))

    def merged():
        return context().merge_call(lambda _, batch: _keys(batch), args=(_batch(tf),))

    def run(function, *args):
        return strategy.run(function, args=args)

    def local(value):
        return strategy.experimental_local_results(value)

    return {
        "plain": ask(lambda: _keys(run(step, _batch(tf)))),
        "in a function": ask(lambda: _keys(tf.function(lambda: run(step, _batch(tf)))())),
        "a function": ask(lambda: _keys(run(tf.function(step), _batch(tf)))),
        "values": ask(lambda: local(run(tf.function(step), run(step, _batch(tf)))["x"])[0]),
        "local results": ask(lambda: _keys(local(run(step, _batch(tf)))[0])),
        "reduce": ask(lambda: _keys(strategy.reduce("MEAN", run(step, _batch(tf)), axis=None))),
        "all_reduce": ask(lambda: local(run(summed))[0]),
        "merge_call": ask(lambda: local(run(merged))[0]),
    }


def loops(tf, ask):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    rows = {"x": tf.range(8.0), "a": 10 * tf.range(8.0)}
    dataset = tf.data.Dataset.from_tensor_slices(rows).batch(2)

    def trained():
        iterator = iter(strategy.experimental_distribute_dataset(dataset))
        with strategy.scope():
            total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)

        def step(batch):
            x, a = batch.values()
            total.assign_add(tf.reduce_sum(x - 2 * a))

        @tf.function
        def train(iterator):
            for _ in tf.range(4):
                strategy.run(step, args=(next(iterator),))

        train(iterator)
        return total.numpy()

    return {"steps": ask(trained)}
