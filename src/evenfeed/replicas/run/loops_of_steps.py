"""The loops of many steps: those over `tf.range` in an `evenfeed.function`, and `Strategy.run_steps`."""

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from types import FunctionType
from typing import Any, Final, final, overload
from weakref import WeakKeyDictionary

import numpy as np

from evenfeed.core.arguments import whole_number
from evenfeed.core.captures import bound_values, with_bound_values
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.iteration import Iterator
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.replicas import contexts
from evenfeed.replicas.contexts import StrategyLike
from evenfeed.replicas.function.closures import NotComparable, closed_over, with_swapped
from evenfeed.replicas.function.function import Function
from evenfeed.replicas.function.loops.counted_ranges import CountedRange, all_of
from evenfeed.replicas.function.loops.step_loops import StepLoop
from evenfeed.replicas.function.plain_python import drive, loop_runner, warn_not_compiled
from evenfeed.replicas.function.reachable import watching
from evenfeed.replicas.function.staging import Unstaged
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.replica_context import noted
from evenfeed.replicas.run.many_steps import NEXT_STEP, ManySteps, is_plain_call


def run_loop(
    body: FunctionType,
    numbers: Any,
    values: Sequence[Callable[[], Any]],
    has_steps: bool,
) -> tuple[int, Any, Any]:
    """Run iterations of a loop in compiled programs, as many as can.

    Args:
        body: The body: a function of the number and of the carried variables. Returns them, and others.
        numbers: What the loop iterates over: the result of `evenfeed.range`.
        values: Return the carried variables.
        has_steps: Whether to warn if the loop cannot be compiled.

    Returns:
        How many iterations were run, the numbers of the others, and the variables after the last one that was run.
    """
    done, result, owner = 0, None, contexts.here.driving
    is_known = isinstance(numbers, jax.Array | CountedRange) and numbers.size > 1
    found = _found_in(body) if owner is not None and is_known and is_plain_call() else {}
    if owner is None or len(found) != 1:
        return done, all_of(numbers), result
    (iterator,) = found.values()
    every = numbers.numbers if isinstance(numbers, CountedRange) else np.asarray(numbers)
    with suppress(NotComparable, NameError):
        carried = tuple(value() for value in values)
        steps = ManySteps(owner, _with_next_step(body, iterator), iterator, collects=False)
        try:
            while done < len(every) and not steps.are_refused:
                run = iterator.peek_run(len(every) - done)
                if run is None:
                    break
                found_run = steps.run(run, every[done:], carried)
                if found_run is None:
                    continue
                loop, outputs = found_run
                result = loop.program.result(outputs)
                done, carried = done + run.count, result[0]
        except Exception as error:
            error.add_note(f"in the iterations from {done} on, of {len(every)} of the loop.")
            raise
        except Unstaged as reason:
            steps.refuse()
            if has_steps:
                warn_not_compiled(f"A loop in {owner.name} runs step by step", reason)
    rest: Any = [jnp.asarray(number) for number in every[done:]] if done else all_of(numbers)
    return done, rest, result


def _found_in(body: FunctionType) -> dict[int, Iterator]:
    """Return the iterators that the body of a loop reads from, by identity."""
    found = [x for x in bound_values(body) if isinstance(x, Iterator)]
    return {id(each): each for each in found or closed_over(body, _is_iterator)}


def _with_next_step(body: FunctionType, iterator: Iterator) -> FunctionType:
    """Return the body of a loop, in which `NEXT_STEP` stands for the iterator."""
    values = bound_values(body)
    if any(
        value is iterator for value in values
    ):  # most are local variables: no need to look further
        return with_bound_values(body, [NEXT_STEP if x is iterator else x for x in values])
    return with_swapped(body, lambda x: NEXT_STEP if x is iterator else x)


def _is_iterator(value: Any) -> bool:
    return isinstance(value, Iterator)


loop_runner.run = run_loop


# What one run of steps gave: how many there were, and their loop and its outputs; or None and the result of one step.
_Outcome = tuple[int, StepLoop | None, Any]


def outcomes(  # noqa: PLR0913 - keyword-only arguments
    owner: Function,
    body: Callable[[Any], Any],
    iterator: Iterator,
    most: int,
    *,
    collects: bool,
    alone: Callable[[Any], Any],
) -> Generator[_Outcome]:
    """Run up to `most` steps, in compiled loops where possible, until the data ends.

    Args:
        owner: Keeps the programs.
        body: The body of the loop, which reads `NEXT_STEP`. Its argument is the number of the step.
        iterator: The iterator.
        most: How many steps to run.
        collects: Whether the results of all steps are wanted, instead of those of the last.
        alone: Runs a step that cannot be part of a compiled loop, such as a short last batch.
    """
    steps: ManySteps | None = None
    with suppress(NotComparable):
        steps = ManySteps(owner, body, iterator, collects=collects)
    done = 0
    while done < most:
        found: _Outcome | None = None
        if steps is not None and is_plain_call() and not steps.are_refused:
            with noted(f"while the data of step {done} of {most} was read."):
                run = iterator.peek_run(most - done)
            try:
                if run is not None:
                    count, numbers = run.count, np.arange(done, done + run.count)
                    with noted(f"while the steps {done} to {done + count - 1} of {most} ran."):
                        outcome = steps.run(run, numbers, ())
                    if outcome is None:
                        continue
                    found = (count, *outcome)
            except Unstaged as reason:
                steps.refuse()
                warn_not_compiled("The steps run one by one", reason)
        if found is None:
            with noted(f"in step {done} of {most}."):
                try:
                    value = iterator.__next__()
                except StopIteration:
                    return
                found = 1, None, alone(value)
        yield found
        done += found[0]


@final
class StepResults(Sequence[Any]):
    """The results of several steps, in order. `strategy.run_steps` returns it.

    Each result is what `strategy.run` returns for that step. It is taken from the devices' stacked results when it is
    asked for. It is empty, and so counts as False, if the data had ended.

    Args:
        outcomes: The outcomes of the runs of steps.
    """

    def __init__(self, outcomes: "Sequence[_Outcome]") -> None:
        self._outcomes = outcomes
        self._length = sum(count for count, _, _ in outcomes)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        """Return the result of one step, or a list of several."""
        if isinstance(index, slice):
            return [self[each] for each in range(*index.indices(len(self)))]
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(f"There are {len(self)} results, but number {index} was asked for.")
        for count, loop, found in self._outcomes:
            if place < count:
                return found if loop is None else loop.entry(found, place)[1]
            place -= count
        raise AssertionError

    def __repr__(self) -> str:
        return f"<StepResults of {len(self)} steps>"


def run_steps(
    strategy: StrategyLike, fn: Callable[..., Any], iterator: Iterator, steps: int
) -> StepResults:
    """Run a function on the next steps of an iterator."""
    check_steps(iterator, steps)
    owner = owner_of(strategy.extended.replicas)

    def body(number: Any) -> Any:
        del number
        return (), strategy.run(fn, args=(next(NEXT_STEP),))

    def alone(value: Any) -> Any:
        return drive(owner, strategy.run, (fn, (value,)), {})

    found = outcomes(owner, body, iterator, steps, collects=True, alone=alone)
    return StepResults(list(found))


def check_steps(iterator: Iterator, steps: int) -> None:
    """Check the arguments of a loop of steps, and that it is not traced: the trace would not know the data.

    Raises:
        TypeError: `iterator` is not an iterator.
        InvalidArgumentError: There must be at least one step.
    """
    contexts.refuse_in_trace(iterator)
    if not isinstance(iterator, Iterator):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(
            described(
                f"iterator must be an iterator over a distributed dataset, but got {shortened(iterator)}.",
                fix="pass iter(strategy.experimental_distribute_dataset(dataset)).",
            )
        )
    if whole_number(steps, "steps") < 1:
        raise InvalidArgumentError(
            f"steps must be at least 1, but got {steps}.", fix="pass the number of steps to run."
        )


_owners: Final[WeakKeyDictionary[Replicas, Function]] = WeakKeyDictionary()


def owner_of(replicas: Replicas) -> Function:
    """Return what keeps the programs of a strategy's steps: the function that is running, or one of its own."""
    if contexts.here.driving is not None:
        return contexts.here.driving
    if replicas not in _owners:
        _owners[replicas] = Function(_no_function)
        watching.add(_owners[replicas])
    return _owners[replicas]


def _no_function() -> None:
    """Do nothing: only programs are kept for it."""
