"""Small arrays as data that JSON can hold, exactly, for the states of iterators."""

import base64
from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, shortened
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import NoneTensorSpec, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, opened


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


_LEAF: Final = "."


def structure_to_json(structure: Any) -> Any:
    """Return how values are nested, with a dot for each of them."""
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
    """Return `leaves` nested as `structure_to_json` saw it; namedtuples are new classes of their names."""
    return _nested(data, iter(leaves))


def part_to_json(spec: TypeSpec) -> Any:
    """Return the spec of one part: None, or its dtype and shape."""
    if isinstance(spec, NoneTensorSpec):
        return None
    if isinstance(spec, TensorSpec):
        shape = None if spec.shape.rank is None else list(spec.shape)
        return {"dtype": dtypes.name_of(spec.dtype), "shape": shape}
    raise InvalidArgumentError(
        f"Files hold tensors, but a part of the elements is {shortened(spec)}.",
        fix="turn it into tensors first: flat_map takes datasets apart, map opens an Optional.",
    )


def part_from_json(data: Any) -> TypeSpec:
    """Return the spec that `part_to_json` was given."""
    if data is None:
        return NoneTensorSpec()
    return TensorSpec(data["shape"], dtypes.as_dtype(data["dtype"]))


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
                f"The elements are objects of a class, {name}, which a file does not hold.",
                fix=f"pass element_spec={name}(…) with the spec of each field.",
            )
        case _:
            raise ValueError(f"{shortened(data)} is no structure")


def _key(key: Any) -> Any:
    if type(key) in (str, int):
        return key
    raise InvalidArgumentError(
        f"Files hold dicts with keys of text or whole numbers, but got {shortened(key)}.",
        fix="map the elements to dicts with keys of text first.",
    )
