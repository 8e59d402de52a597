"""One program per signature, and variables that the first call creates."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.counting import counting, cut, parts

import evenfeed as tf


@pytest.fixture(scope="module")
def strategy():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def test_python_runs_once_for_each_shape_dtype_and_structure():
    body = counting(lambda x: jax.tree.map(jnp.sum, x))
    f = tf.function(body)
    for value in (1.0, 2.0):
        f(tf.constant([value]))
    assert body.runs == f.experimental_get_tracing_count() == 1
    f(tf.constant([1.0, 2.0]))
    f(tf.constant([1, 2]))
    f((tf.constant([1.0]),))
    f([tf.constant([1.0])])
    f({"a": tf.constant([1.0])})
    f({"a": tf.constant([5.0])})
    assert body.runs == 6


def test_python_values_are_constants_of_a_program():
    body = counting(lambda x, flag: x + 1 if flag else x)
    f = tf.function(body)
    assert [int(f(tf.constant(1), flag)) for flag in (True, False, True, 1, 1.0)] == [2, 1, 2, 2, 2]
    assert body.runs == 4


def test_zeros_of_either_sign_are_two_constants_and_nan_is_one():
    body = counting(lambda x: jnp.copysign(1.0, x))
    f = tf.function(body)
    assert [float(f(x)) for x in (0.0, -0.0, 0.0)] == [1.0, -1.0, 1.0]
    f(float("nan"))
    f(float("nan"))
    assert body.runs == 3


def test_arrays_of_numpy_are_tensors():
    body = counting(lambda x: x * 2)
    f = tf.function(body)
    assert [f(np.float32(x)).item() for x in (1.0, 2.0)] == [2.0, 4.0]
    assert f(tf.constant(3.0)).item() == 6.0
    assert body.runs == 1


def test_names_positions_and_defaults_are_one_call():
    body = counting(lambda x, y=3: x + y)
    f = tf.function(lambda x, y=3: body(x, y))
    x = tf.constant(1)
    assert [int(v) for v in (f(x), f(x=x), f(x, 3), f(x, y=3), f(y=3, x=x))] == [4] * 5
    assert body.runs == 1


def test_text_is_a_constant_by_its_value():
    body = counting(lambda x, text: x if text == "a" else x * 2)
    f = tf.function(body)
    assert [int(f(tf.constant(3), text)) for text in ("a", "b", "a")] == [3, 6, 3]
    assert body.runs == 2


@pytest.mark.filterwarnings("error")
def test_a_function_of_text_tensors_runs_as_plain_python():
    f = tf.function(lambda text, x: (tf.strings.join([text, "!"]), tf.strings.to_number(text) + x))
    texts = tf.data.Dataset.from_tensor_slices(["1", "2", "3"])
    found = [f(text, tf.constant(0.5)) for text in texts]
    assert [(text.numpy(), x.numpy()) for text, x in found] == [
        (b"1!", 1.5),
        (b"2!", 2.5),
        (b"3!", 3.5),
    ]
    assert f(tf.constant(["4"])[0], 1)[1].numpy() == 5.0
    assert f.experimental_get_tracing_count() == 0
    assert f("7", tf.constant(0.5))[0].numpy() == b"7!"


def test_a_text_does_not_prevent_that_other_calls_are_compiled():
    body = counting(lambda x: x + x)
    f = tf.function(body)
    assert f(tf.constant("a")).numpy() == b"aa"
    assert [f(tf.constant(i)).numpy() for i in range(3)] == [0, 2, 4]
    assert body.runs == 2


def test_weak_and_strong_types_promote_as_outside():
    half = jnp.ones((), jnp.bfloat16)
    f = tf.function(lambda x, y: x * y)
    assert f(jnp.asarray(2.0), half).dtype == (jnp.asarray(2.0) * half).dtype
    assert f(tf.constant(2.0), half).dtype == (tf.constant(2.0) * half).dtype


def test_where_an_array_lies_is_no_kind(strategy):
    body = counting(lambda x: x + 1)
    f = tf.function(body)
    x = jnp.arange(4.0)
    expected = [1.0, 2.0, 3.0, 4.0]
    assert f(x).tolist() == f(jax.device_put(x, strategy.sharding())).tolist() == expected
    assert f(jax.device_put(x, strategy.sharding("replica"))).tolist() == expected
    assert body.runs == 1


def test_64_bits_are_another_kind():
    f = tf.function(lambda: jnp.asarray(1.5, jnp.float64 if jax.config.jax_enable_x64 else None))
    assert f().dtype == (np.float64 if jax.config.jax_enable_x64 else np.float32)
    with jax.enable_x64(True):
        assert f().dtype == np.float64


def test_side_effects_happen_when_it_is_traced(capsys):
    seen = []

    @tf.function
    def f(x):
        print("traced")  # noqa: T201 - what is tested
        seen.append(x.shape)
        return x

    f(tf.constant([1]))
    f(tf.constant([2]))
    f(tf.constant([2, 3]))
    assert seen == [(1,), (2,)]
    assert capsys.readouterr().out == "traced\ntraced\n"


def test_two_threads_trace_once():
    start = threading.Barrier(4)
    body = counting(lambda x: x + 1)
    f = tf.function(body)

    def call():
        start.wait()
        f(tf.constant([1.0]))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert body.runs == 1


def test_a_scope_is_another_kind_of_call(strategy):
    f = tf.function(lambda: tf.constant(tf.distribute.get_strategy().num_replicas_in_sync))
    assert int(f()) == 1
    with strategy.scope():
        assert int(f()) == 2
    assert int(f()) == 1


def test_variables_are_read_and_assigned():
    v = tf.Variable(1.0)
    f = tf.function(v.assign_add)
    assert [f(tf.constant(2.0)).item() for _ in range(3)] == [3.0, 5.0, 7.0]
    v.assign(0.0)
    assert f(tf.constant(2.0)).item() == v.numpy() == 2.0


class Layer:
    def __init__(self, make):
        self.make, self.w, self.b, self.runs = make, None, None, 0

    @tf.function
    def __call__(self, x):
        self.runs += 1
        if self.w is None:
            self.w = tf.Variable(self.make(x.shape[-1]))
            self.b = tf.Variable(tf.zeros([2]))
        self.b.assign_add(tf.ones([2]))
        return x @ self.w.value() + self.b.value()


@pytest.mark.parametrize(
    "make",
    [
        lambda n: jnp.ones((n, 2)),
        lambda n: np.ones((n, 2), np.float32),
        lambda n: lambda: tf.ones([n, 2]),
        lambda n: tf.random.uniform([n, 2], seed=1) * 0 + 1,
    ],
)
def test_variables_are_created_in_the_first_call(make):
    layer = Layer(make)
    x = tf.ones([1, 3])
    assert layer(x).tolist() == [[4.0, 4.0]]
    w = layer.w
    assert layer(x).tolist() == [[5.0, 5.0]]
    assert layer.w is w
    assert layer.b.numpy().tolist() == [2.0, 2.0]
    runs = layer.runs
    layer(x)
    assert layer.runs == runs


def test_variables_are_created_inside_run(strategy):
    class Step:
        v = None

        def __call__(self, x):
            if self.v is None:
                self.v = tf.Variable(tf.zeros([]) + 5.0, aggregation=tf.VariableAggregation.SUM)
            context = tf.distribute.get_replica_context()
            total = context.all_reduce("SUM", jnp.sum(x))
            self.v.assign_add(jnp.sum(x))
            return self.v.value() + 0 * total

    step = Step()
    f = tf.function(lambda x: strategy.run(step, args=(x,)))
    x = cut(strategy, np.arange(4.0, dtype=np.float32))
    assert parts(f(x)) == [11.0, 11.0]
    assert type(step.v).__name__ == "MirroredVariable"
    assert parts(f(x)) == [17.0, 17.0]


def test_a_variable_that_is_created_each_time_is_refused():
    @tf.function
    def f():
        return tf.Variable(1.0).value()

    for _ in range(2):
        with pytest.raises(
            ValueError, match=r"can create a variable only once[\s\S]*test_compiler"
        ):
            f()


def test_a_variable_that_is_created_later_is_refused():
    kept = []

    @tf.function
    def f(create):
        if create and not kept:
            kept.append(tf.Variable(1.0))
        return tf.constant(1.0)

    f(False)
    with pytest.raises(
        ValueError, match="in its first call, but this one creates another one later"
    ):
        f(True)


def test_an_error_in_the_function_commits_nothing_and_the_next_call_works():
    v = tf.Variable(0.0)
    fails = True

    @tf.function
    def f(x):
        v.assign_add(x)
        if fails:
            raise KeyError("mine")
        return v.value()

    with pytest.raises(KeyError, match="mine") as caught:
        f(tf.constant(1.0))
    assert [frame.name for frame in caught.traceback][-1] == "f"
    assert v.numpy() == 0.0
    fails = False
    assert f(tf.constant(1.0)).item() == 1.0


def test_a_variable_is_not_assigned_under_a_transformation():
    v = tf.Variable(0.0)
    f = tf.function(lambda x: v.assign_add(x).value())
    for transform in (jax.jit, jax.grad):
        with pytest.raises(ValueError, match="inside a function that JAX transforms"):
            transform(f)(np.float32(1.0))
    assert v.numpy() == 0.0
    assert f(tf.constant(1.0)).item() == 1.0


def test_a_pure_function_can_be_transformed():
    v = tf.Variable(3.0)
    f = tf.function(lambda x: x * x * v.value())
    assert jax.grad(f)(2.0).item() == 12.0
    assert jax.jit(f)(2.0).item() == 12.0
    assert jax.vmap(f)(jnp.arange(3.0)).tolist() == [0.0, 3.0, 12.0]
    assert f(tf.constant(1.0)).item() == 3.0


def test_a_tracer_in_the_closure_is_no_constant_of_the_next_call():
    held = {}
    f = tf.function(lambda x: x * held["w"])

    def loss(w):
        held["w"] = w
        return f(tf.constant(3.0))

    assert jax.grad(loss)(2.0).item() == 3.0
    held["w"] = 5.0
    assert f(tf.constant(3.0)).item() == 15.0


def test_functions_call_functions():
    v = tf.Variable(1.0)
    inner = tf.function(v.assign_add)
    outer = tf.function(lambda x: inner(x).value() + inner(x).value())
    assert outer(tf.constant(1.0)).item() == 5.0
    assert v.numpy() == 3.0
