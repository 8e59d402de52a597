"""`KerasHandle`: what a program needs to read and assign a Keras variable, as it does evenfeed's own.

Nothing here imports Keras: a program that has such variables has loaded it.
"""

import sys
import threading
from itertools import count
from typing import Any, Final, final
from weakref import ref

from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.shapes import TensorShape
from evenfeed.replicas import contexts
from evenfeed.replicas.function.staging import live
from evenfeed.tensors.device_arrays import unbound

_KERAS: Final = "keras.src.backend.jax.core"
# Apart from the numbers of evenfeed's variables, which count up from 0.
_numbers: Final = count(1 << 60)


def is_keras_variable(value: object) -> bool:
    """Return True if `value` is a variable of Keras on JAX."""
    module: Any = sys.modules.get(_KERAS)
    return module is not None and isinstance(value, module.JaxVariable)


def value_of(variable: Any) -> Any:
    """Return the value of a variable, of Keras or evenfeed, as the open tapes know it."""
    return variable.value if is_keras_variable(variable) else variable.value()


@final
class KerasHandle:
    """A Keras variable, as programs know it. It does not keep the variable alive.

    Attributes:
        number: Its place among all variables.
    """

    def __init__(self, variable: Any) -> None:
        self.number = next(_numbers)
        self._variable = ref(variable)

    @property
    def variable(self) -> Any:
        """The Keras variable."""
        return self._variable()

    @property
    def name(self) -> str:
        """Its path in the model, for errors."""
        return str(self.variable.path)

    @property
    def shape(self) -> TensorShape:
        """Its shape, which never changes."""
        return TensorShape(self.variable.shape)

    @property
    def trainable(self) -> bool:
        """Whether optimizers change it."""
        return bool(self.variable.trainable)

    @property
    def held(self) -> Any:
        """Its value; None while it has none, as during `fit`."""
        variable = self.variable
        return None if variable is None else variable._value  # `value` is that of a trace

    def hold(self, array: Any) -> None:
        """Store the array that a program computed for it. Code outside of programs finds it where it was."""
        variable = self.variable
        is_on_one = len(variable._value.sharding.device_set) == 1
        several = len(array.sharding.device_set) > 1
        variable._value = unbound(array.addressable_data(0)) if several and is_on_one else array


def subject_of(variable: Any) -> Any:
    """Return the variable that users know: for a handle, the Keras variable."""
    return variable.variable if isinstance(variable, KerasHandle) else variable


class _Known:
    """The handles of all variables that a program has met, by identity of the variable."""

    def __init__(self) -> None:
        self._handles: dict[int, tuple[ref[Any], KerasHandle]] = {}
        self._lock = threading.Lock()

    def of(self, variable: Any) -> KerasHandle:
        """Return the handle of a variable; make it at the first call."""
        number = id(variable)
        found = self._handles.get(number)
        if found is not None and found[0]() is variable:
            return found[1]
        with self._lock:
            handle = KerasHandle(variable)
            alive = ref(variable, lambda _: self._handles.pop(number, None))
            self._handles[number] = alive, handle
        live.add(handle)
        return handle


known: Final = _Known()


def staged_value(handle: KerasHandle) -> Any:
    """Return the value of a variable in the function that is being traced.

    A variable that the trace met for the first time is not among its inputs. It gets a value of its shape, and the
    function is traced again.
    """
    stagings = contexts.here.stagings
    values = stagings[-1].values
    if handle not in values:
        held = handle.held
        with jax.ensure_compile_time_eval():
            stand_in = jnp.zeros(held.shape, held.dtype)
        for level in stagings:
            level.values[handle] = stand_in
        stagings[0].is_incomplete = True
    return values[handle]
