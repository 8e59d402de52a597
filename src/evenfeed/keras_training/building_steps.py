"""Builds what only a step of the user can build: a model without `call`, and optimizers beside the compiled one.

The GAN of the Keras guides has both. The step is traced once, so that layers and optimizers create their variables before
Keras reads the state of the model. The variables of the other optimizers are part of that state.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from evenfeed.core.lazy_jax import jax
from evenfeed.keras_training import keras_private
from evenfeed.keras_training.stateful_steps import is_of_user

_step: Final[ContextVar[str]] = ContextVar("_step", default="train_step")


@contextmanager
def running(name: str) -> Generator[None]:
    """Run a block in which models are built for a step, such as `train_step`."""
    token = _step.set(name)
    try:
        yield
    finally:
        _step.reset(token)


def current_step() -> str:
    """Return the name of the step that models run now: `train_step` in `fit`."""
    return _step.get()


def _other_optimizers(model: Any) -> list[Any]:
    """Return the optimizers that the model and its layers hold, without the one that the model is compiled with."""
    kind = keras_private.keras.optimizers.Optimizer
    found = {
        id(each): each
        for layer in keras_private.layers_of(model)
        for value in keras_private.attributes_of_layer(layer).values()
        for each in keras_private.keras.tree.flatten(value)
        if isinstance(each, kind)
    }
    found.pop(id(getattr(model, "optimizer", None)), None)
    return list(found.values())


def building_steps(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement for the method that builds a model from its first batch."""

    def build(self: Any, iterator: Any = None, data_batch: Any = None) -> None:
        name = _step.get()
        if not is_of_user(self, name):
            own(self, iterator, data_batch)
            return
        can_be_called = self.__class__.call is not keras_private.keras.Model.call
        if can_be_called:
            own(self, iterator, data_batch)
        if can_be_called and all(each.built for each in _other_optimizers(self)):
            return
        if data_batch is None:
            data_batch = next(next(iter(batches)) for _, _, batches in iterator)
        step = getattr(self.__class__, name)

        def trace(data: Any) -> None:
            step(self, data)

        with keras_private.keras.StatelessScope():
            jax.eval_shape(trace, data_batch)

    return build


def with_other_optimizers(own: Any) -> property:
    """Return the replacement for the property with the variables of metrics, which Keras passes to each step."""

    def metrics_variables(self: Any) -> list[Any]:
        variables: list[Any] = own.fget(self)
        if not is_of_user(self, "train_step"):
            return variables
        return [*variables, *(v for each in _other_optimizers(self) for v in each.variables)]

    return property(metrics_variables, doc=own.__doc__)
