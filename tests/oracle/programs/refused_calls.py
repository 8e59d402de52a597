"""Arguments that do not fit each other: TensorFlow refuses most of them, and says what the others mean."""

# pyright: basic

import numpy as np

MATRIX = np.array([[1, 2, 3], [4, 5, 6]], np.int32)
SQUARE = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
NAN = float("nan")


def _each(ask, calls):
    return {label: ask(*call) for label, call in calls.items()}


def stitched(tf, ask):
    return _each(
        ask,
        {
            "fewer data": (tf.dynamic_stitch, [[0, 1], [2]], [[1, 2]]),
            "fewer values": (tf.dynamic_stitch, [[0, 1, 2]], [[1, 2]]),
            "more data": (tf.dynamic_stitch, [[0, 1]], [[1, 2], [3]]),
            "more values": (tf.dynamic_stitch, [[0, 1]], [[1, 2, 3]]),
            "negative": (tf.dynamic_stitch, [[0, -1]], [[1, 2]]),
            "other rows": (lambda: tf.dynamic_stitch([[0], [1]], [[[1, 2]], [[3, 4, 5]]]),),
            "nothing": (tf.dynamic_stitch, [], []),
            "no places": (lambda: tf.dynamic_stitch([[]], [np.zeros((0, 2), np.int32)]),),
            "gap": (tf.dynamic_stitch, [[2]], [[7]]),
            "matrix of places": (tf.dynamic_stitch, [[[0], [1]]], [[[5], [6]]]),
            "text": (tf.dynamic_stitch, [[1], [0]], [["b"], ["a"]]),
            "fewer text": (tf.dynamic_stitch, [[0, 1]], [["a"]]),
        },
    )


def reversed_sequences(tf, ask):
    call = tf.reverse_sequence
    return _each(
        ask,
        {
            "too long": (call, MATRIX, [4, 1], 1, 0),
            "negative": (call, MATRIX, [-1, 1], 1, 0),
            "too few": (call, MATRIX, [1], 1, 0),
            "too many": (call, MATRIX, [1, 1, 1], 1, 0),
            "scalar": (call, MATRIX, 1, 1, 0),
            "floats": (call, MATRIX, [1.0, 2.0], 1, 0),
            "same axes": (call, MATRIX, [1, 2], 0, 0),
            "zero": (call, MATRIX, [0, 3], 1, 0),
            "other axes": (call, MATRIX, [2, 1, 0], 0, 1),
            "text too long": (call, np.array([["a", "b"]], object), [3], 1, 0),
        },
    )


def one_hot(tf, ask):
    return _each(
        ask,
        {
            "negative depth": (tf.one_hot, [0, 1], -1),
            "depth 0": (tf.one_hot, [0, 1], 0),
            "depth vector": (tf.one_hot, [0, 1], [3]),
        },
    )


def rolled(tf, ask):
    return _each(
        ask,
        {
            "fewer shifts": (tf.roll, MATRIX, [1], [0, 1]),
            "one shift for two axes": (tf.roll, MATRIX, 1, [0, 1]),
            "more shifts": (tf.roll, MATRIX, [1, 2], [0]),
            "two shifts for one axis": (tf.roll, MATRIX, [1, 2], 0),
            "lists of one": (tf.roll, MATRIX, [1], [0]),
            "list and scalar": (tf.roll, MATRIX, [1], 0),
            "one axis twice": (tf.roll, MATRIX, [1, 1], [1, 1]),
            "matrix of shifts": (tf.roll, MATRIX, [[1]], [[0]]),
            "scalar": (tf.roll, 5, 1, 0),
        },
    )


def histograms(tf, ask):
    calls = {}
    for label, function in {
        "counts": tf.histogram_fixed_width,
        "bins": tf.histogram_fixed_width_bins,
    }.items():
        calls |= {
            f"{label} reversed": (function, [1.0, 2.0], [5.0, 0.0], 5),
            f"{label} no bins": (function, [1.0, 2.0], [0.0, 5.0], 0),
            f"{label} negative bins": (function, [1.0, 2.0], [0.0, 5.0], -1),
            f"{label} one end": (function, [1.0, 2.0], [0.0], 5),
            f"{label} three ends": (function, [1.0, 2.0], [0.0, 1.0, 2.0], 5),
        }
    calls["counts empty range"] = (tf.histogram_fixed_width, [1.0, 2.0], [1.0, 1.0], 5)
    return _each(ask, calls)


def counted(tf, ask):
    count = tf.math.bincount
    weights = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    return _each(
        ask,
        {
            "axis 0": (lambda: count(MATRIX, axis=0),),
            "axis -1": (lambda: count(MATRIX, axis=-1),),
            "axis 1": (lambda: count(MATRIX, axis=1),),
            "axis -2": (lambda: count(MATRIX, axis=-2),),
            "axis 0 of a vector": (lambda: count([1, 1, 2], axis=0),),
            "axis -1 of a vector": (lambda: count([1, 1, 2], axis=-1),),
            "axis 0 weights": (lambda: count(MATRIX, weights=weights, axis=0),),
            "axis 0 binary": (lambda: count(MATRIX, axis=0, binary_output=True),),
            "axis -1 of three axes": (lambda: count(MATRIX[None], axis=-1),),
            "weights do not fit": (lambda: count([1, 2, 3], weights=[1.0, 2.0]),),
            "negative minlength": (lambda: count([1, 2], minlength=-1),),
            "negative maxlength": (lambda: count([1, 2], maxlength=-1),),
        },
    )


def matrices(tf, ask):
    return _each(
        ask,
        {
            "cross of 2": (tf.linalg.cross, [1, 2], [3, 4]),
            "cross of 3 and 2": (tf.linalg.cross, [1, 2, 3], [3, 4]),
            "cross of rows and one": (tf.linalg.cross, [[1, 2, 3], [4, 5, 6]], [1, 0, 0]),
            "cross of scalars": (tf.linalg.cross, 1, 2),
            "cross of 4": (tf.linalg.cross, [1, 2, 3, 4], [1, 2, 3, 4]),
            "diag part not square": (tf.linalg.tensor_diag_part, MATRIX),
            "diag part of a vector": (tf.linalg.tensor_diag_part, [1, 2]),
            "diag part of a scalar": (tf.linalg.tensor_diag_part, 1),
            "diag part of three axes": (tf.linalg.tensor_diag_part, np.zeros((2, 2, 2))),
            "diag part of four axes": (
                tf.linalg.tensor_diag_part,
                np.arange(36.0).reshape(2, 3, 2, 3),
            ),
            "diag part of four other axes": (
                tf.linalg.tensor_diag_part,
                np.arange(36.0).reshape(2, 3, 3, 2),
            ),
            "both a": (lambda: tf.matmul(SQUARE, SQUARE, transpose_a=True, adjoint_a=True),),
            "both b": (lambda: tf.matmul(SQUARE, SQUARE, transpose_b=True, adjoint_b=True),),
            "one of a and b": (
                lambda: tf.matmul(SQUARE, SQUARE, transpose_a=True, adjoint_b=True),
            ),
            "both matvec": (
                lambda: tf.linalg.matvec(SQUARE, [1.0, 2.0], transpose_a=True, adjoint_a=True),
            ),
        },
    )


def padded(tf, ask):
    calls = {}
    for mode in ("REFLECT", "SYMMETRIC"):
        calls |= {
            f"{mode} 2 of 2": (tf.pad, [1, 2], [[2, 0]], mode),
            f"{mode} 3 of 2": (tf.pad, [1, 2], [[0, 3]], mode),
            f"{mode} 1 of 2": (tf.pad, [1, 2], [[1, 1]], mode),
            f"{mode} 1 of 1": (tf.pad, [1], [[1, 0]], mode),
            f"{mode} 0 of 0": (tf.pad, np.zeros(0, np.int32), [[0, 0]], mode),
            f"{mode} 1 of 0": (tf.pad, np.zeros(0, np.int32), [[0, 1]], mode),
            f"{mode} negative": (tf.pad, [1, 2], [[-1, 0]], mode),
            f"{mode} text": (tf.pad, ["a", "b"], [[2, 0]], mode),
        }
    calls |= {
        "CONSTANT negative": (tf.pad, [1, 2], [[-1, 0]]),
        "CONSTANT scalar": (tf.pad, 5, np.zeros((0, 2), np.int32)),
        "CONSTANT wide": (tf.pad, [1], [[3, 3]]),
    }
    return _each(ask, calls)


def places(tf, ask):
    return _each(
        ask,
        {
            "where scalar": (tf.where, True),
            "where false scalar": (tf.where, False),
            "where matrix": (tf.where, [[True, False]]),
            "where scalar of": (tf.where, True, 1, 2),
            "where ints": (tf.where, [0, 3]),
            "searchsorted rows": (tf.searchsorted, [[1, 3], [2, 4]], [[2], [3], [4]]),
            "searchsorted row and vector": (tf.searchsorted, [[1, 3], [2, 4]], [2]),
            "searchsorted vector and rows": (tf.searchsorted, [1, 3], [[2], [3]]),
            "searchsorted one row for two": (tf.searchsorted, [[1, 3]], [[2], [3]]),
            "searchsorted scalar": (tf.searchsorted, [1, 3], 2),
            "searchsorted scalar sequence": (tf.searchsorted, 1, [2]),
            "searchsorted each": (tf.searchsorted, [[1, 3], [2, 4]], [[2], [3]]),
        },
    )


def not_numbers(tf, ask):
    inside = np.array([1.0, NAN, 3.0, 2.0, NAN], np.float32)
    leading = np.array([NAN, 1.0, NAN, 3.0], np.float32)
    lowest = np.finfo(np.float32).min
    calls = {}
    for label, one in {"inside": inside, "leading": leading, "only": leading[[0, 2]]}.items():
        calls |= {
            f"argmax {label}": (tf.argmax, one),
            f"argmin {label}": (tf.argmin, one),
            f"argmax {label} float16": (tf.argmax, one.astype(np.float16)),
            f"argmax {label} float64": (tf.argmax, one.astype(np.float64)),
            f"unique {label}": (tf.unique, one),
            f"unique_with_counts {label}": (tf.unique_with_counts, one),
            f"reduce_max {label}": (tf.reduce_max, one),
            f"reduce_min {label}": (tf.reduce_min, one),
            f"top_k 1 {label}": (tf.math.top_k, one, 1),
        }
    calls |= {
        "argmax rows": (tf.argmax, [[NAN, 1.0], [2.0, NAN]], 1),
        "argmax columns": (tf.argmax, [[NAN, 1.0], [2.0, NAN]], 0),
        "argmax infinite": (tf.argmax, [NAN, -np.inf, NAN]),
        "argmin infinite": (tf.argmin, [NAN, np.inf, NAN]),
        "argmax infinite and lowest": (tf.argmax, [-np.inf, lowest]),
        "argmin infinite and highest": (tf.argmin, [np.inf, -lowest]),
        "argmax bools": (tf.argmax, [False, True, True]),
        "argmin ints": (tf.argmin, [3, 1, 1]),
        "argmax in a map": (
            lambda: [
                row.numpy().item() for row in tf.data.Dataset.from_tensors(leading).map(tf.argmax)
            ],
        ),
        "unique zeros": (tf.unique, [0.0, -0.0]),
        "top_k inside": (tf.math.top_k, inside, 5),
        "top_k rows": (tf.math.top_k, [[NAN, 1.0, 2.0], [2.0, NAN, 1.0]], 2),
        "sort": (tf.sort, inside),
        "argsort": (tf.argsort, inside),
        "sort down": (lambda: tf.sort(inside, direction="DESCENDING"),),
        "argsort down": (lambda: tf.argsort(inside, direction="DESCENDING"),),
    }
    return _each(ask, calls)


def texts(tf, ask):
    cut, written = tf.strings.substr, tf.strings.as_string
    calls = {
        f"substr {unit} {pos} {length}": (
            lambda p=pos, n=length, u=unit: cut("héllo", p, n, unit=u),
        )
        for unit in ("BYTE", "UTF8_CHAR")
        for pos, length in ((0, -1), (1, -1), (-2, -1), (5, -1), (0, 0), (0, -3), (-2, -5))
    }
    calls |= {
        "substr each": (lambda: cut(["hello", "wörld"], [0, 1], [-1, 2], unit="UTF8_CHAR"),),
        "as_string width": (lambda: written(["a", "bcd"], width=3),),
        "as_string left": (lambda: written(["a", "bcd"], width=3, fill="-"),),
        "as_string spaces": (lambda: written(["a", "bcd"], width=3, fill=" "),),
        "as_string zeros": (lambda: written(["a", "bcd"], width=3, fill="0"),),
        "as_string plus": (lambda: written(["a", "bcd"], width=3, fill="+"),),
        "as_string short": (lambda: written(["abcd"], width=2),),
        "as_string unicode": (lambda: written(["ü"], width=3),),
        "as_string precision": (lambda: written(["ab"], precision=1),),
        "as_string scientific": (lambda: written(["ab"], scientific=True),),
        "as_string bools": (lambda: written([True, False], width=6),),
        "as_string bools left": (lambda: written([True], width=6, fill="-"),),
        "as_string bools zeros": (lambda: written([True], width=6, fill="0"),),
        "as_string ints": (lambda: written([5], width=3),),
        "as_string complex": (lambda: written(tf.constant([1 + 2j]), width=9),),
    }
    return _each(ask, calls)


def ragged_logic(tf, ask):
    ints, floats, bools, words = (
        tf.ragged.constant(rows)
        for rows in ([[1, 0], [2]], [[1.0, 0.0], [2.0]], [[True, False], [True]], [["a"], ["b"]])
    )
    calls = {}
    for label, rows in {"ints": ints, "floats": floats, "texts": words, "bools": bools}.items():
        for name in ("reduce_any", "reduce_all"):
            for axis in (None, 0, 1):
                call = getattr(tf, name)
                calls[f"{name} {label} {axis}"] = (call, rows, axis)
    for label, call in {
        "+": lambda: bools + bools,
        "-": lambda: bools - bools,
        "*": lambda: bools * bools,
        "/": lambda: bools / bools,
        "//": lambda: bools // bools,
        "%": lambda: bools % bools,
        "**": lambda: bools**bools,
        "negative": lambda: -bools,
        "abs": lambda: abs(bools),
        "+ scalar": lambda: bools + True,
        "<": lambda: bools < tf.identity(bools),
        "&": lambda: bools & bools,
        "|": lambda: bools | bools,
        "^": lambda: bools ^ bools,
        "~": lambda: ~bools,
        "==": lambda: bools == tf.identity(bools),
        "int &": lambda: ints & ints,
        "int ~": lambda: ~ints,
        "float &": lambda: floats & floats,
        "float ~": lambda: ~floats,
        "text +": lambda: words + words,
        "text -": lambda: words - words,
        "add": lambda: tf.add(bools, bools),
        "square": lambda: tf.square(bools),
        "reduce_sum": lambda: tf.reduce_sum(bools, 1),
        "reduce_prod": lambda: tf.reduce_prod(bools, 1),
        "reduce_max": lambda: tf.reduce_max(bools, 1),
        "reduce_min": lambda: tf.reduce_min(bools, 1),
        "reduce_mean": lambda: tf.reduce_mean(bools, 1),
        "reduce_sum of texts": lambda: tf.reduce_sum(words, 1),
        "reduce_max of texts": lambda: tf.reduce_max(words, 1),
        "reduce_mean of texts": lambda: tf.reduce_mean(words, 1),
    }.items():
        calls[label] = (call,)
    return _each(ask, calls)


def ragged_arguments(tf, ask):
    rows = tf.ragged.constant([[1, 2], [3]])
    deep = tf.ragged.constant([[[1], [2, 3]], [[4]]])
    mask = tf.ragged.boolean_mask
    build = tf.RaggedTensor.from_tensor
    return _each(
        ask,
        {
            "[1.0]": (lambda: rows[1.0],),
            "[0, 1.0]": (lambda: rows[0, 1.0],),
            "[:, 1.0:]": (lambda: rows[:, 1.0:],),
            "[1.0:]": (lambda: rows[1.0:],),
            "['a']": (lambda: rows["a"],),
            "[None]": (lambda: rows[None],),
            "[True]": (lambda: rows[True],),
            "[float32]": (lambda: rows[np.float32(1.0)],),
            "[int64]": (lambda: rows[np.int64(1)],),
            "mask scalar": (mask, rows, True),
            "mask scalar of dense": (mask, [[1, 2]], True),
            "mask ints": (mask, rows, [1, 0]),
            "mask too short": (mask, rows, [True]),
            "mask too long": (mask, rows, [True, False, True]),
            "mask of dense too short": (mask, [1, 2], [True]),
            "mask of dense wider": (mask, [1, 2], [[True], [False]]),
            "mask vector": (mask, rows, [True, False]),
            "padding and lengths": (lambda: build([[1, 0]], lengths=[1], padding=0),),
            "lengths too long": (lambda: build([[1, 0]], lengths=[3]),),
            "lengths negative": (lambda: build([[1, 0]], lengths=[-1]),),
            "lengths too few": (lambda: build([[1, 0], [2, 0]], lengths=[1]),),
            "lengths floats": (lambda: build([[1, 0]], lengths=[1.0]),),
            "ragged_rank 0": (lambda: build([[1, 0]], ragged_rank=0),),
            "ragged_rank 2 of 2": (lambda: build([[1, 0]], ragged_rank=2),),
            "padding of a row": (lambda: build([[1, 0]], padding=[0, 0]),),
            "merge_dims 1 0": (deep.merge_dims, 1, 0),
            "merge_dims 2 1": (deep.merge_dims, 2, 1),
            "merge_dims -1 0": (deep.merge_dims, -1, 0),
            "merge_dims 1 1": (deep.merge_dims, 1, 1),
            "merge_dims 0 1": (deep.merge_dims, 0, 1),
            "merge_dims 0 -1": (deep.merge_dims, 0, -1),
            "merge_dims 0 3": (deep.merge_dims, 0, 3),
        },
    )
