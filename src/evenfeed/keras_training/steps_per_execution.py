"""`steps_per_execution` of Keras in one program: Keras on JAX starts a program for each step.

The batches of an execution are read and copied to the devices together, and a compiled loop runs the step of the model
on each. A batch that cannot be in such a loop, such as a short last one, runs as a step of its own.

A step takes the arrays of the state away from the model. So after an error, of the data or of a step, the model gets the
state after its last complete step.
"""

import operator
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, SupportsIndex, final

import numpy as np

from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.keras_training import kept_states, keras_private
from evenfeed.keras_training.dataset_adapter import DatasetAdapter, KerasBatches


def reading_runs(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement for the method that starts a pass: batches of a dataset can be read several at once."""

    def get_iterator(self: Any) -> Iterator[Any]:
        adapter, found = self.data_adapter, None
        if _checked(self.steps_per_execution) > 1 and isinstance(adapter, DatasetAdapter):
            found = adapter.batches()
        return own(self) if found is None else found

    return get_iterator


def making_loops(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return the replacement for the method that makes the function of an execution from that of a step."""
    del own  # it loses the state if the data of a later step is an error

    def make_function(self: Any, step_function: Any, concatenate_outputs: bool = False) -> Any:
        is_single = _checked(self.steps_per_execution) < 2
        keeps = kept_states.is_across_workers()
        step = kept_states.without_donation(step_function) if keeps else step_function
        loop = _Loop(step, collects=concatenate_outputs, donates=not keeps)
        loop.is_refused = is_single or self.run_eagerly or not self.jit_compile

        def execute(state: Any, iterator: Any) -> Any:
            found: list[Any] = []
            left = most = self.steps_per_execution
            try:
                while left:
                    if keeps:
                        kept_states.keep(self, state)
                    outputs, state, count = loop(state, iterator, left, most)
                    found.append(outputs)
                    left -= count
            except StopIteration:
                if not found:
                    raise
            except BaseException:  # also an interrupt while it waits for data
                if keeps:
                    kept_states.give_back(self)
                else:
                    keras_private.hand_back(self, state)
                raise
            return _joined(found) if concatenate_outputs else found[-1], state

        return execute

    return make_function


@final
class _Loop:
    """Runs the step of a model on several batches.

    Args:
        step: The step: takes the state and a batch, and returns its outputs and the new state.
        collects: Whether the outputs of all steps are wanted, joined, instead of those of the last.
        donates: Whether a loop may take the arrays of the state away.
    """

    def __init__(self, step: Callable[[Any, Any], Any], *, collects: bool, donates: bool) -> None:
        self._step = step
        self._donated = (0,) if donates else ()
        self._collects = collects
        self._run: Any = None
        self.is_refused = False

    def __call__(
        self, state: Any, batches: Iterator[Any], left: int, most: int
    ) -> tuple[Any, Any, int]:
        """Run up to `left` steps. Return their outputs, the new state, and how many there were.

        Raises:
            StopIteration: There are no more batches.
        """
        several = batches if isinstance(batches, KerasBatches) and not self.is_refused else None
        run = several and several.peek_run(most)
        if several and run and self._fits(state, run.value):
            run = replace(run, count=min(run.count, left))
            if several.take_run(run):
                with jax.transfer_guard_host_to_device("allow"):
                    outputs, state = self._compiled(state)(state, run.value, np.int32(run.count))
                if self._collects:
                    outputs = jax.tree.map(partial(_rows, count=run.count), outputs)
                return outputs, state, run.count
        outputs, state = self._step(state, next(batches))
        return outputs, state, 1

    def _fits(self, state: Any, steps: Any) -> bool:
        """Return True if the state keeps its shapes and dtypes, as a compiled loop needs."""
        if self._run is not None:
            return True
        _, after = self._shapes(state, steps)
        if jax.tree.map(_kind, after) == jax.tree.map(_kind, state):
            return True
        self.is_refused = True
        warnings.warn(
            "steps_per_execution runs step by step: the step changes the shape or dtype of a variable.",
            stacklevel=2,
        )
        return False

    def _shapes(self, state: Any, steps: Any) -> tuple[Any, Any]:
        """Return the shapes of what a step returns."""
        return jax.eval_shape(self._step, state, jax.tree.map(_one, steps))

    def _compiled(self, state: Any) -> Any:
        if self._run is None:
            shardings = None
            if keras_private.distribution() is not None:
                shardings = (None, kept_states.shardings_of(state))
            self._run = jax.jit(self._loop, donate_argnums=self._donated, out_shardings=shardings)
        return self._run

    def _loop(self, state: Any, steps: Any, count: Any) -> tuple[Any, Any]:
        room = len(jax.tree.leaves(steps)[0])
        outputs, _ = self._shapes(state, steps)
        ahead = (room,) if self._collects else ()
        first = jax.tree.map(partial(_zeros, ahead=ahead), outputs)

        def step(index: Any, held: tuple[Any, Any]) -> tuple[Any, Any]:
            outputs, state = held
            new, state = self._step(state, _batch(steps, index))
            if self._collects:
                update = partial(jax.lax.dynamic_update_index_in_dim, index=index, axis=0)
                new = jax.tree.map(update, outputs, new)
            return new, state

        return jax.lax.fori_loop(0, count, step, (first, state))


def _checked(steps: Any) -> int:
    """Return the number of steps of an execution, if it is one."""
    number = operator.index(steps) if isinstance(steps, SupportsIndex) else 0
    if number < 1:
        raise ValueError(
            described(
                f"steps_per_execution={steps!r} is not a number of steps.",
                fix="pass an integer of at least 1 to compile, such as steps_per_execution=10.",
            )
        )
    return number


def _batch(steps: Any, index: Any) -> Any:
    pick = partial(jax.lax.dynamic_index_in_dim, index=index, keepdims=False)
    return jax.tree.map(pick, steps)


def _one(steps: Any) -> Any:
    return jax.ShapeDtypeStruct(steps.shape[1:], steps.dtype)


def _zeros(output: Any, ahead: tuple[int, ...]) -> Any:
    return jnp.zeros((*ahead, *output.shape), output.dtype)


def _kind(array: Any) -> tuple[Any, Any]:
    return array.shape, array.dtype


def _rows(outputs: Any, count: int) -> Any:
    """Return the rows of the first steps, one step after the other."""
    return outputs[:count].reshape(-1, *outputs.shape[2:])


def _joined(found: list[Any]) -> Any:
    if len(found) == 1:
        return found[0]
    return jax.tree.map(_concatenated, *found)


def _concatenated(*parts: Any) -> Any:
    return jnp.concatenate(parts)
