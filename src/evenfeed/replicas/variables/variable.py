"""`Variable`: a tensor that changes, one copy of it on each replica where it is made in a scope."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import itertools
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np

from evenfeed.core import dtypes, side_effects
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax, jax_extend_core, refuse_as_argument
from evenfeed.core.shapes import TensorShape
from evenfeed.core.tensor_types import asked_width, remember_width
from evenfeed.replicas import contexts
from evenfeed.replicas.function.staging import Unstaged, check_place, live
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.reduce.reduce_op import VariableAggregation, VariableSynchronization
from evenfeed.replicas.variables.variable_arguments import (
    Facts,
    check_arguments,
    check_constraint,
    first_value,
)
from evenfeed.replicas.variables.variable_creation import Created
from evenfeed.tensors.creation import convert_to_tensor
from evenfeed.tensors.placement import is_traced
from evenfeed.tensors.printing import tensor_repr

_numbers: Final = itertools.count()


# How a value becomes another: what was held and what is given, to what is held then.
How: TypeAlias = Callable[[Any, Any], Any]


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


@cache
def _explain_to_jax() -> None:
    """Say what to write where `jax.numpy` gets a variable; JAX is loaded with the first one."""
    refuse_as_argument(Variable, _refuse)


def _refuse(variable: "Variable") -> NoReturn:
    raise ValueError(  # a TypeError would be JAX's own again, with other words
        described(
            f"JAX computes with arrays, but got the variable {variable.name!r}.",
            fix="pass what it holds now: variable.value().",
        )
    )


class Variable(Facts, metaclass=Created):
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
        synchronization: When the replicas' copies are brought together; None is AUTO, outside of the scope
            of a strategy that mirrors variables.
        aggregation: How what the replicas assign becomes one value; None is NONE.
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
        synchronization: VariableSynchronization | None = VariableSynchronization.AUTO,
        aggregation: VariableAggregation | None = VariableAggregation.NONE,
        shape: Any = None,
    ) -> None:
        _explain_to_jax()
        synchronization = synchronization or VariableSynchronization.AUTO
        aggregation = aggregation or VariableAggregation.NONE
        check_arguments(initial_value, variable_def, synchronization, aggregation)
        check_constraint(constraint)
        self.number = next(_numbers)
        self.made_under = side_effects.here.watcher
        self._changing = Lock()
        self._synchronization = synchronization
        self._aggregation = aggregation
        on_read = synchronization is VariableSynchronization.ON_READ
        self._trainable = not on_read if trainable is None else bool(trainable)
        self._constraint = constraint
        self._name = "Variable:0" if name is None else f"{name}:0"
        array = first_value(initial_value, dtype)
        if (wide := asked_width(array)) is not None:
            remember_width(self, wide)  # for what it is assigned later, too
        self._shape = TensorShape(array.shape) if shape is None else TensorShape(shape)
        self._dtype = np.dtype(array.dtype)
        self._check_shape(array.shape)
        level = contexts.frame()
        self.home: Replicas | None = None if level is None else level.replicas
        self._check_kind()
        with jax.ensure_compile_time_eval():  # also where a function is traced to create it
            self._hold(array)
        live.add(self)

    # --- what it is ------------------------------------------------------------------------

    def set_shape(self, shape: Any) -> None:
        """Let it hold values of this shape only."""
        self._check_shape(TensorShape(shape))
        self._shape = self._shape.merge_with(shape)

    @property
    def device(self) -> str:
        """The name of the device where its value lies."""
        return self._device_of(self._array)

    @staticmethod
    def _device_of(array: Any) -> str:
        device = min(array.devices(), key=lambda device: device.id)
        return f"/job:localhost/replica:0/task:0/device:{device.platform.upper()}:{device.id}"

    def __copy__(self) -> "Variable":
        # The copy of a holder holds the same: as in TensorFlow, assigning to one changes both.
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Variable":
        twin: Any = object.__new__(type(self))
        memo[id(self)] = twin
        vars(twin).update(self._twin())
        twin.number = next(_numbers)
        live.add(twin)
        return twin

    def _twin(self) -> dict[str, Any]:
        """Return what a copy has. The arrays are nobody's to change, so both may hold them."""
        return dict(self.__dict__)

    def __reduce__(self) -> tuple[Any, ...]:
        # By its value: where it is read again, the scope that is current there decides on copies.
        given = {
            "initial_value": self.numpy(),
            "trainable": self.trainable,
            "name": self.name.removesuffix(":0"),
            "dtype": self.dtype,
            "constraint": self.constraint,
            "synchronization": self.synchronization,
            "aggregation": self.aggregation,
            "shape": self.shape.as_list() if self.shape.rank is not None else self.shape,
        }
        return _made_again, (given,)

    def __repr__(self) -> str:
        return shown(self.name, self.shape, self.value())

    def __hash__(self) -> int:
        return id(self)

    # --- reading ---------------------------------------------------------------------------

    def value(self) -> Any:
        """Return what it holds, as a `jax.Array`: in a replica's function, that replica's copy."""
        watcher = side_effects.here.watcher
        found = None if watcher is None else watcher.read(self)
        return self._current() if found is None else found

    def _current(self) -> Any:
        level = contexts.staging()
        return self._array if level is None else level.read(self)

    def at_rest(self) -> Any:
        """Return what it holds outside of all traces and replicas."""
        return self._array

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
        """Hold another value.

        Args:
            value: Of the variable's dtype and shape; Python's numbers take the dtype.
            use_locking: Taken for compatibility, as `name` is.
            name: Taken for compatibility.
            read_value: False to return None.

        Returns:
            The variable. Of one with copies: in a replica's function its new copy, outside a value
            with all of them.
        """
        del use_locking, name
        return self._assigned(put, value, read_value)

    def assign_add(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Add to the value; see `assign`."""
        del use_locking, name
        return self._assigned(add, delta, read_value)

    def assign_sub(
        self,
        delta: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Subtract from the value; see `assign`."""
        del use_locking, name
        return self._assigned(subtract, delta, read_value)

    def _assigned(self, how: How, value: Any, read_value: bool) -> Any:
        watcher = side_effects.here.watcher
        trapped = watcher is not None and watcher.traps(self)
        result = self._trapped(how, value) if trapped else self._change(how, value)
        return result if read_value else None

    def _trapped(self, how: How, value: Any) -> Any:
        """Let the watcher keep the new value: the function that assigns is only looked at."""
        watcher: Any = side_effects.here.watcher
        check_place(watcher.rest, self.name)
        watcher.write(self, self._changed(how, self.value(), self._fitting(how, value)))
        return self

    def _change(self, how: How, value: Any) -> Any:
        level = contexts.staging()
        if level is None:
            self._check_at_rest()
        new = self._fitting(how, value)
        if level is None:
            with self._changing:  # threads of a map may add to it at the same time
                self._array = self._changed(how, self._array, new)
        elif level.within is not None and level.within.count > 1:
            raise Unstaged(f"{self.name!r}, which no scope made, is assigned by every replica")
        else:
            level.write(self, self._changed(how, level.read(self), new))
        return self

    def _fitting(self, how: How, value: Any) -> Any:
        """Return a value as a tensor that can be assigned to this variable, or added to it."""
        tensor: Any = convert_to_tensor(value, self._dtype)
        if how is put:
            self._check_shape(tensor.shape)
        elif not self._shape.is_compatible_with(tensor.shape):
            raise self._cannot_add(self._shape, tensor.shape)
        elif self._dtype.kind == "b":
            raise InvalidArgumentError(
                f"The variable {self.name!r} holds True and False, to which nothing can be added.",
                fix="assign a new value.",
            )
        return tensor

    def _changed(self, how: How, old: Any, new: Any) -> Any:
        """Return the next value. What is added has the shape of the value: it is not spread out."""
        if how is not put and old.shape != new.shape:
            raise self._cannot_add(old.shape, new.shape)
        return how(old, new)

    def _cannot_add(self, held: Any, added: Any) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"The variable {self.name!r} holds a value of the shape {tuple(held)}, to which one of "
            f"{tuple(added)} cannot be added.",
            fix="pass a value of the same shape, as by jax.numpy.broadcast_to.",
        )

    def _check_shape(self, shape: Any) -> None:
        if not self._shape.is_compatible_with(shape):
            raise ValueError(
                described(
                    f"The variable {self.name!r} has the shape {self._shape}, but the value has "
                    f"{TensorShape(shape)}.",
                    fix=f"pass a value of the shape {self._shape}, or create the variable with None for "
                    "a length that changes: Variable(value, shape=[None]).",
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
        # On the device of its strategy, where it has one replica on a device of its own.
        home = self.home
        lone = home is not None and home.count == 1 and not is_traced(array)
        self._array = home.to_replica(array, 0) if home is not None and lone else array

    def _check_kind(self) -> None:
        """Refuse what this kind of variable cannot be."""


def shown(name: str, shape: TensorShape, value: Any) -> str:
    """Write a variable as TensorFlow does; without numbers while it is traced."""
    said = f"<tf.Variable {name!r} shape={shape} dtype={dtypes.name_of(np.dtype(value.dtype))}"
    numbers = "" if is_traced(value) else tensor_repr(value).partition("numpy=")[2][:-1]
    return f"{said}, numpy={numbers}>" if numbers else f"{said}>"


def _at_rest() -> object:
    with jax.core.eval_context():  # pyright: ignore[reportAttributeAccessIssue]
        return jax_extend_core.get_opaque_trace_state()


def _made_again(given: dict[str, Any]) -> Any:
    return Variable(**given)
