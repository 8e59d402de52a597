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
from evenfeed.core.handles import Handle
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TensorSpec
from evenfeed.core.text.text_columns import Texts
from evenfeed.core.text.text_values import bytes_array, texts_in, unlike_shapes
from evenfeed.core.traced.kernel_stages import Kernel, RowKernel, results_of, stands_for_part

# A key of `x[key]` that a kernel can hold: slices are not hashable before Python 3.12.
Key: TypeAlias = "int | tuple[Any, ...] | str | ComputedInt | None"

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


def indexed(part: Handle, key: Any) -> Any:
    """Record `part[key]`; None if the key is not made of ints, slices, `...` and None.

    An int may be computed from the element.
    """
    keys = cast("tuple[Any, ...]", key) if isinstance(key, tuple) else (key,)
    computed: list[Any] = []
    known = tuple(_known_key(one, computed) for one in keys)
    if any(one is NotImplemented for one in known):
        return None
    found = results_of(IndexPart(known), part, *computed)
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
class IndexPart(RowKernel):
    """Selects values of each element, as `x[key]` does.

    Attributes:
        keys: The key, one entry per axis; a slice is a tuple. An int that is another part is a `ComputedInt`.
    """

    keys: tuple[Key, ...]

    def spec(self, *given: TensorSpec) -> TensorSpec:
        shape = given[0].shape
        if shape.rank is None:
            return TensorSpec(None, given[0].dtype)
        # Unknown lengths and ints are tried with two values: the results differ where they depend on them.
        tried = [self._shape_of(list(shape), number) for number in (0, 1)]
        same = [a if a == b else None for a, b in zip(*tried, strict=True)]
        return TensorSpec(same, given[0].dtype)

    def one(self, *parts: Array) -> Array:
        key = self._key([int(part) for part in parts[1:]])
        return np.asarray(parts[0])[key if Ellipsis in key else (*key, ...)]

    def _shape_of(self, lengths: Sequence[int | None], number: int) -> list[int]:
        """Return the shape of the result if unknown lengths are 0, or 64 for the second try."""
        key = self._key([number * place for place in range(1, 9)])
        left, found = iter(lengths), list[int]()
        for one in _for_each_axis(key, len(lengths)):
            if one is None:
                found.append(1)
                continue
            length = next(left)
            if isinstance(one, slice):
                bounds = one.indices(64 * number if length is None else length)
                found.append(len(range(*bounds)))
            elif length is not None:
                range(length)[cast("int", one)]  # raises IndexError
        return found

    def _key(self, computed: Sequence[int]) -> tuple[Any, ...]:
        return tuple(_key(one, computed) for one in self.keys)


def _for_each_axis(key: Sequence[Any], rank: int) -> list[Any]:
    """Return a key without `...`, which stands for all axes that the key does not name."""
    named = [one for one in key if one is not None and one is not Ellipsis]
    if len(named) > rank:
        raise IndexError(f"The key has {len(named)} entries for {rank} axes.")
    rest = [slice(None)] * (rank - len(named))
    if Ellipsis not in key:
        return [*key, *rest]
    place = list(key).index(Ellipsis)
    return [*key[:place], *rest, *key[place + 1 :]]


@final
@dataclass(frozen=True)
class ComputedInt:
    """An int of a key that is computed from the element.

    Attributes:
        place: Its place among all of them.
    """

    place: int


def _known_key(key: Any, computed: list[Any]) -> Any:
    """Return an entry of a key that kernels can compare; NotImplemented if there is none."""
    if isinstance(key, slice):
        given = cast("Any", key)
        bounds = [_known_key(bound, computed) for bound in (given.start, given.stop, given.step)]
        return NotImplemented if NotImplemented in bounds else ("slice", *bounds)
    if key is None or key is Ellipsis:
        return None if key is None else _ELLIPSIS
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        return int(cast("int", key))
    if not _is_whole_number(key):
        return NotImplemented
    computed.append(key)
    return ComputedInt(len(computed) - 1)


def _is_whole_number(key: Any) -> bool:
    """Return True for a single int that is computed from the element."""
    return stands_for_part(key) and key.shape == () and np.dtype(key.dtype).kind in "iu"


def _key(known: Any, computed: Sequence[int]) -> Any:
    if isinstance(known, tuple):
        return slice(*(_key(bound, computed) for bound in cast("tuple[Any, ...]", known)[1:]))
    if isinstance(known, ComputedInt):
        return computed[known.place]
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
