"""The functions of Keras's TensorFlow backend that its layers and functions for data call, on host tensors."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from evenfeed import image
from evenfeed.core import dtypes
from evenfeed.core.conversion import to_array
from evenfeed.core.ragged import ragged_arranging
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.tensor_types import HostTensor, host_tensor


def hosted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy that returns a host tensor."""

    def call(*args: Any) -> Any:
        return host_tensor(function(*args))

    return call


def convert_to_tensor(x: Any, dtype: Any = None) -> Any:
    """Return a value as a host tensor."""
    wanted = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(x, HostTensor) and wanted in (None, x.dtype):
        return x  # each text of an array would be checked again
    return host_tensor(to_array(x, wanted))


def cast(x: Any, dtype: Any) -> Any:
    """Convert a host tensor to another dtype."""
    if isinstance(x, RaggedTensor):
        return x.with_flat_values(cast(x.flat_values, dtype))
    if isinstance(x, SparseTensor):
        return x.with_values(cast(x.values, dtype))
    return host_tensor(np.asarray(x).astype(dtypes.as_dtype(dtype)))


def shape(x: Any) -> tuple[Any, ...]:
    """Return the shape as int32, with which Keras computes as it does with the unknown shapes of TensorFlow."""
    return tuple(None if length is None else np.int32(length) for length in x.shape)


def expand_dims(x: Any, axis: Any) -> Any:
    """Insert an axis."""
    if isinstance(x, RaggedTensor):
        return ragged_arranging.expand_dims(x, axis)
    return host_tensor(np.expand_dims(x, axis))


def squeeze(x: Any, axis: Any = None) -> Any:
    """Remove an axis of length 1."""
    return host_tensor(np.squeeze(x, axis))


def total(x: Any, axis: int) -> Any:
    """Add up the values along an axis."""
    return host_tensor(np.sum(x, axis))


def one_hot(x: Any, depth: int, dtype: Any, sparse: bool = False) -> Any:
    """Return a 1 at the place of each number; nothing for numbers that are not below `depth`."""
    del sparse
    return cast(np.equal(np.asarray(x)[..., None], np.arange(depth)), dtype)


def multi_hot(x: Any, depth: int, dtype: Any, sparse: bool = False) -> Any:
    """Return a 1 at the place of each number of a row."""
    hot = one_hot(x, depth, dtype, sparse)
    return host_tensor(hot.max(axis=1 if x.ndim > 1 else 0))


def resize(x: Any, size: Any, interpolation: str, data_format: str) -> Any:
    """Resize an image."""
    if data_format == "channels_last":
        return image.resize(x, size, method=interpolation)
    last = np.moveaxis(x, -3, -1)
    return np.moveaxis(image.resize(last, size, method=interpolation), -1, -3)


#: What `keras.src.backend.tensorflow` would be.
BACKEND: Final = SimpleNamespace(
    __name__="tensorflow",
    cast=cast,
    convert_to_tensor=convert_to_tensor,
    core=SimpleNamespace(cast=cast, shape=shape),
    image=SimpleNamespace(resize=resize),
    nn=SimpleNamespace(multi_hot=multi_hot, one_hot=one_hot),
    numpy=SimpleNamespace(
        expand_dims=expand_dims,
        maximum=np.maximum,
        minimum=np.minimum,
        multiply=hosted(np.multiply),
        reshape=hosted(np.reshape),
        squeeze=squeeze,
        sum=total,
    ),
    shape=shape,
)
