"""Compiled loops over TFRecord files: record boundaries, checksums and copies.

CRC32C uses the processor's own instruction if it has one (x86 since 2008), and a table otherwise.
"""

import importlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np

from evenfeed.core.conversion import Array, Positions
from evenfeed.core.text.numba_loops import compiled
from evenfeed.formats.tfrecord.framing import AROUND, LENGTH

# The libraries have no type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

# Takes a checksum and the next bytes as an integer; returns the updated checksum.
Added: TypeAlias = Callable[[Any, Any], Any]


def has_instructions() -> bool:
    """Return True if this processor has the CRC32C instruction."""
    features: Any = importlib.import_module("llvmlite.binding").get_host_cpu_features()
    return bool(features.get("sse4.2"))


def adding(size: int) -> Added:
    """Return an intrinsic that adds `size` bytes (8 or 1) to a checksum. Only compiled code can call it."""
    numba: Any = importlib.import_module("numba")
    extending: Any = importlib.import_module("numba.extending")
    ir: Any = importlib.import_module("llvmlite.ir")
    wide, word = ir.IntType(64 if size == 8 else 32), ir.IntType(8 * size)
    name = f"llvm.x86.sse42.crc32.{wide.width}.{word.width}"

    def added(typing: Any, crc: Any, data: Any) -> Any:
        del typing, crc, data
        number = numba.types.uint64

        def written(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            del context, signature
            module = builder.module
            kind = ir.FunctionType(wide, [wide, word])
            called = module.globals.get(name) or ir.Function(module, kind, name)
            narrow = [builder.trunc(given[0], wide), builder.trunc(given[1], word)]
            return builder.zext(builder.call(called, narrow), ir.IntType(64))

        return number(number, number), written

    return extending.intrinsic(added)


_LENGTH_BYTES: Final = LENGTH.size
_U64 = np.uint64

# Compiled code does not distinguish NumPy numbers from Python numbers.
# pyright: reportArgumentType=false, reportReturnType=false


def _tables() -> Array:
    """Return a table of what each byte value adds to a checksum, for each number of bytes (0 to 7) that follow it."""
    tables = np.empty((8, 256), np.uint32)
    tables[0] = np.arange(256)
    for _ in range(8):
        tables[0] = tables[0] >> 1 ^ np.where(tables[0] & 1, np.uint32(0x82F63B78), np.uint32(0))
    for before, after in pairwise(tables):
        after[:] = before >> 8 ^ tables[0][before & 0xFF]
    return tables


_TABLES: Final = _tables()


@compiled
def walk(held: Array, start: int, stop: int, places: Positions) -> int:
    """Write the start of each record and the end of the last one; return the number of places written.

    Stops before a record that ends after `stop`, or whose length is damaged.
    """
    at, found = start, 0
    places[0] = start
    while found + 1 < len(places) and at + AROUND <= stop:
        length = _word(held, at) | _word(held, at + 4) << _U64(32)
        if length > _U64(stop - at - AROUND):
            break
        if _masked(held, at, at + _LENGTH_BYTES) != _word(held, at + _LENGTH_BYTES):
            break
        at += np.int64(length) + AROUND
        found += 1
        places[found] = at
    return found + 1


@compiled
def first_wrong(held: Array, starts: Positions, stops: Positions) -> int:
    """Return the index of the first payload whose checksum is wrong; the number of payloads if all are right."""
    for row in range(len(starts)):
        if _masked(held, starts[row], stops[row]) != _word(held, stops[row]):
            return row
    return len(starts)


@compiled
def gather(held: Array, starts: Positions, where: Positions, out: Array) -> None:
    """Copy a piece from each start to its place in `out`; the last entry of `where` is the end of the last piece."""
    for row in range(len(starts)):
        start, to = starts[row], where[row]
        for byte in range(where[row + 1] - to):
            out[_U64(to + byte)] = held[_U64(start + byte)]


@compiled
def _word(held: Array, at: int) -> int:
    """Return four bytes as an integer."""
    low = _U64(held[_U64(at)]) | _U64(held[_U64(at + 1)]) << _U64(8)
    return low | _U64(held[_U64(at + 2)]) << _U64(16) | _U64(held[_U64(at + 3)]) << _U64(24)


@compiled
def crc_by_table(held: Array, at: int, stop: int) -> int:
    """Return the CRC32C of bytes `at` to `stop`, on any processor."""
    crc = _U64(0xFFFFFFFF)
    while at + 8 <= stop:
        crc ^= _word(held, at)
        crc = _U64(
            _TABLES[7, crc & _U64(0xFF)]
            ^ _TABLES[6, crc >> _U64(8) & _U64(0xFF)]
            ^ _TABLES[5, crc >> _U64(16) & _U64(0xFF)]
            ^ _TABLES[4, crc >> _U64(24)]
            ^ _TABLES[3, held[_U64(at + 4)]]
            ^ _TABLES[2, held[_U64(at + 5)]]
            ^ _TABLES[1, held[_U64(at + 6)]]
            ^ _TABLES[0, held[_U64(at + 7)]]
        )
        at += 8
    while at < stop:
        crc = crc >> _U64(8) ^ _U64(_TABLES[0, (crc ^ _U64(held[_U64(at)])) & _U64(0xFF)])
        at += 1
    return crc ^ _U64(0xFFFFFFFF)


@compiled
def crc_by_instruction(held: Array, at: int, stop: int) -> int:
    """Return the CRC32C of bytes `at` to `stop`, with the processor's instruction."""
    crc = _U64(0xFFFFFFFF)
    while at + 8 <= stop:
        crc = _add_8(crc, _word(held, at) | _word(held, at + 4) << _U64(32))
        at += 8
    while at < stop:
        crc = _add_1(crc, _U64(held[_U64(at)]))
        at += 1
    return crc ^ _U64(0xFFFFFFFF)


_add_8, _add_1 = adding(8), adding(1)
_crc: Final = crc_by_instruction if has_instructions() else crc_by_table


@compiled
def _masked(held: Array, at: int, stop: int) -> int:
    """Return a masked checksum, as stored in a file."""
    crc = _crc(held, at, stop)
    return ((crc >> _U64(15) | crc << _U64(17)) + _U64(0xA282EAD8)) & _U64(0xFFFFFFFF)
