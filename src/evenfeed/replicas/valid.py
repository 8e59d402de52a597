"""Sums and means over the rows that are valid: those of the dataset, and not what a short batch was filled with."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

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
    """Reduce over the replicas and their valid rows; a mean of none is NaN, as one of no rows is."""
    if axis not in (0, (0,)):
        raise ValueError(
            described(
                f"valid marks rows, which lie along axis 0, but axis is {axis!r}.",
                fix="write strategy.reduce(op, value, axis=0, valid=valid).",
            )
        )
    value, valid = of_all_workers(replicas, value), of_all_workers(replicas, valid)
    total = reduced(replicas, ReduceOp.SUM, _of_each(_kept, value, valid), 0)
    if op is ReduceOp.SUM:
        return total
    return divided(total, reduced(replicas, ReduceOp.SUM, _of_each(_counts, valid), 0))


def valid_mean(values: Any, valid: Any) -> Any:
    """Return the mean of the valid rows of all replicas. Each replica calls it in its function.

    Its gradient, averaged over the replicas by `all_reduce("MEAN", gradient)`, is that of the mean. Where no
    replica has a valid row, it is 0, and so is the gradient.

    Args:
        values: A tensor with a value, or more, for each row of this replica, such as losses.
        valid: A bool for each row, as steps of `InputOptions(pad_partial_batches=True)` bring it.

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
    level = contexts.frame()
    if isinstance(values, PerReplica) or (level is not None and level.context is None):
        raise RuntimeError(
            described(
                "valid_mean was called across replicas; inside of run() each replica calls it.",
                fix='across replicas, write strategy.reduce("MEAN", value, axis=0, valid=valid).',
            )
        )
    kept = _kept(values, valid)
    own = jnp.sum(kept, axis=0, dtype=kept.dtype), jnp.sum(_counts(valid))
    total, count = own if level is None else level.context.all_reduce(ReduceOp.SUM, own)
    return divided(total, jnp.maximum(count, 1))


def _of_each(change: Any, *values: Any) -> Any:
    """Call a function on the parts of values, as one array where they are one."""
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
    """Return the values with zeros in place of rows that are not valid."""
    rows, marks = jnp.asarray(convert_to_tensor(values)), _marks(valid)
    if rows.ndim == 0 or rows.shape[:1] != marks.shape:
        raise InvalidArgumentError(
            f"valid has the shape {marks.shape}, and the values have the shape {rows.shape}.",
            fix="pass one bool for each row of the values.",
        )
    return jnp.where(marks.reshape(-1, *(1,) * (rows.ndim - 1)), rows, jnp.zeros((), rows.dtype))


def _counts(valid: Any) -> Any:
    return _marks(valid).astype(int)


def _marks(valid: Any) -> Any:
    return jnp.asarray(convert_to_tensor(valid)).astype(bool)
