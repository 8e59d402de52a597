"""TensorShape: a shape that may be partially known."""

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias, cast, final, overload

import numpy as np

from evenfeed.core.errors import InvalidArgumentError, described

Dims: TypeAlias = tuple[int | None, ...]

# What users may pass as a shape: None, one number, a sequence of numbers and Nones, or an array.
ShapeLike: TypeAlias = "TensorShape | Iterable[Any] | int | None"


@final
class TensorShape:
    """The shape of a tensor, in which a dimension or the whole rank may be unknown.

    Args:
        dims: A sequence of lengths, with None for each unknown one; None if the rank is unknown.

    Examples:
        >>> import evenfeed as tf
        >>> shape = tf.TensorShape([None, 3])
        >>> shape.rank, shape.as_list(), shape.is_compatible_with([8, 3])
        (2, [None, 3], True)
        >>> shape == [None, 3]
        True
    """

    __slots__ = ("_dims",)

    _dims: Dims | None

    def __init__(self, dims: ShapeLike) -> None:
        object.__setattr__(self, "_dims", _as_dims(dims))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a TensorShape is immutable: cannot set {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorShape, (self._dims,)

    @property
    def rank(self) -> int | None:
        """The number of dimensions, or None if it is unknown."""
        return None if self._dims is None else len(self._dims)

    @property
    def ndims(self) -> int | None:
        """The same as `rank`."""
        return self.rank

    @property
    def dims(self) -> list[int | None] | None:
        """The dimensions as a list, or None if the rank is unknown."""
        return None if self._dims is None else list(self._dims)

    def as_list(self) -> list[int | None]:
        """Return the dimensions as a list, with None for each unknown one."""
        return list(self._known("as_list() is not defined for a shape of unknown rank."))

    def num_elements(self) -> int | None:
        """Return the number of values in a tensor of this shape, or None if it is unknown."""
        total = 1
        for dim in self._dims if self._dims is not None else (None,):
            if dim is None:
                return None
            total *= dim
        return total

    def is_fully_defined(self) -> bool:
        """Return True if the rank and every dimension are known."""
        return self._dims is not None and None not in self._dims

    def is_compatible_with(self, other: ShapeLike) -> bool:
        """Return True if one tensor could have both shapes."""
        mine, theirs = self._dims, _as_dims(other)
        if mine is None or theirs is None:
            return True
        return len(mine) == len(theirs) and all(
            a is None or b is None or a == b for a, b in zip(mine, theirs, strict=True)
        )

    def is_subtype_of(self, other: "TensorShape") -> bool:
        """Return True if every tensor of this shape also has the shape `other`."""
        mine, theirs = self._dims, _as_dims(other)
        if theirs is None:
            return True
        return (
            mine is not None
            and len(mine) == len(theirs)
            and all(b is None or a == b for a, b in zip(mine, theirs, strict=True))
        )

    def merge_with(self, other: ShapeLike) -> "TensorShape":
        """Return a shape that combines what both shapes know."""
        self.assert_is_compatible_with(other)
        mine, theirs = self._dims, _as_dims(other)
        if mine is None or theirs is None:
            return TensorShape(theirs if mine is None else mine)
        return TensorShape([b if a is None else a for a, b in zip(mine, theirs, strict=True)])

    def most_specific_compatible_shape(self, other: ShapeLike) -> "TensorShape":
        """Return the most specific shape that covers both."""
        mine, theirs = self._dims, _as_dims(other)
        if mine is None or theirs is None or len(mine) != len(theirs):
            return TensorShape(None)
        return TensorShape([a if a == b else None for a, b in zip(mine, theirs, strict=True)])

    def most_specific_common_supertype(self, others: Sequence["TensorShape"]) -> "TensorShape":
        """Return the most specific shape that covers this one and all `others`."""
        common = self
        for other in others:
            common = common.most_specific_compatible_shape(other)
        return common

    def concatenate(self, other: ShapeLike) -> "TensorShape":
        """Return the dimensions of this shape followed by those of `other`."""
        mine, theirs = self._dims, _as_dims(other)
        return TensorShape(None if mine is None or theirs is None else mine + theirs)

    def with_rank(self, rank: int) -> "TensorShape":
        """Return this shape if it has `rank` dimensions. A shape of unknown rank gets `rank` unknown ones."""
        if self._dims is None:
            return TensorShape([None] * rank)
        if len(self._dims) != rank:
            raise ValueError(described(f"Shape {self} must have rank {rank}."))
        return self

    def with_rank_at_least(self, rank: int) -> "TensorShape":
        """Return this shape. Raises ValueError if it has fewer than `rank` dimensions."""
        if self._dims is not None and len(self._dims) < rank:
            raise ValueError(described(f"Shape {self} must have rank at least {rank}."))
        return self

    def with_rank_at_most(self, rank: int) -> "TensorShape":
        """Return this shape. Raises ValueError if it has more than `rank` dimensions."""
        if self._dims is not None and len(self._dims) > rank:
            raise ValueError(described(f"Shape {self} must have rank at most {rank}."))
        return self

    def assert_has_rank(self, rank: int) -> None:
        """Raise ValueError unless the shape has, or could have, `rank` dimensions."""
        self.with_rank(rank)

    def assert_same_rank(self, other: ShapeLike) -> None:
        """Raise ValueError if both ranks are known and differ."""
        theirs = TensorShape(other)
        if None not in (self.rank, theirs.rank) and self.rank != theirs.rank:
            raise ValueError(described(f"Shapes {self} and {theirs} must have the same rank."))

    def assert_is_compatible_with(self, other: ShapeLike) -> None:
        """Raise ValueError unless one tensor could have both shapes."""
        if not self.is_compatible_with(other):
            raise ValueError(described(f"Shapes {self} and {TensorShape(other)} are incompatible."))

    def assert_is_fully_defined(self) -> None:
        """Raise ValueError if the rank or a dimension is unknown."""
        if not self.is_fully_defined():
            raise ValueError(described(f"Shape {self} is not fully defined."))

    def __len__(self) -> int:
        return len(self._known("A shape of unknown rank has no length."))

    def __iter__(self) -> Iterator[int | None]:
        return iter(self._known("A shape of unknown rank cannot be iterated over."))

    def __bool__(self) -> bool:
        return self._dims is not None

    @overload
    def __getitem__(self, key: int) -> int | None: ...
    @overload
    def __getitem__(self, key: slice) -> "TensorShape": ...
    def __getitem__(self, key: int | slice) -> "int | TensorShape | None":
        if self._dims is None:
            return _unknown_part(key) if isinstance(key, slice) else None
        return TensorShape(self._dims[key]) if isinstance(key, slice) else self._dims[key]

    def __add__(self, other: ShapeLike) -> "TensorShape":
        return self.concatenate(other)

    def __radd__(self, other: ShapeLike) -> "TensorShape":
        return TensorShape(other).concatenate(self)

    def __eq__(self, other: Any) -> bool:
        if isinstance(other, str):
            return False
        try:
            return self._dims == _as_dims(other)
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims)

    def __repr__(self) -> str:
        return f"TensorShape({self.dims})"

    def __str__(self) -> str:
        return "<unknown>" if self._dims is None else str(self._dims)

    def _known(self, otherwise: str) -> Dims:
        if self._dims is None:
            raise ValueError(
                described(otherwise, fix="specify the rank, for example [None, None].")
            )
        return self._dims

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        """Return the lengths as an int32 vector, or int64 if they do not fit."""
        del copy  # the array is always new
        if not self.is_fully_defined():
            raise partly_unknown(self)
        lengths = np.array(self._dims, np.int64)
        fit = np.array_equal(lengths, lengths.astype(np.int32))
        return lengths.astype(dtype or (np.int32 if fit else np.int64))


def partly_unknown(shape: object) -> ValueError:
    """Return the error for a tensor shape with an unknown dimension."""
    return ValueError(
        described(
            f"A tensor needs a fully known shape, but got {shape!r}.",
            fix="pass the length of each axis, for example [2, 3].",
        )
    )


@final
class ArrayShape(tuple[int, ...]):
    """The shape of an existing array: a tuple, as in NumPy, with the methods of TensorShape.

    Examples:
        >>> import evenfeed as tf
        >>> element = next(iter(tf.data.Dataset.from_tensors([1, 2, 3])))
        >>> element.shape, element.shape == [3], element.shape.as_list()
        ((3,), True, [3])
    """

    __slots__ = ()

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self)

    @property
    def ndims(self) -> int:
        """The same as `rank`."""
        return len(self)

    @property
    def dims(self) -> list[int]:
        """The dimensions as a list."""
        return list(self)

    def as_list(self) -> list[int]:
        """Return the dimensions as a list."""
        return list(self)

    def num_elements(self) -> int:
        """Return the number of values in an array of this shape."""
        return math.prod(self)

    def is_fully_defined(self) -> bool:
        """Return True: every dimension of an array is known."""
        return True

    def __getattr__(self, name: str) -> Any:
        """Return the other members of a TensorShape, such as `concatenate`."""
        return getattr(TensorShape(self), name)

    def __eq__(self, other: object) -> bool:
        return super().__eq__(tuple(cast("list[Any]", other)) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return super().__hash__()

    def __getitem__(self, key: Any) -> Any:
        found = cast("Any", super().__getitem__(key))
        return ArrayShape(found) if isinstance(key, slice) else found

    def __add__(self, other: Any) -> Any:
        if isinstance(other, TensorShape):
            return TensorShape(self).concatenate(other)
        return ArrayShape((*self, *other))

    def __radd__(self, other: Any) -> "ArrayShape":
        return ArrayShape((*other, *self))


def _as_dims(dims: ShapeLike) -> Dims | None:
    if dims is None:
        return None
    if isinstance(dims, TensorShape):
        return dims._dims  # pyright: ignore[reportPrivateUsage]
    if isinstance(dims, (str, bytes)):
        raise _not_a_dimension(dims)
    if isinstance(dims, Iterable):
        return tuple(_as_dim(dim) for dim in dims)
    return (_as_dim(dims),)


def _as_dim(dim: Any) -> int | None:
    if dim is None:
        return None
    try:
        length = operator.index(dim)
    except TypeError:
        raise _not_a_dimension(dim) from None
    if length < 0:
        raise InvalidArgumentError(
            f"A dimension must be at least 0, but got {length}.",
            fix="pass None for an unknown length.",
        )
    return length


def _not_a_dimension(dim: object) -> TypeError:
    return TypeError(
        described(
            f"A dimension must be an integer or None, but got {dim!r}.",
            fix="pass an integer, or a sequence such as [None, 28, 28].",
        )
    )


def _unknown_part(key: slice) -> TensorShape:
    """Slice a shape of unknown rank. The length of the result is known if start and stop are not negative."""
    start, stop = key.start or 0, key.stop
    if stop is None or stop < 0 or start < 0 or key.step is not None:
        return TensorShape(None)
    return TensorShape([None] * max(0, stop - start))
