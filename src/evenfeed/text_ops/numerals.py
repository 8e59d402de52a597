"""Converts between texts and numbers: `to_number`, `as_string`, `format`."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described, shortened
from evenfeed.core.lazy import LazyModule
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.text.numba_loops import is_worth_it
from evenfeed.core.text.text_columns import Texts
from evenfeed.core.text.text_values import bytes_array
from evenfeed.tensors.printing import summary
from evenfeed.text_ops.each_text import EachText, applied

if TYPE_CHECKING:
    from evenfeed.text_ops import column_loops
else:
    column_loops = LazyModule("evenfeed.text_ops.column_loops")

_NUMBER_DTYPES: Final = (
    dtypes.float32, dtypes.float64, dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64,
)  # fmt: skip
_FLOAT: Final = re.compile(
    rb"\s*[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan(?:\(\w*\))?)\s*",
    re.IGNORECASE,
)
_HEX: Final = re.compile(
    rb"\s*([+-]?)0x(?=\.?[\da-f])([\da-f]*)\.?([\da-f]*)(?:p([+-]?\d+))?\s*", re.IGNORECASE
)
# No integer dtype has numbers of more than 20 digits.
_INTEGER: Final = re.compile(rb"\s*([+-]?)0*(\d{1,20})\s*")
# The compiled loop parses integers of up to 18 digits.
_MOST_PARSED: Final = 10**18

# A float64 halfway between two float32: these are the 29 bits that float32 does not have.
_LOST_BITS, _HALFWAY = np.uint64(0x1FFFFFFF), np.uint64(0x10000000)


def to_number(input: Any, out_type: Any = dtypes.float32, name: str | None = None) -> Any:
    """Parse each text as a number.

    Args:
        input: The texts.
        out_type: float32, float64, int32, int64, uint32 or uint64.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: A text is not a number, or does not fit into an integer dtype.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.to_number(["1.5", " 2 "]).tolist()
        [1.5, 2.0]
    """
    del name
    dtype = dtypes.as_dtype(out_type)
    if dtype not in _NUMBER_DTYPES:
        names = ", ".join(map(dtypes.name_of, _NUMBER_DTYPES))
        raise InvalidArgumentError(
            f"out_type must be one of {names}, but got {dtypes.name_of(dtype)}.",
            fix="parse as float32 or int32, then call evenfeed.cast.",
        )
    return applied(ToNumber(dtype), input)


@final
@dataclass(frozen=True)
class ToNumber(EachText):
    """Parses texts as numbers."""

    gives: DType

    def each(self, values: list[Any]) -> Array:
        if self.gives.kind in "iu":
            return np.array([self._integer(value) for value in values], self.gives)
        found = np.array([_float(value) for value in values], np.float64)
        return found if self.gives == dtypes.float64 else _narrowed(found, values)

    def in_buffer(self, texts: Texts) -> Array | None:
        """Parse short numbers by compiled code, and the others one by one."""
        if not is_worth_it(texts.size):
            return None
        flat = texts.reshape(-1)
        found, odd = self._parsed((flat.data, flat.starts, flat.stops), len(flat))
        if len(odd):
            found[odd] = self.each(flat.take(odd).tolist())
        return found.reshape(texts.shape)

    def _parsed(self, where: tuple[Array, Array, Array], count: int) -> tuple[Array, Array]:
        """Return the numbers, and the rows whose texts are left."""
        odd = np.empty(count, np.int64)
        if self.gives.kind in "iu":
            limits, found = np.iinfo(self.gives), np.empty(count, self.gives)
            most = min(int(limits.max), _MOST_PARSED)
            left = column_loops.parse_integers(where, int(limits.min), most, found, odd)
            return found, odd[:left]
        wide = np.zeros(count, np.float64)
        bits = None if self.gives == dtypes.float64 else wide.view(np.int64)
        left = column_loops.parse_floats(where, wide, bits, odd)
        return wide.astype(self.gives, copy=False), odd[:left]

    def _integer(self, text: bytes) -> int:
        found, limits = _INTEGER.fullmatch(text), np.iinfo(self.gives)
        if found is None or (found[1] == b"-" and not limits.min):
            raise _not_a_number(text)
        number = int(found[1] + found[2])
        if not limits.min <= number <= limits.max:
            raise _not_a_number(text)
        return number


def _float(text: bytes) -> float:
    if _FLOAT.fullmatch(text):
        return float(text.partition(b"(")[0])  # as in nan(1)
    if not _HEX.fullmatch(text):
        raise _not_a_number(text)
    try:
        return float.fromhex(text.decode())
    except OverflowError:
        return -math.inf if b"-" in text.partition(b"0")[0] else math.inf


def _exact(text: bytes) -> Fraction:
    found = _HEX.fullmatch(text)
    if found is None:
        return Fraction(text.strip().decode())
    sign, whole, part, power = found.groups(b"")
    return int(sign + whole + part, 16) * Fraction(2) ** (int(power or 0) - 4 * len(part))


def _narrowed(found: Array, texts: Sequence[bytes]) -> Array:
    """Round to float32. Rounding twice is wrong where the first result lies halfway between two float32."""
    with np.errstate(over="ignore", under="ignore"):
        narrow = found.astype(np.float32)
    for row in np.flatnonzero((found.view(np.uint64) & _LOST_BITS) == _HALFWAY).tolist():
        wide = found[row].item()
        if not math.isfinite(wide):
            continue
        side = _exact(texts[row]) - Fraction(wide)
        if side:
            towards = np.float32(math.copysign(math.inf, side))
            other = np.nextafter(narrow[row], towards)
            is_right = (float(narrow[row]) > wide) == (side > 0)
            narrow[row] = narrow[row] if is_right else other
    return narrow


def _not_a_number(text: bytes) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"StringToNumberOp could not correctly convert string: {shortened(text.decode('utf-8', 'replace'))}.",
        fix="check the texts, and out_type.",
    )


def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: str | None = None,
) -> Any:
    """Convert each number to text.

    Args:
        input: Numbers, bools or texts.
        precision: The number of decimals of floats; by default 6.
        scientific: Write floats as 1.5e+00.
        shortest: Write floats in the shorter of both notations.
        width: The least number of characters; shorter texts are filled up.
        fill: "0" fills with zeros, "-" fills on the right, "+" and " " write the sign of positive numbers.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.as_string([3.1415926, 2.72], precision=2).tolist()
        [b'3.14', b'2.72']
    """
    del name
    if scientific and shortest:
        raise InvalidArgumentError(
            "Cannot select both scientific and shortest notation.", fix="pass one of the two."
        )
    if fill not in ("", " ", "0", "+", "-"):
        raise InvalidArgumentError(
            f"fill must be ' ', '0', '+' or '-', but got {fill!r}.", fix="pass one of these."
        )
    is_python = isinstance(input, (list, tuple, int, float, complex, str, bytes))
    value: Any = to_array(cast("object", input)) if is_python else input
    dtype = dtypes.as_dtype(value.dtype)
    if dtype == dtypes.string:
        size = f"{'-' if fill == '-' else ''}{width}" if width >= 0 else ""
        return applied(AsString(f"%{size}s"), value)
    is_float = dtype.kind not in "iub"
    if (precision >= 0 or scientific or shortest) and not is_float:
        raise InvalidArgumentError(
            f"precision, scientific and shortest are for floats, but got {dtypes.name_of(dtype)}.",
            fix="omit them.",
        )
    if fill in ("+", " ") and dtype.kind == "u":
        fill = ""  # as in C, where unsigned numbers have no sign
    notation = "e" if scientific else "g" if shortest else "f"
    size = str(width) if width >= 0 else ""
    digits = f".{precision}" if precision >= 0 else ""
    return applied(AsString(f"%{fill}{size}{digits}{notation if is_float else 'd'}"), value)


@final
@dataclass(frozen=True)
class AsString(EachText):
    """Converts numbers to texts with a format of C's printf."""

    template: str

    gives: DType = dtypes.string
    takes: ClassVar[DType | None] = None

    def each(self, values: list[Any]) -> Array:
        return bytes_array(list(map(self._text, values)))

    def _text(self, value: Any) -> Any:
        if isinstance(value, bytes):
            return self.template.encode() % value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, complex):
            return f"({self.template % value.real},{self.template % value.imag})"
        return self.template % value


def format(  # noqa: A001 - TensorFlow's name
    template: Any, inputs: Any, placeholder: str = "{}", summarize: int = 3, name: str | None = None
) -> Any:
    """Fill tensors into a template, printed as `tf.print` prints them.

    Args:
        template: The text with a placeholder for each tensor.
        inputs: A tensor, or a list or tuple of tensors.
        placeholder: What is replaced.
        summarize: How many values to show at both ends of each axis; -1 shows all.
        name: Accepted for compatibility.

    Raises:
        ValueError: The template has another number of placeholders than there are tensors.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.format("x = {}, y = {}", (tf.constant(1), tf.constant([1.5, 2.0]))).item()
        b'x = 1, y = [1.5 2]'
    """
    del name
    several = isinstance(inputs, (list, tuple))
    values = list(cast("Sequence[Any]", inputs)) if several else [inputs]
    pieces = str(template).split(placeholder)
    if len(pieces) - 1 != len(values):
        raise ValueError(
            described(
                f"The template has {len(pieces) - 1} placeholders, but there are {len(values)} inputs.",
                fix=f"write {placeholder} once for each tensor; pass several tensors as a tuple.",
            )
        )
    texts = [summary(to_array(value), summarize, quoted=True) for value in values]
    filled = "".join(piece + text for piece, text in zip(pieces, [*texts, ""], strict=True))
    return computed_tensor(bytes_array([filled.encode(errors="surrogateescape")]).reshape(()))
