"""`Variable`: a tensor that changes, one copy of it on each replica where it is made in a scope."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import itertools
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import shortened
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import described
from evenfeed.core.jax_door import jax, jax_extend_core
from evenfeed.core.shapes import TensorShape
from evenfeed.replicas import contexts
from evenfeed.replicas.reduction import VariableAggregation, VariableSynchronization
from evenfeed.replicas.staging import Unstaged, check_place, live
from evenfeed.replicas.variable_arithmetic import Arithmetic
from evenfeed.replicas.variable_creation import Created
from evenfeed.tensors.creation import convert_to_tensor
from evenfeed.tensors.placement import is_traced
from evenfeed.tensors.printing import tensor_repr

_numbers: Final = itertools.count()


def put(old: Any, new: Any) -> Any:
    """Replace the value."""
    del old
    return new


def add(old: Any, new: Any) -> Any:
    """Add to the value."""
    return old + new


def subtract(old: Any, new: Any) -> Any:
    """Subtract from the value."""
    return old - new


class Variable(Arithmetic, metaclass=Created):
    """A tensor that can be assigned. Made under `strategy.scope()`, every replica has a copy.

    Code on `jax.numpy` reads it with `value()`; Python's operators and evenfeed's functions take the
    variable itself.

    Args:
        initial_value: What it holds first, or a function without arguments that returns that.
        trainable: Whether an optimizer should change it; by default yes, unless it is only brought
            together when read.
        validate_shape: Taken for compatibility.
        caching_device: Taken for compatibility.
        name: How it is shown.
        variable_def: Not taken: there are no graphs.
        dtype: Which one; by default that of the initial value.
        import_scope: Taken for compatibility.
        constraint: A function that an optimizer calls on a new value.
        synchronization: When the replicas' copies are brought together.
        aggregation: How what the replicas assign becomes one value.
        shape: What shapes it may hold, where that is not the shape of the initial value.

    Examples:
        >>> import evenfeed as tf
        >>> v = tf.Variable([1.0, 2.0])
        >>> v.assign_add([1.0, 1.0]).numpy().tolist()
        [2.0, 3.0]
        >>> (v * 2).tolist()
        [4.0, 6.0]
    """

    def __init__(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
        self,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,  # noqa: ARG002 - TensorFlow's
        caching_device: object = None,  # noqa: ARG002 - TensorFlow's
        name: str | None = None,
        variable_def: object = None,
        dtype: Any = None,
        import_scope: object = None,  # noqa: ARG002 - TensorFlow's
        constraint: Callable[[Any], Any] | None = None,
        synchronization: VariableSynchronization = VariableSynchronization.AUTO,
        aggregation: VariableAggregation = VariableAggregation.NONE,
        shape: Any = None,
    ) -> None:
        _check_arguments(initial_value, variable_def, synchronization, aggregation)
        self.number = next(_numbers)
        self.synchronization = _settled(synchronization)
        self.aggregation = aggregation
        on_read = self.synchronization is VariableSynchronization.ON_READ
        self.trainable = not on_read if trainable is None else bool(trainable)
        self.constraint = constraint
        self.name = f"{name or 'Variable'}:0"
        array = _initial(initial_value, dtype)
        self._shape = TensorShape(array.shape) if shape is None else TensorShape(shape)
        self._dtype = np.dtype(array.dtype)
        self._check_shape(array.shape)
        with jax.ensure_compile_time_eval():  # also where a function is traced to create it
            self._hold(array)
        live.add(self)

    # --- what it is ------------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        """The dtype of its value."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of its value."""
        return self._shape

    @property
    def device(self) -> str:
        """Where its value lies."""
        return str(next(iter(self.held.devices())))

    def __repr__(self) -> str:
        return shown(self.name, self.shape, self.value())

    def __hash__(self) -> int:
        return id(self)

    # --- reading ---------------------------------------------------------------------------

    def value(self) -> Any:
        """Return what it holds, as a `jax.Array`: in a replica's function, that replica's copy."""
        level = contexts.staging()
        return self._array if level is None else level.read(self)

    @property
    def values(self) -> tuple[Any, ...]:
        """What each replica holds: one value, where it was made outside of a scope."""
        return (self.value(),)

    def read_value(self) -> Any:
        """Return what it holds."""
        return self.value()

    def numpy(self) -> Any:
        """Return what it holds, as a NumPy array."""
        value = self.value()
        if is_traced(value):
            raise NotImplementedError(
                described(
                    f"The variable {self.name!r} has no numbers while a function is traced.",
                    fix="call numpy() outside of evenfeed.function.",
                )
            )
        array = np.asarray(value)
        return array[()] if array.ndim == 0 else array

    def initialized_value(self) -> Any:
        """Return what it holds: it is always initialized."""
        return self.value()

    def __jax_array__(self) -> Any:
        return self.value()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return (
            np.array(self.value(), dtype) if copy is not False else np.asarray(self.value(), dtype)
        )

    # --- assigning -------------------------------------------------------------------------

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Hold another value."""
        del use_locking, name, read_value
        return self._change(put, value)

    def assign_add(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Add to the value."""
        del use_locking, name, read_value
        return self._change(add, delta)

    def assign_sub(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Subtract from the value."""
        del use_locking, name, read_value
        return self._change(subtract, delta)

    def _change(self, how: Callable[[Any, Any], Any], value: Any) -> Any:
        level = contexts.staging()
        new = self._fitting(value)
        if level is None:
            self._check_at_rest()
            self._hold(how(self._array, new))
        elif level.within is not None and level.within.count > 1:
            raise Unstaged(f"{self.name!r}, which no scope made, is assigned by every replica")
        else:
            level.write(self, how(level.read(self), new))
        return self

    def _fitting(self, value: Any) -> Any:
        """Return a value as a tensor that this variable can hold."""
        tensor: Any = convert_to_tensor(value, self._dtype)
        self._check_shape(tensor.shape)
        return tensor

    def _check_shape(self, shape: Any) -> None:
        if not self._shape.is_compatible_with(shape):
            raise ValueError(
                described(
                    f"The variable {self.name!r} has the shape {self._shape}, but the value has {tuple(shape)}.",
                    fix=f"assign a value of the shape {self._shape}, or create it with shape=None dimensions.",
                )
            )

    def _check_at_rest(self) -> None:
        check_place(_at_rest(), self.name)

    # --- what it holds, for programs -------------------------------------------------------

    @property
    def held(self) -> Any:
        """All that it holds, as one `jax.Array`."""
        return self._array

    def hold(self, array: Any) -> None:
        """Take what a program has computed for it."""
        self._array = array

    def _hold(self, array: Any) -> None:
        self._array = array


def shown(name: str, shape: TensorShape, value: Any) -> str:
    """Write a variable as TensorFlow does; without numbers while it is traced."""
    said = f"<tf.Variable {name!r} shape={shape} dtype={dtypes.name_of(np.dtype(value.dtype))}"
    numbers = "" if is_traced(value) else tensor_repr(value).partition("numpy=")[2][:-1]
    return f"{said}, numpy={numbers}>" if numbers else f"{said}>"


def _at_rest() -> object:
    with jax.core.eval_context():  # pyright: ignore[reportAttributeAccessIssue]
        return jax_extend_core.get_opaque_trace_state()


def _settled(synchronization: VariableSynchronization) -> VariableSynchronization:
    if synchronization is VariableSynchronization.AUTO:
        return VariableSynchronization.ON_WRITE
    return synchronization


def _initial(value: Any, dtype: Any) -> Any:
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


def _check_arguments(
    initial_value: Any, variable_def: object, synchronization: object, aggregation: object
) -> None:
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
