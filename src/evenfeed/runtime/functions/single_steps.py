"""Runs a traced function on one element after another, when each needs the result of the one before."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.handles import Handle
from evenfeed.core.specs import TensorSpec
from evenfeed.runtime.functions.compiled import Compiled
from evenfeed.runtime.functions.kernels import Kernels
from evenfeed.runtime.functions.vectorise import Row, Traced

# Maps the parts of an element to those of the result. All of them are columns of one row.
SingleStep: TypeAlias = Callable[[Sequence[Array]], list[Array]]


def single_step(traced: tuple[Compiled, Kernels] | None) -> SingleStep | None:
    """Return a traced function for single elements; None if it must be called with their values.

    It is computed by NumPy, or by a program of its own for one row: a program for many rows takes as long for one as
    for all. It must not fail, and gets elements of one shape only.
    """
    if traced is None:
        return None
    compiled, kernels = traced
    rows = _static_rows(kernels)
    program = None if rows is None else compiled.program(rows)
    if rows is None or program is None or _may_fail(program.found) or program.found.calls_back:
        return None
    found = program.found
    if any(part is None for part in found.parts):
        return None
    computed = [part for part in found.parts if isinstance(part, Row)]
    if not computed:
        return _assembling(found.parts, _nothing)
    if found.arithmetic is not None:
        return _assembling(found.parts, found.arithmetic.of_row)
    alone = compiled.for_one_row(rows, found)
    if alone is None:
        return None
    return _assembling(found.parts, lambda columns: alone.start(columns).wait()[0])


def folded(
    carried: list[Any],
    elements: Iterable[list[Any]],
    call: Callable[[list[Any], int], list[Any]],
    step: SingleStep | None,
) -> list[Any]:
    """Return the state after all elements.

    Args:
        carried: The parts of the state before the first element.
        elements: The parts of each element.
        call: Returns the next state, given the state and an element, and its number.
        step: The same for columns of one row, if the function is traced.
    """
    for number, parts in enumerate(elements):
        given = [*carried, *parts]
        if step is None or not all(isinstance(part, np.ndarray) for part in given):
            carried = call(given, number)
            continue
        columns = [np.asarray(part)[None] for part in given]
        with np.errstate(all="ignore"):
            carried = [column[0, ...] for column in step(columns)]
    return carried


def _may_fail(found: Traced) -> bool:
    """Return True if an index may be out of range, or an integer may be divided by 0."""
    return found.indexes or found.checks


def _static_rows(kernels: Kernels) -> tuple[Row, ...] | None:
    """Return the shapes of the parts; None if they vary, or the function uses more than these parts."""
    if kernels.takes_more or any(kernels.handles):
        return None
    specs = [spec for spec in kernels.specs if isinstance(spec, TensorSpec)]
    if len(specs) < len(kernels.specs) or not all(s.shape.is_fully_defined() for s in specs):
        return None
    return tuple(Row(tuple(length or 0 for length in s.shape), s.dtype) for s in specs)


def _nothing(_: Sequence[Array]) -> list[Array]:
    return []


def _assembling(parts: Sequence[Any], compute: SingleStep) -> SingleStep:
    def step(columns: Sequence[Array]) -> list[Array]:
        computed = iter(compute(columns))
        return [
            next(computed)
            if isinstance(part, Row)
            else columns[part.index]
            if isinstance(part, Handle)
            else np.broadcast_to(part, (1, *part.shape))
            for part in parts
        ]

    return step
