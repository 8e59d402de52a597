"""Feature specs for parsing examples: `tf.io.FixedLenFeature`, `tf.io.VarLenFeature` and others."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.ragged.row_partitions import splits_dtype
from evenfeed.core.shapes import TensorShape

# The dtypes that an example can hold, and their fields in a Feature message.
LISTS: Final[dict[DType, str]] = {
    dtypes.float32: "float_list",
    dtypes.int64: "int64_list",
    dtypes.string: "bytes_list",
}
DTYPES: Final = {name: dtype for dtype, name in LISTS.items()}


class FixedLenFeature(NamedTuple):
    """A feature with a fixed number of values in every example. Parsed as an array.

    Args:
        shape: The shape of the array; [] for a scalar.
        dtype: float32, int64 or string.
        default_value: The value of a missing feature; without it, a missing feature raises.

    Examples:
        >>> import evenfeed as tf
        >>> tf.io.FixedLenFeature([2], tf.int64, default_value=[0, 0]).shape
        [2]
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature with any number of values. Parsed as a `SparseTensor`; `tf.sparse.to_dense` makes it an array.

    Args:
        dtype: float32, int64 or string.

    Examples:
        >>> import evenfeed as tf
        >>> tf.io.VarLenFeature(tf.int64).dtype == tf.int64
        True
    """

    dtype: Any


class SparseFeature(NamedTuple):
    """Values in one feature, and their places in others. Parsed as a `SparseTensor`.

    Args:
        index_key: The name of the feature with the places, or a list of names, one for each axis.
        value_key: The name of the feature with the values.
        dtype: float32, int64 or string.
        size: The length of the axis, or a list of lengths.
        already_sorted: Whether the places are in order in every example; otherwise they are sorted.

    Examples:
        >>> import evenfeed as tf
        >>> feature = tf.io.SparseFeature("places", "values", tf.float32, size=10)
        >>> tf.io.parse_example([b""], {"x": feature})["x"].dense_shape.tolist()
        [1, 10]
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class FixedLenSequenceFeature(NamedTuple):
    """A feature with any number of arrays of one shape. Parsed as an array with an extra leading dimension.

    Args:
        shape: The shape of each array; [] for scalars.
        dtype: float32, int64 or string.
        allow_missing: Must be True to parse an Example; a missing feature becomes empty.
        default_value: The padding value in a batch; by default 0, or empty bytes.

    Examples:
        >>> import evenfeed as tf
        >>> tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True).allow_missing
        True
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class RowSplits(NamedTuple):
    """The feature with the position where each row starts, and where the last one ends."""

    key: str


class RowLengths(NamedTuple):
    """The feature with the length of each row."""

    key: str


class RowStarts(NamedTuple):
    """The feature with the position where each row starts."""

    key: str


class RowLimits(NamedTuple):
    """The feature with the position where each row ends."""

    key: str


class ValueRowIds(NamedTuple):
    """The feature with the row number of each value."""

    key: str


class UniformRowLength(NamedTuple):
    """The length of all rows."""

    length: int


Partition: TypeAlias = (
    RowSplits | RowLengths | RowStarts | RowLimits | ValueRowIds | UniformRowLength
)


class RaggedFeature(NamedTuple):
    """A feature with any number of values. Parsed as an array, or as a RaggedTensor if there are several rows.

    Args:
        dtype: float32, int64 or string.
        value_key: The name of the feature with the values; by default the key in the dict of features.
        partitions: How the values of an example are split into rows, the outermost axis first:
            `RaggedFeature.RowLengths(key)` and its siblings.
        row_splits_dtype: int32 or int64.
        validate: Accepted for compatibility; row splits are always checked.

    Examples:
        >>> import evenfeed as tf
        >>> tf.io.parse_example([b"", b""], {"words": tf.io.RaggedFeature(tf.string)})
        {'words': <tf.RaggedTensor [[], []]>}
    """

    dtype: Any
    value_key: str | None = None
    partitions: Any = ()
    row_splits_dtype: Any = dtypes.int32
    validate: bool = False

    RowSplits = RowSplits
    RowLengths = RowLengths
    RowStarts = RowStarts
    RowLimits = RowLimits
    ValueRowIds = ValueRowIds
    UniformRowLength = UniformRowLength


@final
@dataclass(frozen=True)
class Fixed:
    """A requested array. `default` holds its default values, if any."""

    key: str
    dtype: DType
    shape: tuple[int, ...]
    default: tuple[Any, ...] | None

    @property
    def count(self) -> int:
        """The number of values."""
        return prod(self.shape)

    @property
    def default_array(self) -> Array | None:
        """The default as an array."""
        if self.default is None:
            return None
        return _array(self.default, self.dtype).reshape(self.shape)


@final
@dataclass(frozen=True)
class Varying:
    """A requested feature with any number of values."""

    key: str
    dtype: DType


@final
@dataclass(frozen=True)
class Sequenced:
    """A requested sequence of arrays; `fill` pads the shorter sequences of a batch."""

    key: str
    dtype: DType
    shape: tuple[int, ...]
    fill: Any
    may_miss: bool

    @property
    def count(self) -> int:
        """The number of values of one array."""
        return prod(self.shape)


@final
@dataclass(frozen=True)
class Ragged:
    """A requested feature with any number of values, split into rows by other features."""

    key: str
    values: Varying
    partitions: tuple[Partition, ...]
    splits_dtype: DType


@final
@dataclass(frozen=True)
class Placed:
    """Requested values with places in a sparse tensor, which are in other features."""

    key: str
    places: tuple[Varying, ...]
    values: Varying
    size: tuple[int, ...]
    already_sorted: bool


Wanted: TypeAlias = Fixed | Varying | Sequenced | Ragged | Placed


def wanted_of(features: Any, name: str = "features") -> tuple[Wanted, ...]:
    """Return the checked features of a dict: sparse features, dense ones, ragged ones, the others; each by key."""
    if not isinstance(features, Mapping) or not features:
        actual = "empty" if features == {} else shortened(cast("object", features))
        raise ValueError(
            described(
                f"Invalid argument: {name} cannot be {actual}.",
                fix=f'pass a dict such as {name}={{"label": tf.io.FixedLenFeature([], tf.int64)}}.',
            )
        )
    items = cast("Mapping[str, Any]", features)
    found = [_wanted(key, items[key]) for key in sorted(items)]
    # TensorFlow's order: programs rely on the order of `.values()`.
    return tuple(sorted(found, key=_place))


def _place(wanted: Wanted) -> int:
    """Return where a feature stands: what TensorFlow makes of several features comes last, unless it has their key."""
    match wanted:
        case Varying():
            return 0
        case Placed():
            parts = (wanted.values, *wanted.places)
            return 0 if wanted.key in {part.key for part in parts} else 3
        case Ragged():
            return 2 if wanted.key == wanted.values.key else 3
        case _:
            return 1


def _wanted(key: str, feature: Any) -> Wanted:
    match feature:
        case FixedLenFeature():
            return _fixed(key, feature)
        case VarLenFeature():
            return Varying(key, _dtype(key, feature.dtype))
        case RaggedFeature():
            return _ragged(key, feature)
        case SparseFeature():
            return _placed(key, feature)
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
                    fix="pass a FixedLenFeature, a VarLenFeature, a RaggedFeature, a SparseFeature or a FixedLenSequenceFeature.",
                )
            )


def _ragged(key: str, feature: RaggedFeature) -> Ragged:
    partitions = tuple(feature.partitions)
    for partition in partitions:
        if not isinstance(partition, Partition):
            raise TypeError(
                described(
                    f"Unsupported partition {shortened(partition)} of feature {key!r}.",
                    fix="pass RaggedFeature.RowLengths(key), or another partition of RaggedFeature.",
                )
            )
    values = Varying(feature.value_key or key, _dtype(key, feature.dtype))
    return Ragged(key, values, partitions, splits_dtype(feature.row_splits_dtype))


def _placed(key: str, feature: SparseFeature) -> Placed:
    if not feature.index_key or not feature.value_key:
        raise ValueError(
            described(
                f"SparseFeature {key!r} needs an index_key and a value_key, but got {shortened(feature)}.",
                fix="pass the names of the features with the places and the values.",
            )
        )
    names: Any = feature.index_key
    is_one = isinstance(names, str)
    names, sizes = ([names], [feature.size]) if is_one else (names, feature.size)
    if isinstance(sizes, int) or len(sizes) != len(names) or isinstance(sizes[0], list | tuple):
        raise TypeError(
            described(
                f"SparseFeature {key!r} needs one size for each index_key, but got {shortened(feature.size)}.",
                fix="pass size=10 for index_key='i', or size=[10, 20] for index_key=['i', 'j'].",
            )
        )
    return Placed(
        key,
        tuple(Varying(name, dtypes.int64) for name in names),
        Varying(feature.value_key, _dtype(key, feature.dtype)),
        tuple(int(size) for size in sizes),
        bool(feature.already_sorted),
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
            f"The default of feature {key!r} has {len(values)} values, but needs {count}.",
            fix="pass a default_value with that many values.",
        )
    return tuple(values)


def _shape(key: str, feature: FixedLenFeature | FixedLenSequenceFeature) -> tuple[int, ...]:
    if feature.shape is None:
        raise ValueError(
            described(f"Missing shape for feature {key!r}.", fix="pass [] for a scalar.")
        )
    shape = TensorShape(feature.shape)
    if not shape.is_fully_defined():
        raise ValueError(
            described(
                f"The shape of feature {key!r} must be fully defined, but got {feature.shape}.",
                fix="consider FixedLenSequenceFeature, or VarLenFeature.",
            )
        )
    return tuple(dim or 0 for dim in shape)


def _dtype(key: str, asked: Any) -> DType:
    dtype = dtypes.as_dtype(asked)
    if dtype not in LISTS:
        raise InvalidArgumentError(
            f"Feature {key!r} cannot have dtype {dtypes.name_of(dtype)}: examples hold only float32, int64 and string.",
            fix="pass one of these, then tf.cast the result.",
        )
    return dtype


def _array(values: tuple[Any, ...], dtype: DType) -> Array:
    array = np.empty(len(values), dtype)
    array[:] = values
    return array
