"""Splits texts and joins them: one text becomes several, or several become one."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Column, cut_up
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import EvenfeedError, InvalidArgumentError, OutOfRangeError, described
from evenfeed.core.handles import Handle, Kernel, RowKernel, results_of
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.specs import TensorSpec
from evenfeed.core.text.text_values import bytes_array
from evenfeed.core.text.traced_texts import join_arrays, joined
from evenfeed.text_ops.each_text import applied, check_text, checked_text, text_array


def split(input: Any, sep: Any = None, maxsplit: int = -1, name: str | None = None) -> Any:
    """Split each text at a separator.

    Args:
        input: The texts.
        sep: The separator; None or "" splits at runs of ASCII whitespace.
        maxsplit: The most splits to make; -1 for all.
        name: Accepted for compatibility.

    Returns:
        A vector for a scalar text, otherwise a RaggedTensor with one more axis.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.split("a/b/c", sep="/").tolist()
        [b'a', b'b', b'c']
        >>> tf.strings.split(["hello world", "a b c"]).to_list()
        [[b'hello', b'world'], [b'a', b'b', b'c']]
    """
    del name
    separator = b"" if sep is None else checked_text(sep, "sep")
    return pieces_of(Split(separator or None, int(maxsplit)), input)


def bytes_split(input: Any, name: str | None = None) -> Any:
    """Split each text into its bytes.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.bytes_split("abc").tolist()
        [b'a', b'b', b'c']
    """
    del name
    return pieces_of(SplitBytes(), input)


def join(inputs: Any, separator: Any = "", name: str | None = None) -> Any:
    """Join several tensors of text elementwise.

    Args:
        inputs: A list of tensors of one shape; scalars are repeated.
        separator: What to put between the texts.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.join([["a", "b"], "c"], separator="-").tolist()
        [b'a-c', b'b-c']
    """
    del name
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(
            described(
                f"inputs must be a list of tensors, but got {type(inputs).__name__}.",
                fix="pass [a, b]; to join the texts of one tensor, call reduce_join.",
            )
        )
    between = checked_text(separator, "separator")
    operands = cast("Sequence[Any]", inputs)
    if any(isinstance(operand, Handle) for operand in operands):
        found = joined(operands, between)
        if found is None:
            raise TypeError("A part of the element is joined with a value that is not text.")
        return found
    arrays = [text_array(operand) for operand in operands]
    shapes = {array.shape for array in arrays if array.ndim}
    if len(shapes) > 1:
        raise InvalidArgumentError(
            f"Input shapes do not match: {', '.join(map(str, sorted(shapes)))}.",
            fix="pass tensors of one shape, and scalars.",
        )
    return computed_tensor(join_arrays(arrays or [bytes_array([b""]).reshape(())], between))


def reduce_join(
    inputs: Any,
    axis: Any = None,
    keepdims: bool = False,
    separator: Any = "",
    name: str | None = None,
) -> Any:
    """Join the texts of a tensor along `axis`, or all of them.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strings.reduce_join([["a", "b"], ["c", "d"]], axis=0, separator="+").tolist()
        [b'a+c', b'b+d']
    """
    del name
    axes = None if axis is None else tuple(np.atleast_1d(to_array(axis)).tolist())
    return applied(ReduceJoin(axes, bool(keepdims), checked_text(separator, "separator")), inputs)


class TextPieces(Kernel):
    """A kernel that makes a vector of each scalar text.

    Attributes:
        gives: The dtype of the pieces.
    """

    gives: DType = dtypes.string
    stays_on_host: ClassVar[bool] = True

    @abstractmethod
    def pieces(self, texts: list[bytes]) -> list[list[Any]]:
        """Return the pieces of each text."""

    @final
    def specs(self, *given: TensorSpec) -> list[TensorSpec]:
        check_text(given[0])
        if given[0].shape.rank != 0:
            raise TypeError("A part with axes becomes ragged, which a trace cannot hold.")
        return [TensorSpec([None], self.gives)]

    @final
    def run(self, *columns: Column) -> list[Column]:
        return [[self.vector(found) for found in self.pieces(_texts(cut_up(columns[0])))]]

    def vector(self, found: list[Any]) -> Array:
        """Return pieces as an array."""
        return bytes_array(found) if self.gives == dtypes.string else np.array(found, self.gives)


def _texts(column: Array | list[Any] | None) -> list[bytes]:
    """Return the scalar texts of a column. An array made of bytes would lose zeros at their end."""
    if isinstance(column, np.ndarray):
        return column.tolist()
    return [text.item() for text in column or []]


def pieces_of(kernel: TextPieces, texts: Any) -> Any:
    """Return the pieces of texts: a vector for a scalar, otherwise a ragged tensor with one more axis."""
    found = results_of(kernel, texts)
    if found is not None:
        return found[0]
    if isinstance(texts, Handle):
        raise TypeError("The pieces of a part are taken of something else than the part itself.")
    if isinstance(texts, RaggedTensor):
        return texts.with_flat_values(pieces_of(kernel, texts.flat_values))
    array = text_array(texts)
    made = kernel.pieces(array.ravel().tolist())
    values = computed_tensor(kernel.vector(list(chain.from_iterable(made))))
    if not array.ndim:
        return values
    rows = RaggedTensor.from_row_lengths(values, np.fromiter(map(len, made), np.int64, len(made)))
    for length in reversed(array.shape[1:]):
        rows = RaggedTensor.from_uniform_row_length(rows, length, nrows=None if length else 0)
    return rows


@final
@dataclass(frozen=True)
class Split(TextPieces):
    """Splits texts at a separator; None splits at whitespace."""

    separator: bytes | None
    most: int

    def pieces(self, texts: list[bytes]) -> list[list[Any]]:
        return [self._split(text) for text in texts]

    def _split(self, text: bytes) -> list[bytes]:
        if self.most == 0:
            return [text]
        found = text.split(self.separator, self.most)
        # After that many words TensorFlow adds the rest, even if it is empty.
        return [*found, b""] if self.separator is None and len(found) == self.most else found


@final
@dataclass(frozen=True)
class SplitBytes(TextPieces):
    """Splits texts into bytes."""

    def pieces(self, texts: list[bytes]) -> list[list[Any]]:
        return [[text[at : at + 1] for at in range(len(text))] for text in texts]


@final
@dataclass(frozen=True)
class ReduceJoin(RowKernel):
    """Joins the texts of each element along axes; None stands for all axes."""

    axes: tuple[int, ...] | None
    keepdims: bool
    separator: bytes

    def spec(self, *given: TensorSpec) -> TensorSpec:
        check_text(given[0])
        shape = given[0].shape
        if shape.rank is None:
            return TensorSpec(None if self.axes is not None or self.keepdims else [], dtypes.string)
        axes = self._axes(shape.rank, InvalidArgumentError)
        kept = [
            1 if axis in axes else dim
            for axis, dim in enumerate(shape)
            if self.keepdims or axis not in axes
        ]
        return TensorSpec(kept, dtypes.string)

    def one(self, *parts: Array) -> Array:
        texts = parts[0]
        axes = self._axes(texts.ndim)
        rest = [axis for axis in range(texts.ndim) if axis not in axes]
        kept = [texts.shape[axis] for axis in rest]
        rows = texts.transpose(*rest, *reversed(axes)).reshape(int(np.prod(kept)), -1).tolist()
        shape = [1 if axis in axes else n for axis, n in enumerate(texts.shape)]
        made = bytes_array([self.separator.join(row) for row in rows])
        return made.reshape(shape if self.keepdims else kept)

    def _axes(self, rank: int, error: type[EvenfeedError] = OutOfRangeError) -> list[int]:
        """Return the axes to join along, in order: the texts along the first are next to each other."""
        if self.axes is None:
            return list(reversed(range(rank)))
        for axis in self.axes:
            if not -rank <= axis < rank:
                raise error(
                    f"Invalid reduction dimension {axis} for input with {rank} dimension(s).",
                    fix=f"pass an axis from {-rank} to {rank - 1}." if rank else "omit axis.",
                )
        return [axis % rank for axis in self.axes]
