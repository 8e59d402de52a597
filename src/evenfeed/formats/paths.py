"""The paths in what users pass: one, several, or text in arrays."""

import os
from typing import Any, cast

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.formats.chunks import bytes_column
from evenfeed.formats.filesystems import matching


def paths_in(value: Any, name: str) -> list[str]:
    """Return the paths in a value: one, or a list or an array of them; a TypeError names the argument."""
    if isinstance(value, str | bytes | os.PathLike):
        return [os.fsdecode(cast("os.PathLike[str]", value))]
    if isinstance(value, list | tuple):
        return [path for part in cast("list[Any]", value) for path in paths_in(part, name)]
    if value is not None and (array := to_array(value)).dtype == dtypes.string:
        return [os.fsdecode(path) for path in array.ravel().tolist()]
    raise TypeError(
        described(
            f"{name} must hold paths, but got {shortened(value)}.",
            fix="pass a path, or a list of paths.",
        )
    )


def path_in(value: Any, name: str) -> str:
    """Return the one path that a value is."""
    paths = paths_in(value, name)
    if len(paths) != 1:
        raise TypeError(described(f"{name} must be one path, but got {shortened(value)}."))
    return paths[0]


def as_text(paths: list[str]) -> Array:
    """Return paths as a column of text."""
    return bytes_column([os.fsencode(path) for path in paths])


def matching_paths(patterns: Any, name: str) -> list[str]:
    """Return what matches a pattern or several, sorted."""
    found = [path for pattern in paths_in(patterns, name) for path in matching(pattern)]
    return sorted(found, key=os.fsencode)


def expanded_paths(value: Any, name: str) -> list[str]:
    """Return the paths in a value, patterns replaced by what matches them; at least one."""
    found = [path for one in paths_in(value, name) for path in matching(one) or [one]]
    if not found:
        raise InvalidArgumentError(f"{name} is empty.", fix="pass a path, or a list of paths.")
    return found
