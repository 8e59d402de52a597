"""Chooses how functions of images are computed: by a kernel on the host, or by one compiled formula."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import is_tensor
from evenfeed.core.gradients.followed_values import followed
from evenfeed.core.lazy_jax import jax
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.traced.kernel_stages import RowKernel, have_fixed_shape, stands_for_part
from evenfeed.images.bound_kernels import applied_beside_constants


def by_kernel(kernel: RowKernel, *images: Any) -> Any:
    """Return what a kernel makes of float32 images; None if JAX must compute it.

    The host has the images of a dataset, whose memory JAX would copy, and its loops are faster than XLA's. Steps, and
    code that a tape follows, compute with JAX.
    """
    if not all(is_tensor(image) and image.dtype == dtypes.float32 for image in images):
        return None
    if have_fixed_shape(*images):
        known = all(isinstance(image, np.ndarray) or stands_for_part(image) for image in images)
        return applied_beside_constants(kernel, *images) if known else None
    if all(isinstance(image, np.ndarray) and followed(image) is None for image in images):
        return computed_tensor(kernel.one(*map(np.asarray, images)))
    return None


@lru_cache(maxsize=256)
def compiled(formula: Callable[..., Any], *settings: Any) -> Callable[..., Any]:
    """Return a compiled function of the arrays that follow the settings in the arguments of a formula."""
    return jax.jit(partial(formula, *settings))


def one_by_one(formula: Callable[..., Any], *images: Any) -> Any:
    """Return the results of a formula for each image: its intermediate values then stay in the cache.

    Args:
        formula: Takes one image of each array.
        images: Arrays [..., height, width, channels] with the same leading axes.
    """
    *batch, height, width, channels = images[0].shape
    if not batch:
        return formula(*images)
    each = [array.reshape(-1, height, width, channels) for array in images]

    def one(parts: tuple[Any, ...]) -> Any:
        return formula(*parts)

    found = jax.lax.map(one, tuple(each))
    return found.reshape(*batch, *found.shape[1:])
