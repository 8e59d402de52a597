"""Small arrays as data that JSON can hold, exactly, for the states of iterators."""

import base64
from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array


def to_json(array: Array) -> dict[str, Any]:
    """Return an array as a dict of text and numbers."""
    array = np.asarray(array)
    head = {"dtype": dtypes.name_of(array.dtype), "shape": list(array.shape)}
    if array.dtype == dtypes.string:
        return head | {"items": [base64.b64encode(item).decode() for item in array.flat]}
    return head | {"bytes": base64.b64encode(array.tobytes()).decode()}


def from_json(data: dict[str, Any]) -> Array:
    """Return the array that `to_json` was given."""
    if "items" in data:
        flat: Array = np.empty(len(data["items"]), dtypes.string)
        flat[:] = [base64.b64decode(item) for item in data["items"]]
        return flat.reshape(data["shape"])
    values: Array = np.frombuffer(base64.b64decode(data["bytes"]), dtypes.as_dtype(data["dtype"]))
    return values.reshape(data["shape"]).copy()
