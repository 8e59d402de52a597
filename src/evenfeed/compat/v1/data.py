"""TensorFlow 1's `tf.compat.v1.data`: the names of `tf.data`, and functions of datasets and iterators."""

from typing import TYPE_CHECKING, Any

from evenfeed import nest
from evenfeed.core.publish import publish, refusal
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TensorSpec
from evenfeed.core.tensor_types import Tensor
from evenfeed.data import (
    AUTOTUNE,
    INFINITE_CARDINALITY,
    UNKNOWN_CARDINALITY,
    Dataset,
    FixedLengthRecordDataset,
    Iterator,
    Options,
    TextLineDataset,
    TFRecordDataset,
    experimental,
)

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "FixedLengthRecordDataset",
    "Iterator",
    "Options",
    "TFRecordDataset",
    "TextLineDataset",
    "experimental",
    "get_output_classes",
    "get_output_shapes",
    "get_output_types",
    "make_one_shot_iterator",
]


def make_one_shot_iterator(dataset: Dataset) -> Any:
    """Return an iterator over a dataset: `iter(dataset)`.

    Examples:
        >>> import evenfeed as tf
        >>> iterator = tf.compat.v1.data.make_one_shot_iterator(tf.data.Dataset.range(3))
        >>> int(iterator.get_next())
        0
    """
    return iter(dataset)


def get_output_types(dataset_or_iterator: Any) -> Any:
    """Return the dtypes of an element; `element_spec` says more.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.data.get_output_types(tf.data.Dataset.range(3)).name
        'int64'
    """
    return nest.map_structure(_dtype, dataset_or_iterator.element_spec)


def get_output_shapes(dataset_or_iterator: Any) -> Any:
    """Return the shapes of an element; `element_spec` says more.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.data.get_output_shapes(tf.data.Dataset.range(3).batch(2))
        TensorShape([None])
    """
    return nest.map_structure(_shape, dataset_or_iterator.element_spec)


def get_output_classes(dataset_or_iterator: Any) -> Any:
    """Return the classes of an element: `evenfeed.Tensor`, or the spec of a ragged or sparse tensor.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.data.get_output_classes(tf.data.Dataset.range(3)).__name__
        'Tensor'
    """
    return nest.map_structure(_class, dataset_or_iterator.element_spec)


def _dtype(spec: Any) -> Any:
    return spec.dtype


def _shape(spec: Any) -> TensorShape:
    return TensorShape(spec.shape)


def _class(spec: Any) -> Any:
    return Tensor if isinstance(spec, TensorSpec) else spec


publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
