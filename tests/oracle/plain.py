"""Turns the results of either library into JSON data, so that they can be kept and compared."""

import dataclasses
import math
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Raised:
    """A call that raised: the names of the error's classes, its own first."""

    names: tuple[str, ...]


def plain(value: Any) -> Any:
    """Return `value` as JSON data; what means the same in both libraries is the same data."""
    match value:
        case Raised():
            return {"raises": value.names[0]}
        case np.generic():  # before Python's own: np.float64 is a float
            return _array(value)
        case None | bool() | int() | str():
            return value
        case float():
            return _float(value)
        case bytes():
            return {"bytes": _text(value)}
        case list():
            return [plain(part) for part in value]
        case tuple():
            return _tuple(value)
        case Mapping():
            return {
                type(value).__name__: [[plain(key), plain(part)] for key, part in value.items()]
            }
        case deque():
            return {"deque": [plain(part) for part in value]}
        case _:
            return _object(value)


def _object(value: Any) -> Any:
    name = type(value).__name__
    if name.endswith("Spec") or name == "TensorShape":
        return repr(value)
    if isinstance(value, np.dtype) or name == "DType":
        return f"dtype {_dtype_name(value)}"
    if name == "RaggedTensor":
        held = [plain(part) for part in (value.flat_values, *value.nested_row_splits)]
        return {"ragged": held, "shape": repr(value.shape)}
    if name == "SparseTensor":
        return {
            "sparse": [plain(part) for part in (value.indices, value.values, value.dense_shape)]
        }
    fields = getattr(value, "__attrs_attrs__", None) or getattr(value, "__dataclass_fields__", None)
    if fields:
        return {name: [[field, plain(getattr(value, field))] for field in _names(fields)]}
    return _array(value.numpy() if hasattr(value, "numpy") else value)


def _tuple(value: Any) -> Any:
    parts = [plain(part) for part in value]
    names = getattr(value, "_fields", None)
    if names is None:
        return {"tuple": parts}
    return {type(value).__name__: [list(pair) for pair in zip(names, parts, strict=True)]}


def _names(fields: Any) -> list[str]:
    return list(fields) if isinstance(fields, dict) else [field.name for field in fields]


def _array(value: Any) -> Any:
    array = np.asarray(value, object if isinstance(value, bytes) else None)
    data = [_number(number) for number in array.reshape(-1).tolist()]
    return {"dtype": _dtype_name(array.dtype), "shape": list(array.shape), "data": data}


def _number(number: Any) -> Any:
    match number:
        case bool() | int() | str():
            return number
        case bytes():
            return _text(number)
        case complex():
            return [_float(number.real), _float(number.imag)]
        case _:  # also the scalars of ml_dtypes
            return _float(float(number))


def _float(number: float) -> float | str:
    return number if math.isfinite(number) else str(number)


def _text(data: bytes) -> str:
    return data.decode(errors="backslashreplace")


def _dtype_name(dtype: Any) -> str:
    return "string" if dtype.name == "object" else dtype.name
