"""TypeSpec and TensorSpec: what is known about a value before it exists."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, Self, final

from evenfeed.core import dtypes
from evenfeed.core.conversion import (
    TensorLike,
    check_has_numbers,
    is_tensor,
    shortened,
    to_component,
)
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import described
from evenfeed.core.shapes import ShapeLike, TensorShape
from evenfeed.core.structure import DATA, map_structure


class TypeSpec(ABC):
    """What is known about a value before it exists. The base class of all specs.

    Examples:
        >>> import evenfeed as tf
        >>> isinstance(tf.TensorSpec([2]), tf.TypeSpec)
        True
    """

    __slots__ = ()

    @property
    @abstractmethod
    def value_type(self) -> type:
        """The type that values of this spec are instances of."""

    @abstractmethod
    def is_subtype_of(self, other: "TypeSpec") -> bool:
        """Return True if every value of this spec also matches `other`."""

    @abstractmethod
    def most_specific_common_supertype(self, others: Sequence["TypeSpec"]) -> Self | None:
        """Return the most specific spec that covers this one and all `others`; None if there is none."""

    @abstractmethod
    def _accepts(self, spec: "TypeSpec") -> bool:
        """Return True if one value could have both specs."""

    def is_compatible_with(self, spec_or_value: object) -> bool:
        """Return True if the value, or some value of the other spec, can have this spec."""
        if isinstance(spec_or_value, TypeSpec):
            return self._accepts(spec_or_value)
        if isinstance(spec_or_value, Specified) or is_tensor(spec_or_value):
            return self._accepts(type_spec_from_value(spec_or_value))
        return spec_or_value is None and self._accepts(NoneTensorSpec())

    def most_specific_compatible_type(self, other: "TypeSpec") -> Self:
        """Return the most specific spec that covers both. Raises ValueError if there is none."""
        common = self.most_specific_common_supertype([other])
        if common is None:
            raise ValueError(described(f"No TypeSpec is compatible with both {self} and {other}."))
        return common


class Specified(ABC):
    """An evenfeed value that knows its own spec, such as an Optional."""

    __slots__ = ()

    @property
    @abstractmethod
    def _type_spec(self) -> TypeSpec:
        """The spec of this value."""


@final
class TensorSpec(TypeSpec):
    """The shape and dtype of a tensor.

    Args:
        shape: A sequence of lengths, with None for each unknown one; None if the rank is unknown.
        dtype: A dtype or its name.
        name: A name for the tensor. It is stored and compared, but has no other effect.

    Examples:
        >>> import evenfeed as tf
        >>> spec = tf.TensorSpec([None, 28], tf.uint8)
        >>> spec
        TensorSpec(shape=(None, 28), dtype=tf.uint8, name=None)
        >>> spec.is_compatible_with(tf.TensorSpec([8, 28], tf.uint8))
        True
        >>> spec.most_specific_compatible_type(tf.TensorSpec([8, 20], tf.uint8))
        TensorSpec(shape=(None, None), dtype=tf.uint8, name=None)
    """

    __slots__ = ("_dtype", "_name", "_shape")

    def __init__(
        self, shape: ShapeLike, dtype: object = dtypes.float32, name: str | None = None
    ) -> None:
        self._shape = TensorShape(shape)
        self._dtype = dtypes.as_dtype(dtype)
        self._name = name

    @classmethod
    def from_spec(cls, spec: "TensorSpec", name: str | None = None) -> "TensorSpec":
        """Return a copy of `spec`, renamed if a name is given."""
        return cls(spec.shape, spec.dtype, name or spec.name)

    @classmethod
    def from_tensor(cls, tensor: object, name: str | None = None) -> "TensorSpec":
        """Return the spec of an array."""
        if not is_tensor(tensor):
            raise ValueError(
                described(
                    f"from_tensor needs a tensor, but got {shortened(tensor)}.",
                    fix="convert it first: evenfeed.convert_to_tensor(value).",
                )
            )
        check_has_numbers(tensor)
        return cls(tuple(tensor.shape), tensor.dtype, name)

    @property
    def shape(self) -> TensorShape:
        """The shape, which may be partially unknown."""
        return self._shape

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self._dtype

    @property
    def name(self) -> str | None:
        """The name, or None."""
        return self._name

    @property
    def value_type(self) -> type:
        """NumPy arrays, JAX arrays, and anything else with a shape and a dtype."""
        return TensorLike

    def is_subtype_of(self, other: TypeSpec) -> bool:
        return (
            isinstance(other, TensorSpec)
            and (self.name is None or self.name == other.name)
            and self.dtype == other.dtype
            and self.shape.is_subtype_of(other.shape)
        )

    def most_specific_common_supertype(self, others: Sequence[TypeSpec]) -> "TensorSpec | None":
        shape = self.shape
        for other in others:
            if not isinstance(other, TensorSpec):
                return None
            if (other.name, other.dtype) != (self.name, self.dtype):
                return None
            shape = shape.most_specific_compatible_shape(other.shape)
        return TensorSpec(shape, self.dtype, self.name)

    def _accepts(self, spec: TypeSpec) -> bool:
        return (
            isinstance(spec, TensorSpec)
            and self.dtype == spec.dtype
            and self.shape.is_compatible_with(spec.shape)
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorSpec, self._key()

    def __repr__(self) -> str:
        dtype = dtypes.name_of(self.dtype)
        return f"TensorSpec(shape={self.shape}, dtype=tf.{dtype}, name={self.name!r})"

    def _key(self) -> tuple[TensorShape, DType, str | None]:
        return self.shape, self.dtype, self.name


class CompositeSpec(TypeSpec):
    """A spec that consists of other specs. Two are compared part by part if their frames are equal."""

    __slots__ = ()

    @property
    @abstractmethod
    def _parts(self) -> tuple[TypeSpec, ...]:
        """The specs that this one consists of."""

    @property
    @abstractmethod
    def _frame(self) -> object:
        """What must be equal besides the parts: their number and structure."""

    @abstractmethod
    def _with_parts(self, parts: Sequence[TypeSpec]) -> Self:
        """Return a copy of this spec with other parts."""

    def mapped(self, function: Callable[[TypeSpec], TypeSpec]) -> Self:
        """Return a copy of this spec with `function` applied to each part."""
        return self._with_parts(list(map(function, self._parts)))

    def is_subtype_of(self, other: TypeSpec) -> bool:
        pairs = self._pairs(other)
        return pairs is not None and all(mine.is_subtype_of(theirs) for mine, theirs in pairs)

    def most_specific_common_supertype(self, others: Sequence[TypeSpec]) -> Self | None:
        common = self
        for other in others:
            pairs = common._pairs(other)
            if pairs is None:
                return None
            parts = [mine.most_specific_common_supertype([theirs]) for mine, theirs in pairs]
            known = [part for part in parts if part is not None]
            if len(known) < len(parts):
                return None
            common = common._with_parts(known)
        return common

    def _accepts(self, spec: TypeSpec) -> bool:
        pairs = self._pairs(spec)
        return pairs is not None and all(mine.is_compatible_with(theirs) for mine, theirs in pairs)

    def _pairs(self, other: TypeSpec) -> list[tuple[TypeSpec, TypeSpec]] | None:
        if not isinstance(other, type(self)) or self._frame != other._frame:
            return None
        return list(zip(self._parts, other._parts, strict=True))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, type(self))
            and self._frame == other._frame
            and self._parts == other._parts
        )

    def __hash__(self) -> int:
        return hash((type(self), self._parts))


@final
class NoneTensorSpec(TypeSpec):
    """The spec of a `None` inside an element."""

    __slots__ = ()

    @property
    def value_type(self) -> type:
        return type(None)

    def is_subtype_of(self, other: TypeSpec) -> bool:
        return isinstance(other, NoneTensorSpec)

    def most_specific_common_supertype(self, others: Sequence[TypeSpec]) -> "NoneTensorSpec | None":
        return self if all(map(self._accepts, others)) else None

    def _accepts(self, spec: TypeSpec) -> bool:
        return isinstance(spec, NoneTensorSpec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoneTensorSpec)

    def __hash__(self) -> int:
        return hash(NoneTensorSpec)

    def __repr__(self) -> str:
        return "NoneTensorSpec()"


def type_spec_from_value(value: object) -> TypeSpec:
    """Return the spec of one value: an array, a Python number, text, None, or an evenfeed value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.type_spec_from_value([1.5, 2.5])
        TensorSpec(shape=(2,), dtype=tf.float32, name=None)
        >>> tf.type_spec_from_value(None)
        NoneTensorSpec()
    """
    if isinstance(value, Specified):
        return value._type_spec  # pyright: ignore[reportPrivateUsage] - TensorFlow's name
    if value is None:
        return NoneTensorSpec()
    if is_tensor(value):
        return TensorSpec.from_tensor(value)
    try:
        array = to_component(value)
    except (TypeError, ValueError):
        raise TypeError(
            described(
                f"{shortened(value)} of type {type(value).__name__} has no TypeSpec.",
                fix="pass a number, text, an array or a list of them; "
                "for a nested structure call evenfeed.nest.map_structure with this function.",
            )
        ) from None
    return TensorSpec(array.shape, array.dtype)


def spec_of(value: object) -> Any:
    """Return the specs of all parts of an element, in the structure of the element."""
    return map_structure(type_spec_from_value, value, rules=DATA)


def is_of_one_shape(spec: TypeSpec) -> bool:
    """Return True if all values with this spec have the same shape."""
    known = isinstance(spec, TensorSpec) and spec.shape.is_fully_defined()
    return known or isinstance(spec, NoneTensorSpec)


INFINITE: Final = -1
UNKNOWN: Final = -2
