"""Texts of traces, which are equal if two calls of a function did the same."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from evenfeed.core.handles import Handle


def text_of(closed: Any, parts: Sequence[Any]) -> str:
    """Return a text of everything that a trace did, without object addresses."""
    constants = [(str(c.dtype), c.shape, c.tobytes()) for c in map(np.asarray, closed.consts)]
    shown = [comparable(part) for part in parts]
    return re.sub(r" at 0x[0-9a-f]+", "", f"{closed.jaxpr}\n{constants}\n{shown}")


def comparable(part: Any) -> object:
    """Return what stands for a part of a result in such a text."""
    if isinstance(part, Handle):
        return f"part {part.index}"
    array: Any = part
    return (array.dtype.str, array.tolist()) if isinstance(part, np.ndarray) else part
