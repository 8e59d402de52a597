"""`Generator`: a stream of random numbers whose position is a variable."""

# ruff: noqa: ARG002 - `name` is TensorFlow's argument; there is no graph to show it in.

import os
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.arguments import whole_number
from evenfeed.core.conversion import Array, shortened
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.randomness import philox
from evenfeed.core.randomness.philox import Stream, stream_of_words
from evenfeed.core.tensor_types import host_tensor
from evenfeed.replicas import contexts
from evenfeed.replicas.reduce.reduce_op import VariableAggregation
from evenfeed.replicas.variables.variable import Variable
from evenfeed.tensors.creation import DTypeLike
from evenfeed.tensors.device_arrays import is_traced, is_x64_on, to_device_array
from evenfeed.tensors.distributions import computing_module, normal_of, uniform_of, vector
from evenfeed.tensors.stateless_random import Algorithm, algorithm_of

_SIZE: Final = 3  # 64-bit numbers of a state: two of the counter, then the key
_BITS_64: Final = 2**64 - 1
_LOW_32: Final = 2**32 - 1

# Threads that share a generator must not draw the same numbers.
_advancing: Final = Lock()


def create_rng_state(seed: object, alg: object) -> Any:
    """Make the state of a `Generator` of a seed.

    Args:
        seed: An integer of any size, or a vector of integers.
        alg: "philox" or "auto_select", which is the same.

    Examples:
        >>> import evenfeed as tf
        >>> tf.random.create_rng_state(1234, "philox").tolist()
        [1234, 0, 0]
    """
    algorithm_of(alg)
    if isinstance(seed, (int, np.integer)):
        whole = int(cast("int", seed))
        return host_tensor(_signed([whole >> 64 * place for place in range(_SIZE)]))
    numbers = _signed(seed).reshape(-1)[:_SIZE]
    return host_tensor(np.concatenate([np.zeros(_SIZE - len(numbers), np.int64), numbers]))


@final
class Generator:
    """A stream of random numbers. Each draw continues where the last one ended; the numbers are TensorFlow's.

    The position in the stream is a variable, so a compiled function continues it too. A generator that is made in
    `strategy.scope()` draws different numbers on each replica.

    Args:
        copy_from: Another generator, whose position the new one starts at.
        state: The position: three 64-bit integers.
        alg: "philox" or "auto_select", which is the same. It is needed with `state`.

    Examples:
        >>> import evenfeed as tf
        >>> generator = tf.random.Generator.from_seed(1234)
        >>> generator.uniform([3], 0, 100, tf.int32).tolist()
        [59, 26, 24]
        >>> generator.state.tolist()
        [2002, 0, 0]
    """

    def __init__(
        self, copy_from: "Generator | None" = None, state: object = None, alg: object = None
    ) -> None:
        if copy_from is not None:
            if state is not None or alg is not None:
                raise AssertionError("Pass copy_from alone, or state and alg.")
            state, alg = copy_from.state, copy_from.algorithm
        if state is None or alg is None:
            raise AssertionError("Pass state and alg, or copy_from.")
        self._algorithm = algorithm_of(alg)
        self._by_replica = contexts.frame() is not None
        # 32-bit words, because JAX may have no 64 bits.
        self._words = Variable(
            _words_of(state),
            trainable=False,
            name="StateVar",
            aggregation=VariableAggregation.ONLY_FIRST_REPLICA,
        )

    @classmethod
    def from_state(cls, state: object, alg: object) -> "Generator":
        """Create a generator at a position: three 64-bit integers."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_seed(cls, seed: object, alg: object = None) -> "Generator":
        """Create a generator from an integer of any size, or a vector of integers."""
        algorithm = Algorithm.PHILOX if alg is None else alg
        return cls(state=create_rng_state(seed, algorithm), alg=algorithm)

    @classmethod
    def from_non_deterministic_state(cls, alg: object = None) -> "Generator":
        """Create a generator at a position from the operating system. It is different in each run of a program."""
        state = np.frombuffer(os.urandom(8 * _SIZE), np.int64)
        return cls(state=state, alg=Algorithm.PHILOX if alg is None else alg)

    @classmethod
    def from_key_counter(cls, key: object, counter: object, alg: object) -> "Generator":
        """Create a generator from a 64-bit key, which chooses the stream, and a counter of two such integers."""
        return cls(state=_joined(key, counter), alg=alg)

    @property
    def state(self) -> Any:
        """The position: two integers of the counter, then the key."""
        return _as_state(self._words.value())

    @property
    def key(self) -> Any:
        """The number that chooses the stream."""
        return self.state[-1]

    @property
    def algorithm(self) -> int:
        """The number of the algorithm: see `evenfeed.random.Algorithm`."""
        return self._algorithm.value

    def reset(self, state: object) -> None:
        """Move to a position: three 64-bit integers."""
        self._words.assign(_words_of(state))

    def reset_from_seed(self, seed: object) -> None:
        """Move to the position that `from_seed` starts at."""
        self.reset(create_rng_state(seed, self.algorithm))

    def reset_from_key_counter(self, key: object, counter: object) -> None:
        """Move to the position that `from_key_counter` starts at."""
        self.reset(_joined(key, counter))

    def skip(self, delta: Any) -> Any:
        """Move past `delta` numbers. Returns the position before; a compiled function without x64 gets None."""
        if is_traced(delta):
            before = self._advance(
                delta.astype(dtypes.uint32) << 8, delta.astype(dtypes.uint32) >> 24
            )
        else:
            before = self._skipped(whole_number(delta, "delta"))
        return None if is_traced(before) and not is_x64_on() else _as_state(before)

    def uniform(
        self,
        shape: object,
        minval: object = 0,
        maxval: object = None,
        dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Any:
        """Draw uniform numbers: see `evenfeed.random.stateless_uniform`."""
        return uniform_of(self._stream, shape, minval, maxval, dtype)

    def uniform_full_int(
        self, shape: object, dtype: DTypeLike = dtypes.uint64, name: str | None = None
    ) -> Any:
        """Draw integers from the whole range of a dtype."""
        return uniform_of(self._stream, shape, None, None, dtype)

    def normal(
        self,
        shape: object,
        mean: object = 0.0,
        stddev: object = 1.0,
        dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Any:
        """Draw normal numbers: see `evenfeed.random.normal`."""
        return normal_of(self._stream, shape, mean, stddev, dtype)

    def truncated_normal(
        self,
        shape: object,
        mean: object = 0.0,
        stddev: object = 1.0,
        dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Any:
        """Draw normal numbers less than 2 standard deviations from the mean."""
        return normal_of(self._stream, shape, mean, stddev, dtype, draw=philox.truncated_normals)

    def make_seeds(self, count: int = 1) -> Any:
        """Draw seeds for stateless functions.

        Returns:
            An int64 tensor of shape [2, count]. Without x64 it is a NumPy array; in a compiled function it is int32.
        """
        (length,) = vector([count])
        return _seeds(self._stream(length), length)

    def split(self, count: int = 1) -> "list[Generator]":
        """Create generators whose streams are independent of this one and of each other."""
        (length,) = vector([count])
        keys = _seeds(self._stream(length), length)[0]
        return [Generator(state=[0, 0, key], alg=self.algorithm) for key in keys.tolist()]

    def _stream(self, count: int) -> Stream:
        """Return the stream at the current position, and move past `count` numbers."""
        words = self._skipped(count)
        context = contexts.replica_context()
        if not self._by_replica or context is None:
            return _stream_at(computing_module(words), words)
        replica = context.replica_id_in_sync_group
        xp = computing_module(words, replica)
        words = xp.asarray(words)
        counter = xp.stack([xp.asarray(replica).astype(dtypes.uint32), *xp.zeros(3, dtypes.uint32)])
        key = stream_of_words(xp, xp.concatenate([counter, words[4:]])).words(2)
        return stream_of_words(xp, xp.concatenate([words[:4], key]))

    def _skipped(self, count: int) -> Any:
        blocks = count * philox.RESERVED_BLOCKS
        return self._advance(np.uint32(blocks & _LOW_32), np.uint32(blocks >> 32 & _LOW_32))

    def _advance(self, low: Any, high: Any) -> Any:
        """Add to the counter. Return the words before."""
        with self._alone():
            words = self._words.value()
            xp = computing_module(words, low)
            known = np.asarray(words) if xp is np else words
            self._words.assign(philox.advanced(xp, known, low, high))
        return known

    def _alone(self) -> AbstractContextManager[Any]:
        # Replicas wait for each other when they assign a variable, and each has its own copy.
        return _advancing if contexts.replica_context() is None else nullcontext()


def _stream_at(xp: Any, words: Any) -> Stream:
    return stream_of_words(xp, np.asarray(words) if xp is np else jnp.asarray(words))


def _seeds(stream: Stream, count: int) -> Any:
    if stream.xp is not np and not is_x64_on():
        keys = philox.whole_range(stream, 2 * count, dtypes.int32)[::2]
        return jnp.stack([keys, jnp.zeros_like(keys)])
    keys = philox.whole_range(stream, count, dtypes.int64)
    seeds = stream.xp.stack([keys, stream.xp.zeros_like(keys)])
    if stream.xp is not np:
        return seeds
    return to_device_array(seeds, "the seeds") if is_x64_on() else host_tensor(seeds)


def _as_state(words: Any) -> Any:
    """Convert 6 words to a state: a NumPy array outside compiled functions."""
    if not is_traced(words):
        return host_tensor(np.asarray(words).view(np.int64))
    if not is_x64_on():
        raise InvalidArgumentError(
            "The state of a Generator has 64 bits, which JAX does not have in this compiled function.",
            fix="read it outside the function, or set JAX_ENABLE_X64=1.",
        )
    pairs = words.reshape(_SIZE, 2).astype(dtypes.int64)
    return pairs[:, 0] | pairs[:, 1] << 32


def _words_of(state: object) -> Any:
    if isinstance(state, jax.Array) and is_traced(state):
        return philox.seed_words(jnp, state)
    numbers = _signed(state)
    if numbers.shape != (_SIZE,):
        raise ValueError(
            f"A state must be {_SIZE} integers, but got {shortened(state)}. Make one with evenfeed.random.create_rng_state."
        )
    return numbers.view(np.uint32)


def _joined(key: object, counter: object) -> Array:
    return np.concatenate([_signed(counter).reshape(-1), _signed(key).reshape(-1)])


def _signed(numbers: object) -> Array:
    """Convert integers of any size to int64, keeping the low 64 bits."""
    if isinstance(numbers, (list, tuple)):
        whole = [int(cast("Any", number)) & _BITS_64 for number in numbers]  # pyright: ignore
        return np.array(whole, np.uint64).view(np.int64)
    if isinstance(numbers, int):
        return np.array(numbers & _BITS_64, np.uint64).view(np.int64)
    return np.ascontiguousarray(np.asarray(numbers)).astype(np.int64)


class _Global:
    """The generator of the program."""

    generator: Generator | None = None


def get_global_generator() -> Generator:
    """Return the global generator. The first call creates it, at a position that differs in each run of a program.

    Examples:
        >>> import evenfeed as tf
        >>> tf.random.get_global_generator().uniform([2]).shape
        (2,)
    """
    if _Global.generator is None:
        _Global.generator = Generator.from_non_deterministic_state()
    return _Global.generator


def set_global_generator(generator: Generator) -> None:
    """Replace the global generator.

    Examples:
        >>> import evenfeed as tf
        >>> tf.random.set_global_generator(tf.random.Generator.from_seed(1))
        >>> tf.random.get_global_generator().state.tolist()
        [1, 0, 0]
    """
    _Global.generator = generator
