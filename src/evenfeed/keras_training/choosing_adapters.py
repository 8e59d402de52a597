"""Chooses how Keras reads its input: datasets by evenfeed, and arrays too if several workers share them."""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.callsite import where_called
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.core.specs import TensorSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.dataset import Dataset
from evenfeed.feeding.distributed_dataset import DistributedDataset
from evenfeed.keras_training import keras_private
from evenfeed.keras_training.building_steps import current_step
from evenfeed.keras_training.dataset_adapter import DatasetAdapter
from evenfeed.keras_training.distribution import current_replicas
from evenfeed.keras_training.text_inputs import TAKES_TEXT, is_text, with_text

# The registries in which `warnings` records which lines have been warned about, by file.
_warned: Final[dict[str, dict[Any, Any]]] = {}


def chosen_adapter(own: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Return the adapter for the arguments of `fit`, `evaluate` or `predict`.

    Args:
        own: Keras's function that chooses.
        given: Its arguments by name.
    """
    x = given["x"]
    if TAKES_TEXT.get() and current_step() == "train_step" and _has_text(x):
        _warn_of_text()
    if isinstance(x, (Dataset, DistributedDataset)):
        kind = type(x).__name__
        for name, what in (("y", "the targets"), ("sample_weight", "the sample weights")):
            if given[name] is not None:
                keras_private.refuse_argument(name, what, kind)
        return DatasetAdapter(x, given["class_weight"])
    if TAKES_TEXT.get():
        given = {**given, "x": with_text(x)}
    replicas = current_replicas()
    if replicas is None or not replicas.spans or isinstance(x, keras_private.DataAdapter):
        return own(**given)
    if keras_private.are_arrays((x, given["y"], given["sample_weight"])):
        return DatasetAdapter(_dataset_of(given), given["class_weight"])
    raise TypeError(
        described(
            f"Several workers can share a Dataset or arrays, but got {shortened(x)}.",
            fix="pass an evenfeed.data.Dataset; Dataset.from_generator(function, output_signature=...) makes one of a "
            "generator.",
        )
    )


def _has_text(x: Any) -> bool:
    if isinstance(x, Dataset):
        parts: Any = flatten(x.element_spec, DATA)
        return any(isinstance(part, TensorSpec) and part.dtype == dtypes.string for part in parts)
    return any(map(is_text, flatten(x, DATA)))


def _warn_of_text() -> None:
    origin = where_called()
    filename, line = (origin.filename, origin.line) if origin else ("<unknown>", 0)
    text = (
        "Keras does not compile a model that takes text, so that each step of training is slow. Train the model of "
        "numbers instead, on dataset.map(lambda text, label: (layer(text), label)), and put the layer in front of it "
        "afterwards: see docs/keras.md."
    )
    warnings.warn_explicit(
        text, UserWarning, filename, line, registry=_warned.setdefault(filename, {})
    )


def _dataset_of(given: dict[str, Any]) -> Dataset:
    """Return arrays as a dataset of global batches, so that all workers see them in the same order."""
    parts = [_as_tuples(given[name]) for name in ("x", "y", "sample_weight")]
    while parts[-1] is None:
        parts.pop()
    dataset = Dataset.from_tensor_slices(tuple(parts))
    rows, size = len(dataset), given["batch_size"]
    if size is None:
        steps = given["steps_per_epoch"]
        size = math.ceil(rows / steps) if steps else 32
    if given["shuffle"]:
        dataset = dataset.shuffle(rows)
    return dataset.batch(size)


def _as_tuples(value: Any) -> Any:
    """Return a structure of arrays with tuples for lists, which a dataset would read as single tensors."""
    if value is None:
        return None
    if isinstance(value, dict):
        named = cast("dict[str, Any]", value)
        return {name: _as_tuples(part) for name, part in named.items()}
    if isinstance(value, (list, tuple)):
        return tuple(map(_as_tuples, cast("Sequence[Any]", value)))
    return np.asarray(value)
