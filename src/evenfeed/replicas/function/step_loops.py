"""`StepLoop`: the program of one step, run many times by one compiled loop."""

from collections.abc import Sequence
from typing import Any, final

from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.replicas.function.programs import Program
from evenfeed.replicas.function.staging import Unstaged


@final
class StepLoop:
    """Runs the program of one step for several steps that were brought to the devices together.

    The loop's body is the program itself, so its results are those of one call after the other. The variables that it
    assigns are carried from step to step. The number of steps is an argument: one loop serves all numbers of them.

    Args:
        program: The program of one step. Its arrays are those of the step, the carried ones, and others.
        carried: For each carried array, the index of the output that is its next value.
        collects: Whether to return the outputs of all steps, stacked, instead of those of the last step.

    Raises:
        Unstaged: A variable or a carried array changes its shape or dtype.
    """

    def __init__(self, program: Program, carried: Sequence[int], *, collects: bool = False) -> None:
        self.program = program
        self._carried = carried
        self._collects = collects
        self._avals: list[Any] = program.closed.out_avals
        self._count = len(self._avals) - len(program.writes)
        self._check_kept()
        shardings = program.output_shardings(stacked=collects)
        self._shardings = shardings
        self._run: Any = jax.jit(self._loop, out_shardings=shardings)

    def __call__(
        self, count: int, steps: Sequence[Any], carried: Sequence[Any], others: Sequence[Any]
    ) -> list[Any]:
        """Run the steps, assign the variables, and return the outputs.

        Args:
            count: The number of steps.
            steps: The arrays of the steps, with a leading axis.
            carried: The carried arrays before the first step.
            others: The arrays that are the same for all steps.
        """
        program = self.program
        reads = [variable.held for variable in program.reads]
        writes = [variable.held for variable in program.writes]
        groups = (program.consts, steps, carried, others, reads, writes)
        placed = (list(program.placed(group)) for group in groups)
        outputs: list[Any] = self._run(count, *placed)
        if program.writes:
            program.commit(outputs[self._count :])
        return outputs[: self._count]

    def _check_kept(self) -> None:
        program = self.program
        for variable, aval in zip(program.writes, self._avals[self._count :], strict=True):
            held = variable.held
            if (held.shape, held.dtype) != (aval.shape, aval.dtype):
                raise Unstaged(f"the variable {variable.name!r} changes its shape or dtype")

    def _loop(  # noqa: PLR0913, PLR0917 - the groups of a program's arrays
        self,
        count: Any,
        consts: list[Any],
        steps: list[Any],
        carried: list[Any],
        others: list[Any],
        reads: list[Any],
        writes: list[Any],
    ) -> list[Any]:
        program, number = self.program, self._count
        assigned = {id(variable): index for index, variable in enumerate(program.writes)}

        def step(index: Any, state: tuple[list[Any], list[Any]]) -> tuple[list[Any], list[Any]]:
            outputs, values = state
            own = [jax.lax.dynamic_index_in_dim(x, index, keepdims=False) for x in steps]
            arrays = [*own, *(outputs[place] for place in self._carried), *others]
            held = [
                values[assigned[id(v)]] if id(v) in assigned else x
                for v, x in zip(program.reads, reads, strict=True)
            ]
            found = program.evaluate(*consts, *(arrays[use] for use in program.uses), *held)
            new = found[:number]
            if self._collects:
                rows = zip(outputs, new, strict=True)
                update = jax.lax.dynamic_update_index_in_dim
                new = [update(row, value, index, 0) for row, value in rows]
            return new, found[number:]

        first = self._first_outputs(len(steps[0]), carried)
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
