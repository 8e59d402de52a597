"""Provenance: the file and row that an element comes from, for error messages."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, TypeAlias, TypeVar, final

from evenfeed.core.block import Block
from evenfeed.core.errors import EvenfeedError
from evenfeed.core.text.text_columns import Texts

E = TypeVar("E", bound=BaseException)

_ELEMENT: Final = "the element"


@final
@dataclass(frozen=True, slots=True)
class RowOrigin:
    """A row of a file.

    Attributes:
        file: The path of the file.
        row: The row in words.
        offset: The byte at which the row starts; None if unknown.
        what: What comes from this row: the element, or one of its records.
    """

    file: str
    row: str
    offset: int | None = None
    what: str = _ELEMENT


# Looks up the origin of an element by its index among those read together. Called only on errors, possibly
# after further reads.
Provenance: TypeAlias = Callable[[int], RowOrigin | None]


def unknown_origin(_: int) -> RowOrigin | None:
    """Return None: the origin is unknown."""
    return None


def text_origin(block: Block | None, index: int, error: BaseException) -> RowOrigin | None:
    """Return the origin of the text that an element consists of, or of the record that the error names.

    None if that is unknown or ambiguous.
    """
    found = [column for column in block.columns if isinstance(column, Texts)] if block else []
    if block is None or len(found) != 1:
        return None
    record = error.record if isinstance(error, EvenfeedError) else None
    each = found[0].size // block.length
    if (record is None and each > 1) or not 0 <= (record or 0) < each:
        return None
    origin = found[0].origin(index * each + (record or 0))
    what = _ELEMENT if each == 1 else f"record {record}"
    return None if origin is None else RowOrigin(origin[0], "a record", origin[1], what)


def merged_origin(place: RowOrigin | None, text: RowOrigin | None) -> RowOrigin | None:
    """Combine the origin of an element with that of its text.

    The text's origin wins if it is one record of several. It also knows the byte when the file has been read further
    since.
    """
    if place is None or text is None:
        return place or text
    if text.what != _ELEMENT:
        return text
    return place if place.offset is not None else replace(place, offset=text.offset)


def with_origin(error: E, place: RowOrigin | None) -> E:
    """Add the origin to an error, unless the error names a file already."""
    if place is None or (isinstance(error, EvenfeedError) and error.file is not None):
        return error
    if isinstance(error, EvenfeedError):
        error.in_file(place.file, place.offset)
    at = "" if place.offset is None else f", at byte {place.offset}"
    error.add_note(f"{place.what} is {place.row} of {place.file}{at}")
    return error
