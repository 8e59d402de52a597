"""`train_step(self, data)` of users, as in TensorFlow: Keras on JAX passes the state of the model too.

The step runs in a scope of Keras in which variables have the values of the state. So a tape records it, and what it
assigns becomes the new state.
"""

import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeAlias

from evenfeed.keras_training import keras_private

_Groups: TypeAlias = Callable[[Any], list[list[Any]]]


def _trained(model: Any) -> list[list[Any]]:
    optimizer = model.optimizer
    return [
        model.trainable_variables,
        model.non_trainable_variables,
        [] if optimizer is None else optimizer.variables,
        model.metrics_variables,
    ]


def _tested(model: Any) -> list[list[Any]]:
    return [
        model.trainable_variables,
        model.non_trainable_variables,
        model.metrics_variables,
    ]


def _performed(
    model: Any, groups: _Groups, step: Callable[..., Any], state: Any, data: Any
) -> tuple[Any, Any]:
    """Run a step that takes data alone. Return what it returns, and the new state."""
    variables = groups(model)
    held = [pair for row in zip(variables, state, strict=True) for pair in zip(*row, strict=True)]
    with keras_private.keras.StatelessScope(state_mapping=held) as scope:
        logs = step(model, data)
    return logs, tuple([scope.get_current_value(each) for each in group] for group in variables)


@contextmanager
def _with_member(model: Any, name: str, member: Any) -> Generator[None]:
    """Run a block in which a model has a method of its own."""
    model.__dict__[name] = member  # not by an assignment, which Keras tracks
    try:
        yield
    finally:
        del model.__dict__[name]


def _making(name: str, groups: _Groups) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the replacement for a method of models that compiles a step."""

    def replace(own: Callable[..., Any]) -> Callable[..., Any]:
        def make(self: Any, force: bool = False) -> Any:
            step = getattr(self.__class__, name)
            takes_data_alone = len(inspect.signature(step).parameters) == 2
            if not takes_data_alone or name in self.__dict__:
                return own(self, force)
            with _with_member(self, name, partial(_performed, self, groups, step)):
                return own(self, force)

        return make

    return replace


#: The methods of models that compile steps, and by what evenfeed replaces them.
STEP_METHODS: Final = {
    "make_train_function": _making("train_step", _trained),
    "make_test_function": _making("test_step", _tested),
}
