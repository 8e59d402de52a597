"""Regular expressions on texts, by RE2 as in TensorFlow; pyarrow contains it.

Common patterns run as automata on columns of ASCII text, which is many times as fast and gives the same.
"""

import importlib
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, Positions
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, UnimplementedError
from evenfeed.core.lazy import LazyModule
from evenfeed.core.text.numba_loops import is_worth_it
from evenfeed.core.text.text_columns import Texts, joined
from evenfeed.core.text.text_values import bytes_array
from evenfeed.text_ops import automata
from evenfeed.text_ops.automata import Automaton
from evenfeed.text_ops.each_text import EachText, applied, checked_text

if TYPE_CHECKING:
    from evenfeed.text_ops import column_loops
else:
    column_loops = LazyModule("evenfeed.text_ops.column_loops")

# Memory for results is reserved before they are known: at most this many bytes. Only what is written to is used.
_MOST_RESERVED: Final = 1 << 28
# What the compiled loop writes for texts that RE2 must match.
_NOT_ASCII: Final = 2
_GROUP: Final = re.compile(rb"\\([0-9\\])")


def regex_replace(
    input: Any,
    pattern: Any,
    rewrite: Any,
    replace_global: bool = True,
    name: str | None = None,
) -> Any:
    r"""Replace what a regular expression matches in each text.

    Args:
        input: The texts.
        pattern: The expression, in RE2 syntax.
        rewrite: The replacement; `\1` is the first group, `\0` the whole match.
        replace_global: False replaces only the first match.
        name: Accepted for compatibility.

    Raises:
        InvalidArgumentError: The pattern is not a regular expression.
        UnimplementedError: The rewrite of only the first match refers to `\0` and to `\9`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.regex_replace("a<br />b", "<[^>]+>", " ").item()
        b'a b'
    """
    del name
    known = _checked_pattern(checked_text(pattern, "pattern"))
    replacement = checked_text(rewrite, "rewrite")
    _check_rewrite(known, replacement)
    if not replace_global:
        _first_only(known, replacement)  # raises early
    return applied(RegexReplace(known, replacement, bool(replace_global)), input)


def regex_full_match(input: Any, pattern: Any, name: str | None = None) -> Any:
    """Return True for each text that a regular expression matches from start to end.

    Raises:
        InvalidArgumentError: The pattern is not a regular expression.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.regex_full_match(["lib", "library"], "lib.*y").tolist()
        [False, True]
    """
    del name
    known = _checked_pattern(checked_text(pattern, "pattern"))
    return applied(RegexFullMatch(known), input)


@final
@dataclass(frozen=True)
class RegexReplace(EachText):
    """Replaces the matches of a regular expression."""

    pattern: bytes
    rewrite: bytes
    everywhere: bool

    gives: DType = dtypes.string

    def each(self, values: list[Any]) -> Array:
        found = self._replaced(_arrow_texts(values))
        return bytes_array(found.cast("large_binary").to_pylist())

    def in_buffer(self, texts: Texts) -> Texts | None:
        flat = texts.reshape(-1)
        automaton = automata.searching(self.pattern) if is_worth_it(texts.size) else None
        reserved = texts.nbytes * max(1, len(self.rewrite))
        if automaton is None or b"\\" in self.rewrite or reserved > _MOST_RESERVED:
            return self._by_re2(flat).reshape(texts.shape)
        return self._by_automaton(flat, automaton, reserved).reshape(texts.shape)

    def _by_re2(self, texts: Texts) -> Texts:
        return texts_of_arrow(self._replaced(arrow_texts(*texts.packed())))

    def _by_automaton(self, texts: Texts, automaton: Automaton, reserved: int) -> Texts:
        out = np.empty(reserved, np.uint8)
        starts, stops = np.empty(len(texts), np.int64), np.empty(len(texts), np.int64)
        size = column_loops.replace(
            (texts.data, texts.starts, texts.stops),
            (automaton.steps, automaton.first, automaton.accepting),
            np.frombuffer(self.rewrite, np.uint8),
            -1 if self.everywhere else 1,
            (out, starts, stops),
        )
        data, rest = out[:size].copy(), np.flatnonzero(starts < 0)
        if len(rest):
            searched = self._by_re2(texts.take(rest))
            data = np.concatenate([data, searched.data])
            starts[rest], stops[rest] = searched.starts + size, searched.stops + size
        return Texts(data, starts, stops)

    def _replaced(self, texts: Any) -> Any:
        if self.everywhere:
            return _replaced_all(texts, self.pattern, self.rewrite)
        # Arrow would match the first match again without the text around it, on which \b and $ depend.
        # So each first match takes the rest of its text, too, and the rest is appended after the rewrite.
        replaced = texts_of_arrow(_replaced_all(texts, *_first_only(self.pattern, self.rewrite)))
        up_to = texts_of_arrow(_replaced_all(texts, *_first_only(self.pattern, rb"\0")))
        given = texts_of_arrow(texts)
        rest = Texts(given.data, given.starts + (up_to.stops - up_to.starts), given.stops)
        in_pairs = np.arange(2 * len(given)).reshape(2, -1).T.ravel()
        data, ends = joined([replaced, rest]).take(in_pairs).packed()
        return arrow_texts(data, np.ascontiguousarray(ends[::2]))


@final
@dataclass(frozen=True)
class RegexFullMatch(EachText):
    """Tells whether a regular expression matches whole texts."""

    pattern: bytes

    gives: DType = dtypes.bool

    def each(self, values: list[Any]) -> Array:
        return self._matched(_arrow_texts(values))

    def in_buffer(self, texts: Texts) -> Array | None:
        flat = texts.reshape(-1)
        automaton = automata.matching(self.pattern) if is_worth_it(texts.size) else None
        if automaton is None:
            return self._by_re2(flat).reshape(texts.shape)
        found = np.empty(len(flat), np.int8)
        tables = automaton.steps, automaton.first, automaton.accepting
        if column_loops.match((flat.data, flat.starts, flat.stops), tables, found):
            rest = np.flatnonzero(found == _NOT_ASCII)
            found[rest] = self._by_re2(flat.take(rest))
        return found.astype(np.bool_).reshape(texts.shape)

    def _by_re2(self, texts: Texts) -> Array:
        return self._matched(arrow_texts(*texts.packed()))

    def _matched(self, texts: Any) -> Array:
        whole = rb"\A(?:" + self.pattern + rb")\z"
        found = _compute().match_substring_regex(texts, pattern=whole)
        return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


@cache
def check_pattern(pattern: bytes) -> None:
    """Raise InvalidArgumentError unless RE2 accepts a pattern."""
    try:
        _compute().match_substring_regex(_arrow_texts([b""]), pattern=pattern)
    except ValueError as error:
        reason = str(error).partition("regular expression: ")[2] or str(error)
        raise InvalidArgumentError(
            f"Invalid pattern: {pattern.decode('utf-8', 'replace')}, error: {reason}",
            fix="pass a regular expression in RE2 syntax; escape literal text with re.escape.",
        ) from None


@cache
def _checked_pattern(pattern: bytes) -> bytes:
    r"""Return a pattern that can be put into brackets: a quote that is open, as in `\Qa.b`, is closed.

    Raises:
        InvalidArgumentError: RE2 does not accept the pattern.
    """
    check_pattern(pattern)
    if rb"\Q" not in pattern:
        return pattern
    try:
        check_pattern(pattern + rb"\E")
    except InvalidArgumentError:
        return pattern
    return pattern + rb"\E"


@cache
def _first_only(pattern: bytes, rewrite: bytes) -> tuple[bytes, bytes]:
    """Return a pattern and a rewrite that replace the first match in a text, and drop the text after it."""
    groups = {int(group) for group in _GROUP.findall(rewrite) if group != b"\\"}
    if 0 not in groups:
        return rb"(?:" + pattern + rb")\C*", rewrite
    if 9 in groups:
        raise UnimplementedError(
            r"A rewrite of only the first match cannot refer to both \0 and \9.",
            fix=r"write groups that the rewrite does not refer to as (?:...), so that fewer are numbered.",
        )

    def shifted(found: re.Match[bytes]) -> bytes:
        return found[0] if found[1] == b"\\" else b"\\%d" % (int(found[1]) + 1)

    return rb"(" + pattern + rb")\C*", _GROUP.sub(shifted, rewrite)


def _replaced_all(texts: Any, pattern: bytes, rewrite: bytes) -> Any:
    return _compute().replace_substring_regex(texts, pattern=pattern, replacement=rewrite)


@cache
def _check_rewrite(pattern: bytes, rewrite: bytes) -> None:
    """Raise InvalidArgumentError for a replacement that RE2 refuses. TensorFlow leaves texts unchanged there."""
    try:
        _replaced_all(_arrow_texts([b""]), pattern, rewrite)
    except ValueError as error:
        reason = str(error).removeprefix("Invalid replacement string: ")
        raise InvalidArgumentError(
            f"Invalid rewrite: {rewrite.decode('utf-8', 'replace')}, error: {reason}",
            fix=r"refer to groups of the pattern as \1, and write a backslash as \\.",
        ) from None


def _arrow_texts(values: list[bytes]) -> Any:
    """Return texts as an Arrow array of strings, which RE2 reads as UTF-8. They may be invalid."""
    pyarrow = _arrow()
    binary = pyarrow.array(values, pyarrow.large_binary())
    return pyarrow.Array.from_buffers(pyarrow.large_string(), len(binary), binary.buffers())


def arrow_texts(data: Array, ends: Positions) -> Any:
    """Return packed texts as an Arrow array of strings. They may be invalid UTF-8."""
    pyarrow = _arrow()
    buffers = [None, pyarrow.py_buffer(ends), pyarrow.py_buffer(np.ascontiguousarray(data))]
    return pyarrow.Array.from_buffers(pyarrow.large_string(), len(ends) - 1, buffers)


def texts_of_arrow(array: Any) -> Texts:
    """Return an Arrow array of large strings as texts in its buffer."""
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
    held = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return Texts(held, ends[:-1], ends[1:])


def _compute() -> Any:
    return _imported("pyarrow.compute")


def _arrow() -> Any:
    return _imported("pyarrow")


def _imported(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UnimplementedError(
            f"Regular expressions on text need pyarrow, which cannot be imported: {error}.",
            fix="pip install 'evenfeed[text]'.",
        ) from None
