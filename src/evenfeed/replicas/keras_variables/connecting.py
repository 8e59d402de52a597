"""Connects the variables, optimizers and seeds of Keras with compiled functions, replicas and tapes.

Keras has no public way to hear of reads and assignments outside of its stateless functions. The classes that are changed
here are checked by `tests/replicas/test_keras_variables.py`.
"""

import functools
import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final

from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.replicas import contexts
from evenfeed.replicas.keras_variables.keras_handles import is_keras_variable, known, value_of
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
_ON_JAX: Final = "keras.src.backend.jax.optimizer"
_SCALING: Final = "keras.src.optimizers.loss_scale_optimizer"
_SEEDS: Final = "keras.src.random.seed_generator"
_SCOPES: Final = "keras.src.backend.common.stateless_scope"
_LOSSES: Final = "keras.src.losses.loss"
_TRAINERS: Final = "keras.src.trainers.trainer"

# An odd number, so that multiples differ: 2**32 divided by the golden ratio.
_APART: Final = 0x9E3779B9

_lock: Final = Lock()


def connect() -> bool:
    """Connect Keras, if the program has loaded it all. Return True if so."""
    names = (_VARIABLES, _OPTIMIZERS, _ON_JAX, _SCALING, _SEEDS, _SCOPES, _LOSSES, _TRAINERS)
    modules = [sys.modules.get(name) for name in names]
    if None in modules:
        return False
    variables, optimizers, on_jax, scaling, seeds, scopes, losses, trainers = modules
    own: Any = variables
    with _lock:
        if not getattr(own.JaxVariable, "_evenfeed", False):
            own.JaxVariable._evenfeed = True
            _connect_variables(own.JaxVariable, scopes)
            _connect_optimizers(optimizers)
            _connect_updates(on_jax)
            _connect_loss_scales(scaling)
            _connect_seeds(seeds)
            _connect_losses(losses, trainers)
    return True


def _connect_variables(kind: Any, scopes: Any) -> None:
    own_value, own_assign = kind.value.fget, kind._direct_assign
    own_initialize, own_initialize_with = kind._initialize, kind._initialize_with_initializer

    def value(self: Any) -> Any:
        scope = scopes.get_stateless_scope()
        # Keras runs recurrent layers in a scope that gives no values of its own.
        array = None if scope is None else scope.get_current_value(self)
        if array is None and self._value is None:  # it has the initial value until the scope ends
            array = own_value(self)
            return as_read(self, array) if reads.here.listeners else array
        if array is None:
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
        with _agreed_on(grads) as summed:
            return own(self, summed, trainable_variables)

    kind.apply = apply


def _connect_updates(module: Any) -> None:
    """Let optimizers accumulate gradients and average weights of evenfeed's variables: `value` is a method of those."""
    kind = module.JaxOptimizer
    own = kind._backend_apply_gradients

    @functools.wraps(own)
    def apply_gradients(self: Any, grads: Any, trainable_variables: Any) -> None:
        if all(map(is_keras_variable, self._trainable_variables)):
            own(self, grads, trainable_variables)
            return
        if self.gradient_accumulation_steps:
            _accumulate(self, grads, trainable_variables)
        else:
            _update(self, grads, trainable_variables)
        if self.use_ema:
            self._update_model_variables_moving_average(self._trainable_variables)
            if self.ema_overwrite_frequency is not None:
                is_due = (self.iterations + 1) % self.ema_overwrite_frequency == 0
                averages = self._model_variables_moving_average
                for variable, average in zip(self._trainable_variables, averages, strict=True):
                    variable.assign(jnp.where(is_due, average.value, value_of(variable)))

    kind._backend_apply_gradients = apply_gradients


def _update(optimizer: Any, gradients: Any, variables: Any) -> None:
    clipped = optimizer._clip_gradients(gradients)
    optimizer._apply_weight_decay(variables)
    optimizer._backend_update_step(clipped, variables, optimizer.learning_rate)


def _accumulate(optimizer: Any, gradients: Any, variables: Any) -> None:
    """Add gradients to the sums. Each time that enough were added, update the variables by the means."""
    steps = optimizer.gradient_accumulation_steps
    is_due = (optimizer._iterations.value + 1) % steps == 0
    kept = [*variables, *optimizer.variables]
    before = [value_of(each) for each in kept]
    held = [optimizer._accumulated_gradients[optimizer._get_variable_index(v)] for v in variables]
    sums = [gradient + each.value for gradient, each in zip(gradients, held, strict=True)]
    _update(optimizer, [each / steps for each in sums], variables)
    for variable, value in zip(kept, before, strict=True):
        variable.assign(jnp.where(is_due, value_of(variable), value))
    for variable, value in zip(held, sums, strict=True):
        variable.assign(jnp.where(is_due, jnp.zeros_like(value), value))


@contextmanager
def _agreed_on(gradients: Any) -> Generator[Any]:
    """Run a block that applies gradients: summed over the replicas, unless they are already."""
    state = here.state
    if state is None or state.is_agreed or contexts.replica_context() is None:
        yield gradients
        return
    with state.agreed():
        yield summed_over_replicas(list(gradients))


def _connect_loss_scales(module: Any) -> None:
    """Let the optimizer compute new values, and assign them: its own `apply` assigns in a branch that JAX traces."""
    kind = module.LossScaleOptimizer
    own = kind.apply

    @functools.wraps(own)
    def apply(self: Any, grads: Any, trainable_variables: Any = None) -> None:
        if not self.built:
            self.build(trainable_variables)
            self.built = True
        known_ones, slots = list(self._trainable_variables), list(self.variables)
        given = known_ones if trainable_variables is None else trainable_variables
        with _agreed_on(grads) as summed:
            by_variable = dict(zip(map(id, given), summed, strict=True))
            found = self.stateless_apply(
                [each.value for each in slots],
                [by_variable.get(id(each)) for each in known_ones],
                [each.value for each in known_ones],
            )
            for variable, value in zip([*known_ones, *slots], [*found[0], *found[1]], strict=True):
                variable.assign(value)

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


def _connect_losses(losses: Any, trainers: Any) -> None:
    """Divide mean losses by the number of replicas, as Keras does on TensorFlow: optimizers sum their gradients."""
    kind = trainers.Trainer
    own = kind._aggregate_additional_loss

    def scale(value: Any) -> Any:
        return (
            value
            if _replica_count() == 1
            else value * jnp.asarray(1 / _replica_count(), value.dtype)
        )

    def unscale(value: Any) -> Any:
        return (
            value if _replica_count() == 1 else value * jnp.asarray(_replica_count(), value.dtype)
        )

    @functools.wraps(own)
    def aggregate_additional_loss(self: Any, loss: Any) -> Any:
        return scale(own(self, loss))

    losses.scale_loss_for_distribution = scale
    losses.unscale_loss_for_distribution = unscale
    kind._aggregate_additional_loss = aggregate_additional_loss


def _replica_count() -> int:
    """Return the number of replicas that run the code; 1 in `fit`, whose program has the global batch."""
    context = contexts.replica_context()
    return 1 if context is None else context.num_replicas_in_sync
