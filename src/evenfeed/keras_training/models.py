"""Models remember the strategy whose scope they were created in, and train on its replicas, inside the scope or not."""

from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from typing import Any, Final

from evenfeed.core.concurrency.peers import MEETING_ERRORS, peers
from evenfeed.keras_training import kept_states, keras_private
from evenfeed.keras_training.building_steps import (
    building_steps,
    running,
    with_other_optimizers,
)
from evenfeed.keras_training.dataset_adapter import DatasetAdapter
from evenfeed.keras_training.distribution import ReplicaDistribution, is_on, without_distribution
from evenfeed.keras_training.predictions import gathering, in_order_of
from evenfeed.keras_training.text_inputs import text_of
from evenfeed.strategy.current import get_strategy, has_strategy

_STRATEGY: Final = "_evenfeed_strategy"


def _remember(own: Callable[..., Any]) -> Callable[..., Any]:
    def init(self: Any) -> None:
        own(self)
        setattr(self, _STRATEGY, get_strategy() if has_strategy() else None)

    return init


@contextmanager
def _scope_of(model: Any) -> Generator[None]:
    """Enter the scope of the model's strategy."""
    strategy = getattr(model, _STRATEGY, None)
    if strategy is None or (has_strategy() and get_strategy() is strategy):
        yield
    else:
        with strategy.scope():
            yield


def _running(step: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the replacement for a method that runs a step on batches."""

    def replace(own: Callable[..., Any]) -> Callable[..., Any]:
        def method(self: Any, *args: Any, **kwargs: Any) -> Any:
            with _scope_of(self), text_of(self), running(step):
                _mirror_variables(self)
                try:
                    return own(self, *args, **kwargs)
                except MEETING_ERRORS as error:
                    cause = peers.explained(error)
                    _give_state(self)
                    if cause is error:
                        raise
                    raise cause from error
                except BaseException:
                    _give_state(self)
                    raise
                finally:
                    kept_states.forget(self)

        return method

    return replace


def _give_state(model: Any) -> None:
    """Give a model its state after the last complete step, also after an error of a callback."""
    if peers.is_broken:  # the last step did not complete
        kept_states.give_back(model)
    else:
        keras_private.give_state(model)


def _predicting(own: Callable[..., Any]) -> Callable[..., Any]:
    run = _running("predict_step")(own)

    def predict(self: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        with in_order_of(x) as ordered:
            return run(self, ordered, *args, **kwargs)

    return predict


def _mirror_variables(model: Any) -> None:
    """Replicate variables that were created outside of the scope, such as those of an optimizer passed to `compile`."""
    distribution = keras_private.distribution()
    if not isinstance(distribution, ReplicaDistribution):
        return
    optimizer: Any = getattr(model, "optimizer", None)  # a model that is not compiled has none
    variables: list[Any] = [*model.variables, *model.metrics_variables]
    if isinstance(optimizer, keras_private.keras.optimizers.Optimizer):
        variables += optimizer.variables
    for variable in variables:
        if not is_on(distribution.replicas, variable.value):
            keras_private.lay_out(variable, distribution)


def _building(own: Callable[..., Any]) -> Callable[..., Any]:
    build_all = building_steps(own)

    def build(self: Any, iterator: Any = None, data_batch: Any = None) -> None:
        adapter = getattr(iterator, "data_adapter", None)
        with adapter.building() if isinstance(adapter, DatasetAdapter) else nullcontext():
            build_all(self, iterator, data_batch)
        _mirror_variables(self)

    return build


def _saving(own: Callable[..., Any]) -> Callable[..., Any]:
    """Save without the other workers: Keras creates an optimizer to learn which attributes all of them have."""

    def save(self: Any, *args: Any, **kwargs: Any) -> Any:
        with without_distribution():
            return own(self, *args, **kwargs)

    return save


#: The methods of models that evenfeed replaces, and by what: those that train, and others.
TRAINER_METHODS: Final[dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]]] = {
    "__init__": _remember,
    "fit": _running("train_step"),
    "evaluate": _running("test_step"),
    "predict": _predicting,
    "train_on_batch": _running("train_step"),
    "test_on_batch": _running("test_step"),
    "predict_on_batch": _running("predict_step"),
    "make_predict_function": gathering,
    "_symbolic_build": _building,
}
MODEL_METHODS: Final = {
    "save": _saving,
    "save_weights": _saving,
    "metrics_variables": with_other_optimizers,
}
