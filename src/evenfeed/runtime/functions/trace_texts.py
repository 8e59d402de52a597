"""Texts of traces, which are equal if two calls of a function did the same."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from evenfeed.core.handles import Handle
from evenfeed.core.lazy import hashlib


def text_of(closed: Any, parts: Sequence[Any]) -> str:
    """Return a text of everything that a trace did, without object addresses."""
    constants = list(map(_contents, map(np.asarray, closed.consts)))
    shown = [comparable(part) for part in parts]
    return re.sub(r" at 0x[0-9a-f]+", "", f"{closed.jaxpr}\n{constants}\n{shown}")


def comparable(part: Any) -> object:
    """Return what stands for a part of a result in such a text."""
    if isinstance(part, Handle):
        return f"part {part.index}"
    array: Any = part
    return _contents(array) if isinstance(part, np.ndarray) else part


def _contents(array: Any) -> object:
    """Return what two arrays have in common if they are equal; a digest, because the text of a table takes seconds."""
    if array.dtype.hasobject:
        return array.dtype.str, array.tolist()
    digest = hashlib.blake2b(array.tobytes(), digest_size=32).hexdigest()
    return str(array.dtype), array.shape, digest
