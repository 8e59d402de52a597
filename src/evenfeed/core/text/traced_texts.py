"""Operators on text while a user function is traced: comparison, `+` and indexing. Each records a kernel."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import repeat, zip_longest
from typing import Any, ClassVar, Final, TypeAlias, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Column, cut_up
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import Handle, Kernel, RowKernel, results_of
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TensorSpec
from evenfeed.core.text.text_columns import Texts
from evenfeed.core.text.text_values import bytes_array, texts_in, unlike_shapes

# A key of `x[key]` that a kernel can hold: slices are not hashable before Python 3.12.
Key: TypeAlias = "int | tuple[str, int | None, int | None, int | None] | str | None"

_ELLIPSIS: Final = "..."


def compared(text: Handle, other: object, *, equal: bool) -> Any:
    """Record an elementwise `==` or `!=`; None if the other operand is neither text nor a traced part.

    Raises:
        InvalidArgumentError: The shapes do not broadcast.
    """
    operand = Constant.of(other)
    if operand is None:
        return None
    shapes = text.tensor_spec.shape, operand.shape_of(other)
    if broadcast(*shapes) is None:
        raise unlike_shapes(*shapes)
    found = results_of(CompareTexts(equal, operand), text, *operand.parts_of(other))
    return None if found is None else found[0]


def added(one: object, two: object) -> Any:
    """Record `one + two`; None if an operand is neither text nor a traced part."""
    return joined([one, two], b"")


def joined(operands: Sequence[object], separator: bytes) -> Any:
    """Record that texts are joined elementwise; None if an operand is neither text nor a traced part.

    Raises:
        InvalidArgumentError: The shapes do not broadcast.
    """
    known = [Constant.of(operand) for operand in operands]
    held = tuple(constant for constant in known if constant is not None)
    if len(held) < len(known):
        return None
    pairs = list(zip(operands, held, strict=True))
    shapes = [constant.shape_of(operand) for operand, constant in pairs]
    if _all_broadcast(shapes) is None:
        raise InvalidArgumentError(
            f"Cannot join texts of shapes {', '.join(map(str, shapes))}: the shapes do not broadcast.",
            fix="pass tensors of the same shape, or of shapes that broadcast.",
        )
    parts = [part for operand, constant in pairs for part in constant.parts_of(operand)]
    found = results_of(JoinTexts(separator, held), *parts)
    return None if found is None else found[0]


def indexed(text: Handle, key: Any) -> Any:
    """Record `text[key]`; None if the key is not made of constant ints, slices, `...` and None."""
    keys = cast("tuple[Any, ...]", key) if isinstance(key, tuple) else (key,)
    known = tuple(map(_known_key, keys))
    if any(one is NotImplemented for one in known):
        return None
    found = results_of(IndexTexts(known), text)
    return None if found is None else found[0]


@final
@dataclass(frozen=True)
class Constant:
    """An operand of a kernel: texts that do not depend on the element, or a part of the element.

    Attributes:
        shape: The shape of the texts.
        texts: The texts; None if the operand is a part of the element.
    """

    shape: tuple[int, ...] = ()
    texts: tuple[bytes, ...] | None = None

    @classmethod
    def of(cls, operand: object) -> "Constant | None":
        """Return what a kernel stores for an operand; None if it is not text."""
        if isinstance(operand, Handle):
            return cls() if operand.is_text else None
        texts = texts_in(operand)
        return None if texts is None else cls(texts.shape, tuple(texts.ravel().tolist()))

    def shape_of(self, operand: Any) -> TensorShape:
        """Return the shape of the operand, which may be partly unknown."""
        return operand.tensor_spec.shape if self.texts is None else TensorShape(self.shape)

    def parts_of(self, operand: object) -> list[object]:
        """Return the operand if the kernel must get it as a part."""
        return [operand] if self.texts is None else []

    def array(self) -> Array:
        """Return the texts as an array."""
        return bytes_array(self.texts or ()).reshape(self.shape)


@final
@dataclass(frozen=True)
class CompareTexts(Kernel):
    """Compares a part with a constant, or two parts with each other.

    Attributes:
        equal: True for `==`, False for `!=`.
        other: The second operand.
    """

    equal: bool
    other: Constant = Constant()

    stays_on_host: ClassVar[bool] = True

    def specs(self, *given: TensorSpec) -> list[TensorSpec]:
        shapes = [spec.shape for spec in given]
        if self.other.texts is not None:
            shapes.append(TensorShape(self.other.shape))
        return [TensorSpec(broadcast(*shapes), dtypes.bool)]

    def run(self, *columns: Column) -> list[Column]:
        found = self._same(columns)
        return [found if self.equal else _inverted(found)]

    def _same(self, columns: Sequence[Column]) -> Array | list[Any]:
        first, texts, shape = columns[0], self.other.texts, self.other.shape
        if isinstance(first, Texts) and first.ndim == 1 and texts is not None and not shape:
            return first.equal_to(texts[0])
        given = [cut_up(column) for column in columns]
        if any(isinstance(column, list) for column in given):
            rows = zip(*(column for column in given if column is not None), strict=True)
            return [np.asarray(np.equal(*self._operands(row)), np.bool_) for row in rows]
        arrays = [column for column in given if isinstance(column, np.ndarray)]
        rank = max(len(shape), *(column.ndim - 1 for column in arrays))
        return np.asarray(np.equal(*self._operands([_of_rank(c, rank) for c in arrays])), np.bool_)

    def _operands(self, given: Sequence[Array]) -> Sequence[Array]:
        return given if self.other.texts is None else [*given, self.other.array()]


@final
@dataclass(frozen=True)
class JoinTexts(Kernel):
    """Joins texts elementwise.

    Attributes:
        separator: What is put between the texts.
        operands: The texts to join, in order: constants, and parts of the element.
    """

    separator: bytes
    operands: tuple[Constant, ...]

    stays_on_host: ClassVar[bool] = True

    def specs(self, *given: TensorSpec) -> list[TensorSpec]:
        parts = iter(given)
        shapes = [
            next(parts).shape if operand.texts is None else TensorShape(operand.shape)
            for operand in self.operands
        ]
        return [TensorSpec(_all_broadcast(shapes), dtypes.string)]

    def run(self, *columns: Column) -> list[Column]:
        given = [cut_up(column) for column in columns]
        if all(isinstance(column, np.ndarray) and column.ndim == 1 for column in given) and not any(
            operand.shape for operand in self.operands
        ):
            return [self._joined_scalars(given)]
        rows = zip(*(column for column in given if column is not None), strict=True)
        return [[self.one(*row) for row in rows]]

    def one(self, *parts: Any) -> Array:
        """Return the joined texts of one element."""
        given = iter(parts)
        operands = [
            np.asarray(next(given)) if operand.texts is None else operand.array()
            for operand in self.operands
        ]
        return join_arrays(operands, self.separator)

    def _joined_scalars(self, columns: Sequence[Any]) -> Array:
        parts = (column.tolist() for column in columns)
        each = [
            next(parts) if operand.texts is None else repeat(operand.texts[0])
            for operand in self.operands
        ]
        join = self.separator.join
        return bytes_array([join(row) for row in zip(*each, strict=False)])


def join_arrays(operands: Sequence[Array], separator: bytes) -> Array:
    """Join arrays of text elementwise, with broadcasting."""
    joint = np.broadcast_arrays(*operands)
    rows = zip(*(array.ravel().tolist() for array in joint), strict=True)
    return bytes_array([separator.join(row) for row in rows]).reshape(joint[0].shape)


@final
@dataclass(frozen=True)
class IndexTexts(RowKernel):
    """Selects texts of each element, as `x[key]` does.

    Attributes:
        keys: The key, one entry per axis; a slice is a tuple.
    """

    keys: tuple[Key, ...]

    def spec(self, *given: TensorSpec) -> TensorSpec:
        shape = given[0].shape
        if shape.rank is None:
            return TensorSpec(None, dtypes.string)
        dims = list(shape)
        # An axis of unknown length is tried with two lengths: the results differ where they depend on it.
        tried = [self._shape_of([n if dim is None else dim for dim in dims]) for n in (64, 65)]
        same = [a if a == b else None for a, b in zip(*tried, strict=True)]
        return TensorSpec(same, dtypes.string)

    def one(self, *parts: Array) -> Array:
        key = self._key()
        return np.asarray(parts[0])[key if Ellipsis in key else (*key, ...)]

    def _shape_of(self, lengths: Sequence[int]) -> tuple[int, ...]:
        return np.broadcast_to(np.empty((), np.bool_), lengths)[self._key()].shape

    def _key(self) -> tuple[Any, ...]:
        return tuple(_key(one) for one in self.keys)


def _known_key(key: Any) -> Any:
    if isinstance(key, slice):
        given = cast("Any", key)
        bounds = [_known_key(bound) for bound in (given.start, given.stop, given.step)]
        return NotImplemented if NotImplemented in bounds else ("slice", *bounds)
    if key is None or key is Ellipsis:
        return None if key is None else _ELLIPSIS
    if isinstance(key, bool) or not isinstance(key, (int, np.integer)):
        return NotImplemented
    return int(cast("int", key))


def _key(known: Key) -> Any:
    if isinstance(known, tuple):
        return slice(*known[1:])
    return Ellipsis if known == _ELLIPSIS else known


def _inverted(found: Array | list[Any]) -> Array | list[Any]:
    return [~row for row in found] if isinstance(found, list) else ~found


def _of_rank(column: Array, rank: int) -> Array:
    """Add axes to the elements of a column, so that they broadcast with elements of `rank`."""
    return column.reshape(len(column), *(1,) * (rank + 1 - column.ndim), *column.shape[1:])


def _all_broadcast(shapes: Sequence[TensorShape]) -> TensorShape | None:
    """Return the broadcast of shapes; None if they do not broadcast."""

    def together(one: TensorShape | None, two: TensorShape) -> TensorShape | None:
        return None if one is None else broadcast(one, two)

    return reduce(together, shapes[1:], shapes[0])


def broadcast(one: TensorShape, two: TensorShape) -> TensorShape | None:
    """Return the broadcast of two shapes; None if they do not broadcast."""
    if one.rank is None or two.rank is None:
        return TensorShape(None)
    dims: list[int | None] = []
    for a, b in zip_longest(reversed(list(one)), reversed(list(two)), fillvalue=1):
        if 1 not in (a, b) and None not in (a, b) and a != b:
            return None
        dims.append((b if a == 1 else a) if a is not None else (None if b == 1 else b))
    return TensorShape(dims[::-1])
