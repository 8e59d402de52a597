"""Checking arguments against an `input_signature`: matches, conversions and errors."""

import collections
import warnings

import jax
import numpy as np
import pytest
from tests.counting import counting, cut, parts

import evenfeed as tf

VECTOR = tf.TensorSpec([None], tf.float32)
SCALAR = tf.TensorSpec([], tf.float32)


@pytest.fixture(scope="module")
def strategy():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def double(*specs):
    return tf.function(lambda x: x * 2, input_signature=list(specs))


@pytest.mark.parametrize(
    "value",
    [
        [1.0, 2.0],
        [1, 2],
        (1.0, 2.0),
        np.float32([1, 2]),
        np.float64([1, 2]),
        tf.constant([1.0, 2.0]),
        tf.Variable([1.0, 2.0]),
    ],
)
def test_values_become_tensors_of_the_spec(value):
    result = double(VECTOR)(value)
    assert result.dtype == np.float32
    assert result.tolist() == [2.0, 4.0]


def test_python_numbers_do_not_trace_again():
    body = counting(lambda x: x * 2)
    f = tf.function(body, input_signature=[SCALAR])
    assert [f(x).item() for x in (1, 2.0, 3)] == [2.0, 4.0, 6.0]
    assert [f(x=x).item() for x in (1, 2.0)] == [2.0, 4.0]
    assert body.runs == 1


def test_an_unknown_length_takes_any_and_is_compiled_for_each():
    body = counting(lambda x: x * 2)
    f = tf.function(body, input_signature=[VECTOR])
    assert [len(f(tf.zeros([n]))) for n in (0, 1, 5, 1)] == [0, 1, 5, 1]
    assert body.runs == 3


def test_an_unknown_rank_takes_any():
    assert double(tf.TensorSpec(None, tf.int32))([[1]]).tolist() == [[2]]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (tf.constant([1]), "TensorSpec(shape=(1,), dtype=tf.int32, name=None)"),
        (tf.constant(1.0), "TensorSpec(shape=(), dtype=tf.float32, name=None)"),
        (1.0, "TensorSpec(shape=(), dtype=tf.float32, name=None)"),
        ("a", "'a'"),
        (None, "None"),
        ({"x": 1.0}, "{'x': 1.0}"),
    ],
)
def test_an_error_shows_the_spec_against_the_value(value, shown):
    f = tf.function(lambda x: x, input_signature=[VECTOR])
    with pytest.raises(TypeError) as caught:
        f(value)
    lines = str(caught.value).splitlines()
    assert lines[0] == "<lambda>: x does not fit the input_signature:"
    assert lines[1] == f"  spec:  {VECTOR}"
    assert lines[2] == f"  value: {shown}"
    assert "test_signatures.py" in lines[3]
    assert lines[4].startswith("  fix: cast or reshape")


def test_a_value_of_another_kind_is_refused_after_one_that_fits():
    f = double(VECTOR)
    f(tf.constant([1.0]))
    with pytest.raises(TypeError, match="does not fit"):
        f(tf.constant([1]))
    assert f(tf.constant([1.0])).tolist() == [2.0]


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((), {}, "missing a required argument: 'x'"),
        ((1.0, 2.0), {}, "too many positional arguments"),
        ((), {"y": 1.0}, "missing a required argument: 'x'"),
        ((1.0,), {"x": 1.0}, "multiple values for argument 'x'"),
    ],
)
def test_other_arguments_are_refused(args, kwargs, said):
    with pytest.raises(TypeError, match=said):
        double(SCALAR)(*args, **kwargs)


def test_an_argument_without_a_spec_keeps_its_default():
    f = tf.function(lambda x, y=3, *, z=2: x * y * z, input_signature=[SCALAR])
    assert f(1.0).item() == f(1.0, 3).item() == f(1.0, z=2).item() == 6.0
    for args, kwargs in (((1.0, 4), {}), ((1.0,), {"z": 3})):
        with pytest.raises(
            TypeError, match="has no spec in input_signature, so it must keep its default"
        ):
            f(*args, **kwargs)


def test_several_positional_arguments():
    f = tf.function(lambda *xs: xs[0] + xs[1], input_signature=[SCALAR, SCALAR])
    assert f(1.0, 2.0).item() == 3.0


@pytest.mark.parametrize(
    ("specs", "said"),
    [
        (SCALAR, "must be a list or a tuple"),
        ([3], "must consist of specs, but got 3"),
        ([SCALAR, SCALAR], "2 specs, which is 1 more than there are parameters"),
        ([], "has no spec for 'x'"),
    ],
)
def test_a_wrong_signature_is_refused(specs, said):
    with pytest.raises(TypeError, match=said):
        tf.function(lambda x: x, input_signature=specs)(1.0)


def test_nests_have_the_structure_of_the_signature():
    f = tf.function(lambda d: d["a"] + d["b"][0], input_signature=[{"a": SCALAR, "b": (SCALAR,)}])
    assert f({"a": 1.0, "b": (2.0,)}).item() == 3.0
    for value, path in (
        ({"a": 1.0, "b": [2.0]}, r"d\['b'\]"),
        ({"a": 1.0}, "d"),
        ({"a": 1.0, "b": (2.0,), "c": 1.0}, "d"),
        (1.0, "d"),
        ({"a": [1.0], "b": (2.0,)}, r"d\['a'\]"),
    ):
        with pytest.raises(TypeError, match=f"{path} does not fit"):
            f(value)


def test_namedtuples_are_nests():
    point = collections.namedtuple("point", "x y")
    f = tf.function(lambda p: p.x * p.y, input_signature=[point(SCALAR, SCALAR)])
    assert f(point(2.0, 3)).item() == 6.0


def test_text_is_taken():
    f = tf.function(lambda x: x, input_signature=[tf.TensorSpec([], tf.string)])
    assert [f(text).item() for text in ("abc", "d")] == [b"abc", b"d"]


def test_the_spec_of_a_distributed_dataset_is_a_signature(strategy):
    dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(6).batch(4))
    f = tf.function(
        lambda x: strategy.run(tf.square, args=(x,)), input_signature=[dataset.element_spec]
    )
    assert [parts(f(x)) for x in dataset] == [[[0, 1], [4, 9]], [[16], [25]]]
    with pytest.raises(TypeError, match=r"spec:  PerReplicaSpec.*\n  value: PerReplicaSpec"):
        f(cut(strategy, np.float32([1.0, 2.0])))
    with pytest.raises(TypeError, match=r"spec:  PerReplicaSpec.*\n  value: TensorSpec"):
        f(tf.constant([1]))


def test_a_per_replica_value_is_no_tensor(strategy):
    with pytest.raises(TypeError, match=r"spec:  TensorSpec.*\n  value: PerReplicaSpec"):
        double(VECTOR)(cut(strategy, np.float32([1.0, 2.0])))


def test_a_driven_function_is_checked_too(strategy):
    iterator = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(2)))
    f = tf.function(lambda n: (next(iterator), n)[1], input_signature=[SCALAR])
    assert f(3).item() == 3.0
    assert f(4).item() == 4.0
    with pytest.raises(TypeError, match="n does not fit"):
        f("a")


def test_the_signature_can_be_read():
    assert double(VECTOR).input_signature == (VECTOR,)
    assert tf.function(lambda x: x).input_signature is None


@pytest.mark.parametrize("dtype", [tf.int64, tf.uint64, tf.float64])
def test_a_signature_of_64_bits_takes_what_jax_holds_without_them(dtype):
    with jax.enable_x64(False), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "u?(int|float)64 was asked for")
        spec, number = tf.TensorSpec([], dtype), np.array(2, dtype)
        step = double(spec)
        element = next(iter(tf.data.Dataset.from_tensors(number)))
        for value in (element, number, 2, tf.constant(2, dtype), tf.Variable(number)):
            assert step(value) == 4
            assert step.get_concrete_function()(value) == 4
            assert tf.function(lambda x: x + x).get_concrete_function(spec)(value) == 4
        with pytest.raises(TypeError, match="does not fit the input_signature"):
            step(tf.constant(2, tf.float16))
        with pytest.raises(TypeError, match="does not fit the input_signature"):
            step(tf.constant([2], dtype))
