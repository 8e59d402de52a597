"""The protocol buffers of `tf.train` (`Example` and its parts, `ClusterDef`, `Event`), and the values of features.

The messages are built from descriptors in their own pool, because TensorFlow, or another package with messages of the
same names, may be loaded in the same process.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, is_tensor
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy import descriptor_pb2, descriptor_pool, message_factory
from evenfeed.formats.example.features import DTYPES, Fixed, Sequenced, Varying

_PACKAGE: Final = "tensorflow"

_LISTS: Final = frozenset({"BytesList", "FloatList", "Int64List"})

# The fields of each message, in the order of their numbers, or prefixed with them. "[x]" is a repeated x, "{x}" a map
# from string to x, and "{k:x}" a map from k to x.
_MESSAGES: Final[dict[str, dict[str, str]]] = {
    "BytesList": {"value": "[bytes]"},
    "FloatList": {"value": "[float]"},
    "Int64List": {"value": "[int64]"},
    "Feature": {
        "bytes_list": "kind:BytesList",
        "float_list": "kind:FloatList",
        "int64_list": "kind:Int64List",
    },
    "Features": {"feature": "{Feature}"},
    "FeatureList": {"feature": "[Feature]"},
    "FeatureLists": {"feature_list": "{FeatureList}"},
    "Example": {"features": "Features"},
    "SequenceExample": {"context": "Features", "feature_lists": "FeatureLists"},
    "JobDef": {"name": "string", "tasks": "{int32:string}"},
    "ClusterDef": {"job": "[JobDef]"},
    "Dim": {"size": "int64", "name": "string"},
    "TensorShapeProto": {"dim": "2 [Dim]", "unknown_rank": "3 bool"},
    "TensorProto": {
        "dtype": "1 int32",
        "tensor_shape": "2 TensorShapeProto",
        "tensor_content": "4 bytes",
        "float_val": "5 [float]",
        "double_val": "6 [double]",
        "int_val": "7 [int32]",
        "string_val": "8 [bytes]",
        "scomplex_val": "9 [float]",
        "int64_val": "10 [int64]",
        "bool_val": "11 [bool]",
        "dcomplex_val": "12 [double]",
        "half_val": "13 [int32]",
        "uint32_val": "16 [uint32]",
        "uint64_val": "17 [uint64]",
    },
    "PluginData": {"plugin_name": "string", "content": "bytes"},
    "SummaryMetadata": {
        "plugin_data": "PluginData",
        "display_name": "string",
        "summary_description": "string",
    },
    "SummaryValue": {
        "tag": "1 string",
        "tensor": "8 TensorProto",
        "metadata": "9 SummaryMetadata",
    },
    "Summary": {"value": "[SummaryValue]"},
    "SourceMetadata": {"writer": "string"},
    "Event": {
        "wall_time": "1 double",
        "step": "2 int64",
        "file_version": "3 string",
        "summary": "5 Summary",
        "source_metadata": "10 SourceMetadata",
    },
}


@cache
def message_class(name: str) -> Any:
    """Return the class of a message."""
    kind = message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))
    kind.__module__ = "evenfeed.train"
    kind.__doc__ = f"TensorFlow's message {name}: {', '.join(_MESSAGES[name])}."
    if name in _LISTS:
        kind.__init__ = _accepting_tensors(kind.__init__)
    return kind


def _accepting_tensors(by_protobuf: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor of a list message that also takes single texts and bools of all tensors."""

    def __init__(message: Any, *, value: Any = ()) -> None:  # noqa: N807 - it becomes the method of that name
        values = value
        if type(value) is not list and isinstance(value, Iterator):
            values = list(cast("Iterator[Any]", value))
        try:
            by_protobuf(message, value=values)
        except TypeError as error:
            message.Clear()  # it has the values before the one that failed
            by_protobuf(message, value=_plain_values(values, error))

    return __init__


def _plain_values(values: Any, error: TypeError) -> list[Any]:
    try:
        return list(map(_plain_value, values))
    except TypeError:  # they cannot be iterated over, as the first error says
        raise error from None


def _plain_value(value: Any) -> Any:
    """Convert a single text to bytes, and a bool to an int. Returns other values unchanged."""
    if type(value) in (bool, np.bool_):
        return int(value)
    if not is_tensor(value) or value.shape or value.dtype not in (dtypes.bool, dtypes.string):
        return value
    return _plain_value(np.asarray(value).item())


@cache
def _pool() -> Any:
    file = descriptor_pb2.FileDescriptorProto(
        name="evenfeed/example.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for place, (field, kind) in enumerate(fields.items(), 1):
            number, _, own = kind.rpartition(" ")
            _add_field(message, field, int(number or place), own)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def _add_field(message: Any, name: str, number: int, kind: str) -> None:
    field = message.field.add(name=name, number=number)
    field.label = field.LABEL_REPEATED if kind[0] in "[{" else field.LABEL_OPTIONAL
    inner = kind.removeprefix("kind:").strip("[]{}")
    if kind.startswith("kind:"):
        if not message.oneof_decl:
            message.oneof_decl.add(name="kind")
        field.oneof_index = 0
    if kind[0] == "{":
        entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        key, _, value = inner.rpartition(":")
        _add_field(entry, "key", 1, key or "string")
        _add_field(entry, "value", 2, value)
        inner = f"{message.name}.{entry.name}"
    if inner[0].islower():
        field.type = getattr(field, f"TYPE_{inner.upper()}")
    else:
        field.type, field.type_name = field.TYPE_MESSAGE, f".{_PACKAGE}.{inner}"


@final
@dataclass(frozen=True, slots=True)
class Where:
    """The record, and optionally the step within it, that an error refers to."""

    record: int
    step: int | None = None

    def __str__(self) -> str:
        return (
            f"record {self.record}"
            if self.step is None
            else f"step {self.step} of record {self.record}"
        )

    def wrong(self, what: str, fix: str) -> InvalidArgumentError:
        """Return the error for this place."""
        return InvalidArgumentError(what, fix=fix).at_record(self.record)


def parsed(kind: str, record: bytes, number: int) -> Any:
    """Parse a record as a message of this kind."""
    try:
        return message_class(kind).FromString(record)
    except Exception as error:  # noqa: BLE001 - the library's own error class is loaded lazily
        raise Where(number).wrong(
            f"Record {number} ({len(record)} bytes) is not a valid {kind}: {error}.",
            fix=f"pass what {kind}.SerializeToString() returned.",
        ) from None


def values_of(feature: Any, where: Where, wanted: Fixed | Varying | Sequenced) -> Array | None:
    """Return the values of a Feature message; None if it is missing."""
    values = _list_of(feature, where, wanted)
    return None if values is None else array_of(list(values), wanted.dtype)


def _list_of(feature: Any, where: Where, wanted: Fixed | Varying | Sequenced) -> Any:
    """Return the list of values in a Feature message; None if it is missing."""
    held: str | None = None if feature is None else feature.WhichOneof("kind")
    if held is None:
        return None
    if DTYPES[held] != wanted.dtype:
        raise where.wrong(
            f"Feature {wanted.key!r} of {where} has dtype {dtypes.name_of(DTYPES[held])}, but "
            f"{dtypes.name_of(wanted.dtype)} was requested. Data types don't match.",
            fix="pass the dtype that was written.",
        )
    return getattr(feature, held).value


def array_of(values: Sequence[Any], dtype: DType) -> Array:
    """Return values as a vector."""
    array = np.empty(len(values), dtype)
    array[:] = values
    return array


def fixed_value(feature: Any, where: Where, wanted: Fixed) -> Array:
    """Return the array of a feature, or its default."""
    values = values_of(feature, where, wanted)
    if values is None:
        default = wanted.default_array
        if default is None:
            raise where.wrong(
                f"Feature {wanted.key!r} ({dtypes.name_of(wanted.dtype)}) is required, but {where} does not have it.",
                fix="pass default_value=, or write the feature.",
            )
        return default
    if len(values) != wanted.count:
        raise where.wrong(
            f"Feature {wanted.key!r} of {where} has {len(values)} values, but shape {wanted.shape} has "
            f"{wanted.count}.",
            fix="pass the shape that was written, or VarLenFeature(dtype).",
        )
    return values.reshape(wanted.shape)


def varying_value(feature: Any, where: Where, wanted: Varying | Sequenced) -> Array:
    """Return the values of a feature; empty if it is missing."""
    values = values_of(feature, where, wanted)
    return np.empty(0, wanted.dtype) if values is None else values


def sequenced_value(feature: Any, where: Where, wanted: Sequenced) -> Array:
    """Return the values of a feature as a sequence of arrays of the requested shape."""
    values = varying_value(feature, where, wanted)
    if len(values) % max(1, wanted.count):
        raise where.wrong(
            f"Feature {wanted.key!r} of {where} has {len(values)} values, which is not a multiple of the "
            f"{wanted.count} values of shape {wanted.shape}.",
            fix="pass the shape that was written.",
        )
    return values.reshape(len(values) // max(1, wanted.count), *wanted.shape)


def steps_of(features: Iterable[Any] | None, where: Where, wanted: Sequenced) -> Array:
    """Return the arrays of all steps of a feature list, stacked."""
    if features is None:
        if not wanted.may_miss:
            raise where.wrong(
                f"Feature list {wanted.key!r} is required, but {where} does not have it.",
                fix="pass allow_missing=True, or write the list.",
            )
        return np.empty((0, *wanted.shape), wanted.dtype)
    one = Fixed(wanted.key, wanted.dtype, wanted.shape, None)
    values: list[Any] = []  # one array of all steps: an array for each takes most of the time
    count = 0
    for feature in features:
        step = Where(where.record, count)
        held = _list_of(feature, step, one)
        if held is None or len(held) != one.count:
            fixed_value(feature, step, one)  # raises
        values += held or ()
        count += 1
    return array_of(values, wanted.dtype).reshape(count, *wanted.shape)


def lists_of_steps(features: Iterable[Any], record: int, wanted: Varying) -> list[Any]:
    """Return the values of each step of a feature list."""
    steps = enumerate(features)
    return [_list_of(feature, Where(record, step), wanted) or () for step, feature in steps]


def padded(parts: Sequence[Array], wanted: Sequenced) -> Array:
    """Stack arrays of different lengths, padded to the longest."""
    longest = max(map(len, parts), default=0)
    dense = np.full((len(parts), longest, *wanted.shape), wanted.fill, wanted.dtype)
    for row, part in enumerate(parts):
        dense[row, : len(part)] = part
    return dense
