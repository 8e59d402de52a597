"""Moves blocks of space into the batch and back: `space_to_batch` and `batch_to_space`."""

# ruff: noqa: A002, ARG001 - TensorFlow's names; there is no graph to show `name` in

import math
from typing import Any

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jnp
from evenfeed.tensors.creation import Tensor, static_shape
from evenfeed.tensors.operands import ANY, apply


def space_to_batch(
    input: object, block_shape: object, paddings: Any, name: str | None = None
) -> Tensor:
    """Pad the axes after the batch, cut them into blocks, and move the places in a block to the batch.

    Args:
        input: The tensor, as [batch, ...].
        block_shape: The length of a block along each of the axes that follow the batch.
        paddings: How many zeros to add before and after each of them.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.space_to_batch([[1, 2, 3, 4]], [2], [[0, 0]]).tolist()
        [[1, 3], [2, 4]]
    """
    blocks = static_shape(block_shape)
    pairs = [static_shape(pair) for pair in paddings]

    def formula(x: Any) -> Any:
        _check("space_to_batch", blocks, pairs, x.ndim)
        rest = x.ndim - 1 - len(blocks)
        x = jnp.pad(x, [(0, 0), *pairs, *[(0, 0)] * rest])
        lengths = x.shape[1 : 1 + len(blocks)]
        if any(length % block for length, block in zip(lengths, blocks, strict=True)):
            raise InvalidArgumentError(
                f"The padded lengths {lengths} are not divisible by the blocks {blocks}.",
                fix="pass other paddings.",
            )
        shape = [x.shape[0]]
        for length, block in zip(lengths, blocks, strict=True):
            shape += [length // block, block]
        split = x.reshape(*shape, *x.shape[1 + len(blocks) :])
        inner = [2 * axis + 2 for axis in range(len(blocks))]
        outer = [2 * axis + 1 for axis in range(len(blocks))]
        tail = range(1 + 2 * len(blocks), split.ndim)
        moved = split.transpose(*inner, 0, *outer, *tail)
        return moved.reshape(
            -1 if x.size else x.shape[0] * math.prod(blocks), *moved.shape[len(blocks) + 1 :]
        )

    return apply("space_to_batch", formula, input, accepts=ANY)


def batch_to_space(
    input: object, block_shape: object, crops: Any, name: str | None = None
) -> Tensor:
    """Undo `space_to_batch`, and crop the axes after the batch.

    Examples:
        >>> import evenfeed as tf
        >>> tf.batch_to_space([[1, 3], [2, 4]], [2], [[0, 1]]).tolist()
        [[1, 2, 3]]
    """
    blocks = static_shape(block_shape)
    pairs = [static_shape(pair) for pair in crops]

    def formula(x: Any) -> Any:
        _check("batch_to_space", blocks, pairs, x.ndim)
        count = len(blocks)
        if x.shape[0] % math.prod(blocks):
            raise InvalidArgumentError(
                f"The batch of {x.shape[0]} is not divisible by {math.prod(blocks)}, the product of the blocks.",
                fix="pass the block_shape of space_to_batch.",
            )
        batch = x.shape[0] // math.prod(blocks)
        split = x.reshape(*blocks, batch, *x.shape[1:])
        order = [count]
        for axis in range(count):
            order += [count + 1 + axis, axis]
        moved = split.transpose(*order, *range(2 * count + 1, split.ndim))
        lengths = [x.shape[1 + axis] * block for axis, block in enumerate(blocks)]
        whole = moved.reshape(batch, *lengths, *x.shape[1 + count :])
        cut = [
            slice(first, length - last)
            for (first, last), length in zip(pairs, lengths, strict=True)
        ]
        return whole[(slice(None), *cut)]

    return apply("batch_to_space", formula, input, accepts=ANY)


def _check(function: str, blocks: Any, pairs: Any, rank: int) -> None:
    if len(blocks) != len(pairs) or len(blocks) >= rank or any(block < 1 for block in blocks):
        raise InvalidArgumentError(
            f"{function} got {len(blocks)} blocks and {len(pairs)} pairs for a tensor of rank {rank}.",
            fix="pass one block of at least 1, and one pair, for each axis after the batch.",
        )
