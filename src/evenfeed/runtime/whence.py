"""From which row of which file an element comes, for who says what is wrong with it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar, final

from evenfeed.core.errors import EvenfeedError

E = TypeVar("E", bound=BaseException)


@final
@dataclass(frozen=True, slots=True)
class Place:
    """A row of a file.

    Attributes:
        file: The path of the file.
        row: Which row of it, in words.
        offset: The byte at which the row begins; None where that is not known.
    """

    file: str
    row: str
    offset: int | None = None


# Says of an element where it comes from, by its number among those that were read together. It is asked only
# where something is wrong, perhaps later.
Whence: TypeAlias = Callable[[int], Place | None]


def nowhere(_: int) -> Place | None:
    """Say that it is not known."""
    return None


def placed(error: E, place: Place | None) -> E:
    """Return an error that names the row of a file whose element is wrong, unless it names a file already."""
    if place is None or (isinstance(error, EvenfeedError) and error.file is not None):
        return error
    if isinstance(error, EvenfeedError):
        error.in_file(place.file, place.offset)
    at = "" if place.offset is None else f", at byte {place.offset}"
    error.add_note(f"the element is {place.row} of {place.file}{at}")
    return error
