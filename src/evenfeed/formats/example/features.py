"""What a user wants of examples: `tf.io.FixedLenFeature` and kin, checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, UnimplementedError, described
from evenfeed.core.shapes import TensorShape

# The dtypes that an example can hold, and the field of a Feature that holds them.
LISTS: Final[dict[DType, str]] = {
    dtypes.float32: "float_list",
    dtypes.int64: "int64_list",
    dtypes.string: "bytes_list",
}
DTYPES: Final = {name: dtype for dtype, name in LISTS.items()}


class FixedLenFeature(NamedTuple):
    """A feature with the same number of values in every example: an array.

    Args:
        shape: The shape of the array, [] for one value.
        dtype: float32, int64 or string.
        default_value: What stands for a feature that is missing; without it, that is an error.

    Examples:
        >>> import evenfeed as tf
        >>> tf.io.FixedLenFeature([2], tf.int64, default_value=[0, 0]).shape
        [2]
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature with any number of values: a `SparseTensor`, which `tf.sparse.to_dense` makes an array.

    Args:
        dtype: float32, int64 or string.

    Examples:
        >>> import evenfeed as tf
        >>> tf.io.VarLenFeature(tf.int64).dtype == tf.int64
        True
    """

    dtype: Any


class FixedLenSequenceFeature(NamedTuple):
    """A feature with any number of arrays of one shape: an array with a further first dimension.

    Args:
        shape: The shape of each, [] for one value.
        dtype: float32, int64 or string.
        allow_missing: Must be True where an Example is parsed: a missing one is empty.
        default_value: What fills shorter ones up in a batch; by default 0, or no bytes.

    Examples:
        >>> import evenfeed as tf
        >>> tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True).allow_missing
        True
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


@final
class RaggedFeature:
    """A feature with any number of values, in rows of unlike lengths: an UnimplementedError, which says what to use.

    Args:
        dtype: float32, int64 or string.
        value_key: The name of the feature with the values.
        partitions: How the values are cut into rows.
        row_splits_dtype: Of the places where rows end.
        validate: Whether to check these.

    Examples:
        >>> import evenfeed as tf
        >>> try:
        ...     tf.io.RaggedFeature(tf.int64)
        ... except tf.errors.UnimplementedError as error:
        ...     print(error.message)
        RaggedFeature is not there: JAX has no tensors whose rows differ in length.
    """

    def __init__(
        self,
        dtype: Any,
        value_key: str | None = None,
        partitions: Any = (),
        row_splits_dtype: Any = dtypes.int32,
        validate: bool = False,
    ) -> None:
        del dtype, value_key, partitions, row_splits_dtype, validate
        raise UnimplementedError(
            "RaggedFeature is not there: JAX has no tensors whose rows differ in length.",
            fix="use FixedLenSequenceFeature([], dtype, allow_missing=True), whose rows are filled up, or "
            "VarLenFeature(dtype), a SparseTensor; features that hold lengths or splits are FixedLenSequenceFeature too.",
        )


@final
@dataclass(frozen=True)
class Fixed:
    """A wanted array. `default` holds the values, where there are any."""

    key: str
    dtype: DType
    shape: tuple[int, ...]
    default: tuple[Any, ...] | None

    @property
    def count(self) -> int:
        """How many values it has."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def default_array(self) -> Array | None:
        """The default as an array."""
        if self.default is None:
            return None
        return _array(self.default, self.dtype).reshape(self.shape)


@final
@dataclass(frozen=True)
class Varying:
    """Wanted values of any number."""

    key: str
    dtype: DType


@final
@dataclass(frozen=True)
class Sequenced:
    """Wanted arrays of any number; `fill` stands where there are fewer than in another example."""

    key: str
    dtype: DType
    shape: tuple[int, ...]
    fill: Any
    may_miss: bool

    @property
    def count(self) -> int:
        """How many values one of the arrays has."""
        return int(np.prod(self.shape, dtype=np.int64))


Wanted: TypeAlias = Fixed | Varying | Sequenced


def wanted_of(features: Any, name: str = "features") -> tuple[Wanted, ...]:
    """Return what a dict of features asks for, checked: sparse features first, each kind by key."""
    if not isinstance(features, Mapping) or not features:
        said = "empty" if features == {} else shortened(cast("object", features))
        raise ValueError(
            described(
                f"Invalid argument: {name} cannot be {said}.",
                fix=f'pass {name}={{"label": tf.io.FixedLenFeature([], tf.int64)}}, or more of them.',
            )
        )
    items = cast("Mapping[str, Any]", features)
    found = [_wanted(key, items[key]) for key in sorted(items)]
    # TensorFlow's order: programs rely on that of `.values()`.
    return tuple(sorted(found, key=lambda wanted: not isinstance(wanted, Varying)))


def _wanted(key: str, feature: Any) -> Wanted:
    match feature:
        case FixedLenFeature():
            return _fixed(key, feature)
        case VarLenFeature():
            return Varying(key, _dtype(key, feature.dtype))
        case FixedLenSequenceFeature():
            dtype = _dtype(key, feature.dtype)
            default = feature.default_value
            fill = (b"" if dtype == dtypes.string else 0) if default is None else None
            if fill is None:
                fill = _values(key, default, dtype, 1)[0]
            return Sequenced(key, dtype, _shape(key, feature), fill, bool(feature.allow_missing))
        case _:
            raise ValueError(
                described(
                    f"Unsupported {type(feature).__name__} {shortened(feature)} for key {key!r}.",
                    fix="pass a FixedLenFeature, a VarLenFeature or a FixedLenSequenceFeature.",
                )
            )


def _fixed(key: str, feature: FixedLenFeature) -> Fixed:
    dtype, shape = _dtype(key, feature.dtype), _shape(key, feature)
    wanted = Fixed(key, dtype, shape, None)
    if feature.default_value is None:
        return wanted
    default = _values(key, feature.default_value, dtype, wanted.count)
    return Fixed(key, dtype, shape, default)


def _values(key: str, default: Any, dtype: DType, count: int) -> tuple[Any, ...]:
    values = to_array(default, dtype).ravel().tolist()
    if len(values) != count:
        raise InvalidArgumentError(
            f"The default of feature {key!r} has {len(values)} values, but {count} are needed.",
            fix="pass default_value= with as many values as the shape has.",
        )
    return tuple(values)


def _shape(key: str, feature: FixedLenFeature | FixedLenSequenceFeature) -> tuple[int, ...]:
    if feature.shape is None:
        raise ValueError(
            described(f"Missing shape for feature {key!r}.", fix="pass [] for one value.")
        )
    shape = TensorShape(feature.shape)
    if not shape.is_fully_defined():
        raise ValueError(
            described(
                f"The shape of feature {key!r} must be known, but got {feature.shape}.",
                fix="consider FixedLenSequenceFeature, or VarLenFeature.",
            )
        )
    return tuple(dim or 0 for dim in shape)


def _dtype(key: str, asked: Any) -> DType:
    dtype = dtypes.as_dtype(asked)
    if dtype not in LISTS:
        raise InvalidArgumentError(
            f"Feature {key!r} is to be {dtypes.name_of(dtype)}, but examples hold float32, int64 and string.",
            fix="ask for one of these, and tf.cast what comes.",
        )
    return dtype


def _array(values: tuple[Any, ...], dtype: DType) -> Array:
    array = np.empty(len(values), dtype)
    array[:] = values
    return array
