"""Structures of tensors that functions of branches and loops return."""

from typing import Any

from evenfeed.core.structure import NEST, flatten, map_structure
from evenfeed.tensors.control.tensor_array import TensorArray
from evenfeed.tensors.creation import convert_to_tensor
from evenfeed.tensors.operands import is_text


def tensors_of(value: Any) -> Any:
    """Convert the parts of a structure to tensors. None and TensorArrays stay what they are."""
    return map_structure(_tensor, value, rules=NEST)


def parts_of(value: Any) -> list[Any]:
    """Return the tensors of a structure."""
    return [_tensor(part) for part in flatten(value, NEST)]


def is_for_host(value: Any) -> bool:
    """Return True if a structure contains what JAX cannot hold: text, or a TensorArray."""
    return any(isinstance(part, TensorArray) or is_text(part) for part in parts_of(value))


def _tensor(part: Any) -> Any:
    return part if part is None or isinstance(part, TensorArray) else convert_to_tensor(part)
