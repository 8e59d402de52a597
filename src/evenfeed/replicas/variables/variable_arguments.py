"""What a variable is made of: its arguments, and its first value."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
from collections.abc import Callable
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import shortened
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax
from evenfeed.core.shapes import TensorShape
from evenfeed.replicas.reduce.reduce_op import VariableAggregation, VariableSynchronization
from evenfeed.replicas.variables.variable_arithmetic import OperatorMethods
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


class Facts(OperatorMethods):
    """The facts of a variable, and what stands for it."""

    _name: str
    _trainable: bool
    _synchronization: VariableSynchronization
    _aggregation: VariableAggregation
    _constraint: Callable[[Any], Any] | None
    _dtype: "np.dtype[Any]"
    _shape: TensorShape

    @property
    def name(self) -> str:
        """How it is shown. Several variables may have one name."""
        return self._name

    @property
    def trainable(self) -> bool:
        """Whether an optimizer should change it."""
        return self._trainable

    @property
    def synchronization(self) -> VariableSynchronization:
        """When the replicas' copies are brought together."""
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        """How what the replicas assign becomes one value."""
        return self._aggregation

    @property
    def constraint(self) -> Callable[[Any], Any] | None:
        """The function that an optimizer calls on a new value."""
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

    def ref(self) -> "Reference":
        """Return what stands for this very variable: a key of dicts, equal to itself alone."""
        return Reference(self)

    experimental_ref = ref


@final
class Reference:
    """Stands for one variable, by which it is compared and hashed."""

    __slots__ = ("_variable",)

    def __init__(self, variable: Any) -> None:
        self._variable = variable

    def deref(self) -> Any:
        """Return the variable."""
        return self._variable

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other._variable is self._variable

    def __hash__(self) -> int:
        return id(self._variable)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._variable!r}>"
