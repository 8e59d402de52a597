"""Keras models, optimizers and metrics in `evenfeed.train.Checkpoint`.

Names are those of attributes, as in TensorFlow, so variables of evenfeed in a layer are saved too. A layer that no attribute
has, as in a Sequential model, is named by its place: Keras numbers its own names on (`dense`, `dense_1`), so another build of
the same model has other ones.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, cast, final

from evenfeed.checkpoints.tracking import VALUE, ArrayInfo, ArrayLeaf, Tracked, tracked
from evenfeed.core.errors import described
from evenfeed.keras_training import keras_private


def track_keras() -> None:
    """Let checkpoints save the objects of Keras."""
    variable, metric, layer, optimizer = keras_private.SAVED_CLASSES
    tracked.register(variable, _variable)
    tracked.register(metric, _metric)
    tracked.register(layer, partial(_built, _of_layer))
    tracked.register(optimizer, partial(_built, _of_optimizer))


def _variable(variable: Any) -> Tracked:
    return Tracked(leaf=KerasVariableLeaf(variable))


def _metric(metric: Any) -> Tracked:
    return Tracked(partial(_of_metric, metric))


def _built(children: Callable[[Any], dict[str, Any]], part: Any) -> Tracked:
    """Return what is saved of a layer or an optimizer, which may create its variables later."""
    later = None if part.built else partial(keras_private.await_build, part)
    return Tracked(partial(children, part), await_children=later)


def _of_metric(metric: Any) -> dict[str, Any]:
    return _named(metric.variables)


def _of_layer(layer: Any) -> dict[str, Any]:
    # The places of its layers are known when it is built.
    variables, seeds, layers = keras_private.parts_of_layer(layer) if layer.built else ([], [], [])
    parts = {id(part) for part in (*variables, *layers)}
    found, named = dict[str, Any](), set[int]()
    for name, value in keras_private.attributes_of_layer(layer).items():
        held = _parts_in(value, parts)
        if held:
            found[_without_underscore(name, value)] = value
            named |= held
    found |= _named(variable for variable in variables if id(variable) not in named)
    found |= {f"seed_{place}": state for place, state in enumerate(seeds)}
    return found | {
        f"layer_{place}": inner for place, inner in enumerate(layers) if id(inner) not in named
    }


def _parts_in(value: Any, parts: set[int]) -> set[int]:
    """Return what the value of an attribute is or holds: parts of a layer, and objects of evenfeed."""
    if isinstance(value, dict):
        entries = cast("dict[Any, Any]", value)
        if not all(isinstance(key, str) for key in entries):  # a checkpoint has names only
            return set()
        value = list(entries.values())
    if isinstance(value, (list, tuple)):
        entries = cast("Iterable[Any]", value)
        return set[int]().union(*(_parts_in(entry, parts) for entry in entries))
    is_own = tracked(value) is not None and not isinstance(value, keras_private.SAVED_CLASSES)
    return {id(value)} if is_own or id(value) in parts else set()


def _without_underscore(name: str, value: Any) -> str:
    """Return the name by which the users of a layer know an attribute: Dense has its kernel as `_kernel`."""
    public = name.removeprefix("_")
    is_own_name = isinstance(value, keras_private.keras.Variable) and value.name == public
    return public if is_own_name else name


def _of_optimizer(optimizer: Any) -> dict[str, Any]:
    # Those of a weight carry the name of its layer, which another build of the model does not have.
    return {str(place): variable for place, variable in enumerate(optimizer.variables)}


def _named(variables: Iterable[Any]) -> dict[str, Any]:
    """Return variables by name. A name that is there already gets a number."""
    found: dict[str, Any] = {}
    for variable in variables:
        name = variable.name
        found[name if name not in found else f"{name}_{len(found)}"] = variable
    return found


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
        variable, info = self._variable, found[VALUE]
        shape, dtype = tuple(variable.shape), keras_private.own_dtype(variable)
        if (shape, dtype) != (info.shape, info.dtype):
            raise ValueError(
                described(
                    f"The variable {variable.path!r} is {dtype} of shape {shape}, but the checkpoint has {info.dtype} "
                    f"of shape {info.shape} for it, at {where!r}.",
                    fix="build the model as in the program that saved it.",
                )
            )
        return {VALUE: keras_private.sharding_of(variable)}

    def put(self, arrays: Mapping[str, Any]) -> None:
        keras_private.restart_from(self._variable, arrays[VALUE])
