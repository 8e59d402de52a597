"""What a variable of a strategy allows: which kinds can be created, and what works across replicas."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.replicas.reduce.reduce_op import VariableAggregation, VariableSynchronization


def check_synchronization(asked: dict[str, Any]) -> None:
    """Refuse None in the scope of a strategy that mirrors variables, as TensorFlow does."""
    if asked.get("synchronization", VariableSynchronization.AUTO) is None:
        raise ValueError(
            described(
                "A variable of a strategy's scope needs to know when its copies are brought together, but "
                "synchronization is None.",
                fix="leave it out, or pass VariableSynchronization.AUTO, ON_WRITE or ON_READ.",
            )
        )


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


def check_adds_up(variable: Any) -> None:
    """Refuse the sum of the replicas' bools: it would no longer be a bool."""
    sums = variable.aggregation is VariableAggregation.SUM and variable.replicas.count > 1
    if sums and variable.dtype.kind == "b":
        raise InvalidArgumentError(
            f"The variable {variable.name!r} holds True and False, which have no sum over the replicas.",
            fix="create it with aggregation=evenfeed.VariableAggregation.ONLY_FIRST_REPLICA, or with a dtype of "
            "whole numbers.",
        )


def check_summable(variable: Any, value: Any) -> None:
    """Refuse that each replica assigns a Python number where their sum is held: is it meant once, or n times?"""
    if variable.aggregation is VariableAggregation.SUM and _is_python_number(value):
        raise ValueError(
            described(
                f"Each replica assigns {shortened(value)} to the variable {variable.name!r}, which holds the sum of "
                "what they assign. A Python number is the same on all of them, and has no sum over them.",
                fix="pass a tensor to have it summed, evenfeed.constant(value); or create the variable with "
                "aggregation=evenfeed.VariableAggregation.MEAN or ONLY_FIRST_REPLICA.",
            )
        )


def _is_python_number(value: Any) -> bool:
    """Return True for a number other than 0, and for lists and tuples in which there is one."""
    if isinstance(value, (list, tuple)):
        return any(map(_is_python_number, cast("Sequence[Any]", value)))
    return (
        isinstance(value, (bool, int, float, complex))
        and not isinstance(value, np.generic)
        and value != 0
    )
