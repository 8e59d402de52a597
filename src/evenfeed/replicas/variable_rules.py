"""What a variable of a strategy allows: which kinds can be created, and what works across replicas."""

from typing import Any

from evenfeed.core.errors import described
from evenfeed.replicas.reduction import VariableAggregation, VariableSynchronization


def check_created(variable: Any) -> None:
    """Refuse kinds that replicas cannot keep."""
    if variable.synchronization is VariableSynchronization.NONE:
        raise ValueError(
            described(
                f"The variable {variable.name!r} is to have no synchronization, but every replica has a "
                "copy of it.",
                fix="pass VariableSynchronization.ON_WRITE or ON_READ, or create it outside of the scope.",
            )
        )
    if variable.aggregation is VariableAggregation.MEAN and variable.dtype.kind in "iub":
        raise ValueError(
            described(
                f"The variable {variable.name!r} of dtype {variable.dtype.name} cannot hold the mean of "
                "what its replicas assign.",
                fix="create it with a dtype of floats, or with aggregation=VariableAggregation.SUM.",
            )
        )


def is_on_read(variable: Any) -> bool:
    """Tell whether the copies are brought together when they are read."""
    return variable.synchronization is VariableSynchronization.ON_READ


def check_readable(variable: Any) -> None:
    """Refuse to read copies, across replicas, that are no one value."""
    if is_on_read(variable) and variable.aggregation is VariableAggregation.NONE:
        raise ValueError(
            described(
                f"The variable {variable.name!r} has no aggregation: outside of run its copies are no "
                "one value.",
                fix="create it with aggregation=evenfeed.VariableAggregation.SUM or MEAN, or read its "
                "copies with strategy.experimental_local_results(variable).",
            )
        )


def check_assignable(variable: Any, *, adds: bool) -> None:
    """Refuse to assign across replicas what has no meaning there."""
    check_readable(variable)
    if adds and is_on_read(variable) and variable.aggregation is VariableAggregation.SUM:
        raise ValueError(
            described(
                f"The variable {variable.name!r} sums what its replicas add; outside of run there is no "
                "replica to add to.",
                fix="add to it inside strategy.run, or assign the whole sum with assign().",
            )
        )
