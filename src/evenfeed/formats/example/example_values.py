"""Parses the features of one example message, and reports what is wrong with them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.formats.example.example_protos import message_class
from evenfeed.formats.example.features import DTYPES, Fixed, Sequenced, Varying, Wanted


@final
@dataclass(frozen=True, slots=True)
class Where:
    """The record, and optionally the step within it, that an error refers to."""

    record: int
    step: int | None = None

    def __str__(self) -> str:
        return (
            f"record {self.record}"
            if self.step is None
            else f"step {self.step} of record {self.record}"
        )

    def wrong(self, what: str, fix: str) -> InvalidArgumentError:
        """Return the error for this place."""
        return InvalidArgumentError(what, fix=fix).at_record(self.record)


def parsed(kind: str, record: bytes, number: int) -> Any:
    """Parse a record as a message of this kind."""
    try:
        return message_class(kind).FromString(record)
    except Exception as error:  # noqa: BLE001 - the library's own error class is loaded lazily
        raise Where(number).wrong(
            f"Record {number} ({len(record)} bytes) is not a valid {kind}: {error}.",
            fix=f"pass what {kind}.SerializeToString() returned.",
        ) from None


def values_of(feature: Any, where: Where, wanted: Wanted) -> Array | None:
    """Return the values of a Feature message; None if it is missing."""
    held: str | None = None if feature is None else feature.WhichOneof("kind")
    if held is None:
        return None
    if DTYPES[held] != wanted.dtype:
        raise where.wrong(
            f"Feature {wanted.key!r} of {where} has dtype {dtypes.name_of(DTYPES[held])}, but "
            f"{dtypes.name_of(wanted.dtype)} was requested. Data types don't match.",
            fix="pass the dtype that was written.",
        )
    return array_of(list(getattr(feature, held).value), wanted.dtype)


def array_of(values: Sequence[Any], dtype: DType) -> Array:
    """Return values as a vector."""
    array = np.empty(len(values), dtype)
    array[:] = values
    return array


def fixed_value(feature: Any, where: Where, wanted: Fixed) -> Array:
    """Return the array of a feature, or its default."""
    values = values_of(feature, where, wanted)
    if values is None:
        default = wanted.default_array
        if default is None:
            raise where.wrong(
                f"Feature {wanted.key!r} ({dtypes.name_of(wanted.dtype)}) is required, but {where} does not have it.",
                fix="pass default_value=, or write the feature.",
            )
        return default
    if len(values) != wanted.count:
        raise where.wrong(
            f"Feature {wanted.key!r} of {where} has {len(values)} values, but shape {wanted.shape} has "
            f"{wanted.count}.",
            fix="pass the shape that was written, or VarLenFeature(dtype).",
        )
    return values.reshape(wanted.shape)


def varying_value(feature: Any, where: Where, wanted: Varying | Sequenced) -> Array:
    """Return the values of a feature; empty if it is missing."""
    values = values_of(feature, where, wanted)
    return np.empty(0, wanted.dtype) if values is None else values


def sequenced_value(feature: Any, where: Where, wanted: Sequenced) -> Array:
    """Return the values of a feature as a sequence of arrays of the requested shape."""
    values = varying_value(feature, where, wanted)
    if len(values) % max(1, wanted.count):
        raise where.wrong(
            f"Feature {wanted.key!r} of {where} has {len(values)} values, which is not a multiple of the "
            f"{wanted.count} values of shape {wanted.shape}.",
            fix="pass the shape that was written.",
        )
    return values.reshape(len(values) // max(1, wanted.count), *wanted.shape)


def steps_of(features: Iterable[Any] | None, where: Where, wanted: Sequenced) -> Array:
    """Return the arrays of all steps of a feature list, stacked."""
    if features is None:
        if not wanted.may_miss:
            raise where.wrong(
                f"Feature list {wanted.key!r} is required, but {where} does not have it.",
                fix="pass allow_missing=True, or write the list.",
            )
        return np.empty((0, *wanted.shape), wanted.dtype)
    one = Fixed(wanted.key, wanted.dtype, wanted.shape, None)
    steps = [fixed_value(f, Where(where.record, i), one) for i, f in enumerate(features)]
    return np.stack(steps) if steps else np.empty((0, *wanted.shape), wanted.dtype)


def padded(parts: Sequence[Array], wanted: Sequenced) -> Array:
    """Stack arrays of different lengths, padded to the longest."""
    longest = max(map(len, parts), default=0)
    dense = np.full((len(parts), longest, *wanted.shape), wanted.fill, wanted.dtype)
    for row, part in enumerate(parts):
        dense[row, : len(part)] = part
    return dense
