"""TensorShape: what is known, compared, joined, cut and printed."""

import itertools
import operator
import pickle

import numpy as np

SHAPES = {
    "unknown": None,
    "[]": [],
    "[None]": [None],
    "[2]": [2],
    "[3]": [3],
    "[0]": [0],
    "[None, 3]": [None, 3],
    "[2, None]": [2, None],
    "[2, 3]": [2, 3],
    "[None, None]": [None, None],
    "[1, 2, 3]": [1, 2, 3],
}


def made_of(tf, ask):
    return {
        "int": ask(tf.TensorShape, 5),
        "zero": ask(tf.TensorShape, 0),
        "negative": ask(tf.TensorShape, [-1]),
        "negative int": ask(tf.TensorShape, -1),
        "tuple": ask(tf.TensorShape, (None, 2)),
        "range": ask(tf.TensorShape, range(3)),
        "shape": ask(lambda: tf.TensorShape(tf.TensorShape([1, None]))),
        "float": ask(tf.TensorShape, [2.5]),
        "text": ask(tf.TensorShape, ["a"]),
        "nested": ask(tf.TensorShape, [[1]]),
        "np.int64": ask(tf.TensorShape, [np.int64(3)]),
        "array": ask(tf.TensorShape, np.array([2, 3])),
        "generator": ask(lambda: tf.TensorShape(i for i in (1, 2))),
    }


def facts(tf, ask):
    return {
        f"{label} {fact}": value
        for label, dims in SHAPES.items()
        for fact, value in _facts(tf.TensorShape(dims), ask).items()
    }


def _facts(shape, ask):
    return {
        "repr": repr(shape),
        "str": str(shape),
        "rank": shape.rank,
        "ndims": shape.ndims,
        "as_list": ask(shape.as_list),
        "num_elements": shape.num_elements(),
        "is_fully_defined": shape.is_fully_defined(),
        "assert_is_fully_defined": ask(shape.assert_is_fully_defined),
        "bool": bool(shape),
        "len": ask(len, shape),
        "list": ask(list, shape),
        "first": ask(lambda: shape[0]),
        "last": ask(lambda: shape[-1]),
        "sixth": ask(lambda: shape[5]),
        "[1:]": ask(lambda: shape[1:]),
        "[:2]": ask(lambda: shape[:2]),
        "[:-1]": ask(lambda: shape[:-1]),
        "[-1:]": ask(lambda: shape[-1:]),
        "[1:2]": ask(lambda: shape[1:2]),
        "with_rank 2": ask(shape.with_rank, 2),
        "with_rank_at_least 1": ask(shape.with_rank_at_least, 1),
        "with_rank_at_most 1": ask(shape.with_rank_at_most, 1),
        "assert_has_rank 1": ask(shape.assert_has_rank, 1),
        "pickled": ask(lambda: pickle.loads(pickle.dumps(shape))),
    }


def pairs(tf, ask):
    return {
        f"{one} {name} {two}": answer
        for one, two in itertools.product(SHAPES, repeat=2)
        for name, answer in _pair(tf, ask, SHAPES[one], SHAPES[two]).items()
    }


def _pair(tf, ask, one, two):
    first, second = tf.TensorShape(one), tf.TensorShape(two)
    return {
        "==": ask(lambda: first == second),
        "!=": ask(lambda: first != second),
        "== as written": ask(lambda: first == two),
        "is_compatible_with": ask(first.is_compatible_with, two),
        "is_subtype_of": ask(first.is_subtype_of, second),
        "merge_with": ask(first.merge_with, two),
        "most_specific_compatible_shape": ask(first.most_specific_compatible_shape, second),
        "most_specific_common_supertype": ask(first.most_specific_common_supertype, [second]),
        "concatenate": ask(first.concatenate, second),
        "+": ask(lambda: first + second),
        "assert_same_rank": ask(first.assert_same_rank, second),
        "assert_is_compatible_with": ask(first.assert_is_compatible_with, second),
    }


def equality(tf, ask):
    shape = tf.TensorShape
    return {
        "with a tuple": shape([1, None]) == (1, None),
        "with an int": shape([3]) == 3,
        "with text": shape([3]) == "3",
        "with None": shape([3]) == None,  # noqa: E711 - the comparison is the question
        "unknown with None": shape(None) == None,  # noqa: E711
        "with an object": shape([3]) == object(),
        "with [-1]": ask(lambda: shape([3]) == [-1]),
        "list plus shape": ask(operator.add, [1], shape([2])),
        "shape plus list": ask(operator.add, shape([2]), [1]),
        "hash of equals": hash(shape([1, 2])) == hash(shape([1, 2])),
        "in a dict": ask(lambda: {shape([1]): "here"}[shape([1])]),
        "in a list": shape([1]) in [[2], [1]],
    }


def several_supertypes(tf, ask):
    shape = tf.TensorShape
    return {
        "none": ask(lambda: shape([1]).most_specific_common_supertype([])),
        "three": ask(
            lambda: shape([1, 2]).most_specific_common_supertype([shape([1, 3]), shape([1, 4])])
        ),
        "of two ranks": ask(lambda: shape([1]).most_specific_common_supertype([shape([1, 3])])),
    }
