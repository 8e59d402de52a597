"""`GradientTape`: records what is computed in a block, and returns its gradients."""

import math
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final, final

import numpy as np

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.core.gradients import followed_values
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.structure import NEST, flatten, pack
from evenfeed.replicas import contexts
from evenfeed.replicas.keras_variables.keras_handles import is_keras_variable, value_of
from evenfeed.replicas.keras_variables.loaded_keras import is_connected
from evenfeed.replicas.tape.gradient_values import (
    UnconnectedGradients,
    conjugated,
    filled,
    starting_gradients,
    total,
)
from evenfeed.replicas.tape.reads import here
from evenfeed.replicas.tape.recording import Record, is_differentiable
from evenfeed.replicas.tape.replay import Recorded, Replay
from evenfeed.replicas.variables.variable import Variable
from evenfeed.tensors.operands import is_text

#: The classes of values that NumPy computed, on the host.
_HOST: Final[tuple[type, ...]] = (np.ndarray, np.generic)


@final
class GradientTape:
    """Records what is computed in a `with` block, and returns gradients of it.

    It works in plain Python, in `evenfeed.function` and in functions that `strategy.run` calls. Trainable variables
    that are read in the block are watched; tensors need `watch`.

    Args:
        persistent: Whether `gradient` may be called more than once.
        watch_accessed_variables: Whether trainable variables are watched when they are read.

    Examples:
        >>> import evenfeed as tf
        >>> v = tf.Variable(3.0)
        >>> with tf.GradientTape() as tape:
        ...     y = v * v
        >>> tape.gradient(y, v)
        Array(6., dtype=float32)
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._watch_accessed = watch_accessed_variables
        self._is_used = False
        self._clear()

    def _clear(self) -> None:
        self.record = Record()
        self._watched: list[tuple[Any, int]] = []  # arrays, from an operation on
        self._asked: dict[int, Any] = {}  # variables that `watch` named
        self._reads: dict[int, tuple[Any, list[tuple[Any, bool]]]] = {}

    # --- recording -------------------------------------------------------------------------

    def __enter__(self) -> "GradientTape":
        if self.record.is_open:
            raise ValueError(
                described(
                    "The tape is already recording.",
                    fix="open another tape: with evenfeed.GradientTape() as tape.",
                )
            )
        is_connected()
        self.record.open()
        here.listeners.append(self)
        followed_values.here.tapes.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        here.listeners.remove(self)
        followed_values.here.tapes.remove(self)
        self.record.close()

    @contextmanager
    def stop_recording(self) -> Generator[None]:
        """Record nothing in a block.

        Raises:
            RuntimeError: The tape is not recording.
        """
        if not self.record.is_open:
            raise RuntimeError(
                described(
                    "stop_recording was called on a tape that is not recording.",
                    fix="call it inside the tape's with block.",
                )
            )
        before, self.record.paused = self.record.paused, True
        try:
            yield
        finally:
            self.record.paused = before

    def reset(self) -> None:
        """Forget what was recorded and watched. The tape goes on recording, if it was."""
        again = self.record.is_open
        if again:
            self.__exit__(None, None, None)
        self._clear()
        if again:
            self.__enter__()

    def watch(self, tensor: Any) -> None:
        """Watch a tensor or variable, or a nest of them, from here on."""
        for each in flatten(tensor, NEST):
            if is_variable(each):
                self._asked[id(each)] = each
                self._reads.setdefault(id(each), (each, []))
            elif isinstance(each, _HOST) and is_text(each):
                continue  # it has no gradient
            elif not isinstance(each, jax.Array):
                raise ValueError(
                    described(
                        f"A tape watches tensors and variables, but got {shortened(each)}.",
                        fix="convert it first, and compute with the result: x = evenfeed.constant(x).",
                    )
                )
            elif is_differentiable(each):
                self._watched.append((each, len(self.record.operations)))

    def followed(self, value: Any) -> Any:
        """Return the array to compute with if the tape follows a tensor or variable; else None."""
        if self.record.paused:
            return None
        if is_variable(value):
            return value_of(value) if self.watches(value) else None
        if not is_differentiable(value):
            return None
        return value if value in self._all_watched() else None

    def watched_variables(self) -> tuple[Any, ...]:
        """Return the variables that are watched, in the order in which they were made; those of Keras as they were read."""
        found = [variable for variable, _ in self._reads.values()]
        return tuple(sorted(found, key=lambda variable: getattr(variable, "number", math.inf)))

    def value_for(self, variable: Any) -> Any:
        """Return None: variables keep their values."""
        del variable

    def watches(self, variable: Any) -> bool:
        """Return True if the tape records and watches a variable."""
        if self.record.paused:
            return False
        return id(variable) in self._asked or (self._watch_accessed and variable.trainable)

    def note_read(self, variable: Any, value: Any, *, copies: bool) -> None:
        """Remember the value that a variable was read with."""
        _, values = self._reads.setdefault(id(variable), (variable, []))
        values.append((value, copies))

    # --- gradients -------------------------------------------------------------------------

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
    ) -> Any:
        """Return the gradients of the sum of the targets.

        Args:
            target: A tensor, or a nest of tensors.
            sources: A variable or tensor, or a nest of them.
            output_gradients: For each target, the gradient that it starts with; by default ones.
            unconnected_gradients: What to return for sources that no target depends on: None, or zeros.

        Returns:
            A nest like `sources`.

        Raises:
            RuntimeError: The tape is not persistent, and was used before.
        """
        otherwise = UnconnectedGradients(unconnected_gradients)
        given = flatten(sources, NEST)
        found: list[Any] = [None] * len(given)
        pulled = self._pullback(flatten(target, NEST), given)
        if pulled is not None:
            pull, targets, places = pulled
            starts = starting_gradients(flatten(target, NEST), targets, output_gradients)
            for place, gradient in zip(places, pull(starts), strict=True):
                found[place] = gradient
        return pack(sources, filled(given, found, otherwise), NEST)

    def jacobian(
        self,
        target: Any,
        sources: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Return the derivative of each element of a target for each element of the sources.

        Args:
            target: A tensor.
            sources: A variable or tensor, or a nest of them.
            unconnected_gradients: As for `gradient`.
            parallel_iterations: Accepted for compatibility.
            experimental_use_pfor: Accepted for compatibility.

        Returns:
            A nest like `sources`, of tensors of shape `[*target.shape, *source.shape]`.
        """
        del parallel_iterations, experimental_use_pfor
        otherwise = UnconnectedGradients(unconnected_gradients)
        given = flatten(sources, NEST)
        found: list[Any] = [None] * len(given)
        pulled = self._pullback([target], given)
        if pulled is not None:
            pull, _, places = pulled
            size, shape = int(target.size), tuple(target.shape)
            basis = jnp.eye(size, dtype=target.dtype).reshape(size, *shape)
            for place, rows in zip(places, jax.vmap(pull)([basis]), strict=True):
                found[place] = rows.reshape(*shape, *rows.shape[1:])
        return pack(sources, filled(given, found, otherwise, tuple(target.shape)), NEST)

    def batch_jacobian(
        self,
        target: Any,
        source: Any,
        unconnected_gradients: UnconnectedGradients | str = UnconnectedGradients.NONE,
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """Return the Jacobian of each row of a target for the same row of a source.

        Args:
            target: A tensor of shape [rows, ...]; each row depends on one row of the source.
            source: A tensor of shape [rows, ...].
            unconnected_gradients: Accepted for compatibility: without a connection the result is zeros.
            parallel_iterations: Accepted for compatibility.
            experimental_use_pfor: Accepted for compatibility.

        Returns:
            A tensor with the shape of the target, and behind it that of the source without its first axis.
        """
        del parallel_iterations, experimental_use_pfor
        if min(target.ndim, source.ndim) < 2 or target.shape[0] != source.shape[0]:
            raise ValueError(
                described(
                    "batch_jacobian needs a target and a source with two or more axes and the same number of rows, but "
                    f"got the shapes {tuple(target.shape)} and {tuple(source.shape)}.",
                    fix="use jacobian for other shapes.",
                )
            )
        UnconnectedGradients(unconnected_gradients)  # raises if it is unknown
        pulled = self._pullback([target], [source])
        inner, outer = tuple(source.shape[1:]), tuple(target.shape)
        if pulled is None or not pulled[2]:
            return jnp.zeros((*outer, *inner), source.dtype)
        size = int(target[0].size)
        units = jnp.eye(size, dtype=target.dtype).reshape(size, 1, *outer[1:])
        (rows,) = jax.vmap(pulled[0])([jnp.broadcast_to(units, (size, *outer))])
        return jnp.moveaxis(rows, 0, 1).reshape(*outer, *inner)

    def _pullback(self, targets: Sequence[Any], sources: Sequence[Any]) -> Any:
        """Return a function from gradients of targets to gradients of sources; None if nothing is connected.

        Returns:
            The function, the indices of its targets, and the indices of the sources that it returns.
        """
        self._check_unused()
        targets = [self._target(target) for target in targets]
        arrays = [self._arrays_of(source) for source in sources]
        watched = self._all_watched()
        since = {id(array): place for array, place in reversed(self._watched)}
        starts = [
            (array, since.get(id(array), 0))
            for row in arrays
            for array, _ in row
            if array in watched
        ]
        own = Recorded(self.record, starts)
        connected = [i for i, target in enumerate(targets) if target in own]
        if not connected:
            return None
        aims = [targets[i] for i in connected]
        operations = own.leading_to(aims)
        used = {id(x) for operation in operations for x in operation.inputs} | set(map(id, aims))
        rows = [[(x, c) for x, c in row if id(x) in used and x in watched] for row in arrays]
        places = [i for i, row in enumerate(rows) if row]
        unique = list({id(x): x for row in rows for x, _ in row}.values())
        pull, repeated = Replay(operations, unique, aims).pullback()
        level = contexts.staging()
        if level is not None:
            level.repeated += repeated
        order = {id(x): i for i, x in enumerate(unique)}

        def gradients(given: Sequence[Any]) -> list[Any]:
            found = pull([conjugated(each) for each in given])
            return [
                conjugated(total([(found[order[id(x)]], c) for x, c in rows[place]]))
                for place in places
            ]

        return gradients, connected, places

    def _all_watched(self) -> Recorded:
        """Return the part of the record that depends on what is watched."""
        reads = [(v, 0) for _, values in self._reads.values() for v, _ in values]
        return Recorded(self.record, [*reads, *self._watched])

    def _check_unused(self) -> None:
        if self._is_used:
            raise RuntimeError(
                described(
                    "A tape that is not persistent can compute gradients only once.",
                    fix="write evenfeed.GradientTape(persistent=True), or ask for all gradients in one call.",
                )
            )
        if not self._persistent:
            self._is_used = True
            self.record.paused = True  # if it is asked inside its own block

    def _target(self, target: Any) -> Any:
        """Return the array of a target. That of a variable is the last value that it was read with."""
        if is_variable(target):
            _, values = self._reads.setdefault(id(target), (target, []))
            if not values:
                values.append((jnp.asarray(value_of(target)), False))
            return values[-1][0]
        if not isinstance(target, jax.Array):
            kind = ValueError if isinstance(target, _HOST) else TypeError
            raise kind(
                described(
                    f"A target of gradients is a tensor that JAX computed, or a variable, but got {shortened(target)}, "
                    f"a {type(target).__name__} of the host: the tape does not know what it depends on.",
                    fix="compute it with functions of evenfeed or jax.numpy, without numpy() and numpy_function.",
                )
            )
        return target

    def _arrays_of(self, source: Any) -> list[tuple[Any, bool]]:
        """Return the arrays that stand for a source: each value that a variable was read with."""
        if is_variable(source):
            _, values = self._reads.get(id(source), (None, []))
            return values
        if not isinstance(source, jax.Array):
            raise ValueError(
                described(
                    f"A source of gradients is a variable or a tensor, but got {shortened(source)}.",
                    fix="watch a tensor, and pass the same object: tape.watch(x); tape.gradient(y, x).",
                )
            )
        return [(source, False)]


def is_variable(value: object) -> bool:
    """Return True if a tape treats a value as a variable."""
    return isinstance(value, Variable) or is_keras_variable(value)
