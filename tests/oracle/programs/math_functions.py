"""Mathematics: every function on floats, integers, bools, text and complex numbers, and in a map."""

from operator import attrgetter

import numpy as np

INSIDE = np.array([-0.75, 0.25, 0.5])  # within the domain of most functions
ABOVE = np.array([1.25, 2.0, 3.5])
POSITIVE = np.array([0.125, 0.75, 2.5])

# By function, the floats that it is asked for.
UNARY = {
    **dict.fromkeys(
        ["abs", "negative", "sign", "square", "exp", "expm1", "round", "rint", "floor", "ceil"],
        INSIDE,
    ),
    **dict.fromkeys(
        ["sigmoid", "log_sigmoid", "softplus", "softsign", "tanh", "sin", "cos", "tan", "sinh"],
        INSIDE,
    ),
    **dict.fromkeys(
        ["cosh", "asin", "acos", "atan", "asinh", "atanh", "erf", "erfc", "erfinv"], INSIDE
    ),
    **dict.fromkeys(["bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "reciprocal"], INSIDE),
    **dict.fromkeys(["is_nan", "is_inf", "is_finite", "conj", "real", "imag", "angle"], INSIDE),
    **dict.fromkeys(
        ["sqrt", "rsqrt", "log", "log1p", "lgamma", "digamma", "erfcinv"], np.array([0.125, 1.75])
    ),
    "acosh": ABOVE,
    "ndtri": np.array([0.125, 0.875]),
    "reciprocal_no_nan": np.array([0.0, -4.0]),
    "lbeta": POSITIVE,
    "zero_fraction": np.array([0.0, 1.0]),
}
BINARY = {
    **dict.fromkeys(
        ["add", "subtract", "multiply", "divide", "truediv", "floordiv", "floormod"], POSITIVE
    ),
    **dict.fromkeys(
        ["pow", "maximum", "minimum", "squared_difference", "xlogy", "xlog1py"], POSITIVE
    ),
    **dict.fromkeys(
        ["xdivy", "divide_no_nan", "multiply_no_nan", "atan2", "nextafter", "igamma"], POSITIVE
    ),
    **dict.fromkeys(
        ["igammac", "greater", "greater_equal", "less", "less_equal", "equal"], POSITIVE
    ),
    "not_equal": POSITIVE,
    "zeta": ABOVE,
    "polygamma": np.array([1.0, 2.0, 3.0]),
}
# Where TensorFlow has no answer worth asking for: `imag` of text is text, and some kernels are missing.
UNLIKE = {
    ("imag", "bool"),
    ("imag", "text"),
    ("reciprocal", "int32"),
    ("zero_fraction", "text"),
    ("nextafter", "float64"),  # float32, if it is a NumPy array
    ("nextafter", "int32"),
}
OTHERS = np.array([0.5, 2.0, 1.5])


def unary(tf, ask):
    return {
        f"{name} {label}": ask(getattr(tf.math, name), value)
        for name, floats in UNARY.items()
        for label, value in {
            "float64": floats,
            "int32": [1, 2],
            "bool": True,
            "text": "a",
        }.items()
        if (name, label) not in UNLIKE
    }


def complex_numbers(tf, ask):
    names = "abs negative square exp log sqrt conj real imag angle sigmoid tanh floor is_nan"
    values = np.array([1 + 2j, -0.5 + 0.25j])
    return {name: ask(getattr(tf.math, name), values) for name in names.split()} | {
        "complex": ask(tf.complex, [1.0], [2.0]),
        "complex of float64": ask(tf.complex, np.ones(1), np.ones(1)),
        "complex of ints": ask(tf.complex, 1, 2),
        "sign": ask(tf.sign, 3 + 4j),
    }


def binary(tf, ask):
    return {
        f"{name} {label}": ask(getattr(tf.math, name), *pair)
        for name, floats in BINARY.items()
        for label, pair in {
            "float64": (floats, OTHERS),
            "int32": ([5, 7], 2),
            "text": ("a", "b"),
            "unlike shapes": (np.ones(2), np.ones(3)),
        }.items()
        if (name, label) not in UNLIKE
    }


def integers(tf, ask):
    names = [
        "floordiv",
        "floormod",
        "truncatediv",
        "truncatemod",
        "pow",
        "maximum",
        "subtract",
        "divide",
    ]
    pairs = {
        "negative": (np.array([7, -7, 7], np.int32), np.array([2, 2, -2], np.int32)),
        "int8": (np.array([100, -7], np.int8), np.array([3, 2], np.int8)),
        "uint8": (np.array([200, 7], np.uint8), np.array([3, 9], np.uint8)),
        "int64": (np.array([2**40, -7]), np.array([3, 2])),
    }
    # Kernels that TensorFlow does not have.
    unlike = {("truncatemod", "int8"), ("truncatemod", "uint8"), ("pow", "uint8")}
    functions = {name: getattr(tf.math, name, None) or getattr(tf, name) for name in names}
    answers = {
        f"{name} {label}": ask(function, *pair)
        for name, function in functions.items()
        for label, pair in pairs.items()
        if (name, label) not in {("pow", "negative"), *unlike}
    }
    return answers | {
        "floordiv by 0": ask(tf.math.floordiv, [7], [0]),
        "floormod by 0": ask(tf.math.floormod, [7], [0]),
        "pow to a negative power": ask(tf.pow, 2, -1),
        "remainders of floats": ask(tf.math.floormod, [5.5, -5.5], 2.0),
        "truncated floats": ask(tf.truncatediv, [5.5, -5.5], 2.0),
        "truncatemod of floats": ask(tf.truncatemod, [5.5, -5.5], 2.0),
        "realdiv": ask(tf.realdiv, [1.0], [4.0]),
    }


def bits(tf, ask):
    x, y = np.array([6, -1, 127], np.int32), np.array([3, 5, 1], np.int32)
    names = ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"]
    return {name: ask(getattr(tf.bitwise, name), x, y) for name in names} | {
        "invert": ask(tf.bitwise.invert, x),
        "invert uint8": ask(tf.bitwise.invert, np.array([1], np.uint8)),
        "of floats": ask(tf.bitwise.bitwise_and, 1.0, 2.0),
        "of bools": ask(tf.bitwise.bitwise_and, [True], [True]),
    }


def logic(tf, ask):
    x, y = [True, True, False, False], [True, False, True, False]
    names = ["logical_and", "logical_or", "logical_xor"]
    return {name: ask(getattr(tf.math, name), x, y) for name in names} | {
        "logical_not": ask(tf.logical_not, x),
        "of ints": ask(tf.logical_and, [1], [0]),
        "of text": ask(tf.logical_not, "a"),
    }


REDUCE = ["sum", "mean", "prod", "max", "min", "variance", "std", "logsumexp", "euclidean_norm"]


def reductions(tf, ask):
    values = np.array([[1.0, 2.5, -3.0], [0.5, 4.0, 2.0]])
    arguments = {
        "axis -1 kept": {"axis": -1, "keepdims": True},
        "axis 2": {"axis": 2},
    }
    answers = {
        "sum of all": ask(tf.reduce_sum, values),
        "sum along 0": ask(tf.reduce_sum, values, axis=0),
        "sum along both": ask(tf.reduce_sum, values, axis=[0, 1]),
        "sum along none": ask(tf.reduce_sum, values, axis=[]),
    }
    answers |= {
        f"{name} {label}": ask(getattr(tf.math, f"reduce_{name}"), values, **given)
        for name in REDUCE
        for label, given in arguments.items()
    }
    others = {
        "int32": [[3, -4], [5, 2]],
        "empty": np.zeros((0, 2), np.float32),
        "text": ["a"],
    }
    answers |= {
        f"{name} {label}": ask(getattr(tf.math, f"reduce_{name}"), value)
        for name in REDUCE
        for label, value in others.items()
    }
    bools = [[True, False], [True, True]]
    return answers | {
        "all": ask(tf.reduce_all, bools),
        "all along 1": ask(tf.reduce_all, bools, axis=1),
        "any along 0": ask(tf.reduce_any, bools, axis=0, keepdims=True),
        "all of ints": ask(tf.reduce_all, [1, 0]),
        "count_nonzero": ask(tf.math.count_nonzero, [[0, 1], [2, 3]]),
        "count_nonzero along 1": ask(tf.math.count_nonzero, [[0, 1], [2, 3]], axis=1),
        "count_nonzero int32": ask(tf.math.count_nonzero, [0, 1], dtype=tf.int32),
        "count_nonzero text": ask(tf.math.count_nonzero, ["", "a"]),
        "count_nonzero bools": ask(tf.math.count_nonzero, [True, False], keepdims=True),
        "zero_fraction": ask(tf.math.zero_fraction, [0, 0, 3]),
    }


def indices(tf, ask):
    values = np.array([[1.0, 5.0, 5.0], [7.0, 4.0, 2.0]], np.float32)
    return {
        f"{name} {label}": ask(getattr(tf, name), value, **given)
        for name in ("argmax", "argmin")
        for label, (value, given) in {
            "default": (values, {}),
            "axis 1": (values, {"axis": 1}),
            "axis -1 int32": (values, {"axis": -1, "output_type": tf.int32}),
            "ints": ([3, 9, 1], {}),
            "bools": ([False, True], {}),
            "text": (["a"], {}),
            "scalar": (1.0, {}),
            "empty": (np.zeros((0, 2)), {}),
            "axis 2": (values, {"axis": 2}),
        }.items()
    }


def accumulating(tf, ask):
    values = np.array([[1, 2, 3], [4, 5, 6]], np.int32)
    arguments = {
        "default": {},
        "axis 1": {"axis": 1},
        "exclusive": {"axis": 1, "exclusive": True},
        "reverse": {"axis": 1, "reverse": True},
        "both": {"axis": -1, "exclusive": True, "reverse": True},
        "axis 2": {"axis": 2},
    }
    answers = {
        f"{name} {label}": ask(getattr(tf.math, name), values, **given)
        for name in ("cumsum", "cumprod")
        for label, given in arguments.items()
    }
    floats = values.astype(np.float64) / 4
    return answers | {
        f"cumulative_logsumexp {label}": ask(tf.math.cumulative_logsumexp, floats, **given)
        for label, given in arguments.items()
    }


def several(tf, ask):
    return {
        "add_n": ask(tf.add_n, [[1, 2], [3, 4], [5, 6]]),
        "add_n one": ask(tf.add_n, [[1, 2]]),
        "add_n of a tensor": ask(lambda: tf.add_n(tf.constant([[1, 2], [3, 4]]))),
        "accumulate_n of a tensor": ask(lambda: tf.math.accumulate_n(tf.constant([[1, 2]]))),
        "add_n none": ask(tf.add_n, []),
        "add_n unlike": ask(tf.add_n, [[1, 2], [3]]),
        "accumulate_n": ask(tf.math.accumulate_n, [[1.0], [2.0]]),
        "polyval": ask(tf.math.polyval, [1.0, 2.0, 3.0], [2.0, 0.5]),
        "betainc": ask(tf.math.betainc, np.array([1.5]), np.array([2.0]), np.array([0.25])),
        "float32": ask(tf.exp, 0.0),
        "float32 and a number": ask(tf.pow, np.array([1.5], np.float32), 2.0),
        "scalar_mul": ask(lambda: tf.math.scalar_mul(2.0, tf.constant([1.0, 2.0]))),
        "saturate_cast": ask(tf.saturate_cast, [300, -5, 7], tf.uint8),
        "saturate_cast floats": ask(tf.saturate_cast, [3e9, -3e9, 1.7], tf.int32),
        "saturate_cast float64": ask(tf.saturate_cast, np.array([1e300, -1e300]), tf.float32),
        "saturate_cast complex": ask(
            tf.saturate_cast, np.array([-1 - 2j, 1e9, 300], np.complex64), tf.uint8
        ),
        "bitcast": ask(tf.bitcast, [1.0, -2.0], tf.int32),
        "bitcast narrower": ask(tf.bitcast, [1], tf.uint8),
        "bitcast wider": ask(tf.bitcast, np.array([[1, 0, 0, 0]], np.uint8), tf.int32),
        "bitcast wider unlike": ask(tf.bitcast, np.array([[1, 0]], np.uint8), tf.int32),
    }


def in_a_map(tf, ask):
    """Ask for all functions in one map: how it runs must not change a dtype or a value."""
    floats = tf.data.Dataset.from_tensor_slices(np.array([[0.25, 0.5], [0.75, 0.125]]))
    integers = tf.data.Dataset.from_tensor_slices(np.array([[6, 7], [1, 2]], np.int32))
    names = [f"math.{name}" for name in [*UNARY, *BINARY] if name not in ("acosh", "zeta")]

    def of_floats(x):
        one = {name: attrgetter(name)(tf)(x) for name in names if name[5:] in UNARY}
        two = {name: attrgetter(name)(tf)(x, x + 0.5) for name in names if name[5:] in BINARY}
        reduced = {name: getattr(tf.math, f"reduce_{name}")(x) for name in REDUCE}
        return {**one, **two, **reduced, "argmax": tf.argmax(x), "cumsum": tf.cumsum(x)}

    def of_integers(x):
        return {
            "divide": tf.divide(x, 2),
            "floordiv": tf.math.floordiv(x, 2),
            "by itself": tf.math.truediv(x, x),
            "argmin": tf.argmin(x),
            "argmin int32": tf.argmin(x, output_type=tf.int32),
            "count_nonzero": tf.math.count_nonzero(x),
            "mean": tf.reduce_mean(x),
            "zero_fraction": tf.math.zero_fraction(x),
            "pow": tf.pow(x, 2),
            "greater": tf.greater(x, 3),
            "abs": tf.abs(x),
            "bits": tf.bitwise.bitwise_and(x, 3),
        }

    return {
        **_parts("floats", floats.map(of_floats)),
        **_parts("ints", integers.map(of_integers)),
    }


def _parts(label, dataset):
    """Return the spec and the values of each part of the elements."""
    elements = list(dataset)
    return {
        f"{label} {name}": (spec, [element[name] for element in elements])
        for name, spec in dataset.element_spec.items()
    }


def extremes_of_rows_with_nan(tf, ask):
    """NaN is an extreme of values, and of norms, however many rows are reduced together."""
    rows = np.ones((3000, 2, 3), np.float32)
    rows[::2, 1, 2] = np.nan
    rows[5] = np.inf
    answers = {}
    for name in ("reduce_max", "reduce_min"):
        reduce = getattr(tf, name)
        data = tf.data.Dataset.from_tensor_slices(rows)
        answers[f"{name} of all"] = ask(lambda r=reduce: r(tf.constant(rows), [1, 2])[:8])
        answers[f"{name} in a map"] = ask(
            lambda r=reduce, d=data: list(d.map(lambda x: r(x, 0)).skip(2).take(4))
        )
    data = tf.data.Dataset.from_tensor_slices(rows)
    for name, given in (("vector", {"axis": 0}), ("matrix", {"axis": [0, 1]}), ("all", {})):
        answers[f"norm of {name}"] = ask(
            lambda g=given: list(data.map(lambda x: tf.norm(x, ord=np.inf, **g)).take(5))
        )
    return answers
