"""Keras models, optimizers and metrics in `evenfeed.train.Checkpoint`.

Names come from the walk over the layers: Keras numbers its own names on (`dense`, `dense_1`), so another build of the same
model has other ones.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, final

from evenfeed.checkpoints.tracking import VALUE, ArrayInfo, ArrayLeaf, Tracked, tracked
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.keras_training import keras_private


def track_keras() -> None:
    """Let checkpoints save the objects of Keras."""
    keras = keras_private.keras
    tracked.register(keras.Variable, _variable)
    for kind, children in (
        (keras.Layer, _of_layer),
        (keras.optimizers.Optimizer, _of_optimizer),
        (keras.metrics.Metric, _of_metric),
    ):
        tracked.register(kind, partial(_parent, children))


def _variable(variable: Any) -> Tracked:
    return Tracked(leaf=KerasVariableLeaf(variable))


def _parent(children: Callable[[Any], dict[str, Any]], value: Any) -> Tracked:
    return Tracked(partial(children, value))


def _of_metric(metric: Any) -> dict[str, Any]:
    return _named(metric.variables)


def _of_layer(layer: Any) -> dict[str, Any]:
    if not layer.built:
        raise _unbuilt(f"layer {layer.name!r}", "call the model on a batch")
    variables, seeds, layers = keras_private.parts_of_layer(layer)
    found = _named(variables)
    found |= {f"seed_{place}": state for place, state in enumerate(seeds)}
    return found | {f"layer_{place}": inner for place, inner in enumerate(layers)}


def _of_optimizer(optimizer: Any) -> dict[str, Any]:
    if not optimizer.built:
        raise _unbuilt("optimizer", "call optimizer.build(model.trainable_variables)")
    # Those of a weight carry the name of its layer, which another build of the model does not have.
    return {str(place): variable for place, variable in enumerate(optimizer.variables)}


def _named(variables: Iterable[Any]) -> dict[str, Any]:
    """Return variables by name. A name that is there already gets a number."""
    found: dict[str, Any] = {}
    for variable in variables:
        name = variable.name
        found[name if name not in found else f"{name}_{len(found)}"] = variable
    return found


def _unbuilt(what: str, fix: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"The {what} has no variables yet, so a Checkpoint cannot save or restore them.",
        fix=f"{fix} first.",
    )


@final
class KerasVariableLeaf(ArrayLeaf):
    """The value of a Keras variable. It is restored to where the variable is."""

    def __init__(self, variable: Any) -> None:
        self._variable = variable

    def arrays(self) -> dict[str, Any]:
        return {VALUE: self._variable.value}

    def targets(self, found: Mapping[str, ArrayInfo], where: str) -> dict[str, Any]:
        if VALUE not in found:
            return {}
        own: Any = self._variable.value
        info = found[VALUE]
        if (tuple(own.shape), own.dtype.name) != (info.shape, info.dtype):
            raise ValueError(
                described(
                    f"The variable {self._variable.path!r} is {own.dtype.name} of shape {tuple(own.shape)}, but the "
                    f"checkpoint has {info.dtype} of shape {info.shape} for it, at {where!r}.",
                    fix="build the model as in the program that saved it.",
                )
            )
        return {VALUE: own.sharding if own.sharding.num_devices > 1 else None}

    def put(self, arrays: Mapping[str, Any]) -> None:
        self._variable.assign(arrays[VALUE])
