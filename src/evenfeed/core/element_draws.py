"""The random bits of the element that a user's function is called with."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, final


@final
class DrawsForElements(BaseException):
    """A function that is traced draws random numbers: its elements need bits. No user catches it."""

    def __init__(self, seed: int | None) -> None:
        super().__init__()
        self.seed = seed


@final
class ElementDraws:
    """What is drawn for one element.

    Attributes:
        words: Two random words, which follow from the position of the element; or what stands for them.
    """

    def __init__(self, words: Any) -> None:
        self.words = words
        self._drawn = 0

    def salt(self, seed: int | None) -> tuple[int, ...]:
        """Return what tells the next draw apart from those before, and from one with another seed."""
        self._drawn += 1
        return (self._drawn,) if seed is None else (self._drawn, seed)


# What the function that runs now draws from.
DRAWS: Final[ContextVar[ElementDraws | None]] = ContextVar("DRAWS", default=None)


def current_draws() -> ElementDraws | None:
    """Return what the function that runs now draws from; None where it is called for no element."""
    return DRAWS.get()


@contextmanager
def drawing_from(words: Any) -> Generator[None]:
    """Let random functions draw from the bits of an element."""
    token = DRAWS.set(ElementDraws(words))
    try:
        yield
    finally:
        DRAWS.reset(token)
