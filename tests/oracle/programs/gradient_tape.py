"""`GradientTape`, in plain Python and in functions: what is recorded, watched and connected."""


def _both(tf, ask, programs):
    """Ask each program as plain Python and in a function."""
    answers = {}
    for label, program in programs.items():
        answers[label] = ask(program)
        answers[f"{label}, function"] = ask(tf.function(program))
    return answers


def watching(tf, ask):
    v = tf.Variable(3.0)
    fixed = tf.Variable(2.0, trainable=False)
    x = tf.constant([1.0, 2.0])

    def of_variable():
        with tf.GradientTape() as tape:
            y = v * v * x
        return tape.gradient(y, v)

    def tensor_without_watch():
        with tf.GradientTape() as tape:
            y = x * 2.0
        return [tape.gradient(y, x)] == [None]

    def not_trainable():
        with tf.GradientTape() as tape:
            y = fixed * x
        return [tape.gradient(y, fixed)] == [None]

    def watched_not_trainable():
        with tf.GradientTape() as tape:
            tape.watch(fixed)
            y = fixed * x
        return tape.gradient(y, fixed)

    def not_accessed():
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            y = v * x
        return [tape.gradient(y, v)] == [None]

    def computed_before_watch():
        with tf.GradientTape() as tape:
            y = x * 2.0
            tape.watch(x)
            z = x * 3.0
        return tape.gradient([y, z], x)

    def intermediate():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            z = y * y
        return tape.gradient(z, [x, y])

    def read_before():
        value = tf.convert_to_tensor(v)
        with tf.GradientTape() as tape:
            y = value * 2.0 + v * 3.0
        return tape.gradient(y, v)

    return _both(
        tf,
        ask,
        {
            "variable": of_variable,
            "tensor that is not watched": tensor_without_watch,
            "variable that is not trainable": not_trainable,
            "watched variable that is not trainable": watched_not_trainable,
            "accessed variables not watched": not_accessed,
            "computed before watch": computed_before_watch,
            "an intermediate source": intermediate,
            "read before the tape": read_before,
        },
    )


def connected(tf, ask):
    x = tf.constant([1.0, 2.0, 3.0])
    other = tf.constant(1.0)

    def tape_of(compute):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x, other])
            y = compute()
        return tape, y

    def is_none(compute):
        def program():
            tape, y = tape_of(compute)
            return [tape.gradient(y, x)] == [None]

        return program

    def zeros():
        tape, y = tape_of(lambda: x * 2.0)
        return tape.gradient(y, {"o": other, "x": x}, unconnected_gradients="zero")

    def starting():
        tape, y = tape_of(lambda: x * x)
        return tape.gradient(y, x, output_gradients=tf.constant([1.0, 10.0, 100.0]))

    def several():
        tape, y = tape_of(lambda: [x * x, x * other])
        return tape.gradient(y, [x, other], output_gradients=[tf.ones([3]), 2.0 * tf.ones([3])])

    programs = {
        "stop_gradient": is_none(lambda: tf.stop_gradient(x) * 2.0),
        "floor": is_none(lambda: tf.floor(x)),
        "round": is_none(lambda: tf.round(x) * 2.0),
        "integers": is_none(lambda: tf.cast(tf.cast(x, tf.int32), tf.float32)),
        "sign": is_none(lambda: tf.sign(x)),
        "argmax": is_none(lambda: tf.argmax(x)),
        "another tensor": is_none(lambda: other * 2.0),
        "unconnected as zeros": zeros,
        "output_gradients": starting,
        "several targets": several,
    }
    return _both(tf, ask, programs)


def orders(tf, ask):
    x = tf.constant(1.5)
    v = tf.Variable([1.0, 2.0])

    def second():
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.sin(x) * x * x
            first = inner.gradient(y, x)
        return first, outer.gradient(first, x)

    def third():
        with tf.GradientTape() as a:
            with tf.GradientTape() as b:
                with tf.GradientTape() as c:
                    y = tf.reduce_sum(v * v * v * v)
                first = c.gradient(y, v)
            second = b.gradient(first, v)
        return a.gradient(second, v)

    def itself():
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x * x
            first = tape.gradient(y, x)
        return tape.gradient(first, x)

    def jacobian():
        with tf.GradientTape() as tape:
            y = tf.stack([v[0] * v[1], v[0], v[1] * 3.0])
        return tape.jacobian(y, v)

    def batch_jacobian():
        rows = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        with tf.GradientTape() as tape:
            tape.watch(rows)
            y = rows * rows * tf.constant([1.0, 10.0])
        return tape.batch_jacobian(y, rows)

    return _both(
        tf,
        ask,
        {
            "second order": second,
            "third order": third,
            "a persistent tape inside itself": itself,
            "jacobian": jacobian,
            "batch_jacobian": batch_jacobian,
        },
    )


def recording(tf, ask):
    x = tf.constant(2.0)
    v = tf.Variable(3.0)

    def stopped():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            with tape.stop_recording():
                z = x * x * x
            total = y + z
        return tape.gradient(total, x)

    def reset():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = x * x
            tape.reset()
            tape.watch(x)
            z = x * x * x
        return tape.gradient([y, z], x)

    def twice():
        with tf.GradientTape() as tape:
            y = v * v
        return tape.gradient(y, v), tape.gradient(y, v)

    def opened_again():
        with tf.GradientTape(persistent=True) as tape:
            y = v * v
        with tape:
            z = y * v
        return tape.gradient(z, v)

    def after_assign():
        w = v
        with tf.GradientTape() as tape:
            y = w * 2.0
            w.assign(3.0 * w)
            z = w * 5.0
        w.assign(3.0)
        return tape.gradient([y, z], w)

    def names():
        with tf.GradientTape() as tape:
            tape.watch(v)
        return len(tape.watched_variables())

    def not_open():
        tape = tf.GradientTape()
        with tape.stop_recording():
            pass

    def open_twice():
        with tf.GradientTape() as tape, tape:
            pass

    return {
        **_both(
            tf,
            ask,
            {
                "stop_recording": stopped,
                "reset": reset,
                "opened again": opened_again,
                "read after assign": after_assign,
                "watched_variables": names,
            },
        ),
        "used twice": ask(twice),
        "stop_recording outside": ask(not_open),
        "entered twice": ask(open_twice),
        "watch of a number": ask(tf.GradientTape().watch, 1.0),
    }


def custom(tf, ask):
    x = tf.constant([1.0, 4.0])
    v = tf.Variable([2.0, 3.0])

    @tf.custom_gradient
    def log1pexp(x):
        e = tf.exp(x)

        def grad(upstream):
            return upstream * (1 - 1 / (1 + e))

        return tf.math.log(1 + e), grad

    @tf.custom_gradient
    def unchanged(x):
        return x, lambda upstream: upstream * 10.0

    @tf.custom_gradient
    def two(a, b):
        def grad(da, db):
            return da * 10.0, db * 100.0

        return (a * b, a + b), grad

    @tf.custom_gradient
    def with_variable(x):
        def grad(upstream, variables=None):
            return upstream * 7.0, [upstream * 9.0 for _ in variables]

        return x * v, grad

    @tf.custom_gradient
    def without_variables(x):
        return x * v, lambda upstream: upstream

    def of(compute, *sources):
        def program():
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = compute()
            return tape.gradient(y, list(sources))

        return program

    def second_order():
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = log1pexp(x)
            first = tape.gradient(y, x)
        return outer.gradient(first, x)

    return _both(
        tf,
        ask,
        {
            "custom_gradient": of(lambda: log1pexp(x), x),
            "its argument": of(lambda: 2.0 * unchanged(x) + x, x),
            "two results": of(lambda: two(x, x * 2.0), x),
            "variables": of(lambda: with_variable(x), x, v),
            "variables that are not taken": of(lambda: without_variables(x), x, v),
            "second order": second_order,
            "recompute_grad": of(lambda: tf.recompute_grad(lambda a: tf.sin(a) * v)(x), x, v),
            "grad_pass_through": of(lambda: tf.grad_pass_through(tf.round)(x * 1.3), x),
        },
    )


def complex_numbers(tf, ask):
    z = tf.constant([1.0 + 2.0j, 3.0 - 1.0j])

    def real_target():
        with tf.GradientTape() as tape:
            tape.watch(z)
            y = tf.reduce_sum(tf.math.real(z * z) + 2.0 * tf.math.imag(z))
        return tape.gradient(y, z)

    def complex_target():
        with tf.GradientTape() as tape:
            tape.watch(z)
            y = z * z
        return tape.gradient(y, z, output_gradients=tf.constant([1.0 + 1.0j, 2.0 - 3.0j]))

    return _both(tf, ask, {"real target": real_target, "complex target": complex_target})


def variables_as_targets(tf, ask):
    v, other = tf.Variable(2.0), tf.Variable(3.0)

    def of_itself():
        with tf.GradientTape() as tape:
            chosen = v
        return tape.gradient(chosen, v)

    def of_a_sum():
        with tf.GradientTape() as tape:
            y = 2 * v
        return tape.gradient([y, v], v)

    def of_another():
        with tf.GradientTape() as tape:
            y = 2 * v
        return [tape.gradient([y, other], [v, other])[1]]

    return _both(tf, ask, {"itself": of_itself, "a sum": of_a_sum, "another": of_another})
