"""Losses on a sample of the classes: `nce_loss` and `sampled_softmax_loss`."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

from typing import Any

import numpy as np

from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.tensors.creation import Tensor, convert_to_tensor
from evenfeed.tensors.nn.candidates import log_uniform_candidate_sampler
from evenfeed.tensors.operands import REAL_FLOATS, apply


def nce_loss(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    weights: object,
    biases: object,
    labels: object,
    inputs: object,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    name: str = "nce_loss",
) -> Tensor:
    """Return the noise-contrastive loss of each row: true classes against sampled ones.

    Args:
        weights: A row for each class.
        biases: A number for each class.
        labels: The true classes, as [rows, num_true].
        inputs: A row of activations for each row of labels.
        num_sampled: The number of classes to draw.
        num_classes: The number of classes.
        num_true: The number of true classes in a row.
        sampled_values: What a candidate sampler returned; by default `log_uniform_candidate_sampler`.
        remove_accidental_hits: Ignore sampled classes that are true ones of the row.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> sample = tf.random.all_candidate_sampler([[1]], 1, 3, True)
        >>> ones = tf.ones([3, 2])
        >>> loss = tf.nn.nce_loss(ones, tf.zeros(3), [[1]], [[0.0, 0.0]], 3, 3, sampled_values=sample)
        >>> round(float(loss[0]), 4)
        2.7726
    """

    def cross_entropy(x: Any) -> Any:
        return jnp.sum(jax.nn.softplus(x) - x * _truth(x, num_true), axis=-1)

    sample = sampled_values or log_uniform_candidate_sampler(
        labels, num_true, num_sampled, True, num_classes
    )
    logits = _logits(
        "nce_loss", weights, biases, labels, inputs, sample, remove_accidental_hits, num_true
    )
    return apply("nce_loss", cross_entropy, logits)


def sampled_softmax_loss(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    weights: object,
    biases: object,
    labels: object,
    inputs: object,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    seed: int | None = None,
    name: str = "sampled_softmax_loss",
) -> Tensor:
    """Return the cross entropy of each row over its true classes and sampled ones. See `nce_loss`.

    Examples:
        >>> import evenfeed as tf
        >>> sample = tf.random.all_candidate_sampler([[1]], 1, 3, True)
        >>> ones = tf.ones([3, 2])
        >>> loss = tf.nn.sampled_softmax_loss(
        ...     ones, tf.zeros(3), [[1]], [[0.0, 0.0]], 3, 3, sampled_values=sample
        ... )
        >>> round(float(loss[0]), 4)
        1.0986
    """

    def cross_entropy(x: Any) -> Any:
        return -jnp.sum(_truth(x, num_true) * jax.nn.log_softmax(x), axis=-1)

    sample = sampled_values or log_uniform_candidate_sampler(
        labels, num_true, num_sampled, True, num_classes, seed
    )
    logits = _logits(
        "sampled_softmax_loss",
        *(weights, biases, labels, inputs, sample, remove_accidental_hits, num_true),
    )
    return apply("sampled_softmax_loss", cross_entropy, logits)


def _logits(  # noqa: PLR0913, PLR0917 - the arguments of both losses
    function: str,
    weights: object,
    biases: object,
    labels: object,
    inputs: object,
    sample: Any,
    remove_accidental_hits: bool,
    num_true: int,
) -> Any:
    """Return the logits of the true classes, then of the sampled ones, less the logarithms of their frequencies."""
    classes = convert_to_tensor(labels).reshape(-1, num_true)
    drawn = convert_to_tensor(sample[0])

    def formula(table: Any, offsets: Any, rows: Any, of_truth: Any, of_drawn: Any) -> Any:
        true_logits = jnp.einsum("rd,rtd->rt", rows, table[classes]) + offsets[classes]
        logits = rows @ table[drawn].T + offsets[drawn]
        if remove_accidental_hits:
            hits = jnp.any(classes[:, :, None] == drawn, axis=1)
            logits += jnp.where(hits, np.finfo(np.float32).min, 0).astype(logits.dtype)
        parts = [true_logits - jnp.log(of_truth), logits - jnp.log(of_drawn)]
        return jnp.concatenate(parts, axis=1)

    return apply(
        function, formula, weights, biases, inputs, sample[1], sample[2], accepts=REAL_FLOATS
    )


def _truth(logits: Any, num_true: int) -> Any:
    return jnp.where(jnp.arange(logits.shape[1]) < num_true, 1 / num_true, 0).astype(logits.dtype)
