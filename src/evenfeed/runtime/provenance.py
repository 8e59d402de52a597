"""From which row of which file an element comes, for who says what is wrong with it."""

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
        row: Which row of it, in words.
        offset: The byte at which the row begins; None where that is not known.
        what: What is there: the element, or one of the records in it.
    """

    file: str
    row: str
    offset: int | None = None
    what: str = _ELEMENT


# Says of an element where it comes from, by its number among those that were read together. It is asked only
# where something is wrong, perhaps later.
Provenance: TypeAlias = Callable[[int], RowOrigin | None]


def nowhere(_: int) -> RowOrigin | None:
    """Say that it is not known."""
    return None


def of_text(block: Block | None, index: int, error: BaseException) -> RowOrigin | None:
    """Return where the text comes from that an element is, or the one of its texts that the error names.

    None where that is not known, or it may be one of several parts.
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


def completed(place: RowOrigin | None, text: RowOrigin | None) -> RowOrigin | None:
    """Return what is known of an element, and of its text.

    The text is right where it is one among several, and knows the byte also where the file was read further since.
    """
    if place is None or text is None:
        return place or text
    if text.what != _ELEMENT:
        return text
    return place if place.offset is not None else replace(place, offset=text.offset)


def placed(error: E, place: RowOrigin | None) -> E:
    """Return an error that names the row of a file whose element is wrong, unless it names a file already."""
    if place is None or (isinstance(error, EvenfeedError) and error.file is not None):
        return error
    if isinstance(error, EvenfeedError):
        error.in_file(place.file, place.offset)
    at = "" if place.offset is None else f", at byte {place.offset}"
    error.add_note(f"{place.what} is {place.row} of {place.file}{at}")
    return error
