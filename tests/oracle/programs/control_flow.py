"""Branches, loops, scopes, modules and checks: what they return and raise, on tensors, compiled and in a map."""

# pyright: basic

import warnings

import numpy as np


def _each(ask, calls):
    return {label: ask(*call) for label, call in calls.items()}


def _quietly(ask, call, *args):
    """Ask without evenfeed's warning that a function runs as plain Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ask(call, *args)


def branches(tf, ask):
    def plus(amount):
        return lambda: tf.constant(amount)

    def compiled(function):
        return tf.function(function)

    def by_sign(x):
        return tf.cond(x > 0, lambda: x * 2, lambda: -x)

    def by_case(x):
        return tf.case([(x < 0, lambda: -x), (x > 10, lambda: x * 0)], default=lambda: x + 1)

    def by_number(x):
        return tf.switch_case(x, [lambda: x + 10, lambda: x * 20], default=lambda: x - 1)

    def by_exclusive_case(x):
        pairs = [(x > 5, lambda: x * 2), (x > 10, lambda: -x)]
        return tf.case(pairs, default=lambda: x, exclusive=True)

    answers = {
        f"{name} {label} {value}": ask(lambda f=run, v=value: f(tf.constant(v)))
        for name, function in {"cond": by_sign, "case": by_case, "switch": by_number}.items()
        for label, run in {"eager": function, "compiled": compiled(function)}.items()
        for value in (-3, 0, 1, 12)
    }
    mapped = tf.data.Dataset.range(-2, 3).map(by_sign)
    return {
        **answers,
        "in a map": (mapped.element_spec, list(mapped)),
        "structure": ask(lambda: tf.cond(True, lambda: {"a": 1, "b": (2.0,)}, lambda: None)),
        "a function as condition": ask(lambda: tf.cond(lambda: True, plus(1), plus(2))),
        "values instead of functions": ask(lambda: tf.cond(True, 1, 2)),
        "case without a match": ask(lambda: tf.case([(tf.constant(False), plus(1))])),
        "exclusive": ask(
            lambda: tf.case(
                [(tf.constant(True), plus(1)), (tf.constant(True), plus(2))], exclusive=True
            )
        ),
        "exclusive in a function": _quietly(ask, compiled(by_exclusive_case), tf.constant(12)),
        "exclusive in a function, one": _quietly(ask, compiled(by_exclusive_case), tf.constant(7)),
        "exclusive in a function, none": _quietly(ask, compiled(by_exclusive_case), tf.constant(3)),
        "exclusive in a map": [
            ask(lambda n=n: list(tf.data.Dataset.range(n, n + 1).map(by_exclusive_case)))
            for n in (3, 7, 12)
        ],
        "switch by a dict": ask(lambda: tf.switch_case(tf.constant(1), {0: plus(1), 1: plus(2)})),
        "switch beyond": ask(lambda: tf.switch_case(tf.constant(9), [plus(1), plus(2)])),
    }


def loops(tf, ask):
    def below(limit):
        return lambda i, total: i < limit

    def step(i, total):
        return i + 1, total + i

    def looped(limit):
        return tf.while_loop(below(limit), step, [tf.constant(0), tf.constant(0)])

    vector = tf.constant([1, 2, 3])
    pairs = (vector, tf.constant([10.0, 20.0, 30.0]))
    return _each(
        ask,
        {
            "while": (looped, 4),
            "while never": (looped, 0),
            "while compiled": (lambda: tf.function(lambda n: looped(n)[1])(tf.constant(5)),),
            "while one": (
                lambda: tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [tf.constant(0)]),
            ),
            "while too few": (lambda: tf.while_loop(below(3), lambda i, t: (i + 1,), [0, 0]),),
            "map_fn": (lambda: tf.map_fn(lambda x: x * x, vector),),
            "map_fn pairs": (
                lambda: tf.map_fn(lambda p: p[1] * 2.0, pairs, fn_output_signature=tf.float32),
            ),
            "map_fn dtype": (
                lambda: tf.map_fn(lambda x: tf.cast(x, tf.float32) / 2, vector, dtype=tf.float32),
            ),
            "map_fn compiled": (
                lambda: tf.function(lambda v: tf.map_fn(lambda x: x + 1, v))(vector),
            ),
            "map_fn scalar": (lambda: tf.map_fn(lambda x: x, tf.constant(1)),),
            "map_fn text": (lambda: tf.map_fn(lambda x: x, tf.constant(["a", "b"])),),
            "vectorized_map": (lambda: tf.vectorized_map(lambda x: x * x, vector),),
            "vectorized_map pairs": (lambda: tf.vectorized_map(lambda p: p[1] * 2, pairs),),
            "foldl": (lambda: tf.foldl(lambda a, x: a * 10 + x, vector),),
            "foldl from 7": (lambda: tf.foldl(lambda a, x: a * 10 + x, vector, initializer=7),),
            "foldr": (lambda: tf.foldr(lambda a, x: a * 10 + x, vector),),
            "foldl compiled": (
                lambda: tf.function(lambda v: tf.foldl(lambda a, x: a - x, v))(vector),
            ),
            "scan": (lambda: tf.scan(lambda a, x: a + x, vector),),
            "scan from 7": (lambda: tf.scan(lambda a, x: a + x, vector, initializer=7),),
            "scan reverse": (lambda: tf.scan(lambda a, x: a * 2 + x, vector, reverse=True),),
            "scan compiled": (
                lambda: tf.function(lambda v: tf.scan(lambda a, x: a * 2 + x, v, reverse=True))(
                    vector
                ),
            ),
            "in a map": (
                lambda: list(
                    tf.data.Dataset.range(3).map(
                        lambda n: tf.while_loop(
                            lambda i, t: i < n, lambda i, t: (i + 1, t + i), [n * 0, n * 0]
                        )[1]
                    )
                ),
            ),
        },
    )


def tensor_arrays(tf, ask):
    def squares(count, **options):
        array = tf.TensorArray(tf.int32, size=count, **options)
        for i in range(count):
            array = array.write(i, i * i)
        return array

    def grown():
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
        return array.write(0, 1.0).write(1, 2.0)

    return _each(
        ask,
        {
            "stack": (lambda: squares(3).stack(),),
            "size": (lambda: squares(3).size(),),
            "read": (lambda: squares(3).read(2),),
            "gather": (lambda: squares(4).gather([3, 1]),),
            "concat": (lambda: grown().unstack([[1.0, 2.0], [3.0, 4.0]]).concat(),),
            "unstack": (lambda: grown().unstack([5.0, 6.0, 7.0]).read(1),),
            "scatter": (lambda: grown().scatter([1, 0], [5.0, 6.0]).stack(),),
            "split": (lambda: grown().split([5.0, 6.0, 7.0], [2, 1]).read(0),),
            "write beyond": (lambda: squares(2).write(2, 1),),
            "write other shape": (lambda: squares(2, infer_shape=True).write(1, [1, 2]),),
            "dtype": (lambda: grown().dtype,),
            "compiled": (tf.function(lambda: squares(3).stack()),),
        },
    )


def scopes(tf, ask):
    def names():
        with tf.name_scope("a") as outer, tf.name_scope("b") as inner:
            return outer, inner, tf.get_current_name_scope()

    def on_device(name):
        with tf.device(name):
            return tf.constant(1) + 1

    def dependent():
        with tf.control_dependencies([tf.constant(1)]):
            return tf.constant(2)

    return _each(
        ask,
        {
            "names": (names,),
            "no scope": (tf.get_current_name_scope,),
            "on the CPU": (on_device, "/CPU:0"),
            "on device:CPU:0": (on_device, "/device:CPU:0"),
            "on no device": (on_device, None),
            "dependent": (dependent,),
            "group": (lambda: tf.group(tf.constant(1)),),
            "no_op": (tf.no_op,),
            "eagerly": (tf.executing_eagerly,),
            "eagerly in a function": (tf.function(lambda: tf.constant(tf.executing_eagerly())),),
            "get_static_value": (lambda: tf.get_static_value(tf.constant([1, 2])),),
            "newaxis": (lambda: tf.constant([1, 2])[:, tf.newaxis],),
        },
    )


def modules(tf, ask):
    class Inner(tf.Module):
        def __init__(self):
            super().__init__(name="inside")
            self.weight = tf.Variable(1.0, name="weight")

        @tf.Module.with_name_scope
        def scope(self):
            return tf.get_current_name_scope()

    class OuterLayer(tf.Module):
        def __init__(self):
            super().__init__()
            self.z = tf.Variable(2.0, name="z", trainable=False)
            self.layers = [Inner(), Inner()]
            self.named = {"b": tf.Variable(3.0, name="b"), "a": tf.Variable(4.0, name="a")}
            self.again = self.z

    module = OuterLayer()
    return {
        "name": module.name,
        "variables": [v.name for v in module.variables],
        "trainable": [v.name for v in module.trainable_variables],
        "not trainable": [v.name for v in module.non_trainable_variables],
        "submodules": [m.name for m in module.submodules],
        "scope": Inner().scope(),
        "bad name": ask(tf.Module, "a b"),
    }


def checks(tf, ask):
    debugging = tf.debugging
    calls = {
        f"{name} {label}": (getattr(debugging, f"assert_{name}"), *pair)
        for name in ("equal", "none_equal", "less", "less_equal", "greater", "greater_equal")
        for label, pair in {"1, 2": (1, 2), "1, 1": (1, 1), "lists": ([1, 3], [1, 2])}.items()
    }
    calls |= {
        f"{name} {value}": (getattr(debugging, f"assert_{name}"), value)
        for name in ("positive", "negative", "non_negative", "non_positive")
        for value in (1, 0, -1)
    }
    calls |= {
        "near": (debugging.assert_near, 1.0, 1.0000001),
        "not near": (debugging.assert_near, 1.0, 1.1),
        "near enough": (lambda: debugging.assert_near(1.0, 1.1, atol=0.2),),
        "all_finite": (debugging.assert_all_finite, [1.0], "x"),
        "not all_finite": (debugging.assert_all_finite, [np.nan], "x"),
        "check_numerics": (debugging.check_numerics, [np.inf], "x"),
        "integer": (debugging.assert_integer, 1),
        "not integer": (debugging.assert_integer, 1.0),
        "type": (lambda: debugging.assert_type(tf.constant(1), tf.int32),),
        "other type": (lambda: debugging.assert_type(tf.constant(1), tf.float32),),
        "rank": (debugging.assert_rank, [1], 1),
        "other rank": (debugging.assert_rank, [1], 2),
        "rank_at_least": (debugging.assert_rank_at_least, [1], 2),
        "rank_in": (debugging.assert_rank_in, [1], [0, 1]),
        "rank not in": (debugging.assert_rank_in, [1], [0, 2]),
        "scalar": (debugging.assert_scalar, 1),
        "not scalar": (debugging.assert_scalar, [1]),
        "shapes": (
            lambda: debugging.assert_shapes([(tf.ones([2, 3]), ("N", 3)), (tf.ones([2]), ("N",))]),
        ),
        "other shapes": (lambda: debugging.assert_shapes([(tf.ones([2, 3]), ("N", "N"))]),),
        "shapes with dots": (
            lambda: debugging.assert_shapes([(tf.ones([4, 2, 3]), ("...", "N", 3))]),
        ),
        "proper_iterable": (debugging.assert_proper_iterable, [1]),
        "no proper_iterable": (debugging.assert_proper_iterable, "a"),
        "is_numeric_tensor": (lambda: debugging.is_numeric_tensor(tf.constant(1.0)),),
        "Assert": (lambda: tf.debugging.Assert(tf.constant(False), [1]),),
        "in a map": (lambda: list(tf.data.Dataset.range(3).map(_checked(tf, 1))),),
        "in a map that fits": (lambda: list(tf.data.Dataset.range(3).map(_checked(tf, 9))),),
    }
    return _each(ask, calls)


def _checked(tf, limit):
    def check(x):
        tf.debugging.assert_less(x, np.int64(limit))
        return x

    return check
