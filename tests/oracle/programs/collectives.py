"""Collectives in a replica's function, and gradients after and through them.

The gradient is TensorFlow's `GradientTape` there, and `jax.grad` here.
"""

import importlib


def _strategy(tf, replicas):
    # TensorFlow's own collectives serve one number of replicas in a process.
    ops = getattr(tf.distribute, "ReductionToOneDevice", lambda: None)()
    names = [f"CPU:{index}" for index in range(replicas)]
    return tf.distribute.MirroredStrategy(names, cross_device_ops=ops)


def _is_evenfeed(tf):
    return tf.__name__ == "evenfeed"


def _grad(tf, loss):
    if _is_evenfeed(tf):
        return importlib.import_module("jax").grad(loss)

    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = loss(x)
        return tape.gradient(value, x)

    return gradient


def _context(tf):
    return tf.distribute.get_replica_context()


def _weight(tf):
    """Return a number that differs from replica to replica."""
    return tf.cast(_context(tf).replica_id_in_sync_group, tf.float32) + 1.0


def _square(tf, x):
    return tf.reduce_sum(tf.square(x))


def _everywhere(tf, ask, steps):
    """Ask each step eagerly and in a function, with 2 and 3 replicas."""
    answers = {}
    for replicas in (2, 3):
        strategy = _strategy(tf, replicas)
        own = strategy.experimental_distribute_values_from_function(
            lambda c: tf.constant([1.0, 2.0]) * (c.replica_id_in_sync_group + 1)
        )
        for label, step in steps.items():
            answers[f"{label}, {replicas} replicas, eager"] = ask(_run, strategy, step, own)
            in_function = tf.function(lambda x, step=step, s=strategy: s.run(step, args=(x,)))
            answers[f"{label}, {replicas} replicas, function"] = ask(
                lambda f=in_function, s=strategy, x=own: s.experimental_local_results(f(x))
            )
    return answers


def _run(strategy, step, own):
    return strategy.experimental_local_results(strategy.run(step, args=(own,)))


def reduced(tf, ask):
    def with_op(op):
        return lambda x: _context(tf).all_reduce(op, x)

    return _everywhere(tf, ask, {"SUM": with_op("SUM"), "MEAN": with_op("MEAN")})


def gathered(tf, ask):
    return _everywhere(
        tf,
        ask,
        {
            "first axis": lambda x: _context(tf).all_gather(x, 0),
            "last axis": lambda x: _context(tf).all_gather(tf.stack([x, x]), -1),
        },
    )


def gradients_after(tf, ask):
    """Take the gradient of a replica's own loss, then the mean or the sum of the replicas'."""
    plain = tf.constant([3.0, 4.0])

    def step(op, of):
        def run(x):
            loss = {
                "own argument": lambda w: _square(tf, w) * _weight(tf),
                "closure": lambda w: _square(tf, w * x * plain),
            }[of]
            gradient = _grad(tf, loss)(x if of == "own argument" else plain * 2.0)
            return _context(tf).all_reduce(op, gradient)

        return run

    return _everywhere(
        tf,
        ask,
        {
            f"{op}, {of}": step(op, of)
            for op in ("SUM", "MEAN")
            for of in ("own argument", "closure")
        },
    )


def gradients_through(tf, ask):
    plain = tf.constant([3.0, 4.0])

    def own(op):
        return _grad(tf, lambda x: _square(tf, _context(tf).all_reduce(op, x)) * _weight(tf))

    def closure(op):
        def run(x):
            def loss(w):
                total = _context(tf).all_reduce(op, w * x)
                return _square(tf, total) * _weight(tf)

            return _grad(tf, loss)(plain * 1.0)

        return run

    def nest(op):
        def loss(x):
            both = _context(tf).all_reduce(op, {"a": x, "b": [tf.square(x)]})
            return tf.reduce_sum(both["a"] * both["b"][0]) * _weight(tf)

        return _grad(tf, loss)

    def twice(op):
        def loss(x):
            return tf.reduce_sum(_context(tf).all_reduce(op, x) ** 3)

        return _grad(tf, lambda x: tf.reduce_sum(_grad(tf, loss)(x)))

    def in_a_row(op):
        def loss(x):
            first = _context(tf).all_reduce(op, tf.square(x))
            return tf.reduce_sum(_context(tf).all_reduce(op, first * x)) * _weight(tf)

        return _grad(tf, loss)

    steps = {"own": own, "closure": closure, "nest": nest, "twice": twice, "in a row": in_a_row}
    return _everywhere(
        tf,
        ask,
        {f"{op}, {label}": make(op) for op in ("SUM", "MEAN") for label, make in steps.items()},
    )


def gradients_of_variables(tf, ask):
    answers = {}
    for op in ("SUM", "MEAN"):
        strategy = _strategy(tf, 2)
        with strategy.scope():
            variable = tf.Variable([3.0, 4.0])

        def after(x, variable=variable, op=op):
            gradient = _taken(tf, variable, lambda w: _square(tf, w * x))
            return _context(tf).all_reduce(op, gradient)

        def through(x, variable=variable, op=op):
            return _taken(
                tf,
                variable,
                lambda w: _square(tf, _context(tf).all_reduce(op, w * x)) * _weight(tf),
            )

        own = strategy.experimental_distribute_values_from_function(
            lambda c: tf.constant([1.0, 2.0]) * (c.replica_id_in_sync_group + 1)
        )
        for label, step in {"after": after, "through": through}.items():
            answers[f"{label} {op}, eager"] = ask(_run, strategy, step, own)
            f = tf.function(lambda x, step=step, s=strategy: s.run(step, args=(x,)))
            answers[f"{label} {op}, function"] = ask(
                lambda f=f, s=strategy, x=own: s.experimental_local_results(f(x))
            )
    return answers


def gradients_of_plain_arguments(tf, ask):
    """Take gradients of an argument that is the same for all replicas, after and through a reduction."""
    plain = tf.constant([3.0, 4.0])

    def after(op):
        def run(x, w):
            return _context(tf).all_reduce(op, _grad(tf, lambda w: _square(tf, w * x))(w))

        return run

    def through(op):
        def run(x, w):
            def loss(w):
                return _square(tf, _context(tf).all_reduce(op, w * x)) * _weight(tf)

            return _grad(tf, loss)(w)

        return run

    def of_the_same(op):
        def run(x, w):
            def loss(w):
                return tf.reduce_sum(_context(tf).all_reduce(op, tf.square(w))) * _weight(tf)

            return _grad(tf, loss)(w)

        return run

    answers = {}
    for replicas in (2, 3):
        strategy = _strategy(tf, replicas)
        own = strategy.experimental_distribute_values_from_function(
            lambda c: tf.constant([1.0, 2.0]) * (c.replica_id_in_sync_group + 1)
        )
        for label, make in {"after": after, "through": through, "same": of_the_same}.items():
            for op in ("SUM", "MEAN"):
                for way, local in _both_ways(tf, strategy, make(op), own, plain).items():
                    answers[f"{label} {op}, {replicas} replicas, {way}"] = ask(local)
    return answers


def _both_ways(tf, strategy, step, *args):
    def run(*given):
        return strategy.run(step, args=given)

    def local(run):
        return strategy.experimental_local_results(run(*args))

    return {"eager": lambda: local(run), "function": lambda: local(tf.function(run))}


def made_in_a_function(tf, ask):
    """Run on values of all replicas that the function itself makes, and on the same as arguments."""
    strategy = _strategy(tf, 2)

    def values(make):
        return strategy.experimental_distribute_values_from_function(
            lambda c: make(c.replica_id_in_sync_group)
        )

    def local(run):
        return strategy.experimental_local_results(run())

    makes = {
        "one number": lambda r: 2,
        "ints": lambda r: r,
        "floats": lambda r: r * 1.5,
        "bools": lambda r: r > 0,
        "scalars": lambda r: tf.constant(r) + 1,
        "tensors": lambda r: tf.constant([r, r]),
        "a nest": lambda r: {"a": tf.constant(r), "b": [r]},
        "two dtypes": lambda r: r if r else tf.constant(3.0),
        "two shapes": lambda r: tf.constant([1.0, 2.0])[: r + 1],
        "None": lambda r: None,
        "texts": str,
    }
    answers = {}
    for label, make in makes.items():

        def made(make=make):
            return strategy.run(_same, args=(values(make),))

        given = tf.function(lambda value: strategy.run(_same, args=(value,)))
        answers[f"{label}, made"] = ask(local, tf.function(made))
        answers[f"{label}, given"] = ask(local, lambda g=given, m=make: g(values(m)))
    computed = tf.function(lambda x: strategy.run(_same, args=(values(lambda r: x * (r + 1.0)),)))
    answers["computed"] = ask(local, lambda: computed(tf.constant([1.0, 2.0])))
    return answers


def _same(value):
    return value


def kinds(tf, ask):
    """Ask of which kind the results of `run` are: outside of a function, inside, and after it."""
    answers = {}
    for replicas in (1, 2):
        strategy = _strategy(tf, replicas)
        with strategy.scope():
            variable = tf.Variable(1.0, aggregation=tf.VariableAggregation.MEAN)
        plain = tf.constant(2.0)
        steps = {
            "a closure": lambda plain=plain: plain,
            "a variable": lambda v=variable: v,
            "a variable's value": lambda v=variable: v.read_value(),
            "a variable and a number": lambda v=variable: v * 2.0,
            "an all_reduce": lambda: _context(tf).all_reduce("SUM", tf.constant(1.0)),
            "a weight": lambda: _weight(tf),
            "a number": lambda: 3,
            "None": lambda: None,
            "text": lambda: "a",
        }
        for label, step in steps.items():
            answers |= _kinds_of(tf, ask, strategy, step, f"{label}, {replicas}")
    return answers


def _kinds_of(tf, ask, strategy, step, label):
    inside = []

    def run():
        result = strategy.run(step)
        inside.append(_kind(result))
        return result

    return {
        f"{label}, eager": ask(lambda: _kind(strategy.run(step))),
        f"{label}, after a function": ask(lambda: _kind(tf.function(run)())),
        f"{label}, in a function": ask(lambda: inside[0]),
        f"{label}, run of a function": ask(lambda: _kind(strategy.run(tf.function(step)))),
    }


def _kind(value):
    name = type(value).__name__
    if name in ("PerReplica", "Mirrored", "int", "str", "NoneType"):
        return name
    # What else a library calls its tensors and variables is its own.
    return "variable" if hasattr(value, "assign") else "tensor"


def _taken(tf, variable, loss):
    """Return the gradient of a loss of a variable's value."""
    if _is_evenfeed(tf):
        return _grad(tf, loss)(variable.value())
    with tf.GradientTape() as tape:
        value = loss(variable)
    return tape.gradient(value, variable)


def gradients_through_gather(tf, ask):
    def even(x):
        return _grad(tf, lambda x: _square(tf, _context(tf).all_gather(x, 0)) * _weight(tf))(x)

    def last(x):
        def loss(x):
            both = tf.stack([x, x * 2.0])
            return _square(tf, _context(tf).all_gather(both, -1)) * _weight(tf)

        return _grad(tf, loss)(x)

    answers = _everywhere(tf, ask, {"first axis": even, "last axis": last})
    strategy = _strategy(tf, 3)
    uneven = strategy.experimental_distribute_values_from_function(
        lambda c: tf.constant([1.0, 2.0, 3.0])[: c.replica_id_in_sync_group + 1]
    )
    answers["uneven, eager"] = ask(_run, strategy, even, uneven)
    return answers


def results(tf, ask):
    """Ask what becomes of the values that replicas return."""
    strategy = _strategy(tf, 2)
    tensor = tf.constant([1.0, 2.0])

    def number():
        return int(_context(tf).replica_id_in_sync_group)

    def kind(step):
        def asked():
            result = strategy.run(step)
            own = strategy.experimental_local_results(result)
            return type(result).__name__, result is tensor, own

        return asked

    return {
        "one tensor": ask(lambda: strategy.run(lambda: tensor) is tensor),
        "None": ask(kind(lambda: None)),
        "one number": ask(kind(lambda: 3)),
        "numbers": ask(kind(number)),
        "texts": ask(kind(lambda: str(number()))),
        "None and a number": ask(kind(lambda: None if number() else 3)),
        "a large number": ask(kind(lambda: 10**20)),
        "a nest": ask(
            lambda: strategy.experimental_local_results(
                strategy.run(lambda: {"a": (number(), None), "b": [str(number()), 1.5]})
            )
        ),
        "an error": ask(lambda: strategy.run(lambda: {}["a"])),
        "fewer meetings": ask(
            lambda: strategy.run(
                lambda: _context(tf).all_reduce("SUM", tf.constant(1.0)) if number() else 1
            )
        ),
        "run in run": ask(lambda: strategy.run(lambda: strategy.run(lambda: 1))),
        "scope in run": ask(lambda: strategy.run(lambda: strategy.scope().__enter__())),
        "a sum of bools": ask(
            lambda: strategy.run(
                lambda: _context(tf).all_reduce("SUM", tf.constant([number() > 0]))
            )
        ),
    }
