"""Connects the variables, optimizers and seeds of Keras with compiled functions, replicas and tapes.

Keras has no public way to hear of reads and assignments outside of its stateless functions. The classes that are changed
here are checked by `tests/replicas/test_keras_variables.py`.
"""

import functools
import sys
from threading import Lock
from typing import Any, Final

from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.replicas import contexts
from evenfeed.replicas.keras_variables.keras_handles import known
from evenfeed.replicas.keras_variables.replica_state import (
    assign,
    current_value,
    here,
    summed_over_replicas,
)
from evenfeed.replicas.tape import reads
from evenfeed.replicas.tape.reads import as_read
from evenfeed.tensors.device_arrays import is_traced

_VARIABLES: Final = "keras.src.backend.jax.core"
_OPTIMIZERS: Final = "keras.src.optimizers.base_optimizer"
_SEEDS: Final = "keras.src.random.seed_generator"
_SCOPES: Final = "keras.src.backend.common.stateless_scope"

# An odd number, so that multiples differ: 2**32 divided by the golden ratio.
_APART: Final = 0x9E3779B9

_lock: Final = Lock()


def connect() -> bool:
    """Connect Keras, if the program has loaded it all. Return True if so."""
    modules = [sys.modules.get(name) for name in (_VARIABLES, _OPTIMIZERS, _SEEDS, _SCOPES)]
    if None in modules:
        return False
    variables, optimizers, seeds, scopes = modules
    own: Any = variables
    with _lock:
        if not getattr(own.JaxVariable, "_evenfeed", False):
            own.JaxVariable._evenfeed = True
            _connect_variables(own.JaxVariable, scopes)
            _connect_optimizers(optimizers)
            _connect_seeds(seeds)
    return True


def _connect_variables(kind: Any, scopes: Any) -> None:
    own_value, own_assign = kind.value.fget, kind._direct_assign
    own_initialize, own_initialize_with = kind._initialize, kind._initialize_with_initializer

    def value(self: Any) -> Any:
        scope = scopes.get_stateless_scope()
        # Keras runs recurrent layers in a scope that gives no values of its own.
        if self._value is None or (scope is not None and scope.get_current_value(self) is not None):
            return own_value(self)
        found = current_value(self)
        array = self._value if found is None else found
        return self._maybe_autocast(as_read(self, array) if reads.here.listeners else array)

    def direct_assign(self: Any, value: Any) -> None:
        is_new = getattr(self, "_value", None) is None
        if is_new or (here.state is None and contexts.staging() is None):
            own_assign(self, value)
        else:
            assign(known.of(self), value)

    def initialize(self: Any, value: Any) -> None:
        if is_traced(value):
            raise ValueError(
                described(
                    f"The initial value of the Keras variable {self.path!r} depends on the traced function's "
                    "arguments.",
                    fix="pass an initializer, or create the variable outside of the function.",
                )
            )
        with jax.ensure_compile_time_eval():
            own_initialize(self, value)

    def initialize_with(self: Any, initializer: Any) -> None:
        with jax.ensure_compile_time_eval():  # a traced function may create variables
            own_initialize_with(self, initializer)

    kind.value = property(value, doc=own_value.__doc__)
    kind._direct_assign = direct_assign
    kind._initialize = initialize
    kind._initialize_with_initializer = initialize_with


def _connect_optimizers(module: Any) -> None:
    kind = module.BaseOptimizer
    own = kind.apply

    @functools.wraps(own)
    def apply(self: Any, grads: Any, trainable_variables: Any = None) -> Any:
        state = here.state
        if state is None or contexts.replica_context() is None:
            return own(self, grads, trainable_variables)
        with state.agreed():
            return own(self, summed_over_replicas(list(grads)), trainable_variables)

    kind.apply = apply


def _connect_seeds(module: Any) -> None:
    kind = module.SeedGenerator
    own = kind.next

    @functools.wraps(own)
    def next_seed(self: Any, ordered: bool = True) -> Any:
        seed = own(self, ordered)
        state = here.state
        if state is None:
            return seed
        index = jnp.asarray(state.replica.index).astype(seed.dtype)
        return seed.at[0].add(index * jnp.asarray(_APART, "uint32").astype(seed.dtype))

    kind.next = next_seed
