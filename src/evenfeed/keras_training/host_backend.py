"""The functions of Keras's TensorFlow backend that its layers and functions for data call, on host tensors."""

from types import SimpleNamespace
from typing import Any, Final

import numpy as np

from evenfeed import image
from evenfeed.core import dtypes
from evenfeed.core.conversion import to_array
from evenfeed.core.tensor_types import host_tensor


def convert_to_tensor(x: Any, dtype: Any = None) -> Any:
    """Return a value as a host tensor."""
    return host_tensor(to_array(x, None if dtype is None else dtypes.as_dtype(dtype)))


def cast(x: Any, dtype: Any) -> Any:
    """Convert a host tensor to another dtype."""
    return host_tensor(np.asarray(x).astype(dtypes.as_dtype(dtype)))


def shape(x: Any) -> tuple[Any, ...]:
    """Return the shape as int32, with which Keras computes as it does with the unknown shapes of TensorFlow."""
    return tuple(np.int32(length) for length in x.shape)


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
    image=SimpleNamespace(resize=resize),
    numpy=SimpleNamespace(maximum=np.maximum, minimum=np.minimum),
    shape=shape,
)
