"""Hypothesis strategies for columns of every kind that a Block can have."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from evenfeed.core import dtypes
from evenfeed.core.block import Block
from evenfeed.core.specs import NoneTensorSpec, TensorSpec, TypeSpec

NUMBERS = [
    dtypes.int64,
    dtypes.float32,
    dtypes.bool,
    dtypes.bfloat16,
    dtypes.int4,
    dtypes.complex64,
]
SHAPES = st.sampled_from([(), (2,), (0,), (1, 3)])


@st.composite
def arrays(draw: st.DrawFn, dtype: Any, shape: tuple[int, ...]) -> Any:
    """Return an array of one shape."""
    count = int(np.prod(shape))
    if dtype == dtypes.string:
        out = np.empty(count, dtypes.string)
        out[:] = draw(st.lists(st.binary(max_size=5), min_size=count, max_size=count))
        return out.reshape(shape)
    values = draw(st.lists(st.integers(0, 7), min_size=count, max_size=count))
    return np.array(values, np.int64).astype(dtype).reshape(shape)


@st.composite
def columns(draw: st.DrawFn, length: int) -> tuple[TypeSpec, Any]:
    """Return a spec, and a column of `length` rows of it."""
    dtype = draw(st.sampled_from([*NUMBERS, dtypes.string, None]))
    if dtype is None:
        return NoneTensorSpec(), None
    if draw(st.booleans()):
        shape = draw(SHAPES)
        return TensorSpec(shape, dtype), draw(arrays(dtype, (length, *shape)))
    rows = [draw(arrays(dtype, draw(SHAPES))) for _ in range(length)]
    return TensorSpec(None, dtype), rows


@st.composite
def blocks(draw: st.DrawFn, most: int = 9) -> tuple[list[TypeSpec], Block]:
    """Return the specs of some columns, and a Block of them."""
    length = draw(st.integers(1, most))
    specs, parts = zip(*draw(st.lists(columns(length), min_size=1, max_size=3)), strict=True)
    return list(specs), Block(tuple(parts), length)


def plain_rows(block: Block) -> list[Any]:
    """Return rows as values that == compares."""
    rows = [block.row(index) for index in range(block.length)]
    return [
        [None if part is None else (str(part.dtype), part.shape, part.tolist()) for part in row]
        for row in rows
    ]
