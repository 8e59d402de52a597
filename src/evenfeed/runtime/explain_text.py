"""How explain() formats nodes, sizes, specs and rates."""

import re
from dataclasses import MISSING, Field, fields
from typing import Any, Final, cast

from evenfeed.core.dtypes import name_of
from evenfeed.core.specs import INFINITE, UNKNOWN, NoneTensorSpec, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.plan.elementwise import Map, WithKeys
from evenfeed.plan.node import Node
from evenfeed.runtime.functions.called_functions import functions_of

# Fields that are not arguments of the method, or are shown elsewhere.
_NOT_SHOWN: Final = {"origin", "seed", "num_parallel_calls", "processes", "size", "structure"}


def label_of(node: Node, parts: list[int]) -> str:
    """Return the call that made a node, such as `batch(32)`.

    Args:
        node: The node.
        parts: The numbers of the steps that it reads, unless that is just the previous step.
    """
    numbers = [f"step {part}" for part in parts]
    return f"{method_of(node)}({', '.join([*numbers, *_functions(node), *_arguments(node)])})"


def method_of(node: Node) -> str:
    """Return the name of the method that made a node."""
    return "random_map" if is_random_map(node) else node.facts.method or method_for(type(node))


def method_for(kind: type[Node]) -> str:
    """Return the name of the method that makes nodes of this type."""
    return kind.FACTS.method or re.sub(r"(?<=.)(?=[A-Z])", "_", kind.__name__).lower()


def is_random_map(node: Node) -> bool:
    """Return True if a node is the second of the two that random_map makes."""
    return isinstance(node, Map) and isinstance(node.child, WithKeys)


def _functions(node: Node) -> list[str]:
    return [function.name for function in functions_of(node)]


def _arguments(node: Node) -> list[str]:
    if node.arguments_shown is not None:
        return node.arguments_shown
    named = [(part, getattr(node, part.name)) for part in fields(node)]
    return [_argument(part, value) for part, value in named if _is_shown(part, value)]


def _is_shown(part: Field[Any], value: Any) -> bool:
    needed = part.default is MISSING or part.default != value
    return _is_plain(value) and needed and part.repr and part.name not in _NOT_SHOWN


def _is_plain(value: Any) -> bool:
    if type(value) is tuple:
        numbers = cast("tuple[Any, ...]", value)
        return bool(numbers) and all(type(number) in (int, float) for number in numbers)
    return type(value) in (int, float, str, bool)


def _argument(part: Field[Any], value: Any) -> str:
    shown = repr(cast("object", value))
    return f"{part.name}={shown}" if part.kw_only or type(value) is bool else shown


def size_text(size: int) -> str:
    """Return the number of elements in words."""
    if size in (INFINITE, UNKNOWN):
        return "endless" if size == INFINITE else "length unknown"
    return counted(size, "element")


def counted(count: int, noun: str) -> str:
    """Return a count with its noun: `1 row`, `2,000 rows`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def spec_text(spec: Any) -> str:
    """Return the specs of an element in short form: `((28, 28) uint8, () int32)`."""
    shown = [_Shown(part) for part in flatten(spec, DATA)]
    return repr(pack(spec, shown, DATA))


class _Shown:
    """Formats one spec inside the structure of an element."""

    def __init__(self, spec: TypeSpec) -> None:
        self._spec = spec

    def __repr__(self) -> str:
        match self._spec:
            case TensorSpec() as spec:
                return f"{_shape_text(spec)} {name_of(spec.dtype)}"
            case NoneTensorSpec():
                return "None"
            case other:
                return type(other).__name__.removesuffix("Spec").lower()


def _shape_text(spec: TensorSpec) -> str:
    if spec.shape.rank is None:
        return "(...)"
    dims = ["?" if dim is None else str(dim) for dim in spec.shape]
    return f"({', '.join(dims)}{',' if len(dims) == 1 else ''})"


def rate_text(rate: float, unit: str) -> str:
    """Return a rate with two or three digits: `4.1 M rows/s`."""
    for limit, prefix in ((1e9, "G "), (1e6, "M "), (1e3, "k ")):
        if rate >= 0.9995 * limit:
            return f"{rate / limit:.3g} {prefix}{unit}/s"
    return f"{rate:.3g} {unit}/s"
