"""TensorSpec and type_spec_from_value."""

import itertools
import pickle

import numpy as np


def _specs(tf):
    spec = tf.TensorSpec
    return {
        "[] float32": spec([]),
        "[2] float32": spec([2]),
        "[None] float32": spec([None]),
        "unknown float32": spec(None),
        "[2] int32": spec([2], tf.int32),
        "[2] float32 named a": spec([2], tf.float32, "a"),
        "[2] float32 named b": spec([2], tf.float32, "b"),
        "[None, 3] string": spec([None, 3], tf.string),
    }


def made_of(tf, ask):
    spec = tf.TensorSpec
    return {
        "default dtype": ask(spec, [2]),
        "dtype by name": ask(spec, [2], "int8"),
        "dtype by Python type": ask(spec, [2], float),
        "dtype of NumPy": ask(spec, [2], np.uint16),
        "int as shape": ask(spec, 3),
        "shape as shape": ask(lambda: spec(tf.TensorShape([None]), tf.bool)),
        "dtype of no such name": ask(spec, [2], "int33"),
        "negative length": ask(spec, [-1]),
        "from_spec": ask(lambda: spec.from_spec(spec([2], tf.int32, "a"))),
        "from_spec with a name": ask(lambda: spec.from_spec(spec([2], tf.int32, "a"), "b")),
        "from_tensor": ask(lambda: spec.from_tensor(tf.constant([1, 2]))),
        "from_tensor with a name": ask(lambda: spec.from_tensor(tf.constant([1, 2]), "x")),
        "from_tensor of a number": ask(spec.from_tensor, 3),
        "from_tensor of a list": ask(spec.from_tensor, [1, 2]),
        "from_tensor of an array": ask(spec.from_tensor, np.arange(3)),
    }


def facts(tf, ask):
    return {
        f"{label} {fact}": value
        for label, spec in _specs(tf).items()
        for fact, value in {
            "repr": repr(spec),
            "str": str(spec),
            "shape": spec.shape,
            "dtype": spec.dtype,
            "name": spec.name,
            "pickled": ask(lambda spec=spec: pickle.loads(pickle.dumps(spec)) == spec),
            "isinstance TypeSpec": isinstance(spec, tf.TypeSpec),
        }.items()
    }


def pairs(tf, ask):
    specs = _specs(tf)
    return {
        f"{one} {name} {two}": answer
        for one, two in itertools.product(specs, repeat=2)
        for name, answer in _pair(ask, specs[one], specs[two]).items()
    }


def _pair(ask, one, two):
    return {
        "==": one == two,
        "!=": one != two,
        "equal hashes": one != two or hash(one) == hash(two),
        "is_compatible_with": one.is_compatible_with(two),
        "is_subtype_of": one.is_subtype_of(two),
        "most_specific_compatible_type": ask(one.most_specific_compatible_type, two),
        "most_specific_common_supertype": ask(one.most_specific_common_supertype, [two]),
    }


def compatible_values(tf, ask):
    spec = tf.TensorSpec([None], tf.int32)
    return {
        "tensor": ask(lambda: spec.is_compatible_with(tf.constant([1, 2]))),
        "tensor of another rank": ask(lambda: spec.is_compatible_with(tf.constant(1))),
        "tensor of another dtype": ask(lambda: spec.is_compatible_with(tf.constant([1.5]))),
        "array": ask(lambda: spec.is_compatible_with(np.array([1], np.int32))),
        "list": ask(lambda: spec.is_compatible_with([1])),
        "number": ask(lambda: spec.is_compatible_with(1)),
        "None": ask(lambda: spec.is_compatible_with(None)),
        "text": ask(lambda: spec.is_compatible_with("a")),
        "equal to a shape": spec == tf.TensorShape([None]),
        "equal to None": spec == None,  # noqa: E711 - the comparison is the question
    }


def several_supertypes(tf, ask):
    spec = tf.TensorSpec
    common = spec([1, 2]).most_specific_common_supertype
    return {
        "none": ask(common, []),
        "three": ask(lambda: common([spec([1, 3]), spec([1, 4])])),
        "of two ranks": ask(lambda: common([spec([1])])),
        "of two dtypes": ask(lambda: common([spec([1, 2], tf.int32)])),
    }


def type_spec_from_value(tf, ask):
    of = tf.type_spec_from_value
    return {
        "number": ask(of, 3),
        "wide number": ask(of, 2**40),
        "float": ask(of, 2.5),
        "bool": ask(of, True),
        "text": ask(of, "a"),
        "bytes": ask(of, b"a"),
        "list": ask(of, [1, 2]),
        "tuple": ask(of, (1, 2)),
        "nested list": ask(of, [[1.5], [2.5]]),
        "tensor": ask(lambda: of(tf.constant([[1]]))),
        "array": ask(of, np.arange(3)),
        "float64 array": ask(of, np.array([1.5])),
        "text array": ask(of, np.array(["a", "b"])),
        "dict": ask(of, {"a": 1}),
        "object": ask(of, object()),
        "ragged list": ask(of, [[1], [2, 3]]),
    }
