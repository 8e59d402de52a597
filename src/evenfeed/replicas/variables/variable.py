"""`Variable`: a tensor that can be assigned. In a strategy's scope, each replica has a copy."""

import itertools
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any, Final, NoReturn

import numpy as np

from evenfeed.core import dtypes, side_effects
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax, refuse_as_argument
from evenfeed.core.shapes import TensorShape
from evenfeed.core.tensor_types import asked_width, remember_width
from evenfeed.replicas import contexts
from evenfeed.replicas.context_mesh import apart_from_context_mesh
from evenfeed.replicas.function.staging import Unstaged, check_place, live, trace_state
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.reduce.reduce_op import VariableAggregation, VariableSynchronization
from evenfeed.replicas.tape import reads
from evenfeed.replicas.tape.reads import as_read
from evenfeed.replicas.variables.assignments import How, Partly, add, put, subtract
from evenfeed.replicas.variables.inner_sharding import inner_spec
from evenfeed.replicas.variables.older_members import OlderMembers
from evenfeed.replicas.variables.variable_arguments import (
    check_arguments,
    check_constraint,
    first_value,
)
from evenfeed.replicas.variables.variable_creation import Created
from evenfeed.tensors.control.scopes import scoped_name
from evenfeed.tensors.creation import convert_to_tensor
from evenfeed.tensors.device_arrays import is_traced
from evenfeed.tensors.printing import tensor_repr

_numbers: Final = itertools.count()


@cache
def _reject_in_jax() -> None:
    """Give `jax.numpy` a helpful error for variables. JAX is loaded when the first one is made."""
    refuse_as_argument(Variable, _reject)


def _reject(variable: "Variable") -> NoReturn:
    raise ValueError(  # JAX would replace a TypeError with its own
        described(
            f"JAX functions take arrays, but got the variable {variable.name!r}.",
            fix="pass its current value: variable.value().",
        )
    )


class Variable(OlderMembers, metaclass=Created):
    """A tensor that can be assigned. If made in `strategy.scope()`, each replica has a copy.

    `jax.numpy` functions need `variable.value()`. Python operators and evenfeed functions accept the
    variable itself.

    Args:
        initial_value: The initial value, or a function without arguments that returns it.
        trainable: Whether optimizers should change it. By default True, unless it is synchronized on
            read.
        validate_shape: Accepted for compatibility.
        caching_device: Accepted for compatibility.
        name: The name, for printing.
        variable_def: Not supported, because there are no graphs.
        dtype: The dtype. By default, the dtype of the initial value.
        import_scope: Accepted for compatibility.
        constraint: A function that an optimizer applies to a new value.
        synchronization: When the replicas' copies are synchronized. None means AUTO, except in the scope
            of a strategy that mirrors variables.
        aggregation: How the values that replicas assign are combined. None means NONE.
        shape: The shapes that it may hold; by default only the shape of the initial value.
        sharding: A `PartitionSpec` that splits each replica's copy over the inner axes of a `MeshStrategy`; by default that
            of the strategy's rule.

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
        *,
        sharding: Any = None,
    ) -> None:
        _reject_in_jax()
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
        self._name = f"{scoped_name('Variable' if name is None else name)}:0"
        first = array = first_value(initial_value, dtype)
        if is_traced(first):  # the value follows when the trace has been run
            array = np.zeros(first.shape, first.dtype)
        if (wide := asked_width(array)) is not None:
            remember_width(self, wide)  # later assignments need it too
        self._shape = TensorShape(array.shape) if shape is None else TensorShape(shape)
        self._dtype = np.dtype(array.dtype)
        self._check_shape(array.shape)
        level = contexts.frame()
        self.home: Replicas | None = None if level is None else level.replicas
        self._strategy = None if level is None else level.strategy
        self._spec = inner_spec(sharding, self, self._strategy)
        self._check_kind()
        self.start(array)
        live.add(self)
        if is_traced(first):
            contexts.here.stagings[0].started[self] = first

    def start(self, array: Any) -> None:
        """Hold the initial value."""
        with apart_from_context_mesh(), jax.ensure_compile_time_eval():  # in a trace, too
            self._hold(array)

    # --- what it is ------------------------------------------------------------------------

    def set_shape(self, shape: Any) -> None:
        """Restrict the shapes that the variable may hold."""
        self._check_shape(TensorShape(shape))
        self._shape = self._shape.merge_with(shape)

    @property
    def device(self) -> str:
        """The name of the device that holds its value."""
        return self._device_of(self._array)

    @staticmethod
    def _device_of(array: Any) -> str:
        device = min(array.devices(), key=lambda device: device.id)
        return f"/job:localhost/replica:0/task:0/device:{device.platform.upper()}:{device.id}"

    def __copy__(self) -> "Variable":
        # As in TensorFlow, a shallow copy shares its value: assigning to one changes both.
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "Variable":
        twin: Any = object.__new__(type(self))
        memo[id(self)] = twin
        twin.__dict__.update(self._twin())
        twin.number = next(_numbers)
        live.add(twin)
        return twin

    def _twin(self) -> dict[str, Any]:
        """Return the attributes of a deep copy. It can share the arrays, because they are immutable."""
        return dict(self.__dict__)

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle the value: the strategy scope in which it is unpickled decides about copies.
        given = {
            "initial_value": self.numpy(),
            "trainable": self.trainable,
            "name": self.name.removesuffix(":0"),
            "dtype": self.dtype,
            "constraint": self.constraint,
            "synchronization": self.synchronization,
            "aggregation": self.aggregation,
            "shape": self.shape.as_list() if self.shape.rank is not None else self.shape,
            **({} if self._spec is None else {"sharding": self._spec}),
        }
        return _made_again, (given,)

    def __repr__(self) -> str:
        return shown(self.name, self.shape, self.value())

    def __hash__(self) -> int:
        return id(self)

    # --- reading ---------------------------------------------------------------------------

    def value(self) -> Any:
        """Return its value as a `jax.Array`. Inside `run`, this is the replica's own copy."""
        watcher = side_effects.here.watcher
        found = None if watcher is None else watcher.read(self)
        value = self._current() if found is None else found
        return as_read(self, value) if reads.here.listeners else value

    def _current(self) -> Any:
        level = contexts.staging()
        return self._array if level is None else level.read(self)

    def at_rest(self) -> Any:
        """Return its value outside all traces and replicas."""
        return self._array

    @property
    def values(self) -> tuple[Any, ...]:
        """The value on each replica. A variable made outside a scope has only one."""
        return (self.value(),)

    def read_value(self) -> Any:
        """Return its value."""
        return self.value()

    def numpy(self) -> Any:
        """Return its value as a NumPy array to write to: a copy."""
        value = self.value()
        if is_traced(value):
            raise NotImplementedError(
                described(
                    f"The variable {self.name!r} has no concrete value while a function is traced.",
                    fix="call numpy() outside evenfeed.function.",
                )
            )
        array = np.array(self._to_host(value))
        return array[()] if array.ndim == 0 else array

    def __jax_array__(self) -> Any:
        return self.value()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        value = self._to_host(self.value())
        return np.array(value, dtype) if copy is not False else np.asarray(value, dtype)

    def _to_host(self, value: Any) -> Any:
        """Return a value that NumPy can read, also if other processes have parts of it."""
        return value

    # --- assigning -------------------------------------------------------------------------

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> Any:
        """Assign a new value.

        Args:
            value: A value of the variable's dtype and shape. Python numbers are converted to the dtype.
            use_locking: Accepted for compatibility.
            name: Accepted for compatibility.
            read_value: If False, return None.

        Returns:
            The variable. For a variable with copies: inside `run`, the replica's new copy; outside, a
            distributed value of all new copies.
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
        """Store the new value in the watcher only, because the function is only being analyzed."""
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
            with self._changing:  # the threads of a map may change it concurrently
                self._array = self._changed(how, self._array, new)
        elif level.within is not None and not level.within.is_lone:
            raise Unstaged(f"every replica assigns {self.name!r}, which was made outside a scope")
        else:
            level.write(self, self._changed(how, level.read(self), new))
        return self

    def _fitting(self, how: How, value: Any) -> Any:
        """Convert a value to a tensor that can be assigned or added to this variable."""
        if isinstance(how, Partly):
            return how.fitting(self._dtype, value)
        tensor: Any = convert_to_tensor(value, self._dtype)
        if how is put:
            self._check_shape(tensor.shape)
        elif not self._shape.is_compatible_with(tensor.shape):
            raise self._cannot_add(self._shape, tensor.shape)
        elif self._dtype.kind == "b":
            raise InvalidArgumentError(
                f"The variable {self.name!r} is of dtype bool, which cannot be added to.",
                fix="assign a new value.",
            )
        return tensor

    def _changed(self, how: How, old: Any, new: Any) -> Any:
        """Return the new value. Added values must have the same shape: they are not broadcast."""
        if how is not put and not isinstance(how, Partly) and old.shape != new.shape:
            raise self._cannot_add(old.shape, new.shape)
        return how(old, new)

    def _cannot_add(self, held: Any, added: Any) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"The variable {self.name!r} has shape {tuple(held)}, so a value of shape {tuple(added)} "
            "cannot be added.",
            fix="pass a value of the same shape, for example with jax.numpy.broadcast_to.",
        )

    def _check_shape(self, shape: Any) -> None:
        if not self._shape.is_compatible_with(shape):
            raise ValueError(
                described(
                    f"The variable {self.name!r} has shape {self._shape}, but the value has shape "
                    f"{TensorShape(shape)}.",
                    fix=f"pass a value of shape {self._shape}, or create the variable with None for a "
                    "length that changes: Variable(value, shape=[None]).",
                )
            )

    def _check_at_rest(self) -> None:
        check_place(_at_rest(), self.name)

    # --- for compiled programs -------------------------------------------------------------

    @property
    def held(self) -> Any:
        """The value, or all copies, as one `jax.Array`."""
        return self._array

    def hold(self, array: Any) -> None:
        """Store the array that a program computed for it."""
        self._array = array

    def _hold(self, array: Any) -> None:
        # With a strategy of one replica, the value goes to that replica's device.
        home = self.home
        lone = home is not None and home.is_lone and not is_traced(array)
        self._array = home.to_replica(array, 0) if home is not None and lone else array

    def _check_kind(self) -> None:
        """Check that this class of variable supports the arguments."""


def shown(name: str, shape: TensorShape, value: Any) -> str:
    """Return the repr of a variable as in TensorFlow, without numbers while it is traced."""
    start = f"<tf.Variable {name!r} shape={shape} dtype={dtypes.name_of(np.dtype(value.dtype))}"
    numbers = "" if is_traced(value) else tensor_repr(value).partition("numpy=")[2][:-1]
    return f"{start}, numpy={numbers}>" if numbers else f"{start}>"


def _at_rest() -> object:
    with jax.core.eval_context():
        return trace_state()


def _made_again(given: dict[str, Any]) -> Any:
    return Variable(**given)
