"""Keras's layers that work on the host: vocabularies and hashes of text and integers."""

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, final
from typing import cast as typed

import numpy as np

from evenfeed.core import dtypes, side_effects
from evenfeed.core.block import Block, Column, length_of
from evenfeed.core.conversion import Array
from evenfeed.core.errors import described
from evenfeed.core.handles import Handle
from evenfeed.core.lazy_jax import jax
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.side_effects import ProbeAbandoned
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.specs import TensorSpec
from evenfeed.core.structure import DATA, flatten, map_structure
from evenfeed.core.tensor_types import host_tensor
from evenfeed.core.traced.kernel_stages import STAGE, Kernel, results_of
from evenfeed.keras_training import keras_private
from evenfeed.keras_training.host_backend import BACKEND, cast, convert_to_tensor
from evenfeed.keras_training.host_tensorflow import TENSORFLOW, no_initializer
from evenfeed.tensors.device_arrays import is_traced
from evenfeed.text_ops import hashing, numerals

#: Whether one of the layers runs. Host tensors are then tensors to Keras, which takes no mixture of others.
IN_HOST_LAYER: Final[ContextVar[bool]] = ContextVar("IN_HOST_LAYER", default=False)

#: The classes. Subclasses inherit what is replaced.
LAYERS: Final = ("IntegerLookup", "StringLookup", "TextVectorization", "Hashing", "HashedCrossing")


@final
class TensorFlowBackend:
    """Keras's backend, which answers that it is TensorFlow: the layers then take text, and return ragged tensors."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def backend(self) -> str:
        """Return the name of the backend."""
        return "tensorflow"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


def as_result(outputs: Any, dtype: Any = None) -> Any:
    """Return the result of a layer: a host tensor, which keeps 64-bit ids."""
    return outputs if dtype is None else cast(outputs, dtype)


def on_host(own: Callable[..., Any]) -> Callable[..., Any]:
    """Call a layer with values. In a function of a dataset, it becomes a kernel, or the function runs per element."""

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - Python's name
        parts = flatten((args, kwargs), DATA)
        if any(isinstance(part, Handle) or is_traced(part) for part in parts):
            return _in_trace(self, hosted, args, kwargs)
        return hosted(self, *map_structure(_on_host, args, rules=DATA), **kwargs)

    def hosted(layer: Any, *args: Any, **kwargs: Any) -> Any:
        token = IN_HOST_LAYER.set(True)
        try:
            return own(layer, *args, **kwargs)
        finally:
            IN_HOST_LAYER.reset(token)

    return __call__


def _on_host(value: Any) -> Any:
    """Return an array of a device as a host tensor."""
    return host_tensor(np.asarray(value)) if isinstance(value, jax.Array) else value


def _in_trace(
    layer: Any, own: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    if side_effects.here.watcher is None and STAGE.get() is None:
        raise TypeError(
            described(
                f"{type(layer).__name__} works on the host, so it cannot be part of a compiled function.",
                fix="call the layer in dataset.map, and give the model its results.",
            )
        )
    if len(args) == 1 and not kwargs:
        inputs = args[0]
        several = isinstance(inputs, (list, tuple))
        found = results_of(LayerCall(layer, several, own), *(inputs if several else (inputs,)))
        if found is not None:
            return found[0]
    raise ProbeAbandoned(f"it calls the layer {layer.name!r} on computed values")


@final
@dataclass(frozen=True)
class LayerCall(Kernel):
    """Calls a layer on the host.

    Attributes:
        layer: The layer.
        several: Whether it takes a list of tensors.
        own: Keras's `Layer.__call__`.
    """

    stays_on_host: ClassVar[bool] = True

    layer: Any
    several: bool
    own: Callable[..., Any] = field(compare=False)

    def specs(self, *given: Any) -> list[Any]:
        """Call the layer on two small elements. What their results have in common is known.

        Raises:
            TypeError: That does not tell the spec, so the function must run per element.
        """
        if not all(isinstance(spec, TensorSpec) and spec.shape.rank is not None for spec in given):
            raise TypeError(f"The layer {self.layer.name!r} is called on composite tensors.")
        try:
            one, other = (
                self._called([_sample(spec, length) for spec in given]) for length in (2, 3)
            )
        except Exception as error:  # such as a sample that is not in the vocabulary
            raise TypeError(f"The layer {self.layer.name!r} needs values.") from error
        if isinstance(one, (RaggedTensor, SparseTensor)):
            raise TypeError(f"The layer {self.layer.name!r} returns composite tensors.")
        lengths = zip(one.shape, other.shape, strict=True)
        shape = [a if a == b else None for a, b in lengths]
        if _has_open_length(self.layer):
            shape[-1] = None  # samples of a function that splits may have one length
        return [TensorSpec(shape, one.dtype)]

    def run(self, *columns: Column) -> list[Column]:
        rows = Block(columns, length_of(columns[0])).cut_up()
        if all(isinstance(column, np.ndarray) for column in rows.columns) and _is_batchable(
            self.layer, np.ndim(typed("Array", rows.columns[0])) - 1
        ):
            return [np.asarray(self._called(rows.columns))]
        return [[np.asarray(self._called(rows.row(index))) for index in range(rows.length)]]

    def _called(self, parts: Sequence[Any]) -> Any:
        tensors = [host_tensor(np.asarray(part)) for part in parts]
        return self.own(self.layer, tensors if self.several else tensors[0])


def _sample(spec: TensorSpec, length: int) -> Array:
    """Return an element with this length of axes that are open, and this number of words in texts."""
    shape = [length if axis is None else axis for axis in spec.shape.as_list()]
    if spec.dtype != dtypes.string:
        return np.zeros(shape, spec.dtype)
    return np.full(shape, b" ".join([b"a"] * length), object)


def _has_open_length(layer: Any) -> bool:
    """Return True if a result is as long as its longest text."""
    if not isinstance(layer, keras_private.keras.layers.TextVectorization):
        return False
    config = layer.get_config()
    return config["output_mode"] == "int" and config["output_sequence_length"] is None


def _is_batchable(layer: Any, rank: int) -> bool:
    """Return True if the results for stacked elements of this rank are the stacked results."""
    if isinstance(layer, keras_private.keras.layers.TextVectorization):
        return rank == 0 and layer.get_config()["split"] is not None and not _has_open_length(layer)
    return layer.output_mode == "int"


def hashed(layer: Any, values: Any) -> Any:
    """Return the bins of values. Keras's function asks for attributes that NumPy's dtypes do not have."""
    bins, is_mask = layer.num_bins, None
    if layer.mask_value is not None and bins > 1:
        bins -= 1
        is_mask = np.equal(values, convert_to_tensor(layer.mask_value, values.dtype))
    if values.dtype.kind == "f":
        values = cast(values, np.int64)
    if values.dtype != dtypes.string:
        values = numerals.as_string(values)
    if layer.strong_hash:
        found = hashing.to_hash_bucket_strong(values, bins, key=layer.salt)
    else:
        found = hashing.to_hash_bucket_fast(values, bins)
    return found if is_mask is None else host_tensor(np.where(is_mask, 0, found + 1))


def replacing_hash(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that replaces `Hashing._hash_values_to_bins`."""
    del own
    return hashed


def install_host_layers() -> None:
    """Let the layers work on the host."""
    keras_private.replace_tensorflow_of_layers(
        TENSORFLOW, BACKEND, TensorFlowBackend, as_result, no_initializer
    )
    layers = keras_private.keras.layers
    for name in LAYERS:
        keras_private.replace_member(getattr(layers, name), "__call__", on_host)
    keras_private.replace_member(layers.Hashing, "_hash_values_to_bins", replacing_hash)
