"""Losses that are scaled by the number of replicas, so that their sum over all replicas is the loss of the batch."""

from typing import Any

import numpy as np

from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.replicas.contexts import frame
from evenfeed.tensors.casting import cast
from evenfeed.tensors.creation import Tensor, convert_to_tensor
from evenfeed.tensors.device_arrays import is_traced
from evenfeed.tensors.math.arithmetic import divide, divide_no_nan, multiply
from evenfeed.tensors.math.reductions import reduce_sum
from evenfeed.tensors.operands import INTEGERS, check_dtypes


def compute_average_loss(
    per_example_loss: object, sample_weight: object = None, global_batch_size: object = None
) -> Tensor:
    """Return this replica's part of the average loss over the global batch: add up the parts of all replicas.

    Args:
        per_example_loss: The loss of each example of this replica.
        sample_weight: A weight for each example.
        global_batch_size: The number of examples on all replicas. By default, this replica's number times the
            number of replicas.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.compute_average_loss([1.0, 3.0]).tolist()
        2.0
        >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> parts = strategy.run(lambda: tf.nn.compute_average_loss(tf.constant([1.0, 3.0])))
        >>> strategy.reduce("SUM", parts, axis=None).tolist()
        2.0
    """
    losses = convert_to_tensor(per_example_loss)
    if not losses.ndim:
        raise ValueError(
            described(
                "per_example_loss must have an entry for each example, but it is a single number.",
                fix="compute the loss without averaging it.",
            )
        )
    weighted = losses if sample_weight is None else _weighted(losses, sample_weight)
    if global_batch_size is None:
        size: object = losses.shape[0] * _replica_count("compute_average_loss")
    else:
        size = _checked(global_batch_size)
    return divide_no_nan(reduce_sum(weighted), cast(size, losses.dtype))


def scale_regularization_loss(regularization_loss: object) -> Tensor:
    """Return the sum of a regularization loss, divided by the number of replicas.

    Examples:
        >>> import evenfeed as tf
        >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> parts = strategy.run(lambda: tf.nn.scale_regularization_loss(tf.constant(3.0)))
        >>> strategy.reduce("SUM", parts, axis=None).tolist()
        3.0
    """
    count = _replica_count("scale_regularization_loss")
    return divide(reduce_sum(regularization_loss), count)


def _replica_count(function: str) -> int:
    level = frame()
    if level is None:
        return 1
    if level.context is None:
        raise RuntimeError(
            described(
                f"{function} was called across replicas, where it does not know which part of the batch it gets.",
                fix="call it in the function that you pass to strategy.run.",
            )
        )
    return level.context.num_replicas_in_sync


def _weighted(losses: Any, sample_weight: object) -> Any:
    weights: Any = cast(sample_weight, losses.dtype)
    if weights.ndim == losses.ndim + 1 and weights.shape[-1] == 1:
        weights = weights[..., 0]
    return multiply(losses, weights.reshape(*weights.shape, *(1,) * (losses.ndim - weights.ndim)))


def _checked(global_batch_size: object) -> Any:
    size = convert_to_tensor(global_batch_size)
    check_dtypes("global_batch_size", [size], INTEGERS)
    if size.ndim or (not is_traced(size) and np.asarray(size) < 0):
        raise InvalidArgumentError(
            f"global_batch_size must be a single number from 0 on, but got {global_batch_size}.",
            fix="pass the number of examples of all replicas.",
        )
    return size
