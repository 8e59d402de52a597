"""Splits texts and joins them: one text becomes several, or several become one."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Column
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import (
    EvenfeedError,
    InvalidArgumentError,
    OutOfRangeError,
    UnimplementedError,
    described,
)
from evenfeed.core.handles import Handle
from evenfeed.core.lazy import LazyModule
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.ragged_operators import values_for
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.ragged.row_partitions import known_axis
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.text.numba_loops import is_worth_it
from evenfeed.core.text.text_columns import Texts
from evenfeed.core.text.text_values import bytes_array
from evenfeed.core.text.traced_texts import join_arrays, joined
from evenfeed.core.traced.kernel_stages import Kernel, RowKernel, results_of
from evenfeed.text_ops.each_text import (
    applied,
    check_text,
    checked_text,
    not_text,
    text_array,
)
from evenfeed.text_ops.ngrams import joined_rows

if TYPE_CHECKING:
    from evenfeed.core.text import text_loops
else:
    text_loops = LazyModule("evenfeed.core.text.text_loops")


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
    rows = next((one for one in operands if isinstance(one, RaggedTensor)), None)
    if rows is not None:
        flat = [values_for(rows, operand) for operand in operands]
        return rows.with_flat_values(join(flat, between))
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
    between = checked_text(separator, "separator")
    if not isinstance(inputs, Handle) and isinstance(inputs, RaggedTensor):
        return _reduce_joined(inputs, axes, between, bool(keepdims))
    return applied(ReduceJoin(axes, bool(keepdims), between), inputs)


def _reduce_joined(
    rows: RaggedTensor, axes: tuple[int, ...] | None, separator: bytes, keepdims: bool
) -> Any:
    rank = len(rows.shape)
    places = [None] if axes is None else [known_axis(axis, rank) for axis in axes]
    if len(places) != 1 or keepdims:
        raise UnimplementedError(
            "reduce_join of a ragged tensor joins along one axis, and drops it.",
            fix="call it once for each axis, and evenfeed.expand_dims for keepdims.",
        )
    return joined_rows(rows, places[0], separator)


# All pieces in one vector, and where the pieces of each text start and stop in it.
Pieces: TypeAlias = tuple[Texts | Array, Array]


class TextPieces(Kernel):
    """A kernel that makes a vector of each text: a ragged tensor, if an element has several texts.

    Attributes:
        gives: The dtype of the pieces.
    """

    gives: DType = dtypes.string
    stays_on_host: ClassVar[bool] = True
    takes_ragged: ClassVar[bool] = True

    @abstractmethod
    def pieces(self, texts: list[bytes]) -> list[list[Any]]:
        """Return the pieces of each text."""

    def in_buffer(self, texts: Texts) -> Pieces | None:
        """Return the pieces of texts in a buffer; None to split them one by one."""
        del texts
        return None

    @final
    def specs(self, *given: TypeSpec) -> list[TypeSpec]:
        spec = given[0]
        check_text(spec)
        shape = cast("TensorSpec | RaggedTensorSpec", spec).shape
        if shape.rank is None:
            raise TypeError("The rank of the texts decides the class of the result.")
        if shape.rank == 0:
            return [TensorSpec([None], self.gives)]
        ragged = spec if isinstance(spec, RaggedTensorSpec) else None
        if ragged is not None and ragged.ragged_rank < shape.rank - 1:
            raise TypeError("The texts have axes inside of the ragged ones.")
        splits = dtypes.int64 if ragged is None else ragged.row_splits_dtype
        return [RaggedTensorSpec(shape.concatenate([None]), self.gives, shape.rank, splits)]

    @final
    def run(self, *columns: Column) -> list[Column]:
        column = columns[0]
        if isinstance(column, list):
            return [list(map(self.of_one, column))]
        return [None if column is None else self.of(column)]

    @final
    def of_one(self, texts: Array | RaggedTensor) -> Any:
        """Return the pieces of texts: a vector for a scalar, otherwise a ragged tensor with one more axis."""
        scalar = not isinstance(texts, RaggedTensor) and not texts.ndim
        return self.of(texts[None]).row(0) if scalar else self.of(texts)

    @final
    def of(self, texts: Array | Texts | RaggedTensor) -> RaggedTensor:
        """Return the pieces of texts that have at least one axis, with one more axis."""
        if isinstance(texts, RaggedTensor):
            return texts.with_flat_values(self.of(texts.flat_held))
        flat = texts.reshape(-1)
        rows = RaggedTensor(*self._pieces(flat))
        for length in reversed(texts.shape[1:]):
            rows = RaggedTensor.from_uniform_row_length(rows, length, nrows=None if length else 0)
        return rows

    def _pieces(self, texts: Array | Texts) -> Pieces:
        if is_worth_it(len(texts)):
            held = texts if isinstance(texts, Texts) else Texts.of(texts.tolist())
            found = self.in_buffer(held)
            if found is not None:
                return found
        made = self.pieces(texts.tolist())
        values = self.vector(list(chain.from_iterable(made)))
        counts = np.fromiter(map(len, made), np.int64, len(made))
        return computed_tensor(values), np.append(np.int64(0), np.cumsum(counts))

    def vector(self, found: list[Any]) -> Array:
        """Return pieces as an array."""
        return bytes_array(found) if self.gives == dtypes.string else np.array(found, self.gives)


def pieces_of(kernel: TextPieces, texts: Any) -> Any:
    """Return the pieces of texts: a vector for a scalar, otherwise a ragged tensor with one more axis."""
    found = results_of(kernel, texts)
    if found is not None:
        return found[0]
    if isinstance(texts, Handle):
        raise TypeError("The pieces of a part are taken of something else than the part itself.")
    if isinstance(texts, RaggedTensor):
        if texts.dtype != dtypes.string:
            raise not_text(texts.dtype)
        return kernel.of(texts)
    return kernel.of_one(text_array(texts))


@final
@dataclass(frozen=True)
class Split(TextPieces):
    """Splits texts at a separator; None splits at whitespace."""

    separator: bytes | None
    most: int

    def pieces(self, texts: list[bytes]) -> list[list[Any]]:
        return [self._split(text) for text in texts]

    def in_buffer(self, texts: Texts) -> Pieces | None:
        if self.most >= 0:
            return None
        size = int((texts.stops - texts.starts).sum())
        least = 2 if self.separator is None else len(self.separator)
        # More pieces than these cannot be there. Memory that is not written to is not used.
        most = len(texts) + size // least
        starts, stops = np.empty(most, np.int64), np.empty(most, np.int64)
        splits = np.zeros(len(texts) + 1, np.int64)
        where, out = (texts.data, texts.starts, texts.stops), (starts, stops, splits)
        if self.separator is None:
            count = text_loops.split_at_spaces(*where, out)
        else:
            separator = np.frombuffer(self.separator, np.uint8)
            count = text_loops.split_at(*where, separator, out)
        found = Texts(texts.data, starts[:count].copy(), stops[:count].copy(), texts.origins)
        return found, splits

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
