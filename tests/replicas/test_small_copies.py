"""Small arrays of a step are copied to one device by one program, where that changes nothing else."""

import contextlib

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, SingleDeviceSharding

import evenfeed as tf
from evenfeed.replicas.small_copies import SmallCopies

X, Y = np.arange(6.0, dtype=np.float32).reshape(3, 2), np.array([1, np.nan, 3], np.float32)
DEVICE = 1


@pytest.fixture
def copies():
    """Return copies that know the shapes of X and Y already."""
    made = SmallCopies(SingleDeviceSharding(jax.devices()[DEVICE]), most=1000)
    assert [made([X, Y]) for _ in range(8)] == [None] * 8
    return made


def check(found):
    for array, expected in zip(found, (X, Y), strict=True):
        assert type(array) is type(jax.numpy.zeros(1))
        assert (array.devices(), array.committed) == ({jax.devices()[DEVICE]}, True)
        np.testing.assert_array_equal(np.asarray(array), expected)


def test_shapes_that_come_again_are_copied_by_one_program(copies):
    check(copies([X, Y]))
    assert copies([X]) is None


def test_large_arrays_are_not_copied_by_a_program():
    copies = SmallCopies(SingleDeviceSharding(jax.devices()[0]), most=8)
    assert [copies([X]) for _ in range(20)] == [None] * 20


def test_copies_are_arrays_even_during_a_trace(copies):
    found = []
    jax.make_jaxpr(lambda: found.extend(copies([X, Y])))()
    check(found)


def test_copies_are_allowed_if_implicit_transfers_are_not(copies):
    with jax.transfer_guard("disallow"):
        found = copies([X, Y])
    check(found)


@pytest.mark.parametrize(
    "setting",
    [
        jax.disable_jit,
        lambda: jax.debug_nans(True),
        lambda: jax.debug_infs(True),
        lambda: jax.set_mesh(Mesh(np.array(jax.devices()[:2]), ("x",))),
    ],
)
def test_settings_that_change_programs_leave_copies_alone(copies, setting):
    with setting() as given:
        del given
        assert copies([X, Y]) is None


@pytest.mark.parametrize("setting", [contextlib.nullcontext, lambda: jax.debug_nans(True)])
def test_steps_on_one_replica_are_the_rows_of_the_dataset(setting):
    rows = np.arange(80, dtype=np.float32)
    rows[40] = np.nan
    strategy = tf.distribute.OneDeviceStrategy(f"CPU:{DEVICE}")
    data = tf.data.Dataset.from_tensor_slices({"x": rows, "y": np.arange(80)})
    with setting():
        steps = list(strategy.experimental_distribute_dataset(data.batch(4)))
    np.testing.assert_array_equal(np.concatenate([np.asarray(step["x"]) for step in steps]), rows)
    assert {next(iter(step["y"].devices())).id for step in steps} == {DEVICE}
    assert {step["y"].dtype.name for step in steps} == {np.asarray(jax.numpy.arange(1)).dtype.name}


def test_copies_change_no_setting_of_jax_without_need(copies, monkeypatch):
    def refused(*_):
        raise AssertionError("a setting was changed")

    monkeypatch.setattr(jax, "transfer_guard_host_to_device", refused)
    monkeypatch.setattr(copies, "_outside", refused)
    check(copies([X, Y]))
