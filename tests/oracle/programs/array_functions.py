"""Functions that arrange, cut, pick, fill and sort: values, dtypes and errors, on tensors and in a map."""

# pyright: basic

import numpy as np

MATRIX = np.array([[1, 2, 3], [4, 5, 6]], np.int32)
FLOATS = np.array([[3.0, 1.0, 2.0], [1.0, 5.0, 4.0]], np.float32)
TEXTS = np.array([["a", "b", "c"], ["d", "e", "f"]], object)


def _each(ask, calls):
    return {label: ask(*call) for label, call in calls.items()}


def arranging(tf, ask):
    values = {"": MATRIX, "text ": TEXTS, "int64 ": MATRIX.astype(np.int64)}
    calls = {
        f"{kind}{label}": (function, value, *rest)
        for kind, value in values.items()
        for label, (function, *rest) in {
            "expand_dims": (tf.expand_dims, -1),
            "tile": (tf.tile, [1, 2]),
            "repeat": (tf.repeat, 2),
            "reverse": (tf.reverse, [1]),
            "transpose": (tf.transpose,),
            "identity": (tf.identity,),
            "broadcast_to": (tf.broadcast_to, [2, 2, 3]),
            "size": (tf.size,),
            "rank": (tf.rank,),
        }.items()
    }
    calls |= {
        "expand_dims 0": (tf.expand_dims, 5, 0),
        "expand_dims 3": (tf.expand_dims, MATRIX, 3),
        "squeeze": (tf.squeeze, [[[1], [2]]]),
        "squeeze 0": (tf.squeeze, [[[1], [2]]], 0),
        "squeeze axes": (tf.squeeze, [[[1], [2]]], [0, 2]),
        "squeeze 1": (tf.squeeze, [[[1], [2]]], 1),
        "tile too few": (tf.tile, MATRIX, [2]),
        "repeat along 1": (tf.repeat, MATRIX, [1, 0, 2], 1),
        "roll": (tf.roll, MATRIX, 1, 1),
        "roll both": (tf.roll, MATRIX, [1, -1], [0, 1]),
        "transpose perm": (tf.transpose, np.zeros((1, 2, 3)), [2, 0, 1]),
        "transpose perm too short": (tf.transpose, MATRIX, [0]),
        "broadcast_to too small": (tf.broadcast_to, MATRIX, [2, 2]),
        "size int64": (tf.size, MATRIX, tf.int64),
        "stop_gradient": (tf.stop_gradient, FLOATS),
        "reverse_sequence": (tf.reverse_sequence, MATRIX, [2, 3], 1, 0),
        "broadcast_static_shape": (
            lambda: tf.broadcast_static_shape(tf.TensorShape([2, 1]), tf.TensorShape([3])),
        ),
        "broadcast_dynamic_shape": (tf.broadcast_dynamic_shape, [2, 1], [3]),
        "meshgrid": (tf.meshgrid, [1, 2], [3, 4, 5]),
        "meshgrid ij": (lambda: tf.meshgrid([1, 2], [3, 4, 5], indexing="ij"),),
    }
    return _each(ask, calls)


def cutting(tf, ask):
    return _each(
        ask,
        {
            "slice": (tf.slice, MATRIX, [0, 1], [2, 2]),
            "slice rest": (tf.slice, MATRIX, [1, 0], [-1, 2]),
            "slice beyond": (tf.slice, MATRIX, [0, 2], [1, 2]),
            "slice text": (tf.slice, TEXTS, [0, 1], [1, -1]),
            "strided_slice": (tf.strided_slice, MATRIX, [0, 0], [2, 3], [1, 2]),
            "strided_slice masks": (
                lambda: tf.strided_slice(
                    MATRIX, [0, 1], [1, 9], begin_mask=1, end_mask=2, shrink_axis_mask=1
                ),
            ),
            "split": (tf.split, MATRIX, 3, 1),
            "split lengths": (tf.split, MATRIX, [1, -1], 1),
            "split unequal": (tf.split, MATRIX, 2, 1),
            "split text": (tf.split, TEXTS, 2),
            "unstack": (tf.unstack, MATRIX),
            "unstack along 1": (lambda: tf.unstack(MATRIX, axis=1),),
            "unstack text": (tf.unstack, TEXTS),
            "unstack num": (tf.unstack, MATRIX, 3),
            "pad": (tf.pad, MATRIX, [[1, 0], [0, 2]]),
            "pad with 7": (lambda: tf.pad(MATRIX, [[0, 0], [1, 1]], constant_values=7),),
            "pad reflect": (tf.pad, MATRIX, [[0, 0], [2, 1]], "REFLECT"),
            "pad symmetric": (tf.pad, MATRIX, [[1, 1], [0, 0]], "SYMMETRIC"),
            "pad too few": (tf.pad, MATRIX, [[1, 1]]),
            "pad unknown": (tf.pad, MATRIX, [[1, 1], [0, 0]], "NOPE"),
            "depth_to_space": (tf.nn.depth_to_space, np.arange(8.0).reshape(1, 1, 2, 4), 2),
            "space_to_depth": (tf.nn.space_to_depth, np.arange(8.0).reshape(1, 2, 4, 1), 2),
        },
    )


def picking(tf, ask):
    batch = np.arange(12, dtype=np.int32).reshape(2, 3, 2)
    return _each(
        ask,
        {
            "gather": (tf.gather, MATRIX, [1, 0, 1]),
            "gather one": (tf.gather, MATRIX, 1),
            "gather along 1": (lambda: tf.gather(MATRIX, [[2], [0]], axis=1),),
            "gather batch": (lambda: tf.gather(batch, [[2, 0], [1, 1]], batch_dims=1),),
            "gather text": (tf.gather, TEXTS, [1]),
            "gather beyond": (tf.gather, MATRIX, [2]),
            "gather negative": (tf.gather, MATRIX, [-1]),
            "gather floats": (tf.gather, MATRIX, [0.0]),
            "gather_nd": (tf.gather_nd, MATRIX, [[0, 1], [1, 2]]),
            "gather_nd rows": (tf.gather_nd, MATRIX, [[1]]),
            "gather_nd batch": (lambda: tf.gather_nd(batch, [[[1, 0]], [[2, 1]]], batch_dims=1),),
            "gather_nd beyond": (tf.gather_nd, MATRIX, [[0, 3]]),
            "gather_nd too long": (tf.gather_nd, MATRIX, [[0, 1, 2]]),
            "scatter_nd": (tf.scatter_nd, [[1], [3], [1]], [5, 6, 7], [4]),
            "scatter_nd beyond": (tf.scatter_nd, [[4]], [5], [4]),
            "update": (tf.tensor_scatter_nd_update, MATRIX, [[0, 1], [1, 2]], [9, 8]),
            "add": (tf.tensor_scatter_nd_add, MATRIX, [[0], [0]], [[1, 1, 1], [2, 2, 2]]),
            "sub": (tf.tensor_scatter_nd_sub, MATRIX, [[0, 0]], [5]),
            "max": (tf.tensor_scatter_nd_max, MATRIX, [[0, 0]], [5]),
            "min": (tf.tensor_scatter_nd_min, MATRIX, [[0, 0]], [-5]),
            "one_hot": (tf.one_hot, [0, 2, -1, 3], 3),
            "one_hot values": (lambda: tf.one_hot(1, 3, on_value=5, off_value=-1),),
            "one_hot int64": (lambda: tf.one_hot([1], 2, dtype=tf.int64),),
            "one_hot bools": (lambda: tf.one_hot([1], 2, on_value=True, off_value=False),),
            "one_hot axis 0": (lambda: tf.one_hot([0, 1], 3, axis=0),),
            "unravel_index": (tf.unravel_index, [5, 1], [2, 3]),
            "invert_permutation": (tf.math.invert_permutation, [2, 0, 1]),
        },
    )


def filling(tf, ask):
    return _each(
        ask,
        {
            "fill": (tf.fill, [2, 2], 7),
            "fill text": (tf.fill, [2], "a"),
            "fill negative": (tf.fill, [-1], 7),
            "zeros_like": (tf.zeros_like, MATRIX),
            "zeros_like int64": (tf.zeros_like, np.arange(3)),
            "zeros_like float16": (tf.zeros_like, MATRIX, tf.float16),
            "zeros_like text": (tf.zeros_like, TEXTS),
            "ones_like": (tf.ones_like, FLOATS),
            "ones_like bools": (tf.ones_like, [True, False]),
            "eye": (tf.eye, 2),
            "eye batch": (tf.eye, 2, 3, [2], tf.int32),
            "linspace": (tf.linspace, 0.0, 2.0, 5),
            "linspace one": (tf.linspace, 0.0, 2.0, 1),
            "linspace vectors": (tf.linspace, [0.0, 1.0], [1.0, 3.0], 3),
            "linspace none": (tf.linspace, 0.0, 2.0, 0),
            "sequence_mask": (tf.sequence_mask, [1, 3, 0]),
            "sequence_mask 4": (tf.sequence_mask, [[1], [3]], 4, tf.float32),
        },
    )


def choosing(tf, ask):
    mask = [True, False, True]
    return _each(
        ask,
        {
            "where": (tf.where, [True, False, True], [1, 2, 3], 0),
            "where broadcast": (tf.where, [[True], [False]], FLOATS, -FLOATS),
            "where text": (tf.where, [True, False], ["a", "b"], ["c", "d"]),
            "where places": (tf.where, [[True, False], [False, True]]),
            "where numbers": (tf.where, [0, 3, 0, 5]),
            "where only x": (tf.where, [True], [1]),
            "boolean_mask": (tf.boolean_mask, MATRIX, [False, True]),
            "boolean_mask along 1": (lambda: tf.boolean_mask(MATRIX, mask, axis=1),),
            "boolean_mask all": (tf.boolean_mask, MATRIX, MATRIX > 2),
            "boolean_mask text": (tf.boolean_mask, TEXTS, [True, False]),
            "boolean_mask unlike": (tf.boolean_mask, MATRIX, mask),
            "unique": (lambda: tuple(tf.unique([5, 3, 5, 1])),),
            "unique text": (lambda: tuple(tf.unique(["b", "a", "b"])),),
            "unique int64": (lambda: tuple(tf.unique([5, 3, 5], tf.int64)),),
            "unique matrix": (tf.unique, MATRIX),
            "unique_with_counts": (lambda: tuple(tf.unique_with_counts([5, 3, 5])),),
            "dynamic_partition": (tf.dynamic_partition, MATRIX, [1, 0], 3),
            "dynamic_partition beyond": (tf.dynamic_partition, MATRIX, [1, 3], 3),
            "dynamic_stitch": (tf.dynamic_stitch, [[0, 2], [1]], [[1, 3], [2]]),
        },
    )


def sorting(tf, ask):
    return _each(
        ask,
        {
            "sort": (tf.sort, FLOATS),
            "sort along 0 descending": (tf.sort, FLOATS, 0, "DESCENDING"),
            "sort unknown": (tf.sort, FLOATS, 0, "NOPE"),
            "argsort": (tf.argsort, [3, 1, 2, 1]),
            "argsort descending": (lambda: tf.argsort([3, 1, 2, 3], direction="DESCENDING"),),
            "top_k": (lambda: tuple(tf.math.top_k(FLOATS, 2)),),
            "top_k ties": (lambda: tuple(tf.math.top_k([1, 7, 7, 3], 3)),),
            "top_k too many": (tf.math.top_k, FLOATS, 4),
            "in_top_k": (tf.math.in_top_k, [0, 1], FLOATS, 1),
            "searchsorted": (tf.searchsorted, [1, 3, 3, 5], [0, 3, 9]),
            "searchsorted right": (lambda: tf.searchsorted([1, 3, 3, 5], [3], side="right"),),
            "searchsorted rows": (tf.searchsorted, [[1, 3], [2, 4]], [[2], [5]]),
            "is_non_decreasing": (tf.math.is_non_decreasing, [1, 1, 2]),
            "is_strictly_increasing": (tf.math.is_strictly_increasing, [1, 1, 2]),
            "falling uint8": (tf.math.is_non_decreasing, np.array([3, 1], np.uint8)),
            "a step of 255": (tf.math.is_strictly_increasing, np.array([-128, 127], np.int8)),
            "a step of -255": (tf.math.is_non_decreasing, np.array([127, -128], np.int8)),
            "equal infinities": (tf.math.is_non_decreasing, [1.0, np.inf, np.inf]),
            "equal NaN": (tf.math.is_non_decreasing, [np.nan, np.nan]),
        },
    )


def counting(tf, ask):
    return _each(
        ask,
        {
            "bincount": (tf.math.bincount, [1, 3, 1]),
            "bincount weights": (tf.math.bincount, [1, 3, 1], [0.5, 1.0, 2.0]),
            "bincount lengths": (lambda: tf.math.bincount([1, 3, 1], minlength=2, maxlength=3),),
            "bincount int64": (lambda: tf.math.bincount([1, 1], minlength=3, dtype=tf.int64),),
            "bincount rows": (lambda: tf.math.bincount([[1, 1], [0, 2]], axis=-1),),
            "bincount binary": (
                lambda: tf.math.bincount([[1, 1], [0, 2]], axis=-1, binary_output=True),
            ),
            "bincount negative": (tf.math.bincount, [-1]),
            "confusion_matrix": (tf.math.confusion_matrix, [0, 1, 2, 1], [0, 2, 2, 1]),
            "confusion_matrix 4": (tf.math.confusion_matrix, [0, 1], [1, 1], 4),
            "confusion_matrix weights": (
                lambda: tf.math.confusion_matrix([0, 1], [1, 1], weights=[2, 3], dtype=tf.float32),
            ),
            "confusion_matrix beyond": (tf.math.confusion_matrix, [0, 5], [1, 1], 3),
            "histogram": (
                tf.histogram_fixed_width,
                [-1.0, 0.0, 1.5, 2.0, 5.0, 15.0],
                [0.0, 5.0],
                5,
            ),
            "bins": (tf.histogram_fixed_width_bins, [-1.0, 0.0, 1.5, 15.0], [0.0, 5.0], 5),
        },
    )


def segments(tf, ask):
    rows = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32)
    names = ("sum", "mean", "prod", "max", "min")
    calls = {
        f"{name} {label}": (getattr(tf.math, f"segment_{name}"), data, ids)
        for name in names
        for label, data, ids in [
            ("rows", rows, [0, 0, 2]),
            ("ints", [7, 2, 4], [0, 0, 1]),
            ("unsorted", rows, [1, 0, 0]),
        ]
    }
    calls |= {
        f"unsorted {name}": (getattr(tf.math, f"unsorted_segment_{name}"), rows, [2, 0, -1], 4)
        for name in (*names, "sqrt_n")
    }
    calls |= {
        "unsorted beyond": (tf.math.unsorted_segment_sum, rows, [0, 1, 4], 4),
        "unsorted matrix of ids": (tf.math.unsorted_segment_sum, MATRIX, MATRIX - 1, 6),
        "unlike lengths": (tf.math.unsorted_segment_sum, rows, [0, 1], 4),
    }
    return _each(ask, calls)


def in_a_map(tf, ask):
    """Ask for many functions in one map. Those with a result of unknown length run per element."""
    rows = tf.data.Dataset.from_tensor_slices(np.arange(12, dtype=np.int64).reshape(2, 2, 3) - 3)

    def same_shape(x):
        return {
            "expand_dims": tf.expand_dims(x, 0),
            "squeeze": tf.squeeze(tf.expand_dims(x, 0)),
            "tile": tf.tile(x, [2, 1]),
            "repeat": tf.repeat(x, 2, axis=1),
            "roll": tf.roll(x, 1, 0),
            "reverse": tf.reverse(x, [0]),
            "transpose": tf.transpose(x),
            "gather": tf.gather(x, [1, 0], axis=1),
            "gather_nd": tf.gather_nd(x, [[0, 1]]),
            "scatter": tf.tensor_scatter_nd_update(x, [[0, 0]], [7]),
            "one_hot": tf.one_hot(x[0], 4),
            "zeros_like": tf.zeros_like(x),
            "ones_like": tf.ones_like(x),
            "fill": tf.fill([2], x[0, 0]),
            "where": tf.where(x > 2, x, -x),
            "pad": tf.pad(x, [[0, 1], [0, 0]]),
            "slice": tf.slice(x, [0, 1], [2, 2]),
            "split": tf.split(x, 3, axis=1)[1],
            "unstack": tf.unstack(x)[1],
            "sort": tf.sort(x, direction="DESCENDING"),
            "argsort": tf.argsort(x),
            "top_k": tf.math.top_k(x, 2).values,
            "size": tf.size(x),
            "rank": tf.rank(x),
            "reshaped": tf.reshape(x, [tf.size(x) // 2, 2]),
            "clip": tf.clip_by_value(x, 0, 4),
            "segments": tf.math.unsorted_segment_sum(x, [1, 0], 3),
            "bincount": tf.ensure_shape(
                tf.math.bincount(tf.abs(x[0]), minlength=9, maxlength=9), [9]
            ),
            "cumsum": tf.cumsum(x, axis=1),
            "matmul": tf.matmul(x, x, transpose_b=True),
            "mask": tf.sequence_mask(tf.abs(x[0]), 3),
        }

    def of_any_length(x):
        return {
            "boolean_mask": tf.boolean_mask(x, x > 2),
            "where": tf.where(x > 2),
            "unique": tf.unique(tf.reshape(x, [-1]) // 2).y,
        }

    fixed, found = rows.map(same_shape), list(rows.map(of_any_length))
    elements = list(fixed)
    return {
        **{
            f"fixed {name}": (spec, [element[name] for element in elements])
            for name, spec in fixed.element_spec.items()
        },
        **{f"open {name}": [element[name] for element in found] for name in found[0]},
        "gather beyond": ask(lambda: list(rows.map(lambda x: tf.gather(x[0], tf.abs(x[1]))))),
    }
