"""DLPack exports memory that the consumer must not write to as a copy, or marked read-only."""

import ctypes

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.tensor_types import host_tensor
from evenfeed.formats.pages import page_reader
from evenfeed.formats.tables import arrow_files

Dataset = tf.data.Dataset

READ_ONLY, IS_COPIED = 1, 2


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 4),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    )


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_uint32 * 2),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    )


def exported(capsule):
    """Return the address and the flags of a capsule; the flags of an old capsule, without flags, are 0."""
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype = ctypes.c_void_p
    pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
    name = name_of(capsule)
    address = pointer_of(capsule, name)
    if name == b"dltensor":
        return _Tensor.from_address(address).data, 0
    assert name == b"dltensor_versioned"
    found = _Versioned.from_address(address)
    return found.tensor.data, found.flags


@pytest.fixture
def source():
    return np.arange(12.0, dtype=np.float32).reshape(4, 3)


def read_only_tensors(source, folder):
    """Yield a tensor of each kind of memory that the user must not write to."""
    rows = Dataset.from_tensor_slices(source)
    rows.save(str(folder / "saved"))
    datasets = {
        "the user's array": Dataset.from_tensors(source),
        "rows of it": rows,
        "a batch of it": rows.batch(2),
        "a batch that was only kept": rows.filter(lambda x: x[0] >= 0).batch(2),
        "a cache": rows.map(lambda x: x * 2).cache(),
        "a saved dataset": Dataset.load(str(folder / "saved")),
        "a batch of a saved dataset": Dataset.load(str(folder / "saved")).batch(2),
        "a part that is there twice": Dataset.range(4).batch(2).map(lambda x: (x, x)),
        "a constant": Dataset.range(4).map(lambda _: np.zeros(3)),
    }
    for kind, dataset in datasets.items():
        list(dataset)  # so that the cache is complete
        yield kind, tf.nest.flatten(next(iter(dataset)))[0]


@pytest.fixture
def tensors(source, tmp_path, monkeypatch):
    # Other tests of this process may have mapped many files, and columns would be copies.
    for reader in (arrow_files, page_reader):
        monkeypatch.setattr(reader, "many_are_mapped", lambda: False)
    found = dict(read_only_tensors(source, tmp_path))
    assert not any(tensor.flags.writeable for tensor in found.values())
    return found


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0), (1, 2)])
def test_read_only_memory_is_exported_as_a_copy(tensors, max_version):
    for kind, tensor in tensors.items():
        for copy in (None, True):
            capsule = tensor.__dlpack__(max_version=max_version, copy=copy)
            address, flags = exported(capsule)
            assert address != tensor.ctypes.data, kind
            assert not flags & READ_ONLY, kind


def test_without_a_copy_read_only_memory_is_marked_read_only(tensors):
    for kind, tensor in tensors.items():
        address, flags = exported(tensor.__dlpack__(max_version=(1, 0), copy=False))
        assert (address, flags) == (tensor.ctypes.data, READ_ONLY), kind


@pytest.mark.parametrize("max_version", [None, (0, 8)])
def test_without_a_copy_and_without_the_flag_read_only_memory_is_not_exported(tensors, max_version):
    for tensor in tensors.values():
        with pytest.raises(BufferError, match="readonly"):
            tensor.__dlpack__(max_version=max_version, copy=False)


@pytest.mark.parametrize("max_version", [None, (1, 0)])
@pytest.mark.parametrize("copy", [None, False])
def test_private_memory_is_shared(max_version, copy):
    (batch,) = Dataset.range(4).shuffle(4).batch(4)
    assert batch.flags.writeable
    capsule = batch.__dlpack__(max_version=max_version, copy=copy)
    assert exported(capsule) == (batch.ctypes.data, 0)
    address, flags = exported(batch.__dlpack__(max_version=(1, 0), copy=True))
    assert address != batch.ctypes.data
    assert flags == IS_COPIED


def test_the_parts_of_an_element_do_not_share_memory_that_can_be_written_to():
    for pair in Dataset.range(4).batch(2).map(lambda x: (x, x)):
        for part in pair:
            with pytest.raises(ValueError, match="read-only"):
                part[0] = 7
    (pair,) = Dataset.range(2).batch(2).map(lambda x: (x, x + 1))
    assert pair[0].flags.writeable


def test_a_device_other_than_the_host_is_refused(tensors):
    with pytest.raises(BufferError):
        tensors["a cache"].__dlpack__(dl_device=(2, 0))
    assert tensors["a cache"].__dlpack_device__() == (1, 0)


def test_text_has_no_memory_to_share():
    with pytest.raises(BufferError):
        tf.constant(["a"]).__dlpack__()


def test_numpy_may_be_written_to_and_changes_nothing_else(tensors, source):
    before = source.copy()
    for kind, tensor in tensors.items():
        held = np.array(tensor)
        tensor.numpy()[...] = -1
        assert np.array_equal(tensor, held), kind
    assert np.array_equal(source, before)


def test_views_of_a_read_only_tensor_are_read_only(tensors):
    for kind, tensor in tensors.items():
        assert not np.asarray(tensor).flags.writeable, kind
        assert memoryview(tensor).readonly, kind
        assert not tensor[:1].flags.writeable, kind


def test_numpy_of_private_memory_is_not_copied():
    own = host_tensor(np.arange(3))
    assert np.shares_memory(own.numpy(), own)


@pytest.mark.parametrize("take", [np.from_dlpack, jnp.from_dlpack])
def test_numpy_and_jax_take_every_tensor(tensors, take):
    with jax.enable_x64(True):
        for kind, tensor in tensors.items():
            assert np.array_equal(take(tensor), tensor), kind


def test_donating_to_jax_leaves_the_user_array_alone():
    source = np.zeros(1 << 16, np.float32)
    (tensor,) = Dataset.from_tensors(source)
    add = jax.jit(lambda x: x + 1, donate_argnums=0)
    for array in (jnp.asarray(tensor), jax.device_put(tensor), jnp.from_dlpack(tensor)):
        assert add(array)[0] == 1
    assert not source.any()


def test_torch_writes_to_its_own_memory(tensors, source):
    torch = pytest.importorskip("torch")
    before = source.copy()
    for kind, tensor in tensors.items():
        held = np.array(tensor)
        taken = torch.from_dlpack(tensor)
        assert taken.data_ptr() != tensor.ctypes.data, kind  # writing there would kill the process
        taken.mul_(2)
        assert np.array_equal(tensor, held), kind
        assert np.array_equal(taken.numpy(), held * 2), kind
    assert np.array_equal(source, before)


def test_torch_shares_memory_that_nobody_else_has():
    torch = pytest.importorskip("torch")
    (batch,) = Dataset.range(4).shuffle(4).batch(4)
    assert torch.from_dlpack(batch).data_ptr() == batch.ctypes.data


def test_torch_takes_numpy_of_a_tensor_without_a_warning(tensors, recwarn):
    torch = pytest.importorskip("torch")
    for tensor in tensors.values():
        torch.from_numpy(tensor.numpy()).mul_(2)
    assert not [warning for warning in recwarn if "writable" in str(warning.message)]
