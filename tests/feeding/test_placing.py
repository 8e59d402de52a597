"""The placement of a step's rows on the devices or on the host."""

import jax
import numpy as np
import pytest
from tests.feeding.distribution import strategy_of

from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import TensorSpec
from evenfeed.feeding.placing import Placing

ANY = TensorSpec(None, "int32")


def placing(count, structure=ANY, **options):
    return Placing(structure, strategy_of(count).extended.replicas, **options)


def devices(count):
    return [{device} for device in jax.devices()[:count]]


def test_rows_that_are_shared_evenly_are_one_array():
    step = placing(3)([np.arange(6, dtype=np.int32)])
    assert step.whole is not None
    assert [part.tolist() for part in step.values] == [[0, 1], [2, 3], [4, 5]]
    assert [part.devices() for part in step.values] == devices(3)


@pytest.mark.parametrize("dtype", [np.float32, dtypes.bfloat16, bool, np.uint8, np.complex64])
def test_equal_pieces_are_one_array(dtype):
    pieces = [np.full((2, 3), replica, dtype) for replica in range(4)]
    step = placing(4)([pieces])
    assert step.array.shape == (8, 3)
    assert step.array.sharding.is_equivalent_to(strategy_of(4).sharding("replica"), 2)
    for part, piece in zip(step.values, pieces, strict=True):
        np.testing.assert_array_equal(np.asarray(part), piece)
    assert [part.devices() for part in step.values] == devices(4)


def test_scalars_are_rows_of_length_one():
    step = placing(3)([[np.int32(replica) for replica in range(3)]])
    assert step.is_lifted
    assert [part.shape for part in step.values] == [()] * 3
    assert step.array.tolist() == [0, 1, 2]


def test_unequal_pieces_lie_on_their_devices():
    step = placing(3)([[np.zeros(2, np.int32), np.zeros(1, np.int32), np.zeros(0, np.int32)]])
    assert [part.shape for part in step.values] == [(2,), (1,), (0,)]
    assert [part.devices() for part in step.values] == devices(3)


def test_pieces_without_rows_are_there_on_every_device():
    step = placing(2)([[np.zeros((0, 3), np.float32)] * 2])
    assert [part.shape for part in step.values] == [(0, 3)] * 2


def test_on_the_host_rows_stay_numpy_arrays():
    column = np.arange(5, dtype=np.int64)
    step = placing(2, fetch=False)([column])
    assert [part.tolist() for part in step.values] == [[0, 1, 2], [3, 4]]
    assert all(isinstance(part, np.ndarray) and part.dtype == np.int64 for part in step.values)
    assert np.shares_memory(placing(1, fetch=False)([column]), column)


def test_text_stays_on_the_host():
    text = np.array([b"a", b"b"], object)
    assert np.shares_memory(placing(1)([text]), text)
    assert [list(part) for part in placing(2)([[text[:1], text[1:]]]).values] == [[b"a"], [b"b"]]


@pytest.mark.parametrize("count", [1, 2])
def test_text_has_numpy(count):
    text = np.array([b"a", b"b"], object)
    step = placing(count)([text if count == 1 else [text[:1], text[1:]]])
    parts = [step] if count == 1 else step.values
    assert [text for part in parts for text in part.numpy()] == [b"a", b"b"]


@pytest.mark.parametrize("count", [1, 2])
def test_none_is_none(count):
    step = placing(count)([None])
    assert step is None if count == 1 else step.values == (None, None)


@pytest.mark.parametrize("fits", [True, False])
def test_a_user_may_write_to_arrays_that_are_shared(fits):
    mine = np.zeros(6 if fits else 5, np.float32)
    seen = mine.view()
    seen.flags.writeable = False
    step = placing(2)([seen if fits else [seen[:3], seen[3:]]])
    mine[:] = 9
    assert not any(np.asarray(part).any() for part in step.values)


@pytest.mark.parametrize(
    "column", [np.int64([1, 2**40]), [np.int64([1]), np.int64([2**40, 2])], [2**40, 1]]
)
def test_a_value_that_does_not_fit_names_its_part(column):
    column = [np.asarray(x) for x in column] if isinstance(column, list) else column
    with pytest.raises(
        InvalidArgumentError, match=r"1099511627776 in the element's component \['a'\]"
    ):
        placing(2, {"a": ANY})([column])


def test_steps_have_values_also_where_a_user_traces():
    @jax.jit
    def traced(x):
        for column in (np.arange(4, dtype=np.int32), [np.int32([1]), np.int32([2, 3])]):
            assert np.asarray(placing(2)([column]).values[1])[-1] == 3
        return x

    traced(1.0)
