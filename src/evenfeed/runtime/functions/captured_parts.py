"""Functions inside a function that makes datasets, which use parts of its element.

In `flat_map(lambda x: Dataset.range(9).map(lambda y: y + x))` the inner function captures `x`. While the outer one is
called with placeholders, the values that they stand for become arguments of the inner one.
"""

from collections.abc import Callable
from types import CellType, FunctionType
from typing import Any

from evenfeed.plan.node import Node
from evenfeed.plan.templates import PartHandle, beside_parts
from evenfeed.runtime.functions.calls import bound


def captured(child: Node, function: Callable[..., Any]) -> tuple[Node, Callable[..., Any]] | None:
    """Return the elements of `child` beside what a function captures, and the function of both.

    None if it captures no placeholder.
    """
    parts = _captured_parts(function)
    if not parts:
        return None
    spread = type(child.element_spec) is tuple
    return beside_parts(child, parts), _with_parts(function, parts, spread=spread)


def without_parts(element: Any, values: tuple[Any, ...]) -> Any:
    """Return the element alone."""
    del values
    return element


def _captured_parts(function: object) -> list[PartHandle]:
    """Return the placeholders in the closure of a function."""
    cells = (function.__closure__ or ()) if isinstance(function, FunctionType) else ()
    values = {id(value): value for value in map(_content, cells)}
    return [value for value in values.values() if isinstance(value, PartHandle)]


def _with_parts(
    function: Callable[..., Any], parts: list[PartHandle], *, spread: bool
) -> Callable[..., Any]:
    """Return a function of an element and of the values of the captured parts.

    Args:
        function: The function that captures them.
        parts: The placeholders.
        spread: Whether the function gets the components of an element as separate arguments.
    """
    assert isinstance(function, FunctionType)
    places = {id(part): place for place, part in enumerate(parts)}

    def called(function: FunctionType, element: Any, values: tuple[Any, ...]) -> Any:
        filled = _rebound(function, {key: values[place] for key, place in places.items()})
        return filled(*element) if spread else filled(element)

    return bound(called, function)


def _rebound(function: FunctionType, values: dict[int, Any]) -> FunctionType:
    """Return the function with other values in its closure, for the objects with these ids."""
    cells = tuple(
        CellType(values[id(_content(cell))]) if id(_content(cell)) in values else cell
        for cell in function.__closure__ or ()
    )
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, cells
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is assigned later
        return None
