"""Elements of which some parts were not read, because a function is not known to use them."""

from typing import Any, final

from evenfeed.core.block import Block


@final
class Unread(Exception):  # noqa: N818 - not an error: whole elements are read instead
    """Raised if elements must be read as a whole, because a part that was left out may matter after all."""


@final
class PartlyReadBlock(Block):
    """A Block with zeros or empty text in the columns that were not read."""

    __slots__ = ()

    def row(self, index: int) -> list[Any]:
        """Raise Unread: code that sees single elements must see all of them."""
        del index
        raise Unread

    def cut_up(self) -> Block:
        """Raise Unread, as `row` does."""
        raise Unread
