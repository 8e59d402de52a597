"""Sums and means over valid rows only, leaving out the padding of short batches."""

from typing import Any

from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jnp
from evenfeed.replicas import contexts
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.reduce.reduce_op import ReduceOp, divided
from evenfeed.replicas.reduce.reducing import reduced
from evenfeed.replicas.values import PerReplica
from evenfeed.replicas.worker_parts import of_all_workers
from evenfeed.tensors.creation import convert_to_tensor


def reduced_valid(replicas: Replicas, op: ReduceOp, value: Any, axis: Any, valid: Any) -> Any:
    """Reduce over the replicas and their valid rows. The mean of no rows is NaN."""
    if axis not in (0, (0,)):
        raise ValueError(
            described(
                f"valid marks rows, so axis must be 0, but got {axis!r}.",
                fix="write strategy.reduce(op, value, axis=0, valid=valid).",
            )
        )
    value, valid = of_all_workers(replicas, value), of_all_workers(replicas, valid)
    total = reduced(replicas, ReduceOp.SUM, _of_each(_kept, value, valid), 0)
    if op is ReduceOp.SUM:
        return total
    return divided(total, reduced(replicas, ReduceOp.SUM, _of_each(_counts, valid), 0))


def valid_mean(values: Any, valid: Any) -> Any:
    """Return the mean over the valid rows of all replicas. Call it inside `run`, on every replica.

    To get the gradient of the mean, average the replicas' gradients with `all_reduce("MEAN", gradient)`.
    If no replica has a valid row, the mean and its gradient are 0.

    Args:
        values: A tensor with one or more values for each row of this replica, such as losses.
        valid: A bool for each row, as in the steps of `InputOptions(pad_partial_batches=True)`.

    Examples:
        >>> import evenfeed as tf
        >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> options = tf.distribute.InputOptions(pad_partial_batches=True)
        >>> dataset = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 6.0]).batch(4)
        >>> for x, valid in strategy.experimental_distribute_dataset(dataset, options):
        ...     mean = strategy.run(tf.distribute.valid_mean, args=(x, valid))
        >>> [float(part) for part in strategy.experimental_local_results(mean)]
        [3.0, 3.0]
    """
    level, context = contexts.frame(), contexts.replica_context()
    if isinstance(values, PerReplica) or (level is not None and context is None):
        raise RuntimeError(
            described(
                "valid_mean was called across replicas, but it must be called by each replica inside run().",
                fix='across replicas, write strategy.reduce("MEAN", value, axis=0, valid=valid).',
            )
        )
    kept = _kept(values, valid)
    own = jnp.sum(kept, axis=0, dtype=kept.dtype), jnp.sum(_counts(valid))
    total, count = own if context is None else context.all_reduce(ReduceOp.SUM, own)
    return divided(total, jnp.maximum(count, 1))


def _of_each(change: Any, *values: Any) -> Any:
    """Call a function on the parts of values, all at once if they are one array."""
    if not all(isinstance(value, PerReplica) for value in values):
        return change(*values)
    whole = [value.whole for value in values]
    if any(array is None for array in whole) or values[0].is_lifted:
        parts = zip(*(value.parts for value in values), strict=True)
        first = values[0]
        return PerReplica(
            [change(*each) for each in parts], replicas=first.replicas, shapes=first.shapes
        )
    return PerReplica(array=change(*whole), count=values[0].replica_count)


def _kept(values: Any, valid: Any) -> Any:
    """Replace rows that are not valid with zeros."""
    rows, marks = jnp.asarray(convert_to_tensor(values)), _marks(valid)
    if rows.ndim == 0 or rows.shape[:1] != marks.shape:
        raise InvalidArgumentError(
            f"valid must have one bool for each row, but its shape is {marks.shape} and the values have "
            f"shape {rows.shape}.",
            fix="pass one bool for each row of the values.",
        )
    return jnp.where(marks.reshape(-1, *(1,) * (rows.ndim - 1)), rows, jnp.zeros((), rows.dtype))


def _counts(valid: Any) -> Any:
    return _marks(valid).astype(int)


def _marks(valid: Any) -> Any:
    return jnp.asarray(convert_to_tensor(valid)).astype(bool)
