"""The global seed, and the rule that combines it with the seed of one operation.

The rule is TensorFlow's. Neither seed set: nothing can be repeated. Only the operation's: it counts,
beside a fixed global one. Only the global: operations are numbered in the order in which they are
made. Both: both count. Setting the global seed starts everything anew.
"""

import os
import threading
from collections import Counter
from functools import cached_property
from threading import Lock
from typing import Any, Final, TypeAlias, final

from evenfeed.core.arguments import whole_number
from evenfeed.core.lazy import hashlib, random

OperationSeed: TypeAlias = tuple[int, int]


@final
class AnySeed(tuple[int, ...]):
    """Seeds that nobody asked for: others are as good."""

    __slots__ = ()


_DEFAULT_GLOBAL: Final = 87654321  # TensorFlow's, where only the operation has a seed
_LARGEST: Final = 2**31 - 1


@final
class _Seeds:
    """What `set_seed` starts anew."""

    def __init__(self, seed: int | None) -> None:
        self.seed = seed
        self.draws = Counter[tuple[str, OperationSeed, int]]()

    @cached_property
    def operations(self) -> "random.Random":
        return random.Random(self.seed)


_lock: Final = Lock()
_current = _Seeds(None)


@final
class CallSeeds:
    """Seeds and numbers for the random operations in a user's function that a dataset calls.

    As in TensorFlow, an operation is known by its place in the function, the global seed is that of the
    time when the function was given, and each pass begins the sequences of all operations anew.

    Args:
        seed: The global seed when the function was given.
        drawn: How often each operation has drawn in this pass.

    Attributes:
        seed: The same.
    """

    def __init__(self, seed: int | None, drawn: Counter[Any]) -> None:
        self.seed = seed
        self._drawn = drawn
        self._place = 0

    def begin(self) -> None:
        """Count the operations of the next call."""
        self._place = 0

    def operation(self, own: int | None) -> OperationSeed | None:
        """Return the seeds of the next operation in the function; None where it may be any."""
        self._place += 1
        if own is not None:
            return _DEFAULT_GLOBAL if self.seed is None else self.seed, own
        # No seed that a user gives is below 0.
        return None if self.seed is None else (self.seed, -self._place)

    def draw(self, kind: str, operation: OperationSeed) -> tuple[int, int]:
        """Return the next two words of the operation that was made last."""
        key = self._place, kind, operation
        with _lock:  # several threads may call the function
            step = self._drawn[key]
            self._drawn[key] += 1
        return _hashed(self.seed, (kind, operation, 0), step)


class _Thread(threading.local):
    """What a thread is doing.

    Attributes:
        call: The seeds of the user's function that it runs; None outside of one.
        traced_draws: How many random operations it has made part of compiled functions.
    """

    call: CallSeeds | None = None
    traced_draws = 0


calling: Final = _Thread()


def begin_call() -> None:
    """Begin a call of a user's function, if one is run here."""
    if calling.call is not None:
        calling.call.begin()


def global_seed() -> int | None:
    """Return the global seed; in a user's function that a dataset calls, that of when it was given."""
    return _current.seed if calling.call is None else calling.call.seed


def set_seed(seed: int | None) -> None:
    """Set the global seed, and start the sequence of every random operation anew.

    Args:
        seed: The same seed gives the same results in every run of a program; None takes the seed away.

    Examples:
        >>> import evenfeed as tf
        >>> tf.random.set_seed(7)
        >>> first = tf.random.uniform([3])
        >>> tf.random.set_seed(7)
        >>> tf.random.uniform([3]).tolist() == first.tolist()
        True
        >>> tf.random.set_seed(None)
    """
    global _current  # noqa: PLW0603 - the global seed is the purpose of this module
    fresh = _Seeds(_truncated(seed))
    with _lock:
        _current = fresh


def operation_seed(seed: int | None) -> OperationSeed | None:
    """Return the seeds of a new operation, the global one first; None where it may be any.

    With a global seed and none of its own, the operation takes the next number in the sequence. In a
    function that a dataset calls, it has the number of its place there.
    """
    own = _truncated(seed)
    if calling.call is not None:
        return calling.call.operation(own)
    with _lock:
        if _current.seed is None:
            return None if own is None else (_DEFAULT_GLOBAL, own)
        if own is None:
            own = _current.operations.randint(0, _LARGEST)
        return _current.seed, own


def any_seed() -> AnySeed:
    """Return seeds for an operation where neither the user nor the global seed says any."""
    return AnySeed(map(_random_bits, range(2)))


def seed_of_opening() -> AnySeed:
    """Return seeds for a step that opens datasets: only what is in these draws, so it counts as no operation.

    With a global seed it takes a number all the same, or the datasets of two such steps would be mixed alike.
    """
    given = None if global_seed() is None else operation_seed(None)
    return any_seed() if given is None else AnySeed(given)


def _random_bits(_: int) -> int:
    return int.from_bytes(os.urandom(8), "little")


def draw(
    kind: str, operation: OperationSeed | None, *, lane: int = 0, counted: bool = True
) -> tuple[int, int]:
    """Return two random 32-bit words, the next of an operation's sequence.

    Args:
        kind: The name of the operation: two kinds with one seed have sequences of their own.
        operation: Its seeds; None draws from the operating system.
        lane: Which of the replicas that run the operation side by side.
        counted: Leave False for an operation that draws only once; it is then not remembered.
    """
    if operation is None:
        return _two_words(os.urandom(8))
    if calling.call is not None:
        return calling.call.draw(kind, operation)
    with _lock:
        seed, key = _current.seed, (kind, operation, lane)
        step = _current.draws[key]
        if counted:
            _current.draws[key] += 1
    return _hashed(seed, key, step)


def _hashed(seed: int | None, key: tuple[str, OperationSeed, int], step: int) -> tuple[int, int]:
    text = repr((seed, key, step)).encode()
    return _two_words(hashlib.blake2b(text, digest_size=8).digest())


def _two_words(data: bytes) -> tuple[int, int]:
    return int.from_bytes(data[:4], "little"), int.from_bytes(data[4:], "little")


def _truncated(seed: int | None) -> int | None:
    return None if seed is None else whole_number(seed, "seed") % _LARGEST
