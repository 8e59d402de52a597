"""Tells a pending restore that an object got a new attribute, so that its value can be restored now."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

# Called with the object, the name of the attribute, and its new value.
Attached: TypeAlias = Callable[[Any, str, Any], None]

# The object itself keeps the function: a table of all objects would keep them alive.
_AWAITING: Final = "_awaiting_attributes"


class Attaching:
    """A base class whose objects report new attributes."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        then = self.__dict__.get(_AWAITING)
        if then is not None:
            then(self, name, value)

    def __getstate__(self) -> Any:
        # A copy does not wait: its attributes are those of the original.
        state: Any = super().__getstate__()
        if _AWAITING not in vars(self) or not isinstance(state, dict):
            return state
        return {name: value for name, value in vars(self).items() if name != _AWAITING}


def await_attributes(of: Attaching, then: Attached) -> None:
    """Call `then` whenever the object gets an attribute, instead of an earlier function."""
    vars(of)[_AWAITING] = then


def stop_awaiting(of: Attaching, then: Attached) -> None:
    """Stop calling `then`, unless a later function has replaced it."""
    if vars(of).get(_AWAITING) == then:
        del vars(of)[_AWAITING]
