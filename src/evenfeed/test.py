"""Test cases, and what this machine has: TensorFlow's `tf.test`."""

from typing import TYPE_CHECKING
from unittest import main

from evenfeed.core.publish import publish, refusal
from evenfeed.strategy.devices import list_physical_devices
from evenfeed.tensors.testing import TestCase

__all__ = [
    "TestCase",
    "gpu_device_name",
    "is_built_with_cuda",
    "is_built_with_gpu_support",
    "is_built_with_xla",
    "is_gpu_available",
    "main",
]


def is_gpu_available(
    cuda_only: bool = False, min_cuda_compute_capability: tuple[int, int] | None = None
) -> bool:
    """Return True if this machine has a GPU that JAX can use; an older form of `list_physical_devices("GPU")`.

    Args:
        cuda_only: Accepted for compatibility; ignored.
        min_cuda_compute_capability: Accepted for compatibility; ignored.

    Examples:
        >>> import evenfeed as tf
        >>> tf.test.is_gpu_available() == bool(tf.config.list_physical_devices("GPU"))
        True
    """
    del cuda_only, min_cuda_compute_capability
    return bool(list_physical_devices("GPU"))


def gpu_device_name() -> str:
    """Return the name of the first GPU, or "".

    Examples:
        >>> import evenfeed as tf
        >>> tf.test.gpu_device_name() in ("", "/device:GPU:0")
        True
    """
    return "/device:GPU:0" if is_gpu_available() else ""


def is_built_with_cuda() -> bool:
    """Return True if JAX can use the GPUs of this machine.

    Examples:
        >>> import evenfeed as tf
        >>> tf.test.is_built_with_cuda() == tf.test.is_gpu_available()
        True
    """
    return is_gpu_available()


def is_built_with_gpu_support() -> bool:
    """Return True if JAX can use the GPUs of this machine.

    Examples:
        >>> import evenfeed as tf
        >>> tf.test.is_built_with_gpu_support() == tf.test.is_gpu_available()
        True
    """
    return is_gpu_available()


def is_built_with_xla() -> bool:
    """Return True: JAX compiles with XLA.

    Examples:
        >>> import evenfeed as tf
        >>> tf.test.is_built_with_xla()
        True
    """
    return True


publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
