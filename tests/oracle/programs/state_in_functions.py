"""Functions of a dataset that read and change what lies outside of them: variables and iterators."""

import numpy as np


def _numbers(dataset):
    return [np.asarray(x).tolist() for x in dataset]


def _in_turn(tf, dataset):
    """Let nothing be read before it is asked for."""
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.inject_prefetch = False
    return dataset.with_options(options)


def _counter(tf, value=0):
    return tf.Variable(value, dtype=tf.int64)


def _seen(tf, build):
    """Return the elements, each with what the variable held when it was there."""
    v = _counter(tf)
    return [(np.asarray(x).tolist(), int(v.numpy())) for x in _in_turn(tf, build(v))], int(
        v.numpy()
    )


def _changed(tf, build, value=1):
    """Return the elements of a dataset whose functions read a variable that the loop changes."""
    v, found = _counter(tf, value), []
    for x in _in_turn(tf, build(v)):
        found.append(np.asarray(x).tolist())
        v.assign_add(10)
    return found


def assigning(tf, ask):
    dataset = tf.data.Dataset

    def beside(v):
        def count(x):
            v.assign_add(1)
            return x

        return dataset.range(5).map(count)

    def compiled(v):
        @tf.function
        def count(x):
            return v.assign_add(1) + x

        return dataset.range(5).map(count)

    def called(v):
        @tf.function
        def count(x):
            return v.assign_add(1) + x

        count(np.int64(0))
        return dataset.range(5).map(lambda x: count(x) * 2)

    def keyed(v):
        def key(x):
            v.assign_add(1)
            return x % 2

        return dataset.range(8).group_by_window(key, lambda _, group: group.batch(4), 4)

    def reduced(v):
        def reduce(_, group):
            v.assign_add(1)
            return group.batch(4)

        return dataset.range(8).group_by_window(lambda x: x % 2, reduce, 4)

    def flattened(v):
        def inner(_):
            v.assign_add(1)
            return dataset.range(2)

        return dataset.range(3).flat_map(inner)

    def generated(v):
        def generate():
            for number in range(4):
                v.assign_add(1)
                yield number

        return dataset.from_generator(generate, output_signature=tf.TensorSpec([], tf.int64))

    def passes():
        v = _counter(tf)
        counted = dataset.range(3).map(lambda _: v.assign_add(1))
        return counted.element_spec, _numbers(counted), _numbers(counted), int(v.numpy())

    def folded():
        v = _counter(tf)
        total = dataset.range(5).reduce(np.int64(0), lambda s, _: s + v.assign_add(1))
        return int(total), int(v.numpy())

    def cached():
        v = _counter(tf)
        kept = dataset.range(3).map(lambda _: v.assign_add(1)).cache()
        return _numbers(kept), _numbers(kept), int(v.numpy())

    def in_threads():
        v = _counter(tf)
        counted = dataset.range(50).map(lambda _: v.assign_add(1), num_parallel_calls=4)
        return sorted(_numbers(counted)), int(v.numpy())

    def looped():
        v = _counter(tf)

        @tf.function
        def total():
            found = tf.constant(0, tf.int64)
            for x in dataset.range(4).map(lambda _: v.assign_add(1)):
                found = found + x
            return found

        return int(total()), int(total()), int(v.numpy())

    texts = ["a", "b", "c"]
    builds = {
        "the count": lambda v: dataset.range(5).map(lambda _: v.assign_add(1)),
        "down": lambda v: dataset.range(5).map(lambda x: v.assign_sub(x) * 1),
        "put": lambda v: dataset.range(5).map(lambda x: v.assign(x * x) + 1),
        "twice": lambda v: dataset.range(3).map(lambda _: v.assign_add(1) * 0 + v.assign_add(2)),
        "beside": beside,
        "in filter": lambda v: dataset.range(6).filter(lambda _: v.assign_add(1) % 2 == 0),
        "in take_while": lambda v: dataset.range(6).take_while(lambda _: v.assign_add(1) < 4),
        "in flat_map": lambda v: dataset.range(4).flat_map(
            lambda _: dataset.from_tensors(v.assign_add(1))
        ),
        "beside flat_map": flattened,
        "in a map in flat_map": lambda v: dataset.range(2).flat_map(
            lambda _: dataset.range(2).map(lambda _: v.assign_add(1))
        ),
        "in interleave": lambda v: dataset.range(4).interleave(
            lambda _: dataset.from_tensors(v.assign_add(1)).repeat(2), cycle_length=2
        ),
        "in scan": lambda v: dataset.range(4).scan(
            np.int64(0), lambda s, _: (s + v.assign_add(1), s)
        ),
        "in the key of groups": keyed,
        "for each group": reduced,
        "in a generator": generated,
        "in a compiled function": compiled,
        "called in a function": called,
        "beside text": lambda v: dataset.from_tensor_slices(texts).map(lambda _: v.assign_add(1)),
        "two maps": lambda v: dataset.range(3).map(lambda _: v.assign_add(1)).map(
            lambda x: x * 10 + v.assign_add(1)
        ),
        "repeated": lambda v: dataset.range(2).map(lambda _: v.assign_add(1)).repeat(2),
    }  # fmt: skip
    return {label: ask(_seen, tf, build) for label, build in builds.items()} | {
        "two passes": ask(passes),
        "in reduce": ask(folded),
        "below cache": ask(cached),
        "in threads": ask(in_threads),
        "in a function that loops": ask(looped),
    }


def reading(tf, ask):
    dataset = tf.data.Dataset

    def compiled(v):
        @tf.function
        def plus(x):
            return v + x

        return dataset.range(5).map(plus)

    def between_passes():
        v = _counter(tf, 3)
        read = dataset.range(3).map(lambda x: x * v)
        first = _numbers(read)
        v.assign(5)
        return read.element_spec, first, _numbers(read)

    def late():
        v = _counter(tf, 3)
        read = dataset.range(3).map(lambda x: x * v)
        v.assign(5)
        return _numbers(read)

    def of_a_table():
        table, found = tf.Variable(np.arange(6, dtype=np.float32)), []
        for x in _in_turn(tf, dataset.range(4).map(lambda x: table.read_value()[x])):
            found.append(float(x))
            table.assign_add(np.ones(6, np.float32))
        return found

    def of_any_length():
        v, found = tf.Variable(1.0), []

        def rows():
            yield from (np.ones(length, np.float32) for length in (1, 2, 3))

        made = dataset.from_generator(rows, output_signature=tf.TensorSpec([None], tf.float32))
        for x in _in_turn(tf, made.map(lambda x: x * v)):
            found.append(x.numpy().tolist())
            v.assign_add(1.0)
        return found

    builds = {
        "in map": lambda v: dataset.range(6).map(lambda x: x + v),
        "the variable itself": lambda v: dataset.range(4).map(lambda _: v),
        "read_value": lambda v: dataset.range(4).map(lambda x: x * v.read_value()),
        "in filter": lambda v: dataset.range(8).filter(lambda x: x * 10 > v),
        "in take_while": lambda v: dataset.range(8).take_while(lambda x: x * 9 <= v),
        "in flat_map": lambda v: dataset.range(4).flat_map(
            lambda x: dataset.from_tensors(x * v).repeat(2)
        ),
        "in a map in flat_map": lambda v: dataset.range(3).flat_map(
            lambda x: dataset.range(3).map(lambda y: x * 100 + y + v)
        ),
        "in interleave": lambda v: dataset.range(4).interleave(
            lambda x: dataset.from_tensors(x + v).repeat(2), cycle_length=2
        ),
        "in scan": lambda v: dataset.range(5).scan(np.int64(0), lambda s, x: (s + v, s + x + v)),
        "in a compiled function": compiled,
        "beside text": lambda v: dataset.from_tensor_slices(["a", "b", "c"]).map(
            lambda _: v.read_value() + 1
        ),
        "twice": lambda v: dataset.range(4).map(lambda x: x + v).map(lambda x: x * v),
        "then filtered": lambda v: dataset.range(6).map(lambda x: x + v).filter(
            lambda x: x % 2 == 1
        ),
        "in pairs": lambda v: dataset.zip(
            dataset.range(4).map(lambda x: x + v), dataset.range(4)
        ).map(lambda x, y: x * y),
        "repeated": lambda v: dataset.range(2).map(lambda x: x + v).repeat(2),
        "taken and skipped": lambda v: dataset.range(9).map(lambda x: x + v).skip(1).take(4),
    }  # fmt: skip
    return {label: ask(_changed, tf, build) for label, build in builds.items()} | {
        "between passes": ask(between_passes),
        "before the first pass": ask(late),
        "a row of a table": ask(of_a_table),
        "rows of any length": ask(of_any_length),
    }


def pulling(tf, ask):
    dataset = tf.data.Dataset

    def pulled(build, source=None):
        iterator = iter(dataset.range(100) if source is None else source)
        made = build(iterator)
        return made.element_spec, _numbers(made), np.asarray(next(iterator)).tolist()

    def in_turns():
        iterator = iter(dataset.range(100))
        other = iter(_in_turn(tf, dataset.range(9).map(lambda _: next(iterator))))
        turns = (other, iterator, other, other, iterator, other)
        return [int(next(turn)) for turn in turns]

    def to_the_end():
        iterator = iter(dataset.range(3))
        found = dataset.range(5).map(lambda _: iterator.get_next_as_optional().has_value())
        return _numbers(found)

    def too_far():
        iterator = iter(dataset.range(3))
        return _numbers(dataset.range(5).map(lambda _: iterator.get_next()))

    pairs = dataset.from_tensor_slices((np.arange(9), np.ones((9, 2), np.float32)))
    inner = dataset.range(10)
    return {
        "next": ask(pulled, lambda it: dataset.range(5).map(lambda _: next(it))),
        "get_next": ask(pulled, lambda it: dataset.range(5).map(lambda x: it.get_next() * x)),
        "twice": ask(pulled, lambda it: dataset.range(3).map(lambda _: next(it) * 10 + next(it))),
        "in filter": ask(pulled, lambda it: dataset.range(6).filter(lambda _: next(it) % 2 == 0)),
        "in flat_map": ask(
            pulled, lambda it: dataset.range(4).flat_map(lambda _: dataset.from_tensors(next(it)))
        ),
        "in scan": ask(
            pulled, lambda it: dataset.range(4).scan(np.int64(0), lambda s, _: (s + next(it), s))
        ),
        "a pair": ask(pulled, lambda it: dataset.range(3).map(lambda _: next(it)), pairs),
        "text": ask(
            pulled,
            lambda it: dataset.range(2).map(lambda _: next(it)),
            dataset.from_tensor_slices(["a", "b", "c"]),
        ),
        "in turns": ask(in_turns),
        "as optionals": ask(to_the_end),
        "beyond the end": ask(too_far),
        "made inside": ask(
            lambda: _numbers(
                dataset.range(4).map(lambda x: next(iter(dataset.range(9).skip(x))) + x)
            )
        ),
        "made inside of a dataset outside": ask(
            lambda: _numbers(dataset.range(3).map(lambda x: x + next(iter(inner))))
        ),
        "a reduction inside": ask(
            lambda: _numbers(
                dataset.range(3).map(
                    lambda x: x + inner.reduce(np.int64(0), lambda s, y: s + y)
                )
            )
        ),
    }  # fmt: skip


def python_code(tf, ask):
    """Python code that must see each element once."""
    dataset = tf.data.Dataset

    def calls(build):
        seen = []

        def note(x):
            seen.append(int(x))
            return x

        made = build(note)
        return _numbers(made), sorted(seen)

    def twice(build):
        seen = []

        def note(x):
            seen.append(int(x))
            return x

        made = build(note)
        return _numbers(made), _numbers(made), seen

    def without_inputs():
        seen = []

        def note():
            seen.append(len(seen))
            return np.int64(len(seen))

        made = dataset.range(3).map(lambda _: tf.numpy_function(note, [], tf.int64))
        return _numbers(made), seen

    def mapped(call):
        return lambda note: dataset.range(4).map(lambda x: call(note, [x], tf.int64))

    return {
        "py_function": ask(calls, mapped(tf.py_function)),
        "numpy_function": ask(calls, mapped(tf.numpy_function)),
        "two passes": ask(twice, mapped(tf.numpy_function)),
        "batched": ask(calls, lambda note: mapped(tf.numpy_function)(note).batch(3)),
        "in threads": ask(
            calls,
            lambda note: dataset.range(4).map(
                lambda x: tf.numpy_function(note, [x], tf.int64), num_parallel_calls=2
            ),
        ),
        "in filter": ask(
            calls,
            lambda note: dataset.range(4).filter(
                lambda x: tf.numpy_function(note, [x], tf.int64) > 1
            ),
        ),
        "in flat_map": ask(
            calls,
            lambda note: dataset.range(4).flat_map(
                lambda x: dataset.from_tensors(tf.numpy_function(note, [x], tf.int64))
            ),
        ),
        "in a map in flat_map": ask(
            calls,
            lambda note: dataset.range(2).flat_map(
                lambda x: dataset.range(2).map(
                    lambda y: tf.numpy_function(note, [2 * x + y], tf.int64)
                )
            ),
        ),
        "in interleave": ask(
            calls,
            lambda note: dataset.range(4).interleave(
                lambda x: dataset.from_tensors(tf.numpy_function(note, [x], tf.int64)),
                cycle_length=2,
            ),
        ),
        "without inputs": ask(without_inputs),
    }  # fmt: skip
