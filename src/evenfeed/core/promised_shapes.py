"""Shapes that a function promises of its tensors, while a call of it shows what it returns.

A function that is not traced runs on values, whose lengths may be others for the next element. What
`ensure_shape` and `set_shape` say holds for all of them, also behind arithmetic on each value, unless another
call says something else. What `reshape` says, and `y.set_shape(x.shape)`, may have been worked out from the
element: that is likely only, until another call says the same.
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
    """What is known of the shape of a tensor for every element, and what is likely."""

    sure: TensorShape
    likely: TensorShape

    @property
    def says_a_length(self) -> bool:
        """Whether a length is known, or likely."""
        return any(length is not None for length in self.likely or ())


_NOTHING: Final = Promise(TensorShape(None), TensorShape(None))


class _Thread(threading.local):
    """What was promised in the call of a thread, by the identity of tensors, which are kept for that."""

    promised: dict[int, tuple[Any, Promise]] | None = None
    stand_ins = False


here = _Thread()


@contextmanager
def promises_kept(*, stand_ins: bool = False) -> Generator[None]:
    """Keep what is promised in a block.

    Args:
        stand_ins: Whether tensors may stand for others whose shapes nobody knows.
    """
    before = here.promised, here.stand_ins
    here.promised, here.stand_ins = {}, stand_ins
    try:
        yield
    finally:
        here.promised, here.stand_ins = before


def promise(tensor: Any, shape: ShapeLike) -> None:
    """Take down that a tensor has this shape for every element.

    The shape of another tensor, `y.set_shape(x.shape)`, is that of this element: it is likely only.
    """
    if here.promised is not None:
        known, likely = promise_of(tensor), TensorShape(shape)
        of_this_element = isinstance(shape, ArrayShape)
        sure = TensorShape([None] * len(shape)) if of_this_element else likely
        here.promised[id(tensor)] = (
            tensor,
            Promise(known.sure.merge_with(sure), known.likely.merge_with(likely)),
        )


def promise_checked(tensor: Any, shape: ShapeLike) -> None:
    """Promise what `set_shape` says; an error if the tensor has another shape."""
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
    """Take down that a tensor likely has these lengths: as far as they are Python's numbers, and not -1."""
    if here.promised is not None:
        several = isinstance(lengths, (list, tuple, TensorShape))
        asked = cast("Sequence[Any]", lengths if several else [lengths])
        known = [n if type(n) is int and n >= 0 else None for n in asked]
        here.promised[id(tensor)] = (
            tensor,
            Promise(TensorShape([None] * len(known)), TensorShape(known)),
        )


def promise_of(tensor: Any) -> Promise:
    """Return what was promised of a tensor."""
    found = None if here.promised is None else here.promised.get(id(tensor))
    return _NOTHING if found is None else found[1]


def promise_result(result: Any, operands: Iterable[Any]) -> None:
    """Take down what follows for the result of arithmetic on each value."""
    if here.promised:
        shapes = [_operand_shapes(operand) for operand in operands]
        sure, likely = (TensorShape(_broadcast(each)) for each in zip(*shapes, strict=True))
        here.promised[id(result)] = result, Promise(sure, likely)


def _operand_shapes(operand: Any) -> tuple[Sequence[int | None], Sequence[int | None]]:
    known = promise_of(operand)
    if known is not _NOTHING:
        return tuple(known.sure), tuple(known.likely)
    if type(operand) in (np.ndarray, list, tuple):  # a constant
        return np.shape(operand), np.shape(operand)
    unknown = [None] * np.ndim(operand)
    return unknown, unknown


def _broadcast(shapes: Iterable[Sequence[int | None]]) -> list[int | None]:
    axes = zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    return [_common(lengths) for lengths in axes][::-1]


def _common(lengths: Iterable[int | None]) -> int | None:
    others = {length for length in lengths if length != 1}
    return next((length for length in others if length is not None), None) if others else 1
