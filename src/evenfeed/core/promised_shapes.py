"""Shapes that a user function promises for its results with `ensure_shape`, `set_shape` or `reshape`.

A function that is not traced runs on concrete values, and the next element may have other lengths. The spec of
its results comes from a trial call, during which this module records the promises. What `ensure_shape` and
`set_shape` promise holds for every element, also after elementwise arithmetic, unless another call contradicts
it. The lengths passed to `reshape`, or in `y.set_shape(x.shape)`, may have been computed from the element: they
are only likely, until another call confirms them. The lengths of the arguments that the dataset knows are given: they
need no other call.
"""

import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.core.errors import described
from evenfeed.core.shapes import ArrayShape, ShapeLike, TensorShape


@final
@dataclass(frozen=True, slots=True)
class Promise:
    """What is known about the shape of a tensor for every element, and what is likely.

    Attributes:
        sure: What the function promises.
        likely: The same, with the lengths that may come from this element.
        given: What follows from the specs of the arguments.
    """

    sure: TensorShape
    likely: TensorShape
    given: TensorShape

    @property
    def says_a_length(self) -> bool:
        """True if a length is known or likely."""
        return any(length is not None for length in self.likely or ())


_NOTHING: Final = Promise(TensorShape(None), TensorShape(None), TensorShape(None))


class _Thread(threading.local):
    """The promises of this thread's call, by the id of the tensor. The tensors are kept so that ids stay unique."""

    promised: dict[int, tuple[Any, Promise]] | None = None
    stand_ins = False


here = _Thread()


@contextmanager
def promises_kept(
    arguments: Iterable[tuple[Any, TensorShape]] = (), *, stand_ins: bool = False
) -> Generator[None]:
    """Record the promises that are made in a `with` block.

    Args:
        arguments: The tensors that the function gets, and the shapes that they have for every element.
        stand_ins: Whether tensors may be placeholders for tensors of unknown shape.
    """
    before = here.promised, here.stand_ins
    here.promised, here.stand_ins = {}, stand_ins
    for tensor, shape in arguments:
        if shape.rank is not None:
            unknown = _of_rank(shape.rank)
            here.promised[id(tensor)] = tensor, Promise(unknown, unknown, shape)
    try:
        yield
    finally:
        here.promised, here.stand_ins = before


def promise(tensor: Any, shape: ShapeLike) -> None:
    """Record that a tensor has this shape for every element.

    The shape of another tensor, as in `y.set_shape(x.shape)`, belongs to this element: it is only likely.
    """
    if here.promised is not None:
        known, likely = promise_of(tensor), TensorShape(shape)
        of_this_element = isinstance(shape, ArrayShape)
        sure = _of_rank(len(shape)) if of_this_element else likely
        here.promised[id(tensor)] = (
            tensor,
            Promise(known.sure.merge_with(sure), known.likely.merge_with(likely), known.given),
        )


def shaped_like(tensor: Any, shape: object) -> Any:
    """Return a new tensor. If its shape is that of another tensor, that is likely for every element."""
    if isinstance(shape, ArrayShape):
        promise(tensor, shape)
    return tensor


def promise_checked(tensor: Any, shape: ShapeLike) -> None:
    """Record the promise of `set_shape`. Raises ValueError if the tensor has another shape."""
    asked, found = TensorShape(shape), tuple(tensor.shape)
    if not asked.is_compatible_with(found) and not here.stand_ins:
        raise ValueError(
            described(
                f"A tensor of shape {found} cannot have the shape {asked}.",
                fix="pass None for each length that may vary.",
            )
        )
    promise(tensor, shape)


def promise_reshaped(tensor: Any, lengths: Any) -> None:
    """Record that a tensor likely has these lengths. Only Python ints count, and -1 does not."""
    if here.promised is not None:
        several = isinstance(lengths, (list, tuple, TensorShape))
        asked = cast("Sequence[Any]", lengths if several else [lengths])
        known = [n if type(n) is int and n >= 0 else None for n in asked]
        unknown = _of_rank(len(known))
        here.promised[id(tensor)] = tensor, Promise(unknown, TensorShape(known), unknown)


def promise_of(tensor: Any) -> Promise:
    """Return the promise for a tensor."""
    found = None if here.promised is None else here.promised.get(id(tensor))
    return _NOTHING if found is None else found[1]


def promise_result(result: Any, operands: Iterable[Any]) -> None:
    """Record the promise that follows for the result of elementwise arithmetic."""
    if here.promised:
        shapes = [_operand_shapes(operand) for operand in operands]
        found = (TensorShape(_broadcast(each)) for each in zip(*shapes, strict=True))
        here.promised[id(result)] = result, Promise(*found)


def _of_rank(rank: int) -> TensorShape:
    return TensorShape([None] * rank)


def _operand_shapes(operand: Any) -> list[Sequence[int | None]]:
    """Return the shapes in the promise for an operand, in the order of its fields."""
    known, unknown = promise_of(operand), [None] * np.ndim(operand)
    if known is not _NOTHING:
        shapes = known.sure, known.likely, known.given
        return [unknown if shape.rank is None else tuple(shape) for shape in shapes]
    if type(operand) in (np.ndarray, list, tuple):  # a constant, unless it comes from this element
        return [np.shape(operand), np.shape(operand), unknown]
    return [unknown, unknown, unknown]


def _broadcast(shapes: Iterable[Sequence[int | None]]) -> list[int | None]:
    axes = zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    return [_common(lengths) for lengths in axes][::-1]


def _common(lengths: Iterable[int | None]) -> int | None:
    others = {length for length in lengths if length != 1}
    return next((length for length in others if length is not None), None) if others else 1
