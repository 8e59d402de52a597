"""`Session`: what a strategy keeps while its program runs, such as compiled programs and the last step."""

import json
from collections.abc import Callable, Hashable, Sequence
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, final
from weakref import ref

from evenfeed.core.concurrency.peers import Peers, peers
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.replicas.launch_turns import Launch

if TYPE_CHECKING:
    from evenfeed.replicas.run.callback_meetings import Board

# Sends a string to all workers, and returns the strings of all workers, in worker order.
Exchange: TypeAlias = Callable[[str], list[str]]

_MAX_PROGRAMS: Final = 256
_numbers: Final = count()


@final
class Session:
    """The state of one strategy. Its replicas refer to it, and it ends with them.

    Args:
        exchange: Exchanges messages with the other workers over the network, if there are any.
        patience: Seconds to wait for another worker's message, or None for the default.

    Attributes:
        number: Identifies it in caches that must not keep it alive.
        patience: The same.
        peers: The workers of the cluster that are lost.
        last_step: Restores variables if the last step across workers failed.
        boards: Where the programs of each active run meet, by the slot of the run.
        lock: Protects `boards`.
        has_callbacks: Whether compiled code of replicas that run as plain Python has called back.
        same_on_all: Arrays that are known to have the same shape and dtype on all workers, by id.
    """

    def __init__(self, exchange: Exchange | None = None, patience: float | None = None) -> None:
        self.number = next(_numbers)
        self._exchange = exchange
        self.patience = patience
        self.peers: Peers = peers
        self.last_step = LastStep()
        if exchange is not None:
            peers.at_loss(self.last_step.rescue)
        self.boards: dict[int, Board] = {}
        self.lock = Lock()
        self.has_callbacks = False
        self.same_on_all: dict[int, ref[Any]] = {}
        self._programs: dict[Hashable, Callable[..., Any]] = {}

    def program(self, key: Hashable, make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
        """Return the compiled program for a key. The first call makes it."""
        found = self._programs.get(key)
        if found is None:
            if len(self._programs) >= _MAX_PROGRAMS:
                self._programs.pop(next(iter(self._programs)), None)
            found = self._programs[key] = Launch(make())
        return found

    def exchange(self, what: str, data: Any = None) -> list[Any]:
        """Exchange data with all workers at the same point of the program. Return every worker's data.

        Args:
            what: The operation that the workers perform at this point, to detect a mismatch.
            data: This worker's data, JSON-serializable.

        Raises:
            RuntimeError: The workers perform different operations.
            InvalidArgumentError: They perform the same operation on incompatible tensors.
        """
        if self._exchange is None:
            return [data]
        received: list[Any] = [
            json.loads(text) for text in self._exchange(json.dumps([what, data]))
        ]
        places = [place for place, _ in received]
        if len(set(places)) > 1:
            seen = "; ".join(f"worker {worker} at {place}" for worker, place in enumerate(places))
            raise not_met(
                places,
                f"The workers are not at the same point of the program: {seen}.",
                "run the same program on all workers, with the same collectives in the same order.",
            )
        return [each for _, each in received]


def not_met(places: Sequence[str], what: str, fix: str) -> Exception:
    """Return the error for replicas or workers that reached different collectives.

    Args:
        places: For each of them, the collective, then " of " and its arguments.
        what: The error message, which lists the places.
        fix: The fix if the collectives differ.
    """
    kinds = {place.partition(" of ")[0] for place in places}
    if len(kinds) > 1:
        return RuntimeError(described(what, fix=fix))
    return InvalidArgumentError(
        what,
        fix="pass tensors of one dtype and shape; for all_gather, lengths along its axis may differ.",
    )


class Restorable(Protocol):
    """A variable, whose array can be replaced."""

    def hold(self, array: Any) -> None:
        """Replace its array."""


@final
class LastStep:
    """The values that variables had before the last step across workers, and one result of the step.

    A program is still running when its results are assigned to variables. If a worker is lost meanwhile, those results
    are errors, and so is what the user wants to save. So the previous values of the variables are kept until the next
    step, which first waits for this one.
    """

    def __init__(self) -> None:
        self._before: Sequence[tuple[Restorable, Any]] = ()
        self._result: Any = None

    def start(self, before: Sequence[tuple[Restorable, Any]], result: Any) -> None:
        """Record a step that was just started.

        Args:
            before: The variables that it assigns, with their previous values.
            result: One of its results. Either all results arrive, or none.
        """
        self._before, self._result = before, result

    def settle(self) -> None:
        """Wait for the step.

        Raises:
            UnavailableError: A worker is lost. The variables have their previous values again.
        """
        result, self._result = self._result, None
        if result is None:
            return
        try:
            result.block_until_ready()
        except Exception:
            self._restore()
            raise
        self._before = ()

    def rescue(self) -> None:
        """Restore the variables if the last step failed."""
        try:
            self.settle()
        except Exception:  # noqa: BLE001 - the caller is already raising it
            return

    def _restore(self) -> None:
        for variable, array in self._before:
            variable.hold(array)
        self._before = ()
