"""Functions of `tf.data.experimental` whose methods of `Dataset` take other arguments."""


def arguments(tf, ask):
    older = tf.data.experimental
    numbers = tf.data.Dataset.range(5)

    def batched(**how):
        return [int(x[0]) for x in numbers.apply(older.map_and_batch(lambda x: x, 2, **how))]

    def repeated(count):
        shuffled = numbers.apply(older.shuffle_and_repeat(3, count=count, seed=1))
        return sorted(int(x) for x in shuffled.take(15))

    return {
        "calls": ask(lambda: batched(num_parallel_calls=2)),
        "batches": ask(lambda: batched(num_parallel_batches=2)),
        "calls and batches": ask(lambda: batched(num_parallel_calls=2, num_parallel_batches=2)),
        **{f"repeat {count}": ask(lambda n=count: repeated(n)) for count in (None, -1, 2, 0, -2)},
    }


def errors_in_batches(tf, ask):
    """What follows an element that fails."""

    def failing(x):
        def unless_one(n):
            if n == 1:
                raise ValueError
            return n

        return tf.ensure_shape(tf.numpy_function(unless_one, [x], tf.int64), [])

    numbers = tf.data.Dataset.range(8)
    ways = {
        "map, batch": lambda: numbers.map(failing).batch(3),
        "map_and_batch": lambda: numbers.apply(
            tf.data.experimental.map_and_batch(failing, batch_size=3)
        ),
        "map, take, batch": lambda: numbers.map(failing).take(8).batch(3),
        "map, ignore_errors, batch": lambda: numbers.map(failing).ignore_errors().batch(3),
    }
    return {
        name: ask(lambda make=make: list(make().ignore_errors())) for name, make in ways.items()
    }
