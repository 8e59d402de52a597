"""`get_concrete_function`: one program of a function, to inspect and to call."""

import numpy as np
import pytest
from tests.counting import counting

import evenfeed as tf


@pytest.fixture(scope="module")
def strategy():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def distributed(strategy):
    return strategy.experimental_distribute_dataset(
        tf.data.Dataset.range(8).batch(4, drop_remainder=True)
    )


def test_a_concrete_function_shows_its_signature_and_runs():
    v = tf.Variable(2.0)
    body = counting(lambda x, n: x * n * v.value())
    f = tf.function(lambda x, n: body(x, n) * 1)
    concrete = f.get_concrete_function(tf.TensorSpec([2], tf.float32), 3.0)
    assert concrete.structured_input_signature == ((tf.TensorSpec([2], name="x"), 3.0), {})
    assert concrete.structured_outputs == tf.TensorSpec([2])
    assert concrete.inputs == [tf.TensorSpec([2])]
    assert concrete.variables == concrete.trainable_variables == (v,)
    assert concrete(tf.constant([1.0, 2.0])).tolist() == [6.0, 12.0]
    assert concrete(tf.constant([1.0, 2.0]), 3.0).tolist() == [6.0, 12.0]
    assert f(tf.constant([1.0, 1.0]), 3.0).tolist() == [6.0, 6.0]
    assert body.runs == 1
    assert "mul" in str(concrete.jaxpr)
    assert repr(concrete).startswith("<ConcreteFunction <lambda>(TensorSpec(shape=(2,)")


def test_a_concrete_function_refuses_what_it_was_not_traced_for():
    f = tf.function(lambda x, n: x * n)
    concrete = f.get_concrete_function(tf.TensorSpec([2], tf.float32), 3.0)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"spec: .*float32[\s\S]*value: .*int32"
    ):
        concrete(tf.constant([1, 2]))
    with pytest.raises(TypeError, match=r"traced with 3.0, but got 4.0"):
        concrete(tf.constant([1.0, 2.0]), 4.0)
    with pytest.raises(TypeError, match="traced for 1 tensors, but got 3"):
        concrete(1.0, 2.0, 3.0)


def test_a_concrete_function_takes_specs_of_a_distributed_dataset(strategy):
    dataset = distributed(strategy)
    body = counting(tf.square)
    f = tf.function(lambda x: strategy.run(body, args=(x,)))
    concrete = f.get_concrete_function(dataset.element_spec)
    assert concrete.structured_outputs == dataset.element_spec
    for batch in dataset:
        f(batch)
    assert body.runs == 1


def test_an_unknown_length_takes_any_and_is_compiled_for_each():
    body = counting(lambda x, n: x * n)
    f = tf.function(lambda x, n: body(x, n) * 1)
    concrete = f.get_concrete_function(tf.TensorSpec([None], tf.float32), 3.0)
    assert concrete.structured_input_signature == ((tf.TensorSpec([None], name="x"), 3.0), {})
    for _ in range(2):
        assert concrete(tf.constant([1.0, 2.0])).tolist() == [3.0, 6.0]
        assert concrete(np.float32([1.0]), 3.0).tolist() == [3.0]
    assert body.runs == 2
    assert "compiled for each shape" in repr(concrete)
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not fit the program"):
        concrete(tf.constant([[1.0]]))
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"spec: .*float32[\s\S]*value: .*int32"
    ):
        concrete(tf.constant([1]))
    with pytest.raises(TypeError, match=r"traced with 3.0, but got 4.0"):
        concrete(tf.constant([1.0]), 4.0)
    with pytest.raises(TypeError, match="traced for 1 tensors, but got 3"):
        concrete(1.0, 2.0, 3.0)


def test_an_unknown_rank_takes_text_and_the_specs_of_the_function():
    double = tf.function(lambda x: x + x)
    concrete = double.get_concrete_function(tf.TensorSpec(None, tf.string))
    assert concrete(tf.constant("c")) == b"cc"
    assert concrete(tf.constant(["c", "d"])).tolist() == [b"cc", b"dd"]
    traced_with_text = double.get_concrete_function(tf.constant("a"))
    assert traced_with_text(tf.constant("b")).numpy() == b"bb"
    assert "as plain Python" in repr(traced_with_text)
    signed = tf.function(lambda x: x + x, input_signature=[tf.TensorSpec([None])])
    assert signed.get_concrete_function()(tf.constant([1.0])).tolist() == [2.0]


def test_a_function_of_an_iterator_has_a_concrete_one_that_runs_as_plain_python(strategy):
    iterator = iter(distributed(strategy))
    concrete = tf.function(lambda: next(iterator)).get_concrete_function()
    assert concrete.structured_input_signature == ((), {})
    assert len(concrete().values) == strategy.num_replicas_in_sync


@pytest.mark.filterwarnings("ignore:.*runs as plain Python")
@pytest.mark.parametrize("by", ["value", "spec"])
def test_a_function_of_a_dataset_has_a_concrete_one(by):
    total = tf.function(lambda ds, start: ds.reduce(start, lambda s, x: s + x))
    counts = tf.data.Dataset.range(4)
    given = counts if by == "value" else tf.data.DatasetSpec(counts.element_spec)
    concrete = total.get_concrete_function(given, np.int64(0))
    assert concrete(tf.data.Dataset.range(5), np.int64(1)) == 11
    assert concrete(counts, start=np.int64(0)) == 6
    assert "as plain Python" in repr(concrete)


@pytest.mark.filterwarnings("ignore:.*runs as plain Python")
def test_a_function_that_looks_at_values_has_a_concrete_one():
    concrete = tf.function(lambda x: 1 if x > 0 else 2).get_concrete_function(tf.constant(1.0))
    assert [concrete(tf.constant(1.0)), concrete(tf.constant(-1.0))] == [1, 2]


def test_one_kind_of_arguments_has_one_concrete_function():
    f = tf.function(lambda x: x + 1)
    first = f.get_concrete_function(tf.TensorSpec([2]))
    assert f.get_concrete_function(tf.TensorSpec([2])) is first
    assert f.get_concrete_function(tf.constant([1.0, 2.0])) is first
    assert f.get_concrete_function(tf.TensorSpec([3])) is not first


def test_arguments_may_be_given_by_name_beside_constants():
    @tf.function
    def add(x, y=(1, 2)):
        return x["a"] + x["b"], y[0] + y[1]

    tensors = {"a": tf.constant(1000), "b": tf.constant(200)}
    for last in ((tf.constant(30), 4), (50, 3)):
        program = add.get_concrete_function(tensors, last)
        expected = [1200, int(last[0]) + last[1]]
        for found in (
            program(tensors, last),
            program(tensors, y=last),
            program(y=last, x=tensors),
        ):
            assert [int(part) for part in found] == expected
    program = add.get_concrete_function(tensors)
    assert [int(part) for part in program(x=tensors)] == [1200, 3]
    with pytest.raises(TypeError, match="was traced with 1, but got 7"):
        program(x=tensors, y=(7, 2))


_SPECS = pytest.mark.parametrize("length", [1, None])


@_SPECS
def test_an_argument_that_is_left_out_is_the_one_of_the_trace(length):
    @tf.function
    def step(b, a, n=2, *, m=1):
        return b - a * n * m

    spec = tf.TensorSpec([length])
    five, one = tf.constant([5.0]), tf.constant([1.0])
    program = step.get_concrete_function(spec, spec, n=3, m=4)
    for args, kwargs in [((five, one), {}), ((five,), {"a": one}), ((), {"a": one, "b": five})]:
        for constants in ({}, {"n": 3}, {"m": 4}, {"m": 4, "n": 3}):
            assert float(program(*args, **kwargs, **constants)[0]) == -7
    with pytest.raises(TypeError, match="was traced with 3, but got 2"):
        program(five, a=one, n=2)


@_SPECS
@pytest.mark.parametrize(
    ("args", "names"), [(0, "az"), (1, "a"), (0, "b"), (1, "z"), (2, "a"), (2, "z")]
)
def test_a_concrete_function_refuses_names_that_it_was_not_traced_with(length, args, names):
    spec, one = tf.TensorSpec([length]), tf.constant([1.0])
    program = tf.function(lambda a, b: a - b).get_concrete_function(spec, spec)
    with pytest.raises(TypeError, match=f"By name, it got {', '.join(names)}"):
        program(*[one] * args, **dict.fromkeys(names, one))
