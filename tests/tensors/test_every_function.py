"""Every tensor function in a map: traced or per element, the dtypes and the values are the same."""

# pyright: basic

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.tensors.every_call import ALIASES, CALLS, FUNCTIONS, NOT_IN_MAPS

import evenfeed as tf

X = np.array([[[0.5, 0.125], [0.25, 0.75]], [[0.75, 0.25], [0.125, 0.5]]])
I = np.array([[2, 0, 1], [1, 2, 0]])  # noqa: E741 - integers
B = np.array([[True, False, True], [False, True, True]])


def test_every_function_is_called():
    called = {id(FUNCTIONS[name]) for name in CALLS}
    missing = {name for key, name in ALIASES.items() if key not in called}
    assert not missing - NOT_IN_MAPS


# Functions whose result has a shape that follows from the values.
PER_ELEMENT = {
    "boolean_mask", "dynamic_partition", "edit_distance", "math.bincount", "nn.compute_accidental_hits",
    "nn.ctc_greedy_decoder", "sequence_mask", "unique", "unique_with_counts",
}  # fmt: skip


def chunks(names, size=60):
    ordered = sorted(names)
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]


# float32 beside int64: defaults must not become wider, and 64 bits must not be lost.
ELEMENTS = tf.data.Dataset.from_tensor_slices((X.astype(np.float32), I.astype(np.int64), B))


@pytest.mark.parametrize(
    "names", chunks(CALLS.keys() - PER_ELEMENT), ids=lambda names: f"{names[0]}-{names[-1]}"
)
def test_a_map_gives_the_same_traced_and_per_element(names):
    def compute(x, i, b):
        return {name: first_of(CALLS[name](x, i, b)) for name in names}

    mapped = ELEMENTS.map(compute)
    traced, one_by_one = list(mapped), list(ELEMENTS.map(compute, vectorize=False))
    assert "it traces" in str(mapped.explain())
    for name in names:
        for fast, slow in zip(traced, one_by_one, strict=True):
            assert fast[name].dtype == slow[name].dtype, name
            np.testing.assert_allclose(fast[name], slow[name], rtol=2e-5, atol=1e-6, err_msg=name)


def test_functions_with_results_of_unknown_length_run_per_element():
    for name in PER_ELEMENT:
        mapped = ELEMENTS.map(lambda x, i, b, f=CALLS[name]: first_of(f(x, i, b)))
        assert "needs the values" in str(mapped.explain()), name
        assert len(list(mapped)) == 2


def first_of(found):
    return found[0] if isinstance(found, tuple) else found


# --- what the functions accept -------------------------------------------------------------------


def kinds_of(numbers):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    return {
        "list": numbers,
        "NumPy array": np.array(numbers, np.float32),
        "jax.Array": jnp.asarray(numbers, jnp.float32),
        "variable": tf.Variable(numbers),
        "list of tensors": [tf.constant(number) for number in numbers],
        "Mirrored": strategy.reduce(
            "SUM", strategy.run(lambda: tf.constant(numbers) / 2), axis=None
        ),
        "element": next(iter(tf.data.Dataset.from_tensors(np.array(numbers, np.float32)))),
    }


@pytest.mark.parametrize("function", [tf.square, tf.reduce_sum, tf.cumsum, tf.nn.relu, tf.reverse])
def test_a_function_accepts_all_kinds_of_tensors(function):
    arguments = ([0],) if function is tf.reverse else ()
    found = {kind: function(x, *arguments) for kind, x in kinds_of([1.0, -2.0, 4.0]).items()}
    compiled = jax.jit(lambda x: function(x, *arguments))(jnp.asarray([1.0, -2.0, 4.0]))
    for kind, result in found.items():
        assert result.dtype == tf.float32, kind
        assert result.tolist() == compiled.tolist(), kind


@pytest.mark.parametrize(
    ("x", "y", "dtype"),
    [
        (np.array([1], np.uint8), 2, tf.uint8),
        (np.array([1], np.uint8), 0.5, tf.float32),
        (np.array([1], np.int8), [1.5], tf.float32),
        (2, np.array([1], np.float16), tf.float16),
        (1, 2.5, tf.float32),
    ],
)
def test_python_numbers_take_the_dtype_of_the_tensor_if_they_can(x, y, dtype):
    assert tf.multiply(x, y).dtype == dtype


def test_wide_integers_on_the_host_are_computed_exactly():
    assert tf.subtract(np.array([2**40 + 7]), np.array([2**40])).tolist() == [7]
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not fit into int32"):
        tf.multiply(np.array([2**20]), np.array([2**20]))


def test_a_default_of_64_bits_does_not_warn_and_datasets_know_it():
    index = tf.argmax([1.0, 3.0, 2.0])
    assert index.dtype == tf.int32  # JAX runs with 32 bits here
    assert tf.data.Dataset.from_tensors(index).element_spec.dtype == tf.int64


def test_lengths_that_follow_from_a_shape_are_known_in_a_trace():
    half = ELEMENTS.map(lambda x, i, b: tf.reshape(x, [tf.maximum(tf.size(x) // 2, 1), -1]))
    assert half.element_spec == tf.TensorSpec([2, 2], tf.float32)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tf.exp([1]), "exp needs floats, but got int32"),
        (lambda: tf.nn.relu(["a"]), "relu needs real numbers, but got string"),
        (lambda: tf.add([1, 2], [1, 2, 3]), r"shapes \(2,\) and \(3,\), which do not broadcast"),
        (lambda: tf.gather([1, 2], [5]), "index 5, but there are 2 entries"),
        (lambda: tf.matmul([1.0], [[1.0]]), "matmul needs matrices"),
        (lambda: tf.cond([True, False], int, int), "must be a single bool"),
        (lambda: tf.math.floordiv([1], [0]), "divided by 0"),
    ],
)
def test_an_error_says_what_and_what_to_do(call, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text) as caught:
        call()
    assert "fix:" in str(caught.value)


def test_every_kind_of_tensor_has_get_shape():
    assert jnp.zeros((2, 3)).get_shape().as_list() == [2, 3]  # pyright: ignore
    assert jax.jit(lambda x: x.get_shape().as_list()[0] * x)(jnp.ones(3)).tolist() == [3, 3, 3]
