"""Functions that cut tensors up and pad them: `slice`, `split`, `unstack`, `pad` and so on."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

# ruff: noqa: A001, A002, ARG001 - TensorFlow's names; there is no graph to show `name` in

import builtins
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax
from evenfeed.core.ragged import ragged_math
from evenfeed.core.shapes import TensorShape
from evenfeed.tensors.axes import axis_of, known_integer
from evenfeed.tensors.creation import Tensor, convert_to_tensor, host_or_device, whole_numbers
from evenfeed.tensors.device_arrays import is_traced
from evenfeed.tensors.operands import COMPUTABLE, apply, is_text, rearrange
from evenfeed.tensors.ragged_dispatch import for_ragged


def slice(input_: object, begin: object, size: object, name: str | None = None) -> Tensor:
    """Cut out a part: from `begin`, as long as `size` along each axis; -1 is the rest.

    Examples:
        >>> import evenfeed as tf
        >>> tf.slice([[1, 2, 3], [4, 5, 6]], [0, 1], [2, -1]).tolist()
        [[2, 3], [5, 6]]
    """
    tensor = host_or_device(input_)
    lengths = [known_integer(one, "size") for one in _entries(size)]
    if holds_tracers(begin):
        return apply(
            "slice",
            lambda x, *starts: jax.lax.dynamic_slice(x, starts, lengths),
            tensor,
            *_entries(begin),
        )
    starts = [known_integer(one, "begin") for one in _entries(begin)]
    _check_slice(tensor, starts, lengths)
    ends = [
        None if length < 0 else start + length
        for start, length in zip(starts, lengths, strict=True)
    ]
    parts = tuple(builtins.slice(start, end) for start, end in zip(starts, ends, strict=True))
    return rearrange("slice", lambda _, x: x[parts], tensor)


def strided_slice(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    input_: object,
    begin: object,
    end: object,
    strides: object = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: object = None,
    name: str | None = None,
) -> Tensor:
    """Cut out a part with steps, as `x[begin:end:strides]` does. Each bit of a mask is about one entry of `begin`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.strided_slice([1, 2, 3, 4, 5], [0], [4], [2]).tolist()
        [1, 3]
    """
    starts, ends = _integers(begin), _integers(end)
    steps = [1] * len(starts) if strides is None else _integers(strides)
    masks = (begin_mask, end_mask, ellipsis_mask, new_axis_mask, shrink_axis_mask)
    parts = tuple(
        _index(*entry, [bool(mask >> place & 1) for mask in masks])
        for place, entry in enumerate(zip(starts, ends, steps, strict=True))
    )
    return rearrange("strided_slice", lambda _, x: x[parts], input_)


@for_ragged(ragged_math.split)
def split(
    value: object,
    num_or_size_splits: object,
    axis: object = 0,
    num: object = None,
    name: str | None = None,
) -> list[Tensor]:
    """Cut a tensor along `axis` into equal parts, or into parts of these lengths; -1 is the rest.

    Examples:
        >>> import evenfeed as tf
        >>> [x.tolist() for x in tf.split([1, 2, 3, 4], 2)]
        [[1, 2], [3, 4]]
        >>> [x.tolist() for x in tf.split([1, 2, 3], [1, -1])]
        [[1], [2, 3]]
    """

    def formula(xp: Any, tensor: Any) -> list[Any]:
        along = axis_of(tensor.ndim, axis)
        lengths = _part_lengths(num_or_size_splits, tensor.shape[along])
        return list(xp.split(tensor, np.cumsum(lengths)[:-1].tolist(), axis=along))

    return rearrange("split", formula, value)


def unstack(
    value: object, num: object = None, axis: object = 0, name: str | None = None
) -> list[Tensor]:
    """Cut a tensor into its entries along `axis`.

    Examples:
        >>> import evenfeed as tf
        >>> [x.tolist() for x in tf.unstack([[1, 2], [3, 4]])]
        [[1, 2], [3, 4]]
    """

    def formula(xp: Any, tensor: Any) -> list[Any]:
        along = axis_of(tensor.ndim, axis)
        if num is not None and known_integer(num, "num") != tensor.shape[along]:
            raise ValueError(
                described(
                    f"num is {num}, but the tensor has {tensor.shape[along]} entries along axis {along}.",
                    fix="omit num.",
                )
            )
        return [xp.take(tensor, place, axis=along) for place in range(tensor.shape[along])]

    return rearrange("unstack", formula, value)


def pad(
    tensor: object,
    paddings: object,
    mode: str = "CONSTANT",
    constant_values: object = 0,
    name: str | None = None,
) -> Tensor:
    """Add values before and after each axis.

    Args:
        tensor: The values.
        paddings: How many values to add, as [before, after] for each axis.
        mode: "CONSTANT", "REFLECT" or "SYMMETRIC".
        constant_values: The value to add.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.pad([1, 2], [[1, 2]]).tolist()
        [0, 1, 2, 0, 0]
    """
    widths = _paddings(paddings)
    modes = {"CONSTANT": "constant", "REFLECT": "reflect", "SYMMETRIC": "symmetric"}
    if str(mode).upper() not in modes:
        raise ValueError(
            described(f"Unknown mode {mode!r}.", fix=f"pass one of: {', '.join(modes)}.")
        )

    def formula(xp: Any, values: Any, *fill: Any) -> Any:
        if len(widths) != values.ndim:
            raise InvalidArgumentError(
                f"paddings must have a pair for each of the {values.ndim} axes, but got {shortened(paddings)}.",
                fix="pass [0, 0] for an axis without padding.",
            )
        if not widths:
            return values  # a scalar has no axis to pad
        if not fill:
            _check_mirrored(str(mode).upper(), widths, values.shape)
        return xp.pad(
            values,
            widths,
            modes[str(mode).upper()],
            **({"constant_values": fill[0]} if fill else {}),
        )

    if str(mode).upper() != "CONSTANT":
        return rearrange("pad", formula, tensor)
    fill = b"" if is_text(host_or_device(tensor)) and constant_values == 0 else constant_values
    return rearrange("pad", formula, tensor, fill)


def depth_to_space(
    input: object, block_size: object, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Move values from the channels into blocks of rows and columns.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.depth_to_space([[[[1, 2, 3, 4]]]], 2).tolist()
        [[[[1], [2]], [[3], [4]]]]
    """
    size = known_integer(block_size, "block_size")
    check_layout("depth_to_space", data_format)

    def formula(x: Any) -> Any:
        batch, rows, columns, depth = x.shape
        blocks = x.reshape(batch, rows, columns, size, size, depth // size**2)
        return blocks.transpose(0, 1, 3, 2, 4, 5).reshape(batch, rows * size, columns * size, -1)

    return apply("depth_to_space", formula, input, accepts=COMPUTABLE)


def space_to_depth(
    input: object, block_size: object, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """Move blocks of rows and columns into the channels.

    Examples:
        >>> import evenfeed as tf
        >>> tf.nn.space_to_depth([[[[1], [2]], [[3], [4]]]], 2).tolist()
        [[[[1, 2, 3, 4]]]]
    """
    size = known_integer(block_size, "block_size")
    check_layout("space_to_depth", data_format)

    def formula(x: Any) -> Any:
        batch, rows, columns, depth = x.shape
        blocks = x.reshape(batch, rows // size, size, columns // size, size, depth)
        return blocks.transpose(0, 1, 3, 2, 4, 5).reshape(batch, rows // size, columns // size, -1)

    return apply("space_to_depth", formula, input, accepts=COMPUTABLE)


def check_layout(function: str, data_format: str | None, *others: str) -> None:
    """Raise if images are not stored as [batch, rows, columns, channels]."""
    if data_format not in (None, "NHWC", *others):
        raise InvalidArgumentError(
            f"{function} supports the data_format NHWC, but got {data_format}.",
            fix="move the channels to the end: evenfeed.transpose(x, [0, 2, 3, 1]).",
        )


def _entries(value: object) -> list[Any]:
    """Return the entries of a vector: of a list, or of a tensor."""
    if isinstance(value, (list, tuple)):
        return list(cast("Iterable[object]", value))
    if isinstance(value, TensorShape):
        return list(value)
    tensor: Any = convert_to_tensor(value)
    return [tensor[place] for place in range(tensor.shape[0])]


def holds_tracers(value: object) -> bool:
    """Return True for a tracer, or a list that contains one."""
    if isinstance(value, (list, tuple)):
        return any(map(holds_tracers, cast("Iterable[object]", value)))
    return is_traced(value)


def _integers(value: object) -> list[int]:
    numbers = whole_numbers(value)
    if numbers is None:
        raise InvalidArgumentError(
            f"A slice needs integers, but got {shortened(value)}.", fix="pass a list of ints."
        )
    return numbers.reshape(-1).tolist()


def _check_slice(tensor: Any, starts: list[int], lengths: list[int]) -> None:
    ends = [start + max(length, 0) for start, length in zip(starts, lengths, strict=True)]
    inside = [
        0 <= start <= n and end <= n
        for start, end, n in zip(starts, ends, tensor.shape, strict=False)
    ]
    if len(starts) != tensor.ndim or not all(inside):
        raise InvalidArgumentError(
            f"A slice from {starts} of size {lengths} is not within the shape {tuple(tensor.shape)}.",
            fix="pass a begin and a size for each axis, or -1 for all that is left.",
        )


def _index(start: int, end: int, step: int, masks: list[bool]) -> Any:
    first, last, rest, new, single = masks
    if rest:
        return ...
    if new:
        return None
    if single:
        return start
    return builtins.slice(None if first else start, None if last else end, step)


def _part_lengths(asked: object, length: int) -> list[int]:
    numbers = whole_numbers(asked)
    if numbers is None:
        raise TypeError(
            described(f"split needs integers, but got {shortened(asked)}.", fix="pass an int.")
        )
    if not numbers.ndim:
        count = int(numbers)
        if count < 1 or length % count:
            raise InvalidArgumentError(
                f"{length} values cannot be split into {count} equal parts.",
                fix="pass a divisor of the length, or the length of each part.",
            )
        return [length // count] * count
    lengths: list[int] = numbers.tolist()
    known = sum(one for one in lengths if one >= 0)
    found = [length - known if one == -1 else one for one in lengths]
    if lengths.count(-1) > 1 or sum(found) != length or min(found, default=0) < 0:
        raise InvalidArgumentError(
            f"Parts of the lengths {lengths} do not add up to {length}.",
            fix="pass -1 for one of them.",
        )
    return found


def _check_mirrored(mode: str, widths: list[tuple[int, int]], shape: tuple[int, ...]) -> None:
    """Raise if an axis has too few values to mirror. REFLECT leaves out the one at the end."""
    for pair, length in zip(widths, shape, strict=True):
        most = length - 1 if mode == "REFLECT" else length
        if max(pair) > most:
            raise InvalidArgumentError(
                f"{mode} cannot add {max(pair)} values to an axis of length {length}.",
                fix=f"pass paddings up to {max(most, 0)}, or another mode.",
            )


def _paddings(paddings: object) -> list[tuple[int, int]]:
    return [
        (known_integer(before, "paddings"), known_integer(after, "paddings"))
        for before, after in map(_entries, _entries(paddings))
    ]
