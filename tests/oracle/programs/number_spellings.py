"""Spellings of numbers that C's strtod knows, on few texts and in columns that compiled loops read."""

_FLOATS = [
    "0x1p3", "0x1.8p1", "0x.8p1", "0x1.", "0x1.p1", "0x.", "0x.p1", "0x1p", "0x1p+", "0x1p+3", "0x1.8", "-0x1p-2", "0X1P3",
    "0x1p 3", " 0x1p3 ", "0x1p400", "-0x1p400", "0x1p2000", "-0x1p2000", "0x1p-150", "0x1p-1080", "0x1p3.0", "0x1e3", "0x1_0",
    "0x1p99999999999", "0x1.000001p0", "0x1.000001000000000000000001p0", "-0x1.000001000000000000000001p0",
    "0x1.000000ffffffffffffffffffp0", "0x10000010000000001", "0x1.000000000000080000001p0", "nan()", "nan(abc_1)", "nan(1",
    "nan(a-b)", "-nan(1)", "NAN(1) ", "nan (1)", "inf(1)", "340282356779733661637539395458142568448",
    "340282356779733661637539395458142568448.1", "340282356779733661637539395458142568447.9", "1e39", "-1e39",
]  # fmt: skip
_INTEGERS = [
    "-0",
    "+0",
    "-00",
    " -0",
    "- 0",
    "-0 ",
    "+1",
    "-1",
    "0" * 30 + "7",
    "18446744073709551616",
    "9" * 30,
]


def floats(tf, ask):
    """Hexadecimal numbers, payloads of nan, and numbers at the end of float32."""
    return {
        f"{dtype.name} {text!r}, {len(before) + 1}": ask(_last, tf, [*before, text], dtype)
        for dtype in (tf.float32, tf.float64)
        for text in _FLOATS
        for before in ([], ["7"] * 300)
    }


def integers(tf, ask):
    """A minus before zero, and many digits."""
    return {
        f"{dtype.name} {text!r}, {len(before) + 1}": ask(_last, tf, [*before, text], dtype)
        for dtype in (tf.int32, tf.int64, tf.uint32, tf.uint64)
        for text in _INTEGERS
        for before in ([], ["7"] * 300)
    }


def _last(tf, texts, dtype):
    return tf.strings.to_number(texts, dtype)[-1:]
