"""Connectionist temporal classification: `ctc_loss` and `ctc_greedy_decoder`."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

from typing import Any, Final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.errors import FailedPreconditionError, InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.tensors.axes import known_integer
from evenfeed.tensors.creation import Tensor, convert_to_tensor
from evenfeed.tensors.operands import REAL_FLOATS, apply, check_dtypes

# Stands for the logarithm of 0: gradients of infinities are NaN.
_NEVER: Final = -1e30


def ctc_loss(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    labels: Any,
    logits: object,
    label_length: object,
    logit_length: object,
    logits_time_major: bool = True,
    unique: object = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Return, for each row, the negative logarithm of the probability of its labels.

    A row whose labels do not fit into its logits has the loss infinity.

    Args:
        labels: Class numbers, as [rows, most_labels], or a SparseTensor.
        logits: As [times, rows, classes].
        label_length: The number of labels in each row; None for a SparseTensor.
        logit_length: The number of times in each row.
        logits_time_major: False if the logits are [rows, times, classes].
        unique: Accepted for compatibility.
        blank_index: The class that stands for no label; a negative one counts from the end. By default 0.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> loss = tf.nn.ctc_loss([[1]], tf.zeros([2, 1, 2]), [1], [2])
        >>> round(float(loss[0]), 4)  # three of the four paths show one label
        0.2877
    """
    if isinstance(labels, SparseTensor):
        if blank_index is None:
            raise ValueError(
                described(
                    "ctc_loss needs a blank_index if labels are a SparseTensor.",
                    fix="pass blank_index=0, or the class that stands for no label.",
                )
            )
        labels, label_length = _dense(labels)
    classes, label_counts, time_counts = (
        convert_to_tensor(given) for given in (labels, label_length, logit_length)
    )

    def formula(x: Any) -> Any:
        if x.ndim != 3 or classes.ndim != 2:
            raise InvalidArgumentError(
                f"ctc_loss needs logits of rank 3 and labels of rank 2, but got ranks {x.ndim} and {classes.ndim}.",
                fix="pass logits as [times, rows, classes], and labels as [rows, labels].",
            )
        by_time = x if logits_time_major else jnp.swapaxes(x, 0, 1)
        blank = (blank_index or 0) % x.shape[-1]
        chances = jax.nn.log_softmax(by_time)
        return jax.vmap(_row, (1, 0, 0, 0, None))(
            chances, classes, label_counts, time_counts, blank
        ).astype(x.dtype)

    return apply("ctc_loss", formula, logits, accepts=REAL_FLOATS)


def _row(chances: Any, labels: Any, label_count: Any, time_count: Any, blank: int) -> Any:
    """Walk over the times with the probability of each state: a label, or the blank before or behind one."""
    states = jnp.full(2 * labels.shape[0] + 1, blank, labels.dtype).at[1::2].set(labels)
    # From one label to the next without a blank between them, if they differ.
    jumps = (states[2:] != blank) & (states[2:] != states[:-2])
    may_jump = jnp.concatenate([jnp.zeros(2, bool), jumps])[: states.shape[0]]
    places = jnp.arange(states.shape[0])
    first = jnp.where(places < 2, chances[0, states], _NEVER)

    def step(before: Any, at: Any) -> tuple[Any, None]:
        time, now = at
        padded = jnp.concatenate([jnp.full(2, _NEVER, before.dtype), before])
        moved = jnp.logaddexp(before, padded[1:-1])
        moved = jnp.logaddexp(moved, jnp.where(may_jump, padded[:-2], _NEVER)) + now[states]
        return jnp.where(time < time_count, moved, before), None

    last, _ = jax.lax.scan(step, first, (jnp.arange(1, chances.shape[0]), chances[1:]))
    end = last[2 * label_count]
    label_at_end = jnp.where(label_count > 0, last[jnp.maximum(2 * label_count - 1, 0)], _NEVER)
    found = -jnp.logaddexp(end, label_at_end)
    return jnp.where(found > -_NEVER / 2, jnp.inf, found)


def ctc_greedy_decoder(
    inputs: object,
    sequence_length: object,
    merge_repeated: bool = True,
    blank_index: int | None = None,
) -> tuple[list[SparseTensor], Tensor]:
    """Return the labels of the most likely class at each time, without blanks, and the negative sums of its logits.

    Args:
        inputs: Logits as [times, rows, classes].
        sequence_length: The number of times in each row.
        merge_repeated: A class that follows itself counts once.
        blank_index: The class that stands for no label; by default the last.

    Examples:
        >>> import evenfeed as tf
        >>> logits = tf.one_hot([[0], [0], [2], [1]], 3)
        >>> decoded, score = tf.nn.ctc_greedy_decoder(logits, [4])
        >>> tf.sparse.to_dense(decoded[0]).tolist(), score.tolist()
        ([[0, 1]], [[-4.0]])
    """
    values = convert_to_tensor(inputs)
    check_dtypes("ctc_greedy_decoder", [values], REAL_FLOATS)
    table, counts = np.asarray(values), np.asarray(sequence_length).reshape(-1)
    if table.ndim != 3 or len(counts) != table.shape[1]:
        raise InvalidArgumentError(
            f"ctc_greedy_decoder needs inputs as [times, rows, classes] and a length for each row, but got "
            f"{list(table.shape)} and {len(counts)} lengths.",
            fix="transpose the inputs if the rows are first.",
        )
    if counts.size and counts.max() > len(table):
        raise FailedPreconditionError(
            f"sequence_length must be at most {len(table)}, the number of times, but got {counts.max()}.",
            fix="pass the number of times of each row.",
        )
    blank = known_integer(table.shape[2] - 1 if blank_index is None else blank_index, "blank_index")
    best = table.argmax(axis=2)
    inside = np.arange(len(table))[:, None] < counts
    scores = -np.where(inside, table.max(axis=2, initial=-np.inf), 0).sum(axis=0)
    kept = inside & (best != blank % table.shape[2])
    if merge_repeated:
        kept[1:] &= best[1:] != best[:-1]
    rows = [best[kept[:, row], row] for row in range(table.shape[1])]
    return [_sparse(rows)], convert_to_tensor(scores[:, None].astype(table.dtype))


def _sparse(rows: list[Array]) -> SparseTensor:
    lengths = np.array([len(row) for row in rows], np.int64)
    owners = np.repeat(np.arange(len(rows)), lengths)
    places = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    values = np.concatenate([np.zeros(0, np.int64), *rows]).astype(np.int64)
    return SparseTensor(
        np.stack([owners, places], axis=1),
        values,
        np.array([len(rows), lengths.max(initial=0)], np.int64),
    )


def _dense(labels: SparseTensor) -> tuple[Array, Array]:
    indices, values = np.asarray(labels.indices), np.asarray(labels.values)
    shape = [int(length) for length in np.asarray(labels.dense_shape)]
    dense = np.zeros(shape, values.dtype)
    dense[tuple(indices.T)] = values
    return dense, np.bincount(indices[:, 0], minlength=shape[0]).astype(np.int32)
