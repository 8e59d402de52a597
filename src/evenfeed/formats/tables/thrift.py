"""Parses Thrift's compact protocol, the encoding of Parquet footers.

Any invalid input raises ValueError. Footers with many row groups have a million values, so the loop over the fields of
a struct inlines the common cases and calls functions only for the rare ones.
"""

from typing import Any, Final, TypeAlias

# The values of a struct by field number.
Fields: TypeAlias = dict[int, Any]
# The fields to read from a struct: the kind of each, and the shape of its own fields or items.
Shape: TypeAlias = "dict[int, Kind]"
Kind: TypeAlias = tuple[int, Any]

I32: Final[Kind] = 5, None
I64: Final[Kind] = 6, None
BYTES: Final[Kind] = 8, None

_BOOLS, _BYTE, _LAST_NUMBER, _DOUBLE, _BYTES, _LIST, _SET, _MAP, _STRUCT = (
    2,
    3,
    6,
    7,
    8,
    9,
    10,
    11,
    12,
)
_LONG: Final = 15  # the size or field number follows in its own bytes
_MORE: Final = 128  # the bit of a byte that says another byte follows
_MOST_BITS: Final = 63
_DEEPEST: Final = 64


def list_of(items: Kind) -> Kind:
    """Return the kind of a list."""
    return _LIST, items


def struct_of(shape: Shape) -> Kind:
    """Return the kind of a struct."""
    return _STRUCT, shape


def struct_in(data: bytes, shape: Shape) -> Fields:
    """Return the requested fields of the struct at the start of `data`.

    Other fields are skipped. A requested field of another kind, or one that appears twice, raises ValueError:
    parsers disagree on how to read it.
    """
    try:
        return _struct(data, 0, shape, 0)[0]
    except IndexError:
        raise ValueError("it ends in the middle of a value") from None


def _struct(data: bytes, at: int, shape: Shape, depth: int) -> tuple[Fields, int]:
    """Return a struct, and the offset after it. Reading past the last byte raises IndexError."""
    found: Fields = {}
    field = 0
    while head := data[at]:
        kind = head & 15
        at += 1
        if head > _LONG:
            field += head >> 4
        else:
            field, at = _signed(data, at)
        wanted = shape.get(field)
        if wanted is not None and (wanted[0] != kind or field in found):
            raise ValueError(f"field {field} appears twice, or has the wrong type")
        if _BYTE < kind <= _LAST_NUMBER:
            number = data[at]
            at += 1
            if number >= _MORE:
                number, at = _unsigned(data, at - 1)
            value: Any = number >> 1 ^ -(number & 1)
        elif kind > _BOOLS:
            value, at = _value(data, at, kind, wanted and wanted[1], depth)
        else:
            value = kind
        if wanted is not None:
            found[field] = value
    return found, at + 1


def _value(data: bytes, at: int, kind: int, shape: Any, depth: int) -> tuple[Any, int]:
    if kind == _BYTES:
        size, at = _unsigned(data, at)
        return data[at : at + size], at + size
    if _BYTE < kind <= _LAST_NUMBER:
        return _signed(data, at)
    if depth > _DEEPEST:
        raise ValueError("its structs are nested too deeply")
    if kind == _STRUCT:
        return _struct(data, at, shape or {}, depth + 1)
    if _BYTES < kind <= _SET:
        return _items(data, at, shape, depth + 1)
    if kind == _MAP:
        return None, _skip_map(data, at, depth + 1)
    if 0 < kind <= _BYTE:  # in a list a bool also takes a byte
        return data[at], at + 1
    if kind == _DOUBLE:
        return data[at : at + 8], at + 8
    raise ValueError(f"type {kind} is unknown")


def _items(data: bytes, at: int, wanted: Kind | None, depth: int) -> tuple[list[Any], int]:
    kind, size = data[at] & 15, data[at] >> 4
    size, at = (size, at + 1) if size < _LONG else _unsigned(data, at + 1)
    if wanted is not None and size and wanted[0] != kind:
        raise ValueError(f"a list has items of the wrong type {kind}")
    shape = wanted and wanted[1]
    found: list[Any] = []
    for _ in range(_fitting(size, data, at)):
        item, at = _value(data, at, kind, shape, depth)
        found.append(item)
    return found, at


def _skip_map(data: bytes, at: int, depth: int) -> int:
    size, at = _unsigned(data, at)
    kinds = data[at] if size else 0
    at += size > 0
    for _ in range(_fitting(size, data, at)):
        for kind in (kinds >> 4, kinds & 15):
            _, at = _value(data, at, kind, None, depth)
    return at


def _fitting(size: int, data: bytes, at: int) -> int:
    if size > len(data) - at:  # each value takes at least one byte
        raise ValueError(f"a list of {size} values does not fit")
    return size


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while shift <= _MOST_BITS:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < _MORE:
            return number, at
        shift += 7
    raise ValueError("an integer is too long")


def _signed(data: bytes, at: int) -> tuple[int, int]:
    number, at = _unsigned(data, at)
    return number >> 1 ^ -(number & 1), at
