"""`train_step(self, data)` and its kin of users, as in TensorFlow: Keras on JAX passes the state of the model too.

The step runs in a scope of Keras in which variables have the values of the state. So a tape records it, and what it
assigns becomes the new state. Keras's own steps take data alone too, for `super().train_step(data)`: they read the state
from the variables, and assign the new one.
"""

import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeAlias

from evenfeed.core.errors import described
from evenfeed.keras_training import keras_private

_Groups: TypeAlias = Callable[[Any], list[list[Any]]]

_NOT_GIVEN: Final = object()


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


def _predicted(model: Any) -> list[list[Any]]:
    return [model.trainable_variables, model.non_trainable_variables]


def _performed(
    model: Any, groups: _Groups, step: Callable[..., Any], state: Any, data: Any
) -> tuple[Any, tuple[list[Any], ...]]:
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


def is_of_user(model: Any, name: str) -> bool:
    """Return whether the class of a model has a step of the user that takes data alone."""
    return len(inspect.signature(getattr(model.__class__, name)).parameters) == 2


def _takes_data_alone(model: Any, name: str) -> bool:
    """Return whether a step is a user's that takes data alone."""
    return name not in model.__dict__ and is_of_user(model, name)


def _making(name: str, groups: _Groups) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the replacement for a method of models that compiles a step."""

    def replace(own: Callable[..., Any]) -> Callable[..., Any]:
        def make(self: Any, force: bool = False) -> Any:
            if not _takes_data_alone(self, name):
                return own(self, force)
            step = getattr(self.__class__, name)
            with _with_member(self, name, partial(_performed, self, groups, step)):
                return own(self, force)

        return make

    return replace


def _making_predictions(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement for the method that compiles `predict_step`, which Keras looks up at each trace."""

    def make_predict_function(self: Any, force: bool = False) -> Any:
        before = self.predict_function
        own(self, force)
        function = self.predict_function
        if function is not before and _takes_data_alone(self, "predict_step"):
            step = self.__class__.predict_step

            def state_step(state: Any, data: Any) -> tuple[Any, list[Any]]:
                outputs, (_, non_trainable) = _performed(self, _predicted, step, state, data)
                return outputs, non_trainable

            def predict(state: Any, iterator: Any) -> Any:
                with _with_member(self, "predict_step", state_step):
                    return function(state, iterator)

            self.predict_function = predict
        return self.predict_function

    return make_predict_function


def _taking_data_alone(groups: _Groups) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the replacement for a step of Keras."""

    def replace(own: Callable[..., Any]) -> Callable[..., Any]:
        def step(self: Any, state: Any = _NOT_GIVEN, data: Any = _NOT_GIVEN) -> Any:
            if state is not _NOT_GIVEN and data is not _NOT_GIVEN:
                return own(self, state, data)
            if not keras_private.in_stateless_scope():
                raise _outside_of_fit(own.__name__)
            variables = groups(self)
            values = tuple([each.value for each in group] for group in variables)
            logs, new = own(self, values, state if data is _NOT_GIVEN else data)
            if groups is _predicted:  # Keras returns the new values of the second group alone
                new = (values[0], new)
            for group, found in zip(variables, new, strict=True):
                for variable, value in zip(group, found, strict=True):
                    variable.assign(value)
            return logs

        return step

    return replace


def _outside_of_fit(name: str) -> RuntimeError:
    return RuntimeError(
        described(
            f"Keras's {name}(data) takes data alone only in fit, evaluate and predict.",
            fix="call model.train_on_batch(x, y), test_on_batch(x, y) or predict_on_batch(x); in a loop of your own, write "
            "the step with evenfeed.GradientTape and optimizer.apply_gradients.",
        )
    )


#: The methods of models that evenfeed replaces, and by what: those that compile steps, and Keras's own steps.
STEP_METHODS: Final = {
    "make_train_function": _making("train_step", _trained),
    "make_test_function": _making("test_step", _tested),
    "make_predict_function": _making_predictions,
    "train_step": _taking_data_alone(_trained),
    "test_step": _taking_data_alone(_tested),
    "predict_step": _taking_data_alone(_predicted),
}
