"""Input pipelines: TensorFlow's `tf.data`."""

from typing import TYPE_CHECKING, Final

from evenfeed.core.iteration import Iterator
from evenfeed.core.publish import publish, refusal
from evenfeed.core.specs import INFINITE, UNKNOWN
from evenfeed.data import experimental
from evenfeed.dataset import Dataset
from evenfeed.dataset.face import NumpyIterator
from evenfeed.dataset.file_readers import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset
from evenfeed.plan.buffering import AUTOTUNE
from evenfeed.plan.options import Options, ThreadingOptions
from evenfeed.plan.windows import DatasetSpec

#: The result of `cardinality()` for an infinite dataset.
INFINITE_CARDINALITY: Final = INFINITE

#: The result of `cardinality()` if the size is not known before the data is read.
UNKNOWN_CARDINALITY: Final = UNKNOWN

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "DatasetSpec",
    "FixedLengthRecordDataset",
    "Iterator",
    "NumpyIterator",
    "Options",
    "TFRecordDataset",
    "TextLineDataset",
    "ThreadingOptions",
    "experimental",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
