"""A variable's arguments: their checks, the initial value, the properties, and `ref()`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import shortened
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax
from evenfeed.core.names.references import reference_to
from evenfeed.core.shapes import TensorShape
from evenfeed.replicas.function.staging import creates_at, trace_state
from evenfeed.replicas.reduce.reduce_op import VariableAggregation, VariableSynchronization
from evenfeed.replicas.variables.variable_arithmetic import OperatorMethods
from evenfeed.tensors.creation import convert_to_tensor
from evenfeed.tensors.device_arrays import is_traced


def first_value(value: Any, dtype: Any) -> Any:
    """Return the initial value. It may depend on the arguments of a traced function if that trace creates variables."""
    with jax.ensure_compile_time_eval():
        given = value() if callable(value) else value
        tensor: Any = convert_to_tensor(given, None if dtype is None else dtypes.as_dtype(dtype))
    if is_traced(tensor) and not creates_at(trace_state()):
        raise ValueError(
            described(
                "The initial value of a variable is a tracer: it depends on arguments of a function that JAX transforms.",
                fix="pass a function: Variable(lambda: value), or create the variable outside.",
            )
        )
    if isinstance(tensor, np.ndarray):
        raise TypeError(
            described(
                f"A variable holds numbers, but got {shortened(given)}.",
                fix="keep strings in Python objects.",
            )
        )
    return tensor


def check_constraint(constraint: object) -> None:
    """Check that a constraint is callable."""
    if constraint is not None and not callable(constraint):
        raise ValueError(
            described(
                f"constraint must be a function of the new value, but got {shortened(constraint)}.",
                fix="pass a function that returns the value to keep.",
            )
        )


def check_arguments(
    initial_value: Any, variable_def: object, synchronization: object, aggregation: object
) -> None:
    """Check that a variable has an initial value and that its enum arguments are valid."""
    if initial_value is None or variable_def is not None:
        raise ValueError(
            described("A variable needs an initial value.", fix="pass it: Variable(1.0).")
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


class Facts(OperatorMethods):
    """The read-only properties of a variable, and `ref()`."""

    _name: str
    _trainable: bool
    _synchronization: VariableSynchronization
    _aggregation: VariableAggregation
    _constraint: Callable[[Any], Any] | None
    _dtype: "np.dtype[Any]"
    _shape: TensorShape

    @property
    def name(self) -> str:
        """The name, for printing. Names need not be unique."""
        return self._name

    @property
    def trainable(self) -> bool:
        """Whether optimizers should change it."""
        return self._trainable

    @property
    def synchronization(self) -> VariableSynchronization:
        """When the replicas' copies are synchronized."""
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        """How the values that replicas assign are combined."""
        return self._aggregation

    @property
    def constraint(self) -> Callable[[Any], Any] | None:
        """The function that an optimizer applies to a new value."""
        return self._constraint

    @property
    def dtype(self) -> DType:
        """The dtype of its value."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of its value."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """Return the shape of its value."""
        return self._shape

    ref = experimental_ref = reference_to
