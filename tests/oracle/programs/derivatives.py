"""Derivatives of higher order, gradients of results that are their argument, and odd requests to a tape."""

import tempfile


def _second(tf, own, x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = own(x) ** 4
        first = inner.gradient(y, x)
    return [y, first, outer.gradient(first, x)]


def own_gradients(tf, ask):
    @tf.custom_gradient
    def shifted(x):
        def gradient(upstream):
            @tf.custom_gradient
            def slope(_):
                return tf.constant(-1.1), lambda above: -2.1 * above

            return upstream * slope(x)

        return x + 10.0, gradient

    @tf.custom_gradient
    def softplus(x):
        e = tf.exp(x)
        return tf.math.log(1 + e), lambda upstream: upstream * (1 - 1 / (1 + e))

    @tf.custom_gradient
    def root(x):
        y = tf.sqrt(x)
        return y, lambda upstream: upstream / (2 * y) * 3.0

    @tf.custom_gradient
    def doubled(x):
        return x, lambda upstream: 2.0 * upstream

    x = tf.constant(1.5)
    programs = {"a gradient with a gradient": shifted, "a stable formula": softplus}
    programs |= {"a result in the gradient": root, "the argument itself": doubled}
    found = {label: ask(_second, tf, own, x) for label, own in programs.items()}

    def compiled(own):
        return tf.function(lambda value: _second(tf, own, value))(x)

    in_function = {f"{label}, compiled": ask(compiled, own) for label, own in programs.items()}
    return found | in_function


def identities(tf, ask):
    def gradients(x):
        one, other = tf.identity(x), tf.add(x, 0)
        with tf.GradientTape() as tape:
            for each in (x, one, other):
                tape.watch(each)
            y = 2.0 * x + 3.0 * one + 4.0 * other
        return tape.gradient(y, [x, one, other])

    def inside(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.identity(x)
            z = y * y + x
        return tape.gradient(z, [x, y])

    x = tf.constant(10.0)
    return {
        "before": ask(gradients, x),
        "before, compiled": ask(tf.function(gradients), x),
        "inside": ask(inside, x),
        "inside, compiled": ask(tf.function(inside), x),
    }


def requests(tf, ask):
    first, second = tf.Variable(1.0, name="first"), tf.Variable(2.0, name="second")
    with tf.GradientTape() as tape:
        y = second * second + first
    names = [v.name for v in tape.watched_variables()]
    x, text = tf.constant([1.0, 2.0]), tf.constant("a")

    def of_text():
        with tf.GradientTape() as tape:
            tape.watch([x, text])
            z = x * x
        return tape.gradient(z, x)

    def batch(target, source):
        with tf.GradientTape() as tape:
            tape.watch(source)
        return tape.batch_jacobian(target, source)

    def start(gradient):
        with tf.GradientTape() as tape:
            tape.watch(x)
            z = x * x
        return tape.gradient(z, x, output_gradients=gradient)

    return {
        "order of variables": names,
        "gradients in that order": tape.gradient(y, tape.watched_variables()),
        "text": ask(of_text),
        "batch_jacobian of a vector": ask(batch, tf.ones([2]), tf.ones([2, 2])),
        "batch_jacobian for a vector": ask(batch, tf.ones([2, 2]), tf.ones([2])),
        "batch_jacobian without a connection": ask(batch, tf.ones([2, 2]), tf.ones([2, 3])),
        "a start of another shape": ask(start, tf.constant([1.0, 2.0, 3.0])),
        "a start of another dtype": ask(start, tf.constant([1, 2])),
        "a start that is a list of numbers": ask(start, [3.0, 4.0]),
    }


def of_functions(tf, ask):
    def of(formula, *values):
        xs = [tf.constant(value) for value in values]
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = formula(*xs)
        return tape.gradient(y, xs)

    matrix = [[4.0, 1.0, 0.5], [7.0, 3.0, 0.25], [8.0, 9.0, 2.0]]
    lower = [[4.0, 0.0, 0.0], [2.0, 5.0, 0.0], [0.0, 2.0, 2.0]]
    return {
        "cholesky": ask(of, lambda x: tf.reduce_sum(tf.linalg.cholesky(x)[:, 0]), lower),
        "cholesky reads one triangle": ask(of, lambda x: tf.linalg.cholesky(x)[0], matrix),
        "multiply_no_nan": ask(of, tf.math.multiply_no_nan, [2.0, 3.0], [0.0, 5.0]),
        "betainc": ask(of, tf.math.betainc, 1.0, 2.0, 0.25),
    }


def names_of_modules(tf, ask):
    kinds = ["MyNet", "HTTPServer2D", "Conv2DLayer", "_Hidden", "A", "ABc", "my_Net", "X1y2Z"]
    return {kind: ask(lambda kind=kind: type(kind, (tf.Module,), {})().name) for kind in kinds}


def tables_in_checkpoints(tf, ask):
    def table(kind, keys, values):
        made = tf.lookup.experimental.MutableHashTable(kind, tf.int64, -1)
        made.insert(tf.constant(keys, kind), tf.constant(values, tf.int64))
        return made

    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(t=table(tf.string, ["a", "b"], [1, 2])).save(f"{folder}/c")
        again = table(tf.string, ["z"], [5])
        tf.train.Checkpoint(t=again).restore(path).assert_consumed()
        checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
        slash = checkpoint.save(f"{folder}/run/")
        return {
            "values": again.lookup(tf.constant(["a", "b", "z"])).numpy().tolist(),
            "size": int(again.size()),
            "a prefix with a slash": slash[len(folder) :],
            "the latest there": (tf.train.latest_checkpoint(f"{folder}/run") or "")[len(folder) :],
            "saving in a function": ask(tf.function(lambda: checkpoint.save(f"{folder}/f"))),
        }
