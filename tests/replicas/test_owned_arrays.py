"""Arrays that JAX may use the memory of."""

import jax
import numpy as np
import pytest

from evenfeed.replicas.owned_arrays import owned


def _read_only(values):
    view = values.view()
    view.flags.writeable = False
    return view


@pytest.mark.parametrize("rows", [3, 70_000])
@pytest.mark.parametrize("make", [np.asarray, np.transpose, lambda x: x[::2]])
@pytest.mark.parametrize("dtype", ["f4", "i1", "?", jax.numpy.bfloat16])
def test_a_view_of_the_user_is_copied_whatever_its_size_and_strides(rows, make, dtype):
    theirs = (np.arange(rows * 2) % 100).reshape(rows, 2).astype(dtype)
    before = make(theirs).copy()
    own = owned(_read_only(make(theirs)))
    theirs[:] = 0
    np.testing.assert_array_equal(own, before)
    assert (own.dtype, own.flags.writeable) == (before.dtype, True)


def test_an_array_that_is_evenfeeds_own_is_not_copied():
    own = np.zeros(100_000)
    assert owned(own) is own


def test_jax_uses_the_memory_of_a_large_copy_instead_of_copying_it_again():
    own = owned(_read_only(np.arange(100_000.0, dtype="f4")))
    there = jax.device_put(own, jax.devices()[0])
    assert there.unsafe_buffer_pointer() == own.ctypes.data
