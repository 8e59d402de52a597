"""Validates the arguments that users pass."""

import operator
import os
from typing import Any, Final, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import is_tensor, shortened, to_array
from evenfeed.core.dtypes import as_integers
from evenfeed.core.errors import InvalidArgumentError, described


def whole_number(value: Any, name: str) -> int:
    """Return `value` as an int that fits into 64 bits. Errors name the argument."""
    try:
        number = operator.index(as_integers(value))
    except TypeError as error:
        if type(error).__module__.partition(".")[0] == "jax":
            raise  # the value is a tracer: the caller handles that
        raise TypeError(
            described(
                f"{name} must be a whole number, but got {shortened(value)} "
                f"of type {type(value).__name__}.",
                fix=f"pass an int as {name}.",
            )
        ) from None
    if not -(2**63) <= number < 2**63:
        raise ValueError(described(f"{name} does not fit into 64 bits: {shortened(value)}."))
    return number


def count_or_none(value: Any, name: str) -> int | None:
    """Return an optional argument as an int, or None if it is not given."""
    return None if value is None else whole_number(value, name)


def check_synchronous(synchronous: Any, num_parallel_calls: Any) -> None:
    """Raise if both arguments of `map` are given: they contradict each other."""
    if synchronous and num_parallel_calls is not None:
        raise ValueError(
            described(
                f"A synchronous map has no parallel calls, but num_parallel_calls is {num_parallel_calls}.",
                fix="pass one of them.",
            )
        )


def yes_or_no(value: Any, name: str) -> bool:
    """Return `value`, a bool or a tensor of one, as a bool. Anything else raises TypeError: `bool("no")` is True."""
    if type(value) in (bool, np.bool_):
        return bool(value)
    if is_tensor(value) and value.dtype == dtypes.bool and not value.shape:
        return bool(to_array(value))
    raise TypeError(
        described(
            f"{name} must be True or False, but got {shortened(value)}.",
            fix=f"pass {name}=True or {name}=False.",
        )
    )


def seconds_of(value: Any, name: str) -> float:
    """Return `value` as a finite number of seconds, 0 or more."""
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = -1.0
    if isinstance(value, bool | str) or not 0 <= seconds < float("inf"):
        raise ValueError(
            described(
                f"{name} must be a number of seconds, but got {shortened(value)}.",
                fix=f"pass {name}=1.0 for one second.",
            )
        )
    return seconds


def path_of(value: Any, name: str, fix: str) -> str:
    """Return `value` as a path string. Anything but a path raises TypeError."""
    single = is_tensor(value) and value.dtype == dtypes.string and not value.shape
    path: Any = to_array(value).item() if single else value
    if isinstance(path, str | bytes | os.PathLike):
        return os.fsdecode(cast("os.PathLike[str]", path))
    raise TypeError(described(f"{name} must be a path, but got {shortened(value)}.", fix=fix))


def folder_of(value: Any) -> str:
    """Return the absolute path of the folder that holds a saved dataset."""
    return os.path.abspath(path_of(value, "path", "pass the folder that holds the dataset."))


def compression_of(value: Any) -> str:
    """Return "" or "GZIP". "AUTO" means none, because memory-mapped files are read fastest."""
    if value is not None and not isinstance(value, str):
        raise TypeError(
            described(
                f"compression must be text, but got {shortened(value)}.",
                fix='pass "GZIP", or None.',
            )
        )
    if value not in (None, "", "AUTO", "GZIP"):
        raise InvalidArgumentError(
            f"compression must be GZIP, AUTO or None, but got {value!r}.",
            fix='pass "GZIP" for smaller files, None for faster reads.',
        )
    return "GZIP" if value == "GZIP" else ""


def compression_type_of(value: Any) -> str:
    """Return "GZIP", "ZLIB", or "" for no compression."""
    if value is not None and not isinstance(value, str):
        raise TypeError(
            described(
                f"compression_type must be text, but got {shortened(value)}.", fix=_COMPRESSIONS
            )
        )
    if value not in (None, "", "GZIP", "ZLIB"):
        raise InvalidArgumentError(
            f'compression_type must be "GZIP", "ZLIB" or "", but got {value!r}.', fix=_COMPRESSIONS
        )
    return value or ""


_COMPRESSIONS: Final = 'pass compression_type="GZIP", or None for uncompressed files.'
