"""`ReduceOp`, and what it does to the parts of a value."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from enum import Enum
from typing import Any, Final

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jnp


class VariableSynchronization(Enum):
    """When the copies of a variable are brought together."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(Enum):
    """How what the replicas write to a variable becomes one value."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


class ReduceOp(Enum):
    """How the parts of a per-replica value become one."""

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation: VariableAggregation) -> "ReduceOp":
        """Return the operation that a variable's aggregation stands for."""
        found = _OF_AGGREGATION.get(aggregation)
        if found is None:
            raise ValueError(
                described(
                    f"No reduction stands for {aggregation}.",
                    fix="pass VariableAggregation.SUM or MEAN.",
                )
            )
        return found


_OF_AGGREGATION = {
    VariableAggregation.SUM: ReduceOp.SUM,
    VariableAggregation.MEAN: ReduceOp.MEAN,
}


def reduce_op(given: object) -> ReduceOp:
    """Return the operation that a user named, by the enum or in letters of any case."""
    if isinstance(given, ReduceOp):
        return given
    if isinstance(given, str) and given.upper() in ReduceOp.__members__:
        return ReduceOp[given.upper()]
    raise ValueError(
        described(
            f"The operation must be SUM or MEAN, but got {shortened(given)}.",
            fix='pass "SUM", "MEAN", or a member of evenfeed.distribute.ReduceOp.',
        )
    )


def divided(total: Any, count: Any) -> Any:
    """Return a mean.

    Whole numbers divide truly, as TensorFlow does it: short ones into float32, longer ones into float64
    where JAX has that.
    """
    if total.dtype.kind in "iub":
        return jnp.asarray(total, jnp.float32 if total.dtype.itemsize < _LONG else float) / count
    return (total / count).astype(total.dtype)


_LONG: Final = 4  # bytes
