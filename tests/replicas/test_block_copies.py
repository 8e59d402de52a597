"""Arrays of a shape that came before are copied to the devices without finding out again where their blocks go."""

import jax
import ml_dtypes
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from evenfeed.replicas import block_copies
from evenfeed.replicas.block_copies import BlockCopies

DTYPES = ["float32", "int32", "bool", "complex64", "uint8", ml_dtypes.bfloat16]
SPECS = [("x",), (), (None, "x"), ("x", "y"), (("x", "y"),)]


def mesh(**settings):
    return Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("x", "y"), **settings)


def copies(*spec, **settings):
    return BlockCopies(NamedSharding(mesh(**settings), PartitionSpec(*spec)))


def copied(copy, rows):
    return copy(rows.shape, rows.dtype, rows.__getitem__)


def by_jax(copy, rows):
    return jax.make_array_from_callback(rows.shape, copy._there, rows.__getitem__)


def check(found, expected):
    assert type(found) is type(expected)
    assert (found.aval, found.sharding) == (expected.aval, expected.sharding)
    assert found.committed == expected.committed
    for own, other in zip(found.addressable_shards, expected.addressable_shards, strict=True):
        assert (own.device, own.index) == (other.device, other.index)
        np.testing.assert_array_equal(np.asarray(own.data), np.asarray(other.data))


@pytest.fixture
def no_callbacks(monkeypatch):
    """Return a function that makes calls of JAX's own function fail from then on."""

    def refuse(*args):
        raise AssertionError(args)

    return lambda: monkeypatch.setattr(block_copies, "copied", refuse)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_known_shapes_become_the_arrays_that_jax_makes(no_callbacks, dtype, spec):
    copy = copies(*spec)
    first, second = np.arange(32).reshape(8, 4).astype(dtype), np.ones((8, 4), dtype)
    check(copied(copy, first), by_jax(copy, first))
    expected = by_jax(copy, second)
    no_callbacks()
    check(copied(copy, second), expected)


def test_a_shape_is_known_with_its_dtype():
    copy = copies("x")
    for rows in (np.ones(4, np.float32), np.ones(4, np.int32), np.ones((4, 2), np.float32)) * 2:
        check(copied(copy, rows), by_jax(copy, rows))


def test_nan_counts_as_itself(no_callbacks):
    copy, rows = copies("x"), np.full(4, np.nan, np.float32)
    copied(copy, rows)
    no_callbacks()
    assert np.isnan(np.asarray(copied(copy, rows))).all()


def test_a_mesh_in_the_context_is_left_to_jax():
    copy, rows = copies("x"), np.ones(4, np.float32)
    copied(copy, rows)
    with jax.set_mesh(mesh(axis_types=(AxisType.Explicit,) * 2)):
        check(copied(copy, rows), by_jax(copy, rows))


def test_copies_are_arrays_during_a_trace():
    copy, rows, found = copies("x"), np.ones(4, np.float32), []
    jax.make_jaxpr(lambda: found.extend(copied(copy, rows) for _ in range(2)))()
    for array in found:
        check(array, by_jax(copy, rows))


def test_copies_are_allowed_if_implicit_transfers_are_not():
    copy, rows = copies("x"), np.ones(4, np.float32)
    with jax.transfer_guard("disallow"):
        found = [copied(copy, rows) for _ in range(2)]
    check(found[1], by_jax(copy, rows))


@pytest.mark.parametrize(
    "put",
    [None, lambda: None, lambda aval, *rest: None, lambda *_: np.ones(4, np.float32)],
)
def test_without_the_private_function_jax_makes_them_all(put):
    copy, rows = copies("x"), np.ones(4, np.float32)
    copy._put = put
    for _ in range(3):
        check(copied(copy, rows), by_jax(copy, rows))


def test_large_arrays_are_left_to_jax():
    copy, rows = copies("x"), np.ones(1 << 19, np.float32)
    for _ in range(2):
        check(copied(copy, rows), by_jax(copy, rows))
    assert not copy._known


def test_at_most_64_shapes_are_remembered():
    copy = copies("x")
    for length in range(2, 300, 2):
        rows = np.ones(length, np.float32)
        check(copied(copy, rows), by_jax(copy, rows))
    assert len(copy._known) == 64
