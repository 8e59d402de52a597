"""Warns about a text that becomes part of a `str` as Python shows bytes: with a b and quotes around it."""

import inspect
import linecache
import re
import warnings
from typing import Any, Final

# There the text is only shown to a person.
_SHOWN: Final = re.compile(r"\b(print|raise|assert|warn|log|logger|logging)\b")
_LONGEST: Final = 40
_seen: Final[set[tuple[str, int]]] = set()


def shown_as_bytes(text: bytes) -> str:
    """Return what `str` makes of bytes, as the `__str__` of a text. Warns once for each line of code that does not only print it."""
    frame: Any = inspect.currentframe()
    caller = frame.f_back.f_back  # of str(), or with the f-string
    place = (caller.f_code.co_filename, caller.f_lineno)
    shown = bytes.__repr__(text)
    if place not in _seen:
        _seen.add(place)
        if not _SHOWN.search(f"{place[0]} {linecache.getline(*place)}"):
            begin = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
            warnings.warn(
                f"A text was turned into a str with a b and quotes around it: {begin}. Text in a dataset is bytes, as in "
                'TensorFlow. Decode it first: f"{text.decode()}" or str(text, "utf-8").',
                stacklevel=3,
            )
    return shown
