"""The state of a model before its last step across workers: what there is to save when a worker is lost.

A step of Keras takes the arrays of the state away, and if a worker is lost, its results are errors. So a step across
workers leaves its arguments alone, and they are kept until the step has ended.
"""

from collections.abc import Callable
from typing import Any, Final

from evenfeed.core.lazy_jax import jax
from evenfeed.keras_training import keras_private
from evenfeed.keras_training.distribution import current_replicas

_KEPT: Final = "_evenfeed_kept_state"


def is_across_workers() -> bool:
    """Return True if the steps of models run on several workers."""
    replicas = current_replicas()
    return replicas is not None and replicas.spans


def without_donation(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a step of Keras that leaves its arguments alone."""
    function: Any = getattr(step, "__wrapped__", None)
    if function is None:  # not compiled
        return step
    compiled: Any = None

    def run(state: Any, data: Any) -> Any:
        nonlocal compiled
        if isinstance(jax.tree.leaves(state)[0], jax.core.Tracer):  # in the loop of an execution
            return function(state, data)
        if compiled is None:
            compiled = jax.jit(function, out_shardings=(None, shardings_of(state)))
        return compiled(state, data)

    return run


def shardings_of(state: Any) -> Any:
    """Return where the arrays of a state are."""
    return jax.tree.map(_sharding, state)


def _sharding(array: Any) -> Any:
    return array.sharding


def keep(model: Any, state: Any) -> None:
    """Keep the state before a step. First wait for the step that returned it.

    Raises:
        UnavailableError: A worker was lost. The state before that step is kept.
    """
    jax.block_until_ready(state)
    model.__dict__[_KEPT] = state  # not by an assignment, which Keras tracks


def give_back(model: Any) -> None:
    """Give a model the state that is kept, if any."""
    state = model.__dict__.get(_KEPT)
    if state is None:
        keras_private.give_state(model)
    else:
        keras_private.hand_back(model, state)


def forget(model: Any) -> None:
    """Keep no state any longer."""
    model.__dict__.pop(_KEPT, None)
