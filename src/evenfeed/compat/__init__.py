"""Names of other versions of TensorFlow, and conversions of text: TensorFlow's `tf.compat`."""

from typing import TYPE_CHECKING

import evenfeed
from evenfeed.compat import v1
from evenfeed.core.publish import publish, refusal
from evenfeed.core.text.string_types import (
    as_bytes,
    as_str,
    as_str_any,
    as_text,
    bytes_or_text_types,
    complex_types,
    dimension_value,
    integral_types,
    path_to_str,
    real_types,
)

__all__ = [
    "as_bytes",
    "as_str",
    "as_str_any",
    "as_text",
    "bytes_or_text_types",
    "complex_types",
    "dimension_value",
    "integral_types",
    "path_to_str",
    "real_types",
    "v1",
]

#: TensorFlow 2: evenfeed itself. It is not in `__all__`, so that nobody who walks over the namespaces walks in a circle.
v2 = evenfeed

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
