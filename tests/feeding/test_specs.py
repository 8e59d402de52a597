"""The specs of steps match the steps, for every kind of distribution."""

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.feeding.distribution import distributed, strategy_of, with_policy

import evenfeed as tf
from evenfeed.replicas.values import PerReplicaSpec

Dataset = tf.data.Dataset


def fits(spec, value):
    """Return True if a step matches its spec."""
    specs, values = tf.nest.flatten(spec), tf.nest.flatten(value)
    return all(
        s.is_compatible_with(tf.type_spec_from_value(v)) for s, v in zip(specs, values, strict=True)
    )


@given(
    rows=st.integers(0, 13),
    size=st.integers(1, 6),
    count=st.integers(1, 4),
    drop=st.booleans(),
    policy=st.sampled_from(["AUTO", "OFF"]),
    pad=st.booleans(),
)
def test_every_step_fits_its_spec(rows, size, count, drop, policy, pad):  # noqa: PLR0913, PLR0917
    data = {"x": np.zeros((rows, 2), np.float32), "y": np.zeros(rows, np.int16), "n": None}
    dataset = with_policy(Dataset.from_tensor_slices(data).batch(size, drop), policy)
    found = distributed(dataset, count, pad_partial_batches=pad)
    for step in found:
        assert fits(found.element_spec, step)


@given(rows=st.integers(0, 9), size=st.integers(1, 3), count=st.integers(1, 4), drop=st.booleans())
def test_every_step_of_a_function_fits_its_spec(rows, size, count, drop):
    found = strategy_of(count).distribute_datasets_from_function(
        lambda _: Dataset.from_tensor_slices(np.zeros((rows, 2), np.float32)).batch(size, drop)
    )
    for step in found:
        assert fits(found.element_spec, step)


def test_a_function_that_makes_static_batches_has_static_specs():
    found = strategy_of(2).distribute_datasets_from_function(
        lambda _: Dataset.from_tensor_slices(np.zeros((4, 2), np.float32)).batch(2, True)
    )
    part = tf.TensorSpec([2, 2], tf.float32)
    assert found.element_spec == PerReplicaSpec(part, part)


def ragged(rows, size, *, drop):
    """Return batches with rows of two lengths; each batch has one of them."""
    short, long = (np.zeros((rows, width), np.float32) for width in (2, 3))
    slices = Dataset.from_tensor_slices
    return slices(short).batch(size, drop).concatenate(slices(long).batch(size, drop))


@pytest.mark.parametrize("policy", ["AUTO", "OFF"])
@pytest.mark.parametrize(("count", "rows"), [(1, 4), (2, 2), (3, None), (4, 1)])
def test_the_number_of_rows_is_known_where_other_lengths_are_not(count, rows, policy):
    found = distributed(with_policy(ragged(8, 4, drop=True), policy), count)
    part = tf.TensorSpec([rows, None], tf.float32)
    assert found.element_spec == (part if count == 1 else PerReplicaSpec(*[part] * count))
    assert all(fits(found.element_spec, step) for step in found)


@pytest.mark.parametrize(("count", "rows"), [(1, 4), (2, None)])
def test_a_replica_without_an_element_leaves_the_number_of_rows_open(count, rows):
    made = ragged(12, 4, drop=True).take(5)
    found = strategy_of(count).distribute_datasets_from_function(lambda _: made)
    part = tf.TensorSpec([rows, None], tf.float32)
    assert found.element_spec == (part if count == 1 else PerReplicaSpec(part, part))
    assert all(fits(found.element_spec, step) for step in found)


def test_a_step_on_the_host_says_the_dtype_that_arrives():
    found = distributed(Dataset.range(4).batch(2), 2, experimental_fetch_to_device=False)
    part = next(iter(found)).values[0]
    assert found.element_spec.value_specs[0].dtype == part.dtype == np.int64


@pytest.mark.parametrize("count", [1, 2])
def test_x64_decides_what_arrives(count):
    found = distributed(Dataset.range(4).batch(2), count)

    def width():
        spec = found.element_spec
        return (spec if count == 1 else spec.value_specs[0]).dtype

    assert width() == tf.int32
    with jax.enable_x64(True):
        assert width() == tf.int64
        assert fits(found.element_spec, next(iter(found)))
