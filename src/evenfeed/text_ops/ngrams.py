"""Joins neighbouring texts, and texts of one segment."""

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import to_array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.text.text_values import bytes_array
from evenfeed.text_ops.each_text import checked_text, not_text, text_array


def ngrams(
    data: Any,
    ngram_width: Any,
    separator: Any = " ",
    pad_values: Any = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Any:
    """Join every few neighbouring texts of each row.

    Args:
        data: Rows of texts: a tensor with at least one axis, or a ragged tensor.
        ngram_width: How many texts to join; a list for several widths, one after the other.
        separator: What is put between the texts.
        pad_values: A text to put before and after each row, or two.
        padding_width: How often to put it; by default once less than the width.
        preserve_short_sequences: Whether a row that is too short becomes one text.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.ngrams(tf.ragged.constant([["a", "b", "c"], ["d"]]), 2).to_list()
        [[b'a b', b'b c'], []]
    """
    del name
    several = isinstance(ngram_width, (list, tuple))
    widths = list(cast("Sequence[int]", ngram_width)) if several else [int(ngram_width)]
    if any(width < 1 for width in widths):
        raise ValueError(
            described(
                f"All ngram_widths must be greater than 0. Got {ngram_width}.",
                fix="pass how many texts to join.",
            )
        )
    if padding_width is not None and padding_width < 1:
        raise ValueError(
            described(
                f"padding_width must be greater than 0. Got {padding_width}.",
                fix="omit it, or pass how often to repeat pad_values.",
            )
        )
    how = _Joining(
        widths,
        checked_text(separator, "separator"),
        _pads(pad_values),
        padding_width,
        bool(preserve_short_sequences),
    )
    if isinstance(data, RaggedTensor):
        return how.of_rows(data)
    array = text_array(data)
    if not array.ndim:
        raise ValueError(described("Data must have rank>0.", fix="pass a list of texts."))
    matrix = array.reshape(math.prod(array.shape[:-1]), array.shape[-1])
    rows = [how.of_row(row) for row in matrix.tolist()]
    count = len(rows[0]) if rows else 0
    flat = bytes_array([text for row in rows for text in row])
    return computed_tensor(flat.reshape(*array.shape[:-1], count))


class _Joining:
    def __init__(
        self,
        widths: list[int],
        separator: bytes,
        pads: tuple[bytes, bytes] | None,
        padding: int | None,
        keeps_short: bool,
    ) -> None:
        self._widths = widths
        self._separator = separator
        self._pads = pads
        self._padding = padding
        self._keeps_short = keeps_short

    def of_rows(self, rows: RaggedTensor) -> RaggedTensor:
        if rows.dtype != dtypes.string:
            raise not_text(rows.dtype)
        if isinstance(rows.values, RaggedTensor):
            return rows.with_values(self.of_rows(rows.values))
        made = [self.of_row(row) for row in rows.to_list()]
        lengths = np.fromiter(map(len, made), np.int64, len(made))
        flat = bytes_array([text for row in made for text in row])
        found = RaggedTensor.from_row_lengths(flat, lengths)
        return found.with_row_splits_dtype(rows.splits.dtype)

    def of_row(self, row: list[bytes]) -> list[bytes]:
        found: list[bytes] = []
        for width in self._widths:
            whole = self._padded(row, width - 1)
            starts = range(len(whole) - width + 1)
            found += [self._separator.join(whole[start : start + width]) for start in starts]
        if not found and row and self._keeps_short:
            found = [self._separator.join(self._padded(row, self._padding or 0))]
        return found

    def _padded(self, row: list[bytes], most: int) -> list[bytes]:
        if self._pads is None:
            return row
        count = most if self._padding is None else min(most, self._padding)
        return [self._pads[0]] * count + row + [self._pads[1]] * count


def _pads(values: Any) -> tuple[bytes, bytes] | None:
    if values is None:
        return None
    given = (
        list(cast("Sequence[Any]", values)) if isinstance(values, (list, tuple)) else [values] * 2
    )
    if len(given) != 2:
        raise ValueError(
            described(
                f"pad_values must be one text or two, but got {len(given)}.",
                fix='pass a text, or a tuple such as ("<", ">").',
            )
        )
    return checked_text(given[0], "pad_values"), checked_text(given[1], "pad_values")


def unsorted_segment_join(
    inputs: Any, segment_ids: Any, num_segments: Any, separator: Any = "", name: str | None = None
) -> Any:
    """Join the texts that have the same segment id.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.unsorted_segment_join(["a", "b", "c"], [1, 0, 1], 2, separator="-").tolist()
        [b'b', b'a-c']
    """
    del name
    texts, ids, count = text_array(inputs), to_array(segment_ids), int(num_segments)
    if texts.shape[: ids.ndim] != ids.shape or ids.dtype.kind not in "iu":
        raise InvalidArgumentError(
            f"segment_ids must be integers whose shape begins that of the texts, but the shapes are {ids.shape} and "
            f"{texts.shape}.",
            fix="pass one id for each text, or for each row.",
        )
    if ids.size and int(ids.max()) >= count:
        raise InvalidArgumentError(
            f"segment_ids must be less than num_segments={count}, but got {int(ids.max())}.",
            fix="pass more segments.",
        )
    inner = texts.shape[ids.ndim :]
    rows = texts.reshape(ids.size, -1)
    groups = [list[int]() for _ in range(count)]
    numbers: list[int] = ids.reshape(-1).tolist()
    for row, segment in enumerate(numbers):
        if segment >= 0:
            groups[segment].append(row)
    between = checked_text(separator, "separator")
    found = [
        between.join(rows[group, column].tolist())
        for group in groups
        for column in range(rows.shape[1])
    ]
    return computed_tensor(bytes_array(found).reshape(count, *inner))


def joined_rows(rows: RaggedTensor, axis: int | None, separator: bytes) -> Any:
    """Join the texts of a ragged tensor along one axis, or all of them."""
    if axis is None:
        return computed_tensor(bytes_array([separator.join(rows.flat_values.tolist())]).reshape(()))
    if axis > 1:
        return rows.with_values(joined_rows(rows.values, axis - 1, separator))
    if isinstance(rows.values, RaggedTensor) or rows.values.ndim > 1:
        raise InvalidArgumentError(
            "reduce_join of a ragged tensor joins along its innermost axis, or all texts.",
            fix="pass axis=-1, several times if needed.",
        )
    return computed_tensor(bytes_array([separator.join(row) for row in _groups(rows, axis)]))


def _groups(rows: RaggedTensor, axis: int) -> list[list[bytes]]:
    listed = rows.to_list()
    if axis == 1:
        return listed
    widest = max(map(len, listed), default=0)
    return [[row[place] for row in listed if place < len(row)] for place in range(widest)]
