"""The `data_format`, `strides` and `padding` arguments of convolutions and pooling."""

from collections.abc import Sequence
from typing import Any, Final, cast

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.tensors.axes import known_integer
from evenfeed.tensors.creation import whole_numbers

# By the number of spatial axes.
_SPACE: Final = {1: "W", 2: "HW", 3: "DHW"}


def layout_of(function: str, data_format: str | None, rank: int) -> str:
    """Return the order of the axes: N is the batch, C the channels."""
    space = _SPACE.get(rank)
    known = () if space is None else (f"N{space}C", f"NC{space}")
    found = data_format or (known[0] if known else "")
    if found not in known:
        raise InvalidArgumentError(
            f"{function} cannot read values with {rank} spatial axes in the layout {data_format}.",
            fix=f"pass data_format={known[0]!r}." if known else "pass a tensor of rank 3, 4 or 5.",
        )
    return found


def per_axis(given: object, layout: str) -> list[int]:
    """Return one number for each spatial axis, from one for all, one for each, or one for every axis."""
    space = [place for place, axis in enumerate(layout) if axis not in "NC"]
    numbers = None if given is None else whole_numbers(given)
    entries: list[int] = [1] if numbers is None else numbers.reshape(-1).tolist()
    if len(entries) == 1:
        return entries * len(space)
    if len(entries) == len(layout):
        return [entries[place] for place in space]
    if len(entries) != len(space):
        raise InvalidArgumentError(
            f"Expected 1, {len(space)} or {len(layout)} numbers, but got {entries}.",
            fix="pass one number for all axes.",
        )
    return entries


def paddings_of(padding: object, layout: str) -> Any:
    """Return "SAME", "VALID", or the values to add before and after each spatial axis."""
    if isinstance(padding, str):
        if padding not in ("SAME", "VALID"):
            raise InvalidArgumentError(
                f"padding must be SAME, VALID or a list, but got {padding!r}.", fix='pass "SAME".'
            )
        return padding
    pairs = cast("Sequence[Sequence[object]]", padding)
    each = [tuple(known_integer(one, "padding") for one in pair) for pair in pairs]
    if len(each) != len(layout):
        return each
    return [pair for pair, axis in zip(each, layout, strict=True) if axis not in "NC"]
