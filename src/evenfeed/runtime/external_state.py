"""What users' functions keep outside of a plan, which the state of an iterator does not hold."""

import warnings
from typing import Final, final

from evenfeed.core.errors import FailedPreconditionError
from evenfeed.core.side_effects import Effect
from evenfeed.options import ExternalStatePolicy
from evenfeed.plan.node import Node
from evenfeed.plan.options_node import options_of
from evenfeed.runtime.called_functions import Called, called_in

# A function that does one of these makes other elements when it is called again.
_MAKES_OTHERS: Final = (Effect.DRAWS, Effect.ASSIGNS, Effect.PULLS, Effect.VARIES)

_FIX: Final = (
    "draw random numbers in random_map, where they follow from the element's position, and keep what else "
    "changes in the elements (zip, enumerate, scan). To save the position all the same, set "
    "options.experimental_external_state_policy to ExternalStatePolicy.WARN or IGNORE."
)


@final
class ExternalState:
    """What a pass over a plan depends on besides the plan.

    Made when the pass begins: below a cache that is complete by then, nothing is called.

    Attributes:
        called: The users' functions that the pass may call.
    """

    def __init__(self, plan: Node) -> None:
        self._plan = plan
        self.called = called_in(plan)

    @property
    def policy(self) -> ExternalStatePolicy:
        """What is to be done about it, as the options say."""
        said = options_of(self._plan).experimental_external_state_policy
        return ExternalStatePolicy.FAIL if said is None else said

    @property
    def lost(self) -> list[Called]:
        """The functions whose elements would be others behind a restored state."""
        return [called for called in self.called if any(e in called.effects for e in _MAKES_OTHERS)]

    def check(self) -> None:
        """Raise, warn or say nothing, where a state would not lead to the same elements.

        Raises:
            FailedPreconditionError: The policy is FAIL, which is the default.
        """
        for called in self.lost:
            if self.policy is ExternalStatePolicy.FAIL:
                raise FailedPreconditionError(_said(called), fix=_FIX, origin=called.origin)
            if self.policy is ExternalStatePolicy.WARN:
                _warn(called)


def what_it_does(called: Called) -> str:
    """Say of a function why its elements would be others."""
    return f"{called.name} {called.effects.text(*_MAKES_OTHERS)}"


def _said(called: Called) -> str:
    return f"{what_it_does(called)}: behind a restored state its elements would be others."


def _warn(called: Called) -> None:
    origin = called.origin
    filename, line = (origin.filename, origin.line) if origin else ("<unknown>", 0)
    warnings.warn_explicit(f"{_said(called)} To avoid this, {_FIX}", UserWarning, filename, line)
