"""Functions inside a function that makes datasets, which use parts of its element.

In `flat_map(lambda x: Dataset.range(9).map(lambda y: y + x))` the inner function captures `x`. While the outer one is
called with placeholders, the values that they stand for become arguments of the inner one.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from types import CellType, FunctionType
from typing import Any, cast

from evenfeed.plan.node import Node
from evenfeed.plan.templates import PartHandle, as_part, beside_parts
from evenfeed.runtime.functions.calls import bound


def captured(child: Node, function: Callable[..., Any]) -> tuple[Node, Callable[..., Any]] | None:
    """Return the elements of `child` beside what a function captures, and the function of both.

    None if it captures no placeholder.
    """
    parts = _captured_parts(function)
    if not parts:
        return None
    spread = type(child.element_spec) is tuple
    return beside_parts(child, list(parts.values())), _with_parts(function, parts, spread=spread)


def without_parts(element: Any, values: tuple[Any, ...]) -> Any:
    """Return the element alone."""
    del values
    return element


def _captured_parts(function: object) -> dict[int, PartHandle]:
    """Return the placeholders for values in the closure of a function, by the ids of these values."""
    cells = (function.__closure__ or ()) if isinstance(function, FunctionType) else ()
    values = {id(value): as_part(value) for cell in cells for value in _values(_content(cell))}
    return {key: part for key, part in values.items() if isinstance(part, PartHandle)}


def _values(content: Any) -> Iterator[Any]:
    """Yield the values in a dict, a tuple or a list; a single value otherwise."""
    if type(content) in (dict, list, tuple):
        for value in cast("Iterable[Any]", content.values() if type(content) is dict else content):
            yield from _values(value)
    else:
        yield content


def _replaced(content: Any, values: dict[int, Any]) -> Any:
    """Return the content of a cell with other values, for the objects with these ids."""
    if type(content) is dict:
        pairs = cast("dict[Any, Any]", content).items()
        return {key: _replaced(value, values) for key, value in pairs}
    if type(content) in (list, tuple):
        return type(content)([_replaced(value, values) for value in content])
    return values.get(id(content), content)


def _with_parts(
    function: Callable[..., Any], parts: Collection[int], *, spread: bool
) -> Callable[..., Any]:
    """Return a function of an element and of the values of the captured parts.

    Args:
        function: The function that captures them.
        parts: The ids of what it captures, in the order of the values.
        spread: Whether the function gets the components of an element as separate arguments.
    """
    assert isinstance(function, FunctionType)
    places = {key: place for place, key in enumerate(parts)}

    def called(function: FunctionType, element: Any, values: tuple[Any, ...]) -> Any:
        filled = _rebound(function, {key: values[place] for key, place in places.items()})
        return filled(*element) if spread else filled(element)

    return bound(called, function)


def _rebound(function: FunctionType, values: dict[int, Any]) -> FunctionType:
    """Return the function with other values in its closure, for the objects with these ids."""
    cells = tuple(_filled(cell, values) for cell in function.__closure__ or ())
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, cells
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _filled(cell: CellType, values: dict[int, Any]) -> CellType:
    content = _content(cell)
    holds = any(id(value) in values for value in _values(content))
    return CellType(_replaced(content, values)) if holds else cell


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is assigned later
        return None
