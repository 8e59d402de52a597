"""Functions that change their own arguments: what is refused, and what becomes of the caller's objects."""


def _put(d, x):
    d["w"] = d["w"] + x
    return x


def _put_same(d, x):
    d["w"] = d["w"]
    return x


def _pop(d, x):
    return d.pop("w") * x


def _append(values, x):
    values.append(x)
    return x


def _append_within(values, x):
    values[0].append(x)
    return x


def _set_number(d, x):
    d["n"] = 2
    return x


def compiled(tf, ask):
    x = tf.constant(2.0)
    given = {
        "put": (_put, lambda: {"w": tf.constant(1.0)}),
        "put the same": (_put_same, lambda: {"w": tf.constant(1.0)}),
        "pop": (_pop, lambda: {"w": tf.constant(1.0)}),
        "append": (_append, list),
        "append within": (_append_within, lambda: [[]]),
        "set a number": (_set_number, lambda: {"n": 1}),
        "set the same number": (_set_number, lambda: {"n": 2}),
    }
    found = {}
    for name, (fn, make) in given.items():
        value = make()
        found[name] = ask(lambda fn=fn, value=value: tf.function(fn)(value, x))
        found[f"{name}, by name"] = ask(lambda fn=fn, make=make: tf.function(fn)(make(), x=x))
        found[f"{name}, afterwards"] = value
    return found


def on_replicas(tf, ask):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def first(value):
        return strategy.experimental_local_results(value)[0]

    def parts():
        value = strategy.experimental_distribute_values_from_function(lambda c: tf.constant(3.0))
        return {"w": value, "n": 1}

    found = {}
    for name, fn in {"put": _put, "pop": _pop, "set a number": _set_number}.items():
        for kind, make in {
            "plain": lambda: {"w": tf.constant(1.0), "n": 1},
            "parts": parts,
        }.items():
            value, x = make(), tf.constant(2.0)
            around = tf.function(lambda d, x, fn=fn: strategy.run(fn, args=(d, x)))
            found[f"{name}, {kind}"] = ask(
                lambda fn=fn, value=value, x=x: first(strategy.run(fn, args=(value, x)))
            )
            found[f"{name}, {kind}, compiled"] = ask(
                lambda around=around, value=value, x=x: first(around(value, x))
            )
            found[f"{name}, {kind}, afterwards"] = sorted(value)
    return found
