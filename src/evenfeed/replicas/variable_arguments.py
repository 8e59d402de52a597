"""What a variable is made of: its arguments, and its first value."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.core.jax_door import jax
from evenfeed.replicas.reduction import VariableAggregation, VariableSynchronization
from evenfeed.tensors.creation import convert_to_tensor
from evenfeed.tensors.placement import is_traced


def first_value(value: Any, dtype: Any) -> Any:
    """Return the first value; one that needs the inputs of a function that is traced is refused."""
    with jax.ensure_compile_time_eval():
        given = value() if callable(value) else value
        tensor: Any = convert_to_tensor(given, None if dtype is None else dtypes.as_dtype(dtype))
    if is_traced(tensor):
        raise ValueError(
            described(
                "A variable starts from a value that is only there when the function runs.",
                fix="pass a function: Variable(lambda: value), or create the variable outside.",
            )
        )
    if isinstance(tensor, np.ndarray):
        raise TypeError(
            described(
                f"A variable holds numbers, but got {shortened(given)}.", fix="keep text in Python."
            )
        )
    return tensor


def check_constraint(constraint: object) -> None:
    """Refuse a constraint that cannot be called."""
    if constraint is not None and not callable(constraint):
        raise ValueError(
            described(
                f"A constraint is a function of a new value, but got {shortened(constraint)}.",
                fix="pass a function that returns the value to keep.",
            )
        )


def check_arguments(
    initial_value: Any, variable_def: object, synchronization: object, aggregation: object
) -> None:
    """Refuse a variable without a value, and words that are none of TensorFlow's."""
    if initial_value is None or variable_def is not None:
        raise ValueError(
            described("A variable needs its first value.", fix="pass it: Variable(1.0).")
        )
    for given, kind in (
        (synchronization, VariableSynchronization),
        (aggregation, VariableAggregation),
    ):
        if not isinstance(given, kind):
            names = ", ".join(f"{kind.__name__}.{member.name}" for member in kind)
            raise ValueError(
                described(
                    f"{shortened(given)} is not a {kind.__name__}.", fix=f"pass one of {names}."
                )
            )
