"""64-bit hash functions on many texts of one length: FarmHash's fingerprint, MurmurHash64A and SipHash-2-4.

Each takes a matrix of bytes, one text per row, and computes all rows at once. All arithmetic is modulo 2⁶⁴, as NumPy's
is for uint64 arrays.
"""

from typing import Any, Final, TypeAlias

import numpy as np

from evenfeed.core.conversion import Array

Words: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"

_K0, _K1, _K2 = (np.uint64(k) for k in (0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F))
_MURMUR: Final = np.uint64(0xC6A4A7935BD1E995)
_MURMUR_SEED: Final = 0xDECAFCAFFE
_SIP: Final = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_ALL_BITS: Final = 2**64 - 1


def fingerprint64(rows: Array) -> Words:
    """Return FarmHash's Fingerprint64, which `to_hash_bucket_fast` uses."""
    size = rows.shape[1]
    if size > 64:
        return _long(rows)
    if size > 32:
        return _to_64(rows)
    if size > 16:
        return _to_32(rows)
    return _to_16(rows)


def hash64(rows: Array) -> Words:
    """Return TensorFlow's Hash64, which `to_hash_bucket` uses: MurmurHash64A with a fixed seed."""
    size = rows.shape[1]
    start = (_MURMUR_SEED ^ (size * int(_MURMUR))) & _ALL_BITS
    found = _same(start, rows)
    for at in range(0, size - 7, 8):
        found = (found ^ _mixed(_word(rows, at) * _MURMUR) * _MURMUR) * _MURMUR
    if size % 8:
        found = (found ^ _tail(rows)) * _MURMUR
    return _mixed(_mixed(found) * _MURMUR)


def siphash(rows: Array, key: tuple[int, int]) -> Words:
    """Return SipHash-2-4 with a key of two 64-bit numbers, which `to_hash_bucket_strong` uses."""
    size = rows.shape[1]
    state = [_same(part ^ key[n % 2], rows) for n, part in enumerate(_SIP)]
    last = _tail(rows) | np.uint64((size & 0xFF) << 56)
    for word in [*(_word(rows, at) for at in range(0, size - 7, 8)), last]:
        state[3] = state[3] ^ word
        _sip_rounds(state, 2)
        state[0] = state[0] ^ word
    state[2] = state[2] ^ np.uint64(0xFF)
    _sip_rounds(state, 4)
    return state[0] ^ state[1] ^ state[2] ^ state[3]


def _sip_rounds(state: list[Words], count: int) -> None:
    a, b, c, d = state
    for _ in range(count):
        a, c = a + b, c + d
        b, d = _left(b, 13) ^ a, _left(d, 16) ^ c
        a, c = _left(a, 32) + d, c + b
        b, d = _left(b, 17) ^ c, _left(d, 21) ^ a
        c = _left(c, 32)
    state[:] = a, b, c, d


def _to_16(rows: Array) -> Words:
    size = rows.shape[1]
    mul = _K2 + np.uint64(2 * size)
    if size >= 8:
        a, b = _word(rows, 0) + _K2, _word(rows, size - 8)
        return _joint(_right(b, 37) * mul + a, (_right(a, 25) + b) * mul, mul)
    if size >= 4:
        a, b = _word(rows, 0, 4), _word(rows, size - 4, 4)
        return _joint((a << np.uint64(3)) + np.uint64(size), b, mul)
    if size == 0:
        return _same(int(_K2), rows)
    a, b, c = (rows[:, at].astype(np.uint64) for at in (0, size >> 1, size - 1))
    y, z = a + (b << np.uint64(8)), np.uint64(size) + (c << np.uint64(2))
    return _mixed(y * _K2 ^ z * _K0) * _K2


def _to_32(rows: Array) -> Words:
    size = rows.shape[1]
    mul = _K2 + np.uint64(2 * size)
    a, b = _word(rows, 0) * _K1, _word(rows, 8)
    c, d = _word(rows, size - 8) * mul, _word(rows, size - 16) * _K2
    return _joint(_right(a + b, 43) + _right(c, 30) + d, a + _right(b + _K2, 18) + c, mul)


def _to_64(rows: Array) -> Words:
    size = rows.shape[1]
    mul = _K2 + np.uint64(2 * size)
    a, b = _word(rows, 0) * _K2, _word(rows, 8)
    c, d = _word(rows, size - 8) * mul, _word(rows, size - 16) * _K2
    y = _right(a + b, 43) + _right(c, 30) + d
    z = _joint(y, a + _right(b + _K2, 18) + c, mul)
    e, f = _word(rows, 16) * mul, _word(rows, 24)
    g, h = (y + _word(rows, size - 32)) * mul, (z + _word(rows, size - 24)) * mul
    return _joint(_right(e + f, 43) + _right(g, 30) + h, e + _right(f + a, 18) + g, mul)


def _long(rows: Array) -> Words:
    """Hash texts of more than 64 bytes: blocks of 64 bytes, and the last 64 once more."""
    size = rows.shape[1]
    seed, odd = _same(81, rows), np.uint64(113)
    y = seed * _K1 + odd
    z = _mixed(y * _K2 + odd) * _K2
    x = seed * _K2 + _word(rows, 0)
    v = w = (_same(0, rows), _same(0, rows))
    blocks = (size - 1) // 64
    for block in range(blocks):
        x, y, z, v, w = _block(rows, 64 * block, (x, y, z, v, w), _K1)
    mul = _K1 + ((z & np.uint64(0xFF)) << np.uint64(1))
    w = (w[0] + np.uint64((size - 1) & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x, y, z, v, w = _block(rows, size - 64, (x, y, z, v, w), mul, np.uint64(9))
    first = _joint(v[0], w[0], mul) + _mixed(y) * _K0 + z
    return _joint(first, _joint(v[1], w[1], mul) + x, mul)


def _block(rows: Array, at: int, state: Any, mul: Any, factor: Any = np.uint64(1)) -> Any:  # noqa: B008 - immutable
    x, y, z, v, w = state
    x = _right(x + y + v[0] + _word(rows, at + 8), 37) * mul
    y = _right(y + v[1] + _word(rows, at + 48), 42) * mul
    x = x ^ w[1] * factor
    y = y + v[0] * factor + _word(rows, at + 40)
    z = _right(z + w[0], 33) * mul
    v = _weak(rows, at, v[1] * mul, x + w[0])
    w = _weak(rows, at + 32, z + w[1], y + _word(rows, at + 16))
    return z, y, x, v, w


def _weak(rows: Array, at: int, a: Words, b: Words) -> tuple[Words, Words]:
    first, second, third, fourth = (_word(rows, at + 8 * n) for n in range(4))
    a = a + first
    b = _right(b + a + fourth, 21)
    total = a + second + third
    return total + fourth, b + _right(total, 44) + a


def _joint(u: Words, v: Words, mul: Any) -> Words:
    return _mixed((v ^ _mixed((u ^ v) * mul)) * mul) * mul


def _mixed(word: Words) -> Words:
    return word ^ (word >> np.uint64(47))


def _right(word: Words, bits: int) -> Words:
    return (word >> np.uint64(bits)) | (word << np.uint64(64 - bits))


def _left(word: Words, bits: int) -> Words:
    return _right(word, 64 - bits)


def _word(rows: Array, at: int, size: int = 8) -> Words:
    """Return the little-endian number of `size` bytes at a position of each row."""
    part = np.ascontiguousarray(rows[:, at : at + size])
    return part.view(f"<u{size}").reshape(-1).astype(np.uint64)


def _tail(rows: Array) -> Words:
    """Return the bytes after the last whole word of each row, as a number."""
    rest = rows.shape[1] % 8
    padded = np.zeros((len(rows), 8), np.uint8)
    padded[:, :rest] = rows[:, rows.shape[1] - rest :]
    return _word(padded, 0)


def _same(number: int, rows: Array) -> Words:
    return np.full(len(rows), number, np.uint64)
