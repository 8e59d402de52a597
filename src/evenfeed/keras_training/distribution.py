"""Keras's distribution follows the current strategy: variables are replicated, batches are split over the replicas."""

import secrets
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from operator import getitem
from typing import Any, Final, final

import numpy as np

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax
from evenfeed.keras_training import keras_private
from evenfeed.replicas import contexts
from evenfeed.replicas.mesh import Replicas
from evenfeed.tensors.device_arrays import is_traced


@final
class ReplicaDistribution(keras_private.Distribution):
    """Data parallelism over the replicas of a strategy, on its own mesh.

    Args:
        replicas: The replicas.

    Attributes:
        replicas: The same.
    """

    def __init__(self, replicas: Replicas) -> None:
        self.replicas = replicas
        mesh: Any = replicas.mesh
        own = keras_private.DeviceMesh(mesh.devices.shape, mesh.axis_names, mesh.devices)
        keras_private.Distribution.__init__(self, own, batch_dim_name=replicas.axes[0])

    @property
    def num_model_replicas(self) -> int:
        """The number of replicas."""
        return self.replicas.count

    def get_variable_layout(self, variable: Any) -> Any:
        """Return the layout of a variable: a copy on each device, unless it was given another."""
        own = getattr(variable, "_layout", None)
        return self._layout(self.replicas.replicated) if own is None else own

    def get_data_layout(self, data_shape: Any) -> Any:
        """Return the layout of an array of a batch: its rows are split over the devices."""
        return self._layout(self.replicas.sharding if len(data_shape) else self.replicas.replicated)

    def get_tensor_layout(self, path: str) -> Any:
        """Return None, because values inside the model stay where they are computed."""
        del path

    def _layout(self, sharding: Any) -> Any:
        return keras_private.layout_of(sharding, self.device_mesh)


class _Thread(threading.local):
    """Keras keeps its distribution for each thread."""

    def __init__(self) -> None:
        self.before: Any = None  # what the program had set before it entered a scope


_here: Final = _Thread()
_agreed: Final[set[int]] = set()  # the sessions whose workers have one seed


def current_replicas() -> Replicas | None:
    """Return the replicas of the strategy whose scope the code is in, if any."""
    level = contexts.frame()
    return None if level is None or level.strategy.is_default else level.replicas


def follow_strategy() -> None:
    """Set Keras's distribution to the current strategy, or back to what it was before."""
    replicas, own = current_replicas(), keras_private.distribution()
    is_ours = isinstance(own, ReplicaDistribution)
    if replicas is None:
        if is_ours:
            keras_private.set_distribution(_here.before)
            _here.before = None
        return
    if is_ours and own.replicas is replicas:
        return
    if not is_ours:
        _here.before = own
    if replicas.spans and replicas.session.number not in _agreed:
        _agree_on_seed(replicas)
        _agreed.add(replicas.session.number)
    keras_private.set_distribution(ReplicaDistribution(replicas))


def _agree_on_seed(replicas: Replicas) -> None:
    """Give Keras one seed on all workers, because their variables must start with the same values."""
    own = keras_private.random_seed()
    received = replicas.session.exchange("seed of Keras", [own, secrets.randbits(31)])
    given = {seed for seed, _ in received if seed is not None}
    if len(given) > 1:
        raise InvalidArgumentError(
            f"Keras has different seeds on the workers: {[seed for seed, _ in received]}.",
            fix="pass the same seed to evenfeed.keras.utils.set_random_seed on all workers, or none.",
        )
    if own is None:
        keras_private.set_random_seed(next(iter(given), received[0][1]))


@contextmanager
def without_distribution() -> Generator[None]:
    """Create variables of this block on one device, so that a single worker can run it."""
    own = keras_private.distribution()
    keras_private.set_distribution(None)
    try:
        yield
    finally:
        keras_private.set_distribution(own)


def is_on(replicas: Replicas, array: Any) -> bool:
    """Return True if the devices of the replicas hold an array."""
    return array.sharding.device_set == replicas.device_set


def placed_array(own: Callable[..., Any], array: Any, layout: Any, axis: str) -> Any:
    """Put one array of a batch on the devices of Keras's distribution.

    A dataset has already placed its arrays. Rows that cannot be split evenly go to every device, which then computes
    the same as a single one would.

    Args:
        own: Keras's function that does it.
        array: The array; None for a part that the batch does not have.
        layout: Where Keras wants it.
        axis: The name of the axis that rows are split over.
    """
    current = keras_private.distribution()
    if array is None:
        return None
    if not isinstance(current, ReplicaDistribution):
        return own(array, layout, axis)
    replicas = current.replicas
    if isinstance(array, jax.Array) and is_on(replicas, array):
        return array
    is_even = len(array.shape) > 0 and array.shape[0] % replicas.count == 0
    there = replicas.sharding if is_even else replicas.replicated
    if replicas.spans:  # all workers have the whole batch
        return jax.make_array_from_callback(array.shape, there, partial(getitem, array))
    return jax.device_put(array, there)


def placed_variable(own: Callable[..., Any], value: Any, layout: Any) -> Any:
    """Put the value of a variable on the devices of Keras's distribution.

    JAX compares the values of several workers, which it cannot do while a function is traced. What a traced step
    creates follows from the seed that all workers have.
    """
    there = keras_private.sharding_in(layout)
    if contexts.staging() is None or is_traced(value) or there.is_fully_addressable:
        return own(value, layout)
    return jax.make_array_from_callback(value.shape, there, partial(getitem, np.asarray(value)))
