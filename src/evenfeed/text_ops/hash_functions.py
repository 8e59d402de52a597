"""64-bit hash functions on many texts at once: FarmHash's fingerprint, MurmurHash64A and SipHash-2-4.

Texts stay in their buffer. All arithmetic is modulo 2⁶⁴, as NumPy's is for uint64 arrays.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core.conversion import Array, Positions
from evenfeed.core.lazy import LazyModule
from evenfeed.core.text.numba_loops import is_worth_it
from evenfeed.core.text.text_columns import Texts

if TYPE_CHECKING:
    from evenfeed.text_ops import column_loops
else:
    column_loops = LazyModule("evenfeed.text_ops.column_loops")

Words: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"

_K0, _K1, _K2 = (np.uint64(k) for k in (0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F))
_MURMUR: Final = np.uint64(0xC6A4A7935BD1E995)
_MURMUR_SEED: Final = 0xDECAFCAFFE
_SIP: Final = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
_ALL_BITS: Final = 2**64 - 1


@final
class AlikeTexts:
    """Texts in a buffer that a hash function treats alike.

    Attributes:
        size: Their length in bytes: one for all, or one for each as int64.
    """

    __slots__ = ("_data", "_starts", "size")

    def __init__(self, data: Array, starts: Positions, size: Any) -> None:
        self._data = data
        self._starts = starts
        self.size = size

    def __len__(self) -> int:
        return len(self._starts)

    def word(self, at: Any, size: int = 8) -> Words:
        """Return the little-endian number of `size` bytes at a position of each text."""
        count = max(0, len(self._data) - size + 1)
        view = np.ndarray(count, f"<u{size}", self._data, strides=(1,))
        return view[self._starts + at].astype(np.uint64)


def fingerprint64(texts: Texts) -> Words:
    """Return FarmHash's Fingerprint64 of a vector of texts, which `to_hash_bucket_fast` uses."""
    found = np.empty(len(texts), np.uint64)
    if not is_worth_it(len(texts)):
        return _fingerprints(texts, found)
    longer = np.empty(len(texts), np.int64)
    left = column_loops.short_fingerprints(texts.data, texts.starts, texts.stops, found, longer)
    if left:
        rows = longer[:left]
        found[rows] = _fingerprints(texts.take(rows), np.empty(left, np.uint64))
    return found


def _fingerprints(texts: Texts, found: Words) -> Words:
    starts, lengths = texts.starts, texts.stops - texts.starts
    longest = int(lengths.max(initial=0))
    for least, most, function in _BY_LENGTH:
        if least > longest:
            break
        rows = np.flatnonzero((lengths >= least) & (lengths <= most))
        if len(rows):
            found[rows] = function(AlikeTexts(texts.data, starts[rows], lengths[rows]))
    for pieces, rows in _of_each_length(texts, _SHORT):
        found[rows] = _long(pieces)
    return found


def hash64(texts: Texts) -> Words:
    """Return TensorFlow's Hash64 of a vector of texts, which `to_hash_bucket` uses: MurmurHash64A with a fixed seed."""
    return _by_length(texts, _murmur)


def siphash(texts: Texts, key: tuple[int, int]) -> Words:
    """Return SipHash-2-4 with a key of two 64-bit numbers, which `to_hash_bucket_strong` uses."""
    return _by_length(texts, lambda pieces: _siphash(pieces, key))


def _by_length(texts: Texts, function: Callable[[AlikeTexts], Words]) -> Words:
    found = np.empty(len(texts), np.uint64)
    for pieces, rows in _of_each_length(texts):
        found[rows] = function(pieces)
    return found


def _of_each_length(texts: Texts, above: int = -1) -> list[tuple[AlikeTexts, Positions]]:
    """Return the texts of each length above a limit, and their positions."""
    lengths = texts.stops - texts.starts
    known = [length for length in np.flatnonzero(np.bincount(lengths)).tolist() if length > above]
    rows = [np.flatnonzero(lengths == length) for length in known]
    pairs = zip(known, rows, strict=True)
    return [(AlikeTexts(texts.data, texts.starts[mine], length), mine) for length, mine in pairs]


def _murmur(rows: AlikeTexts) -> Words:
    size = rows.size
    start = (_MURMUR_SEED ^ (size * int(_MURMUR))) & _ALL_BITS
    found = _same(start, rows)
    for at in range(0, size - 7, 8):
        found = (found ^ _mixed(rows.word(at) * _MURMUR) * _MURMUR) * _MURMUR
    if size % 8:
        found = (found ^ _tail(rows)) * _MURMUR
    return _mixed(_mixed(found) * _MURMUR)


def _siphash(rows: AlikeTexts, key: tuple[int, int]) -> Words:
    size = rows.size
    state = [_same(part ^ key[n % 2], rows) for n, part in enumerate(_SIP)]
    last = _tail(rows) | np.uint64((size & 0xFF) << 56)
    for word in [*(rows.word(at) for at in range(0, size - 7, 8)), last]:
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


def _to_16(rows: AlikeTexts) -> Words:
    mul = _factor(rows)
    a, b = rows.word(0) + _K2, rows.word(rows.size - 8)
    return _joint(_right(b, 37) * mul + a, (_right(a, 25) + b) * mul, mul)


def _to_7(rows: AlikeTexts) -> Words:
    a, b = rows.word(0, 4), rows.word(rows.size - 4, 4)
    return _joint((a << np.uint64(3)) + rows.size.astype(np.uint64), b, _factor(rows))


def _to_3(rows: AlikeTexts) -> Words:
    size = rows.size
    a, b, c = (rows.word(at, 1) for at in (0, size >> 1, size - 1))
    y, z = a + (b << np.uint64(8)), size.astype(np.uint64) + (c << np.uint64(2))
    return _mixed(y * _K2 ^ z * _K0) * _K2


def _empty(rows: AlikeTexts) -> Words:
    return _same(int(_K2), rows)


def _factor(rows: AlikeTexts) -> Words:
    return _K2 + (2 * rows.size).astype(np.uint64)


def _to_32(rows: AlikeTexts) -> Words:
    size, mul = rows.size, _factor(rows)
    a, b = rows.word(0) * _K1, rows.word(8)
    c, d = rows.word(size - 8) * mul, rows.word(size - 16) * _K2
    return _joint(_right(a + b, 43) + _right(c, 30) + d, a + _right(b + _K2, 18) + c, mul)


def _to_64(rows: AlikeTexts) -> Words:
    size, mul = rows.size, _factor(rows)
    a, b = rows.word(0) * _K2, rows.word(8)
    c, d = rows.word(size - 8) * mul, rows.word(size - 16) * _K2
    y = _right(a + b, 43) + _right(c, 30) + d
    z = _joint(y, a + _right(b + _K2, 18) + c, mul)
    e, f = rows.word(16) * mul, rows.word(24)
    g, h = (y + rows.word(size - 32)) * mul, (z + rows.word(size - 24)) * mul
    return _joint(_right(e + f, 43) + _right(g, 30) + h, e + _right(f + a, 18) + g, mul)


def _long(rows: AlikeTexts) -> Words:
    """Hash texts of more than 64 bytes: blocks of 64 bytes, and the last 64 once more."""
    size = rows.size
    seed, odd = _same(81, rows), np.uint64(113)
    y = seed * _K1 + odd
    z = _mixed(y * _K2 + odd) * _K2
    x = seed * _K2 + rows.word(0)
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


def _block(rows: AlikeTexts, at: int, state: Any, mul: Any, factor: Any = np.uint64(1)) -> Any:  # noqa: B008 - immutable
    x, y, z, v, w = state
    x = _right(x + y + v[0] + rows.word(at + 8), 37) * mul
    y = _right(y + v[1] + rows.word(at + 48), 42) * mul
    x = x ^ w[1] * factor
    y = y + v[0] * factor + rows.word(at + 40)
    z = _right(z + w[0], 33) * mul
    v = _weak(rows, at, v[1] * mul, x + w[0])
    w = _weak(rows, at + 32, z + w[1], y + rows.word(at + 16))
    return z, y, x, v, w


def _weak(rows: AlikeTexts, at: int, a: Words, b: Words) -> tuple[Words, Words]:
    first, second, third, fourth = (rows.word(at + 8 * n) for n in range(4))
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


def _tail(rows: AlikeTexts) -> Words:
    """Return the bytes after the last whole word of each text, as a number."""
    rest = rows.size % 8
    found = _same(0, rows)
    for byte in range(rest):
        found |= rows.word(rows.size - rest + byte, 1) << np.uint64(8 * byte)
    return found


def _same(number: int, rows: AlikeTexts) -> Words:
    return np.full(len(rows), number, np.uint64)


# The fingerprint of texts of at least and at most so many bytes. Longer ones are hashed in blocks.
_SHORT: Final = 64
_BY_LENGTH: Final = (
    (0, 0, _empty), (1, 3, _to_3), (4, 7, _to_7), (8, 16, _to_16), (17, 32, _to_32), (33, _SHORT, _to_64),
)  # fmt: skip
