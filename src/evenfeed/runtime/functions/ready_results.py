"""Recognises results of user functions that need no conversion: numbers, text and arrays of the dtypes in their spec."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, Final, TypeAlias, cast, final

import numpy as np

from evenfeed.core.block import Block
from evenfeed.core.dtypes import DType
from evenfeed.core.specs import TypeSpec
from evenfeed.core.structure import DATA, flatten, opened, packer
from evenfeed.runtime.functions.private_copies import unshared
from evenfeed.runtime.functions.ready_parts import (
    UNREADY,
    array_taker,
    array_type,
    joined_by,
    kept_as_they_are,
    python_type,
    scalar_taker,
    scalar_type,
)

# Returns the leaves of a value, or None if its structure is another.
Opener: TypeAlias = Callable[[Any], list[Any] | None]

# Results of more combinations of types than this are converted one by one.
_MOST_KINDS: Final = 64
_SEQUENCES: Final = (tuple, list)


@final
class ReadyResults:
    """What a result looks like that needs no conversion.

    Args:
        spec: The spec of a result; None if it is unknown, and no result is ready.
        casts: Whether results are cast to the spec.

    Attributes:
        scalar: The type whose values are ready results, if the spec is that of one number or text.
        number: The dtype of these values; None for text.
        python: The type of Python numbers of which the small ones become ready by `scalar`.
        opener: Takes a result apart, if it consists of single numbers and texts only; else None.
        kept: By the types of such parts, which must be small or ASCII so that `joined` takes them as they are; None if it
            cannot.
        array: The dtype, the rank and the shape of arrays that are ready results, if the spec is that of one array. No
            shape means any lengths.
    """

    def __init__(self, spec: Any, *, casts: bool) -> None:
        specs: list[TypeSpec] = [] if spec is None else flatten(spec, DATA)
        arrays = [array_taker(part, casts=casts) for part in specs]
        takers = [
            array or scalar_taker(part, casts=casts)
            for array, part in zip(arrays, specs, strict=True)
        ]
        self._take = [take for take in takers if take is not None]
        self._is_possible = bool(specs) and len(self._take) == len(specs)
        self._has_arrays = any(array is not None for array in arrays)
        self._open = None if spec is None else _opener(spec, _SEQUENCES)
        self._pack = packer(spec, DATA)
        joins = [joined_by(part, casts=casts) for part in specs]
        self.joins = [join for join in joins if join is not None]
        self.opener = self._open if specs and len(self.joins) == len(specs) else None
        self.kept = lru_cache(_MOST_KINDS)(partial(kept_as_they_are, specs=specs, casts=casts))
        self.scalar: type | None = scalar_type(spec)
        self.number: DType | None = None
        self.python: type | None = None
        if self.scalar not in (None, bytes):
            self.number = np.dtype(self.scalar)
            self.python = python_type(self.number, casts=casts)
        self.array: tuple[DType, int, tuple[int, ...] | None] | None = array_type(spec)

    def parts(self, held: list[Any]) -> list[Any] | None:
        """Return the parts of a result: bytes, NumPy scalars or arrays. None if it may need a conversion.

        Args:
            held: The result. Nothing else may refer to it: an array that others can write to is copied.
        """
        if not self._is_possible:
            return None
        if self._open is None:
            part = self.part(held)
            return None if part is UNREADY else [part]
        found = self._open(held[0])
        if found is None:
            return None
        held.clear()  # a tuple or dict that nobody else has must not count as another user of its arrays
        leaves = [unshared(leaf) for leaf in found] if self._has_arrays else found
        parts: list[Any] = []
        for take, leaf in zip(self._take, leaves, strict=True):
            part = take(leaf)
            if part is UNREADY:
                held.append(self._pack(leaves))
                return None
            parts.append(part)
        return parts

    def joined(self, rows: Sequence[Sequence[Any]]) -> Block:
        """Build a Block from parts that are kept as they are, or that `parts` returned."""
        columns = zip(self.joins, zip(*rows, strict=True), strict=True)
        return Block(tuple([join(parts) for join, parts in columns]), len(rows))

    @property
    def is_one(self) -> bool:
        """Whether a result is its only part."""
        return self._is_possible and self._open is None

    def part(self, held: list[Any]) -> Any:
        """Return the only part of a result, as `parts` does; UNREADY if it may need a conversion."""
        if type(held[0]) is list:
            return UNREADY  # a list is a tensor only inside of a structure
        leaves = [unshared(leaf) for leaf in held] if self._has_arrays else held
        return self._take[0](leaves[0])


def _opener(spec: Any, sequences: tuple[type, ...] = (tuple,)) -> Opener | None:
    """Return what takes a value of this structure apart; None for a single part.

    Args:
        spec: The structure.
        sequences: The types that are a plain tuple in a result.
    """
    branch = opened(spec, DATA)
    if branch is None:
        return None
    first = _level(spec, branch.labels, sequences)
    inner = [_opener(part) for part in branch.parts]
    if not any(inner):
        return first

    def nested(value: Any) -> list[Any] | None:
        parts = first(value)
        if parts is None:
            return None
        leaves: list[Any] = []
        for part, open_part in zip(parts, inner, strict=True):
            found = [part] if open_part is None else open_part(part)
            if found is None:
                return None
            leaves += found
        return leaves

    return nested


def _level(spec: Any, labels: tuple[str, ...], sequences: tuple[type, ...]) -> Opener:
    """Return what takes one level of a structure apart."""
    kind, size = cast("type[Any]", type(spec)), len(labels)
    if issubclass(kind, tuple):
        kinds: tuple[type[Any], ...] = sequences if kind is tuple else (kind,)  # pyright: ignore[reportUnknownVariableType]

        def open_tuple(value: Any) -> list[Any] | None:
            return list(value) if type(value) in kinds and len(value) == size else None

        return open_tuple
    if kind is dict:
        keys = sorted(spec)

        def open_dict(value: Any) -> list[Any] | None:
            if type(value) is not dict or len(cast("dict[Any, Any]", value)) != size:
                return None
            try:
                return [value[key] for key in keys]
            except KeyError:
                return None

        return open_dict

    def open_other(value: Any) -> list[Any] | None:
        branch = opened(value, DATA) if type(value) is kind else None
        return list(branch.parts) if branch is not None and branch.labels == labels else None

    return open_other
