"""Joins the parts of values: `Strategy.gather`."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from evenfeed.core.conversion import Array, shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.jax_door import jax, jnp
from evenfeed.core.structure import NEST, map_structure
from evenfeed.replicas.collectives import gather_parts
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.parts import (
    afterwards,
    check_one_dtype,
    computed,
    has_parts,
    is_apart,
    looks_of,
    meets_workers,
    no_axis,
    on_first,
    part_shape,
    spread,
    stack_of,
    tensors_of,
    whole_of,
)
from evenfeed.replicas.variables import Variable
from evenfeed.replicas.worker_parts import of_all_workers
from evenfeed.tensors.placement import unbound


def gathered(replicas: Replicas, value: Any, axis: Any) -> Any:
    """Join the parts of `value` along an axis, on the device of the first replica.

    Of a nest every value is joined. What is the same on all replicas stays as it is.
    """
    if not isinstance(axis, (int, np.integer)):
        raise ValueError(
            described(
                f"gather joins along an axis, but got axis={shortened(axis)}.", fix="pass axis=0."
            )
        )
    return map_structure(partial(_gathered, replicas, int(axis)), value, rules=NEST)


def _gathered(replicas: Replicas, axis: int, value: Any) -> Any:
    return unbound(_gathered_parts(replicas, axis, value))


def _gathered_parts(replicas: Replicas, axis: int, value: Any) -> Any:
    if replicas.count == 1 or not (has_parts(value) or replicas.spans):
        return value.value() if isinstance(value, Variable) else value
    value = of_all_workers(replicas, value)
    if is_apart(value):
        first = value.parts[0]
        shapes = value.shapes or [part.shape for part in value.parts]
        like = jax.ShapeDtypeStruct(_joined_shape(shapes, axis), first.dtype)
        return afterwards(lambda own: _gathered(replicas, axis, own), like, value)
    whole = whole_of(spread(replicas, value))
    if whole is None:
        return _joined(replicas, value, axis)
    array, count, stacked = whole
    place = _join_place(part_shape(array, count, stacked), axis)
    return computed(replicas, array, _joined_whole, (count, stacked, place))


def _joined(replicas: Replicas, value: Any, axis: int) -> Any:
    parts = tensors_of(replicas, value)
    looks = looks_of(replicas, value, parts)
    shapes = [look.shape for look in looks]
    _joined_shape(shapes, axis)
    check_one_dtype(looks)
    place = _join_place(shapes[0], axis)
    if looks[0].is_text:
        return np.concatenate(_texts(replicas, parts), place)
    if meets_workers(replicas):
        return gather_parts(replicas, parts, place, [shape[place] for shape in shapes])[0]
    return jnp.concatenate([on_first(replicas, part) for part in parts], place)


def _joined_shape(shapes: Sequence[tuple[int, ...]], axis: int) -> tuple[int, ...]:
    """Return the shape of all parts together."""
    place = _join_place(shapes[0], axis)
    others = {(*shape[:place], *shape[place + 1 :]) for shape in shapes}
    if len(others) > 1 or len(set(map(len, shapes))) > 1:
        raise InvalidArgumentError(
            f"Parts of the shapes {list(shapes)} cannot be joined along axis {axis}.",
            fix="let the parts differ along that axis only.",
        )
    length = sum(shape[place] for shape in shapes)
    return (*shapes[0][:place], length, *shapes[0][place + 1 :])


def _texts(replicas: Replicas, parts: Sequence[Array]) -> list[Array]:
    """Return the texts of all replicas: they stay on the host, and so go the way of messages."""
    if not replicas.spans:
        return list(parts)
    said = [[part.shape, [text.decode("latin-1") for text in part.flat]] for part in parts]
    heard = [row for rows in replicas.told("gather of text", said) for row in rows]
    return [
        np.array([text.encode("latin-1") for text in texts], object).reshape(shape)
        for shape, texts in heard
    ]


def _join_place(shape: Sequence[int], axis: int) -> int:
    if not shape:
        raise InvalidArgumentError(
            "Scalars have no axis to be joined along.",
            fix="give each part an axis with jax.numpy.expand_dims(part, 0).",
        )
    if not -len(shape) <= axis < len(shape):
        raise InvalidArgumentError(no_axis(shape, axis), fix="name an axis that the parts have.")
    return axis % len(shape)


def _joined_whole(array: Any, count: int, stacked: bool, place: int) -> Any:
    stack = stack_of(array, count, stacked)
    return jnp.concatenate([stack[replica] for replica in range(count)], place)
