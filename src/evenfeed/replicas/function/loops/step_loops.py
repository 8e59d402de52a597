"""`StepLoop`: the program of one step, run many times by one compiled loop."""

from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import Any, final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.replicas.context_mesh import run_apart
from evenfeed.replicas.function.called_python import needs_values, wait_for_calls
from evenfeed.replicas.function.programs import Program
from evenfeed.replicas.function.staging import Unstaged
from evenfeed.replicas.launch_turns import Launch, turns


@final
class StepLoop:
    """Runs the program of one step for several steps that were brought to the devices together.

    The loop's body is the program itself, so its results are those of one call after the other. The variables that it
    assigns are carried from step to step. The number of steps is an argument: one loop serves all numbers of them.

    Args:
        program: The program of one step. Its arrays are the number of the step, those of the step, the carried ones,
            and others.
        carried: For each carried array, the index of the output that is its next value.
        collects: Whether to return the outputs of all steps, stacked, instead of those of the last step.

    Raises:
        Unstaged: A variable or a carried array changes its shape or dtype, or the program calls Python functions for values:
            if one raises, the steps before it would be lost.
    """

    def __init__(self, program: Program, carried: Sequence[int], *, collects: bool = False) -> None:
        self.program = program
        self._carried = carried
        self._collects = collects
        self._avals: list[Any] = program.closed.out_avals
        self._count = len(self._avals) - len(program.writes)
        self._check_kept()
        if needs_values(program.closed.jaxpr):
            raise Unstaged("it calls Python while it runs, by jax.pure_callback or io_callback")
        self._is_numbered = 0 in program.uses
        self._assigned = {id(variable): index for index, variable in enumerate(program.writes)}
        self._unassigned = [v for v in program.reads if id(v) not in self._assigned]
        shardings = program.output_shardings(stacked=collects)
        self._shardings = shardings
        run: Any = jax.jit(self._loop, static_argnums=0, out_shardings=shardings)
        self._run = run if program.replicas is None else Launch(run_apart(run))
        self._in_turn = turns(self._run, waits=program.waits or not program.writes)
        self._numbers: dict[tuple[int, Any], Any] = {}
        self._pick: Any = None

    def __call__(  # noqa: PLR0913, PLR0917 - what one program takes
        self,
        numbers: Array,
        steps: Sequence[Any],
        carried: Sequence[Any],
        others: Sequence[Any],
        assigned: list[tuple[Any, Any, Any]],
        device: Any = None,
    ) -> list[Any]:
        """Run the steps, assign the variables, and return the outputs.

        Args:
            numbers: The numbers of the steps.
            steps: The arrays of the steps, with a leading axis of at least that length.
            carried: The carried arrays before the first step.
            others: The arrays that are the same for all steps.
            assigned: Gets each variable that was assigned, with its array before and after.
            device: The device to run on, if arrays of the steps are on the host.
        """
        # Each line here adds to the cost of a run of steps (benchmarks/many_steps.py).
        return self._in_turn(self._outputs_of, numbers, steps, carried, others, assigned, device)

    def _outputs_of(  # noqa: PLR0913, PLR0917 - as above
        self,
        numbers: Array,
        steps: Sequence[Any],
        carried: Sequence[Any],
        others: Sequence[Any],
        assigned: list[tuple[Any, Any, Any]],
        device: Any,
    ) -> list[Any]:
        program, count = self.program, len(numbers)
        held, writes = program.held(self._unassigned), program.held(program.writes)
        if self._is_numbered:
            steps = [_filled(numbers, len(steps[0])), *steps]
        given = [*program.consts, *steps, *carried, *others, *held, *writes]
        lengths = (len(program.consts), len(steps), len(carried), len(others), len(held))
        # One array on the device is enough: those on the host follow it.
        number = self._number(count, device)
        return program.across_workers(partial(self._assigned_by, lengths, number, given, assigned))

    def _assigned_by(
        self,
        lengths: tuple[int, ...],
        number: Any,
        given: list[Any],
        assigned: list[tuple[Any, Any, Any]],
    ) -> list[Any]:
        """Run the loop and assign the variables; return the other outputs."""
        program = self.program
        outputs: list[Any] = self._run(lengths, number, program.placed(given))
        if program.writes:
            if program.calls_python:  # it may raise, and may assign variables itself
                wait_for_calls(outputs)
            before = [variable.held for variable in program.writes]
            try:
                program.commit(outputs[self._count :])
                pairs = zip(program.writes, before, strict=True)
                assigned += [(variable, held, variable.held) for variable, held in pairs]
            except BaseException:  # such as Ctrl-C: all of them or none
                for variable, held in zip(program.writes, before, strict=True):
                    variable.hold(held)
                raise
        return outputs[: self._count]

    def check(self, steps: Sequence[Any], carried: Sequence[Any], others: Sequence[Any]) -> None:
        """Raise Unstaged if an array has a different shape on another worker."""
        self.program.check_shapes([None, *steps, *carried, *others])

    def _check_kept(self) -> None:
        program = self.program
        for variable, aval in zip(program.writes, self._avals[self._count :], strict=True):
            held = variable.held
            if (held.shape, held.dtype) != (aval.shape, aval.dtype):
                raise Unstaged(f"the variable {variable.name!r} changes its shape or dtype")

    def entry(self, outputs: Sequence[Any], place: int) -> Any:
        """Return the result of one step, from the outputs of all."""
        replicas = self.program.replicas
        if replicas is not None and replicas.spans:
            # A program would need all workers, but one of them may ask for a result by itself.
            shardings = self.program.output_shardings() or ()
            return self.program.result(
                [_local_entry(*each, place) for each in zip(outputs, shardings, strict=False)]
            )
        if self._pick is None:
            shardings = self.program.output_shardings()
            pick = jax.jit(_picked, out_shardings=shardings and shardings[: self._count])
            self._pick = pick if replicas is None else Launch(run_apart(pick))
        with jax.transfer_guard_host_to_device("allow"):
            picked = self._pick(list(outputs), self._number(place))
        return self.program.result(list(picked))

    def _number(self, number: int, device: Any = None) -> Any:
        """Return a number on the devices. There are few: up to the most steps that run together."""
        found = self._numbers.get((number, device))
        if found is None:
            (found,) = self.program.placed([np.int32(number)])
            found = found if device is None else jax.device_put(found, device)
            self._numbers[number, device] = found
        return found

    def _loop(self, lengths: tuple[int, ...], count: Any, arrays: Sequence[Any]) -> list[Any]:
        program, number = self.program, self._count
        consts, steps, carried, others, held, writes = _groups(arrays, lengths)
        unnumbered = [] if self._is_numbered else [None]

        def step(index: Any, state: tuple[list[Any], list[Any]]) -> tuple[list[Any], list[Any]]:
            outputs, values = state
            own = [_row(x, index) for x in steps]
            arrays = [*unnumbered, *own, *(outputs[place] for place in self._carried), *others]
            rest = iter(held)
            read = [
                values[self._assigned[id(v)]] if id(v) in self._assigned else next(rest)
                for v in program.reads
            ]
            found = program.evaluate(*consts, *(arrays[use] for use in program.uses), *read)
            new = found[:number]
            if self._collects:
                rows = zip(outputs, new, strict=True)
                update = jax.lax.dynamic_update_index_in_dim
                new = [update(row, value, index, 0) for row, value in rows]
            return new, found[number:]

        first = self._first_outputs(len(steps[-1]), carried)
        outputs, values = jax.lax.fori_loop(0, count, step, (first, writes))
        return [*outputs, *values]

    def _first_outputs(self, room: int, carried: Sequence[Any]) -> list[Any]:
        """Return the values before the first step: those that are carried, and zeros that nobody sees."""
        ahead = (room,) if self._collects else ()
        found: list[Any] = []
        for place, aval in enumerate(self._avals[: self._count]):
            if place in self._carried:
                found.append(carried[self._carried.index(place)])
                continue
            zeros = jnp.zeros((*ahead, *aval.shape), aval.dtype)
            if self._shardings is not None:
                zeros = jax.lax.with_sharding_constraint(zeros, self._shardings[place])
            found.append(zeros)
        return found


def _groups(arrays: Sequence[Any], lengths: Sequence[int]) -> list[list[Any]]:
    """Cut a list into groups of these lengths, and one of the rest."""
    starts = [0, *accumulate(lengths)]
    ends = [*starts[1:], len(arrays)]
    return [list(arrays[start:end]) for start, end in zip(starts, ends, strict=True)]


def _row(steps: Any, index: Any) -> Any:
    return jax.lax.dynamic_index_in_dim(steps, index, keepdims=False)


def _picked(outputs: list[Any], place: Any) -> list[Any]:
    return [_row(output, place) for output in outputs]


def _local_entry(output: Any, sharding: Any, place: int) -> Any:
    """Return one entry of a stacked array, from the parts on this worker's devices."""
    parts = [shard.data[place] for shard in output.addressable_shards]
    return jax.make_array_from_single_device_arrays(output.shape[1:], sharding, parts)


def _filled(numbers: Array, length: int) -> Array:
    """Return the numbers with zeros behind them, which nobody reads."""
    room = np.zeros(length, numbers.dtype)
    room[: len(numbers)] = numbers
    return room
