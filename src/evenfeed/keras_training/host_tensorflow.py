"""What Keras's layers for text and categories find in `tf`: functions on host tensors, which keep 64-bit ids.

The layers run on the host, so nothing here is traced. `host_layers.py` sees to that.
"""

import math
import string
from collections import Counter
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, Final, final

import numpy as np

from evenfeed import data, io, lookup, ragged, sparse, strings
from evenfeed.core import dtypes
from evenfeed.core.errors import FailedPreconditionError, InvalidArgumentError
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.shapes import TensorShape
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.tensor_types import HostTensor, host_tensor
from evenfeed.core.text.text_values import bytes_array
from evenfeed.keras_training.host_backend import (
    cast,
    convert_to_tensor,
    expand_dims,
    hosted,
    squeeze,
)
from evenfeed.lookup import experimental
from evenfeed.tensors.control.assertions import Assert

_PUNCTUATION: Final = string.punctuation.encode()


@final
class NamedDType:
    """A dtype with the attributes that TensorFlow's have."""

    def __init__(self, value: Any) -> None:
        self._dtype = dtypes.as_dtype(value)
        self.name = dtypes.name_of(self._dtype)
        self.is_integer = self._dtype.kind in "iu"

    @property
    def max(self) -> int:
        """The largest integer."""
        return int(np.iinfo(self._dtype).max)

    def __eq__(self, other: object) -> bool:
        return self._dtype == other

    __hash__ = None  # pyright: ignore[reportAssignmentType] - nothing keeps it


@final
class HostVariable:
    """A variable of a layer that stays on the host: Keras saves its value itself."""

    def __init__(self, value: Any, dtype: Any = None, trainable: bool = False) -> None:
        del trainable
        self._value = convert_to_tensor(value, dtype)

    def value(self) -> Any:
        """Return its value."""
        return self._value

    def assign(self, value: Any) -> None:
        """Change its value."""
        self._value = convert_to_tensor(value, self._value.dtype)

    def assign_add(self, value: Any) -> None:
        """Add to its value."""
        self._value = host_tensor(self._value + value)

    def __truediv__(self, other: Any) -> Any:
        return host_tensor(np.asarray(self._value) / other)


@final
class UnfilledTable:
    """The table of a layer that has no vocabulary yet."""

    def size(self) -> Any:
        """Return 0."""
        return host_tensor(np.int64(0))

    def lookup(self, keys: Any) -> Any:
        """Refuse to look up keys.

        Raises:
            FailedPreconditionError: Always.
        """
        del keys
        raise FailedPreconditionError(
            "The layer has no vocabulary yet.",
            fix="call adapt(dataset) or set_vocabulary(words), or pass vocabulary to the layer.",
        )


def _static_table(initializer: Any, default_value: Any) -> Any:
    if initializer is None:
        return UnfilledTable()
    return lookup.StaticHashTable(initializer, default_value)


def no_initializer(key_dtype: Any, value_dtype: Any) -> None:
    """Return what fills the table of a layer without a vocabulary: nothing."""
    del key_dtype, value_dtype


def _regex_replace(input: Any, pattern: str, rewrite: str) -> Any:  # noqa: A002 - TensorFlow's name
    """Remove punctuation, the only pattern that Keras replaces, without the package that regular expressions need."""
    assert not rewrite
    assert set(pattern) - {"\\", "[", "]"} <= set(string.punctuation)
    if isinstance(input, RaggedTensor):
        return input.with_flat_values(_regex_replace(input.flat_values, pattern, rewrite))
    texts = [text.translate(None, _PUNCTUATION) for text in input.ravel().tolist()]
    return host_tensor(bytes_array(texts).reshape(input.shape))


def _equal(x: Any, y: Any) -> Any:
    one = convert_to_tensor(x)
    return host_tensor(np.equal(one, convert_to_tensor(y, one.dtype)).astype(np.bool_))


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None:
        return host_tensor(np.argwhere(condition))
    return host_tensor(np.where(condition, x, y))


def _gather_nd(params: Any, indices: Any) -> Any:
    return host_tensor(params[tuple(np.moveaxis(indices, -1, 0))])


def _unique_with_counts(x: Any, out_idx: Any = "int32") -> tuple[Any, None, Any]:
    """Return the different values in the order in which they appear, and their counts. Keras asks for no more."""
    del out_idx
    found = Counter(np.ravel(x).tolist())
    counts = host_tensor(np.fromiter(found.values(), np.int64, len(found)))
    return convert_to_tensor(np.array(list(found), x.dtype)), None, counts


def _unique(x: Any) -> tuple[Any, None]:
    return _unique_with_counts(x)[:2]


def _map_rows(fn: Any, rows: Any) -> Any:
    return convert_to_tensor(np.concatenate([fn(row) for row in rows]))


def _concat(values: Any, axis: int) -> Any:
    return convert_to_tensor(np.concatenate(values, axis))


def _gather(params: Any, indices: Any) -> Any:
    return host_tensor(np.asarray(params)[np.asarray(indices)])


def _range(start: Any, stop: Any, dtype: Any) -> Any:
    return host_tensor(np.arange(int(start), int(stop), dtype=dtype))


def _shape(tensor: Any, out_type: Any = "int32") -> Any:
    return host_tensor(np.array(tensor.shape, out_type))


def _is_tensor(value: object) -> bool:
    return isinstance(value, (HostTensor, RaggedTensor, SparseTensor))


def _itself(value: Any) -> Any:
    return value


def _always() -> bool:
    return True


def _paddings(input_shape: Any, block_shape: Any) -> tuple[Any, Any]:
    """Return how much to append to each axis so that its length is a multiple of a block."""
    behind = -np.asarray(input_shape) % np.asarray(block_shape)
    return np.stack([np.zeros_like(behind), behind], 1), np.zeros_like(behind)


def _pad(tensor: Any, paddings: Any, constant_values: Any = 0) -> Any:
    return host_tensor(np.pad(tensor, paddings, constant_values=constant_values))


def _bincount(  # noqa: PLR0913 - TensorFlow's arguments
    values: Any,
    *,
    weights: Any = None,
    minlength: int,
    maxlength: int,
    dtype: Any,
    axis: int,
    binary_output: bool,
) -> Any:
    """Count the numbers below `maxlength` in each row."""
    del minlength, axis
    if isinstance(values, RaggedTensor):
        rows, numbers, before = (
            values.value_rowids(),
            values.flat_values,
            values.bounding_shape()[:1],
        )
    else:
        numbers, before = values.reshape(-1), values.shape[:-1]
        rows = np.repeat(np.arange(math.prod(before)), values.shape[-1])
    shape = [*(int(length) for length in before), maxlength]
    rows, numbers = np.asarray(rows), np.asarray(numbers)
    if numbers.size and numbers.min() < 0:
        raise InvalidArgumentError(
            "A category must not be negative.", fix="use a mask_token or leave such values out."
        )
    kept = numbers < maxlength
    heavy = None if weights is None else np.asarray(weights).reshape(-1)[kept]
    found = np.bincount(rows[kept] * maxlength + numbers[kept], heavy, math.prod(shape))
    counts = found.reshape(shape)
    return cast((counts > 0) if binary_output else counts, dtype)


_text_functions: Final = {name: getattr(strings, name) for name in strings.__all__}

#: TensorFlow's names that the layers use.
TENSORFLOW: Final = SimpleNamespace(
    Assert=Assert,
    RaggedTensor=RaggedTensor,
    SparseTensor=SparseTensor,
    Tensor=HostTensor,
    TensorShape=TensorShape,
    TensorSpec=TensorSpec,
    TypeSpec=TypeSpec,
    Variable=HostVariable,
    add=hosted(np.add),
    as_dtype=NamedDType,
    as_string=strings.as_string,
    available=True,
    cast=cast,
    compat=SimpleNamespace(as_text=bytes.decode),
    concat=_concat,
    constant=convert_to_tensor,
    control_dependencies=nullcontext,
    convert_to_tensor=convert_to_tensor,
    data=data,
    device=nullcontext,
    equal=_equal,
    executing_eagerly=_always,
    expand_dims=expand_dims,
    gather=_gather,
    gather_nd=_gather_nd,
    identity=_itself,
    init_scope=nullcontext,
    int64=dtypes.int64,
    io=io,
    is_tensor=_is_tensor,
    lookup=SimpleNamespace(
        KeyValueTensorInitializer=lookup.KeyValueTensorInitializer,
        StaticHashTable=_static_table,
        TextFileIndex=lookup.TextFileIndex,
        TextFileInitializer=lookup.TextFileInitializer,
        experimental=experimental,
    ),
    map_fn=_map_rows,
    math=SimpleNamespace(
        bincount=_bincount,
        floormod=hosted(np.mod),
        log=hosted(np.log),
    ),
    multiply=hosted(np.multiply),
    ones_like=hosted(np.ones_like),
    pad=_pad,
    ragged=ragged,
    range=_range,
    reduce_mean=np.mean,
    required_space_to_batch_paddings=_paddings,
    reshape=hosted(np.reshape),
    shape=_shape,
    size=np.size,
    sparse=sparse,
    squeeze=squeeze,
    string=dtypes.string,
    strings=SimpleNamespace(**(_text_functions | {"regex_replace": _regex_replace})),
    unique=_unique,
    unique_with_counts=_unique_with_counts,
    where=_where,
    zeros_like=hosted(np.zeros_like),
)
