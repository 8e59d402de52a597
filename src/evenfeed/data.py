"""Input pipelines: TensorFlow's `tf.data`."""

from typing import TYPE_CHECKING, Final

from evenfeed.core.cardinality import INFINITE, UNKNOWN
from evenfeed.core.publish import publish, refusal
from evenfeed.dataset import Dataset

INFINITE_CARDINALITY: Final = INFINITE
UNKNOWN_CARDINALITY: Final = UNKNOWN

__all__ = ["INFINITE_CARDINALITY", "UNKNOWN_CARDINALITY", "Dataset"]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(__name__, __all__, "ARCHITECTURE.md says what is still to come.")
