"""Converts arrays, structures and specs to JSON values and back.

Iterator states store small arrays this way, without loss. Files store the structure and the specs of their elements.
"""

import base64
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, shortened
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_specs import SparseTensorSpec
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.specs import NoneTensorSpec, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, opened


def to_json(value: Any) -> dict[str, Any]:
    """Convert an array, or a ragged or sparse tensor, to a dict that JSON can hold."""
    if isinstance(value, RaggedTensor):
        splits, length = to_json(value.row_splits), value.uniform_row_length
        uniform = None if length is None else int(length)
        return {"values": to_json(value.values), "splits": splits, "uniform": uniform}
    if isinstance(value, SparseTensor):
        return {
            "sparse": [to_json(one) for one in (value.indices, value.values, value.dense_shape)]
        }
    array = np.asarray(value)
    head = {"dtype": dtypes.name_of(array.dtype), "shape": list(array.shape)}
    if array.dtype == dtypes.string:
        return head | {"items": [base64.b64encode(item).decode() for item in array.flat]}
    return head | {"bytes": base64.b64encode(array.tobytes()).decode()}


def from_json(data: dict[str, Any]) -> Any:
    """Convert the result of `to_json` back to a value."""
    if "splits" in data:
        inner = from_json(data["values"])
        return RaggedTensor(inner, from_json(data["splits"]), data["uniform"])
    if "sparse" in data:
        return SparseTensor(*map(from_json, data["sparse"]))
    if "items" in data:
        flat: Array = np.empty(len(data["items"]), dtypes.string)
        flat[:] = [base64.b64decode(item) for item in data["items"]]
        return flat.reshape(data["shape"])
    values: Array = np.frombuffer(base64.b64decode(data["bytes"]), dtypes.as_dtype(data["dtype"]))
    return values.reshape(data["shape"]).copy()


_LEAF: Final = "."


def structure_to_json(structure: Any) -> Any:
    """Convert a structure to JSON, with a dot for each leaf."""
    branch = opened(structure, DATA)
    if branch is None:
        return _LEAF
    parts = [structure_to_json(part) for part in branch.parts]
    if isinstance(structure, Mapping):
        keys = sorted(cast("Mapping[Any, Any]", structure))
        return {"dict": [[_key(key), part] for key, part in zip(keys, parts, strict=True)]}
    if not branch.named:
        return {"tuple": parts}
    kind = "namedtuple" if isinstance(structure, tuple) else "class"
    fields = [label[1:] for label in branch.labels]
    return {kind: type(cast("Any", structure)).__name__, "fields": fields, "parts": parts}


def structure_from_json(data: Any, leaves: Sequence[Any]) -> Any:
    """Nest `leaves` in a structure from `structure_to_json`. Namedtuples get new classes with the same names."""
    return _nested(data, iter(leaves))


def part_to_json(spec: TypeSpec) -> Any:
    """Convert the spec of one part to JSON: None, or its dtype and shape."""
    if isinstance(spec, NoneTensorSpec):
        return None
    if isinstance(spec, TensorSpec):
        shape = None if spec.shape.rank is None else list(spec.shape)
        return {"dtype": dtypes.name_of(spec.dtype), "shape": shape}
    if isinstance(spec, RaggedTensorSpec | SparseTensorSpec):
        return {"composite": _composite_to_json(spec)}
    raise InvalidArgumentError(
        f"Files hold tensors, but a part of the elements is {shortened(spec)}.",
        fix="convert it to tensors first, in a map: x.get_value() for an Optional. Use flat_map for nested datasets.",
    )


def part_from_json(data: Any) -> TypeSpec:
    """Convert the result of `part_to_json` back to a spec."""
    if data is None:
        return NoneTensorSpec()
    if "composite" in data:
        return _composite_from_json(data["composite"])
    return TensorSpec(data["shape"], dtypes.as_dtype(data["dtype"]))


def _composite_to_json(spec: RaggedTensorSpec | SparseTensorSpec) -> dict[str, Any]:
    shape = None if spec.shape.rank is None else list(spec.shape)
    whole = {"dtype": dtypes.name_of(spec.dtype), "shape": shape}
    if isinstance(spec, SparseTensorSpec):
        return whole
    splits = dtypes.name_of(spec.row_splits_dtype)
    return {**whole, "ragged_rank": spec.ragged_rank, "row_splits_dtype": splits}


def _composite_from_json(data: dict[str, Any]) -> TypeSpec:
    dtype = dtypes.as_dtype(data["dtype"])
    if "ragged_rank" not in data:
        return SparseTensorSpec(data["shape"], dtype)
    splits = dtypes.as_dtype(data["row_splits_dtype"])
    return RaggedTensorSpec(data["shape"], dtype, data["ragged_rank"], splits)


def _nested(data: Any, leaves: Iterator[Any]) -> Any:
    match data:
        case "." if data == _LEAF:
            return next(leaves)
        case {"tuple": parts}:
            return tuple(_nested(part, leaves) for part in parts)
        case {"dict": pairs}:
            return {key: _nested(part, leaves) for key, part in pairs}
        case {"namedtuple": str(name), "fields": fields, "parts": parts}:
            kind: Any = namedtuple(name, fields)  # pyright: ignore[reportUntypedNamedTuple]
            return kind(*(_nested(part, leaves) for part in parts))
        case {"class": str(name)}:
            raise InvalidArgumentError(
                f"The elements are objects of the class {name}, but a file does not store classes.",
                fix=f"pass element_spec={name}(…) with the spec of each field.",
            )
        case _:
            raise ValueError(f"{shortened(data)} is not a structure")


def _key(key: Any) -> Any:
    if type(key) in (str, int):
        return key
    raise InvalidArgumentError(
        f"In a file, dict keys must be strings or integers, but got {shortened(key)}.",
        fix="map the elements to dicts with string keys first.",
    )
