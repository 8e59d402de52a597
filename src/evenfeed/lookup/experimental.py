"""Tables that change: TensorFlow's `tf.lookup.experimental`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.lookup_tables.mutable_tables import DenseHashTable, MutableHashTable

__all__ = [
    "DenseHashTable",
    "MutableHashTable",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(__name__, __all__, "Use a dict inside evenfeed.py_function.")
