"""tf.function: what fits an input_signature, what is traced again, and what is refused."""

import numpy as np


def _signature(tf):
    return [tf.TensorSpec([None], tf.float32)]


def _double(tf):
    def double(x):
        return x * 2

    return tf.function(double, input_signature=_signature(tf))


def input_signature(tf, ask):
    values = {
        "tensor": tf.constant([1.0]),
        "list": [1.0, 2.0],
        "ints": [1, 2],
        "bools": [True],
        "tuple": (1.0, 2.0),
        "variable": tf.Variable([1.0]),
        "int tensor": tf.constant([1]),
        "scalar tensor": tf.constant(1.0),
        "scalar": 1.0,
        "text": "a",
        "None": None,
        "dict": {"x": [1.0]},
    }
    f = _double(tf)
    return {label: ask(lambda value=value: f(value)) for label, value in values.items()}


def arguments(tf, ask):
    f = _double(tf)
    x = tf.constant([1.0])

    def with_default(x, y=3):
        return x * y

    def with_keyword(x, *, y=2.0):
        return x * y

    def several(*xs):
        return xs

    g = tf.function(with_default, input_signature=_signature(tf))
    h = tf.function(with_keyword, input_signature=_signature(tf))
    s = tf.function(several, input_signature=_signature(tf) * 2)
    return {
        "by name": ask(lambda: f(x=x)),
        "missing": ask(f),
        "one too many": ask(lambda: f(x, x)),
        "another name": ask(lambda: f(y=x)),
        "twice": ask(lambda: f(x, x=x)),
        "default": ask(lambda: g(x)),
        "default given": ask(lambda: g(x, 3)),
        "other than the default": ask(lambda: g(x, 4)),
        "keyword": ask(lambda: h(x)),
        "another keyword": ask(lambda: h(x, y=3.0)),
        "several": ask(lambda: s(x, x)),
        "several, one missing": ask(lambda: s(x)),
    }


def signatures(tf, ask):
    def one(x):
        return x

    def call(specs, *args):
        return tf.function(one, input_signature=specs)(*args)

    spec = tf.TensorSpec([], tf.float32)
    return {
        "a spec": ask(lambda: call(spec, 1.0)),
        "no spec": ask(lambda: call([3], 1.0)),
        "one too many": ask(lambda: call([spec, spec], 1.0)),
        "one missing": ask(lambda: call([], 1.0)),
        "unknown rank": ask(lambda: call([tf.TensorSpec(None, tf.int32)], [[1]])),
        "text": ask(lambda: call([tf.TensorSpec([], tf.string)], "abc")),
        "float for int": ask(lambda: call([tf.TensorSpec([], tf.int32)], 1.5)),
        "nest": ask(lambda: call([{"a": spec}], {"a": 1.0})),
        "nest, a key missing": ask(lambda: call([{"a": spec}], {})),
        "nest, a key too many": ask(lambda: call([{"a": spec}], {"a": 1.0, "b": 1.0})),
        "list for tuple": ask(lambda: call([(spec,)], [1.0])),
        "number for dict": ask(lambda: call([{"a": spec}], 1.0)),
    }


def traces(tf, ask):
    seen = []

    def body(x, y=3):
        seen.append(1)
        return 0

    f = tf.function(body)

    def count(*calls):
        seen.clear()
        for args, kwargs in calls:
            f(*args, **kwargs)
        return len(seen)

    a, b = tf.constant([1.0]), tf.constant([2.0])
    return {
        "one shape": count(((a,), {}), ((b,), {})),
        "another shape": count(((tf.constant([1.0, 2.0]),), {})),
        "another dtype": count(((tf.constant([1]),), {})),
        "names and defaults": count(
            (("n",), {}), ((), {"x": "n"}), (("n", 3), {}), (("n",), {"y": 3})
        ),
        "a list and a tuple": count((([a],), {}), (((a,),), {}), (([b],), {})),
        "python values": count(((7,), {}), ((8,), {}), ((7,), {})),
        "None": count(((None,), {}), ((None,), {})),
    }


def results(tf, ask):
    def several(x):
        return {"a": 1, "b": "text", "c": None, "d": [1.5, (x,)]}

    v = tf.Variable(0.0)

    def failing(x):
        v.assign_add(x)
        raise KeyError("mine")

    def returns_object():
        return object()

    f = tf.function(several)
    return {
        "a nest": ask(lambda: f(tf.constant(2))),
        "an object": ask(tf.function(returns_object)),
        "an error": ask(lambda: tf.function(failing)(tf.constant(1.0))),
        "after an error": ask(lambda: v.numpy().item()),
    }


def variables(tf, ask):
    kept = []

    def each_time():
        return tf.Variable(1.0) + 1.0

    def once():
        if not kept:
            kept.append(tf.Variable(1.0))
        return kept[0].assign_add(1.0) + 0.0

    later = []

    def second(create):
        if create and not later:
            later.append(tf.Variable(1.0))
        return 1.0

    f, g = tf.function(once), tf.function(second)
    return {
        "each time": ask(tf.function(each_time)),
        "once": ask(f),
        "once, again": ask(f),
        "not yet": ask(lambda: g(False)),
        "later": ask(lambda: g(True)),
    }


def options(tf, ask):
    def one(x):
        return x

    return {
        "known": ask(
            lambda: tf.function(
                one,
                autograph=False,
                jit_compile=None,
                reduce_retracing=True,
                experimental_relax_shapes=None,
                experimental_follow_type_hints=None,
            )(1)
        ),
        "unknown": ask(lambda: tf.function(one, fast=True)),
        "no function": ask(lambda: tf.function(3)),
        "as a decorator": ask(lambda: tf.function(jit_compile=None)(one)(2)),
        "input_signature": ask(lambda: _double(tf).input_signature),
        "no input_signature": ask(lambda: tf.function(one).input_signature),
        "python_function": ask(lambda: tf.function(one).python_function(3)),
    }


def concrete(tf, ask):
    def times(x, n):
        return x * n

    made = tf.function(times).get_concrete_function(tf.TensorSpec([2], tf.float32), 3.0)
    two = tf.constant([1.0, 2.0])
    return {
        "structured_input_signature": ask(lambda: made.structured_input_signature),
        "tensors": ask(lambda: made(two)),
        "all arguments": ask(lambda: made(two, 3.0)),
        "another constant": ask(lambda: made(two, 4.0)),
        "another dtype": ask(lambda: made(tf.constant([1, 2]))),
    }


def concrete_of_any_length(tf, ask):
    double = tf.function(lambda x: x + x)
    numbers = double.get_concrete_function(tf.TensorSpec([None], tf.float32))
    texts = double.get_concrete_function(tf.TensorSpec(None, tf.string))
    return {
        "signature": ask(lambda: numbers.structured_input_signature),
        "one": ask(lambda: numbers(tf.constant([1.0]))),
        "two": ask(lambda: numbers(tf.constant([1.0, 2.0]))),
        "another dtype": ask(lambda: numbers(tf.constant([1]))),
        "a text": ask(lambda: texts(tf.constant("a"))),
        "texts": ask(lambda: texts(tf.constant(["a", "b"]))),
    }


def read_again(tf, ask):
    """What Python code reads becomes part of a function: another one, of the same code, reads it again."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    local = strategy.experimental_local_results
    one = tf.constant(1.0)

    class Settings:
        factor = 1.0

    def step():
        return one * Settings.factor

    def compiled():
        return tf.function(lambda: strategy.run(step))()

    def reading(iterator):
        next(iterator)
        return strategy.run(step)

    def each(call):
        found = []
        for Settings.factor in (1.0, 3.0):
            found.append(local(call()))
        return found

    same = tf.function(step)
    iterator = iter(tf.data.Dataset.range(9))
    ways = {
        "run of a new one": lambda: strategy.run(tf.function(step)),
        "run of the same": lambda: strategy.run(same),
        "run in a new one": compiled,
        "run in a new one that reads data": lambda: tf.function(reading)(iterator),
        "no function": lambda: strategy.run(step),
    }
    return {label: ask(lambda call=call: each(call)) for label, call in ways.items()}


def results_of_loops(tf, ask):
    """A function that reads a dataset returns tensors too, whatever its Python code made them of."""
    numbers = tf.data.Dataset.range(3)

    @tf.function
    def counted():
        count, total = 0, 0.0
        for x in numbers:
            count += 1
            total += tf.cast(x, tf.float32)
        return {"count": count, "total": total}

    @tf.function
    def constants(iterator):
        return next(iterator), (1, 0.5, True, None), ["text", b"bytes"], np.float64(0.5)

    def numpy_of(found):
        return tf.nest.map_structure(lambda x: None if x is None else x.numpy(), found)

    return {
        "counted": ask(counted),
        "counted, as NumPy": ask(lambda: numpy_of(counted())),
        "constants": ask(lambda: constants(iter(numbers))),
        "constants, as NumPy": ask(lambda: numpy_of(constants(iter(numbers)))),
    }
