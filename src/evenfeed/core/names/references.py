"""What `ref()` of a variable or tensor returns."""

from typing import Any, final


@final
class Reference:
    """A reference to a variable or tensor, compared and hashed by its identity."""

    __slots__ = ("_held",)

    def __init__(self, held: Any) -> None:
        self._held = held

    def deref(self) -> Any:
        """Return the variable or tensor."""
        return self._held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other._held is self._held

    def __hash__(self) -> int:
        return id(self._held)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._held!r}>"


def reference_to(held: Any) -> Reference:
    """Return a hashable reference, which compares by identity and can be a dict key."""
    return Reference(held)
