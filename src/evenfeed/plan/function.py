"""What a node knows of a user's function."""

from typing import Any, Protocol

from evenfeed.core.callsite import Origin


class UserFunction(Protocol):
    """A function that a user gave to map, filter and the like, traced once when it was given."""

    @property
    def output_spec(self) -> Any:
        """The specs of what it returns, in its own structure."""
        ...

    @property
    def origin(self) -> Origin | None:
        """The user's line that asked for it."""
        ...

    @property
    def is_pure(self) -> bool:
        """Whether it gives the same for the same element each time, so that elements may be reordered."""
        ...
