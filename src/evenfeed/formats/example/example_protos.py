"""The protocol buffers of `tf.train`: `Example` and its parts, `ClusterDef`, and `TensorProto`.

They are built from descriptors in their own pool, because TensorFlow, or another package with messages of the same
names, may be loaded in the same process.
"""

from functools import cache
from typing import Any, Final

from evenfeed.core.lazy import descriptor_pb2, descriptor_pool, message_factory

# Message classes are created at runtime, so their types are unknown statically.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

_PACKAGE: Final = "tensorflow"

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
}


@cache
def message_class(name: str) -> Any:
    """Return the class of a message."""
    kind = message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))
    kind.__module__ = "evenfeed.train"
    kind.__doc__ = f"TensorFlow's message {name}: {', '.join(_MESSAGES[name])}."
    return kind


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
