"""Tables that map keys to values: TensorFlow's `tf.lookup`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import namespaces, publish, refusal
from evenfeed.lookup_tables.initializers import (
    KeyValueTensorInitializer,
    TextFileIndex,
    TextFileInitializer,
)
from evenfeed.lookup_tables.tables import StaticHashTable, StaticVocabularyTable

__all__ = [
    "KeyValueTensorInitializer",
    "StaticHashTable",
    "StaticVocabularyTable",
    "TextFileIndex",
    "TextFileInitializer",
    "experimental",
]

publish(__name__, [name for name in __all__ if name in globals()], globals())

if TYPE_CHECKING:
    from evenfeed.lookup import experimental
else:
    __getattr__ = namespaces(
        __name__,
        {"experimental"},
        refusal(__name__, __all__, "Use a dict inside evenfeed.py_function."),
    )
