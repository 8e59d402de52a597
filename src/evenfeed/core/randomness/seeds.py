"""The global seed, and the rule that combines it with the seed of one operation.

The rule is TensorFlow's:

- Neither seed is set: results are not reproducible.
- Only the operation seed is set: it is combined with a fixed global seed.
- Only the global seed is set: operations are numbered in the order in which they are created.
- Both are set: both count.

Setting the global seed restarts every sequence.
"""

import os
import threading
from collections import Counter
from collections.abc import Callable
from functools import cached_property
from threading import Lock
from typing import Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core.arguments import whole_number
from evenfeed.core.lazy import hashlib, random
from evenfeed.core.randomness.random_bits import words_at

OperationSeed: TypeAlias = tuple[int, int]


@final
class AnySeed(tuple[int, ...]):
    """Seeds that the user did not choose. Any other seeds would do."""

    __slots__ = ()


_DEFAULT_GLOBAL: Final = 87654321  # TensorFlow's value if only the operation has a seed
_LARGEST: Final = 2**31 - 1


@final
class _Seeds:
    """The state that `set_seed` resets."""

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
    """Seeds and random numbers for the operations in a user function that a dataset calls.

    As in TensorFlow, an operation is identified by its place in the function. The global seed is the one at the time
    the function was passed. Each pass restarts the sequences of all operations.

    Args:
        seed: The global seed when the function was passed.
        drawn: How often each operation has drawn in this pass.

    Attributes:
        seed: The global seed when the function was passed.
        place: The number of the latest operation in the function. Whoever calls the function sets it to 0 first.
    """

    def __init__(self, seed: int | None, drawn: Counter[Any]) -> None:
        self.seed = seed
        self.place = 0
        self._drawn = drawn

    def operation(self, own: int | None) -> OperationSeed | None:
        """Return the seeds of the next operation in the function; None if any seeds will do."""
        self.place += 1
        if own is not None:
            return _DEFAULT_GLOBAL if self.seed is None else self.seed, own
        # User seeds are never negative, so these cannot collide with them.
        return None if self.seed is None else (self.seed, -self.place)

    def draw(self, kind: str, operation: OperationSeed) -> tuple[int, int]:
        """Return the next two random words of the latest operation."""
        turn = np.array([self.reserve(kind, operation, 1)])
        first, second = words_at(key_of_operation(kind, operation), turn)[0].tolist()
        return first, second

    def reserve(self, kind: str, operation: OperationSeed, count: int) -> int:
        """Return how much the latest operation has reserved in this pass, and reserve `count` more."""
        key = self.place, kind, operation
        with _lock:  # several threads may call the function
            at = self._drawn[key]
            self._drawn[key] += count
        return at


class _Thread(threading.local):
    """What this thread is running.

    Attributes:
        call: The seeds of the user function that it runs; None outside of one.
        traced_draws: How many random operations it has traced into compiled functions.
        replica_index: Returns the index of the running replica, in a trace that stands for all replicas.
    """

    call: CallSeeds | None = None
    traced_draws = 0
    replica_index: Callable[[], Any] | None = None


calling: Final = _Thread()


def seeds_of_calls() -> CallSeeds:
    """Return the seeds of the user function that this thread runs; seeds that nothing uses if it runs none."""
    return calling.call or CallSeeds(None, Counter())


def global_seed() -> int | None:
    """Return the global seed.

    Inside a function that a dataset calls, it is the one at the time the function was passed.
    """
    return _current.seed if calling.call is None else calling.call.seed


def set_seed(seed: int | None) -> None:
    """Set the global seed, and restart the sequence of every random operation.

    Args:
        seed: The same seed gives the same results in every run of a program. None removes the seed.

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
    """Return the seeds of a new operation, the global seed first; None if any seeds will do.

    With only a global seed, the operation gets the next number of a sequence. Inside a function that a
    dataset calls, it gets the number of its place in the function.
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
    """Return random seeds, for an operation without an operation seed or a global seed."""
    return AnySeed(map(_random_bits, range(2)))


def seed_of_opening() -> AnySeed:
    """Return seeds for a step that opens nested datasets.

    The step is not a random operation: only the nested datasets draw numbers. With a global seed it takes a number
    all the same, or two such steps would shuffle their datasets alike.
    """
    given = None if global_seed() is None else operation_seed(None)
    return any_seed() if given is None else AnySeed(given)


def _random_bits(_: int) -> int:
    return int.from_bytes(os.urandom(8), "little")


def draw(
    kind: str, operation: OperationSeed | None, *, lane: int = 0, counted: bool = True
) -> tuple[int, int]:
    """Return the next two random 32-bit words of an operation's sequence.

    Args:
        kind: The name of the operation. Two kinds with one seed have separate sequences.
        operation: The seeds of the operation; None draws from the operating system.
        lane: The replica, if several run the operation side by side.
        counted: Pass False for an operation that draws only once, so that it is not remembered.
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


def reserve(kind: str, operation: OperationSeed, blocks: int) -> int:
    """Return how many blocks of random words an operation has reserved so far, and reserve `blocks` more."""
    if calling.call is not None:
        return calling.call.reserve(kind, operation, blocks)
    key = kind, operation, 0
    with _lock:
        at = _current.draws[key]
        if blocks:
            _current.draws[key] += blocks
    return at


def _hashed(seed: int | None, key: tuple[str, OperationSeed, int], step: int) -> tuple[int, int]:
    text = repr((seed, key, step)).encode()
    return _two_words(hashlib.blake2b(text, digest_size=8).digest())


def key_of_operation(kind: str, operation: OperationSeed) -> int:
    """Return the key of an operation's sequence, for `words_at`."""
    text = repr((kind, operation)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=16).digest(), "little")


def seed_words(operation: OperationSeed) -> OperationSeed:
    """Return the seeds of an operation as TensorFlow uses them."""
    return operation if any(operation) else (0, _LARGEST)  # both 0 would mean "no seed"


def _two_words(data: bytes) -> tuple[int, int]:
    return int.from_bytes(data[:4], "little"), int.from_bytes(data[4:], "little")


def _truncated(seed: int | None) -> int | None:
    return None if seed is None else whole_number(seed, "seed") % _LARGEST
