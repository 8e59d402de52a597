"""`ReduceOp`, and the enums for the synchronization and aggregation of variables."""

from enum import Enum
from typing import Any, Final

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jnp


class VariableSynchronization(Enum):
    """When the replicas' copies of a variable are synchronized."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(Enum):
    """How the values that replicas assign to a variable are combined into one."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


class ReduceOp(Enum):
    """How the parts of a per-replica value are combined into one."""

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation: VariableAggregation) -> "ReduceOp":
        """Return the operation for a variable's aggregation."""
        found = _OF_AGGREGATION.get(aggregation)
        if found is None:
            raise ValueError(
                described(
                    f"{aggregation} has no ReduceOp.",
                    fix="pass VariableAggregation.SUM or MEAN.",
                )
            )
        return found


_OF_AGGREGATION = {
    VariableAggregation.SUM: ReduceOp.SUM,
    VariableAggregation.MEAN: ReduceOp.MEAN,
}


def reduce_op(given: object) -> ReduceOp:
    """Return the operation for an enum member or its name, in any case."""
    if isinstance(given, ReduceOp):
        return given
    if isinstance(given, str) and given.upper() in ReduceOp.__members__:
        return ReduceOp[given.upper()]
    raise ValueError(
        described(
            f"reduce_op must be SUM or MEAN, but got {shortened(given)}.",
            fix='pass "SUM", "MEAN", or a member of evenfeed.distribute.ReduceOp.',
        )
    )


def divided(total: Any, count: Any) -> Any:
    """Divide a sum by a count.

    Integers use true division, as in TensorFlow: short ones become float32, longer ones float64 if JAX
    has it enabled.
    """
    if total.dtype.kind in "iub":
        return jnp.asarray(total, jnp.float32 if total.dtype.itemsize < _LONG else float) / count
    return (total / count).astype(total.dtype)


_LONG: Final = 4  # bytes
