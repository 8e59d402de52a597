"""Runs many steps in one compiled program: those of `Strategy.run_steps`, and of loops in an `evenfeed.function`.

The batches of several steps are brought to the devices together (`Iterator.peek_run`), and a compiled loop runs the
program of one step on each (`StepLoop`). A step that cannot be in such a loop, such as a short last batch, is left to
the caller, who runs it by itself.
"""

import re
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType, MethodType
from typing import Any, Final, final
from weakref import WeakKeyDictionary

from evenfeed.core import side_effects
from evenfeed.core.conversion import Array
from evenfeed.core.iteration import Iterator, StepRun
from evenfeed.core.lazy_jax import jax, jax_tree, jnp
from evenfeed.replicas import contexts
from evenfeed.replicas.context_mesh import apart_from_context_mesh
from evenfeed.replicas.function.closures import HOLE, closed_over, replaced
from evenfeed.replicas.function.compiler import Compiler
from evenfeed.replicas.function.function import Function
from evenfeed.replicas.function.loops import guarded_calls
from evenfeed.replicas.function.loops.step_loops import StepLoop
from evenfeed.replicas.function.nnx_objects import is_nnx_object, nnx_objects_in
from evenfeed.replicas.function.open_variables import are_held
from evenfeed.replicas.function.outputs import is_tensor_leaf
from evenfeed.replicas.function.plain_python import mode
from evenfeed.replicas.function.reachable import Place, reached_places, watching
from evenfeed.replicas.function.recognizing import KnownFunctions
from evenfeed.replicas.function.staging import Unstaged
from evenfeed.replicas.key_orders import flattened
from evenfeed.replicas.mesh import replicas_of
from evenfeed.replicas.tape import reads
from evenfeed.tensors.device_arrays import is_traced
from evenfeed.tensors.host_calls import finish_calls

_MOST_LOOPS: Final = 256

# The bodies of the loops of each function.
_known: Final[WeakKeyDictionary[Function, KnownFunctions]] = WeakKeyDictionary()


class _Thread(threading.local):
    """The step that a thread traces the body of a loop for, and the iterator that it comes from."""

    step: Any = None
    iterator: Iterator | None = None
    was_read: bool = False


_tracing: Final = _Thread()


@final
class NextStep(Iterator):
    """Stands for a loop's iterator while the body of the loop is traced: `next` returns the traced step, once."""

    @property
    def element_spec(self) -> Any:
        return None if _tracing.iterator is None else _tracing.iterator.element_spec

    def __next__(self) -> Any:
        if _tracing.was_read:
            raise Unstaged("it reads several elements in one iteration")
        _tracing.was_read = True
        return _tracing.step

    def get_state(self) -> dict[str, Any]:
        raise Unstaged("it asks for the position of its iterator")

    def set_state(self, state: dict[str, Any]) -> None:
        del state
        raise Unstaged("it sets the position of its iterator")


NEXT_STEP: Final = NextStep()


@final
@dataclass
class Body:
    """The body of a loop: a function of the iteration's number and the carried values, which reads `NEXT_STEP`.

    It returns the next carried values, and others.

    Attributes:
        template: The function, without the arrays in its closure.
        step_tree: The structure of a step.
        carried_tree: The structure of the carried values.
        collects: Whether the results of all steps are wanted, instead of those of the last.
        found: What it has read from Python objects; if that changes, it is traced again.
        watches: Whether names that its steps use may be bound to other objects later.
        reached: What its steps may have read from Python objects, as it was after the last trace.
        loops: The loop, and the dtypes of its carried arrays, by what is known of the arrays.
    """

    template: Callable[..., Any]
    step_tree: Any
    carried_tree: Any
    collects: bool
    watches: bool
    loops: dict[Any, "tuple[StepLoop, list[Any]]"] = field(default_factory=dict[Any, Any])
    out_tree: Any = None
    found: list[Any] = field(default_factory=list[Any])
    reached: list[Place] = field(default_factory=list[Place])

    def __post_init__(self) -> None:
        self._compiler = Compiler(self._call)

    @property
    def is_current(self) -> bool:
        """Whether everything that it was traced with is still what its names stand for."""
        return all(map(guarded_calls.are_unchanged, (self.found, self.reached)))

    def _call(self, step: list[Any], carried: list[Any], arrays: list[Any]) -> Any:
        number, *leaves = step
        outer = _tracing.step, _tracing.was_read
        guarded_calls.reading.found = self.found
        _tracing.step = self.step_tree.unflatten(leaves)
        _tracing.was_read = False
        try:
            values = self.carried_tree.unflatten(carried)
            function = replaced(self.template, arrays)
            guarded_calls.note_captured(function)
            objects = nnx_objects_in((), partial(closed_over, function, is_nnx_object))
            before = [] if objects is None else objects.arrays()
            following, others = function(number, *values)
            if objects is not None:  # changes would be lost
                objects.check_kept(before)
            if not _tracing.was_read:
                raise Unstaged("it reads no element", expected=True)
            _refuse_closures(jax_tree.tree_leaves(others))
        finally:
            _tracing.step, _tracing.was_read = outer
            guarded_calls.reading.found = None
        self.out_tree = jax_tree.tree_structure(following)
        return following, others

    def loop_for(
        self, number: Any, steps: Sequence[Any], carried: Sequence[Any], arrays: Sequence[Any]
    ) -> "tuple[StepLoop, list[Any]]":
        """Return the loop for arrays of these shapes and dtypes, and the dtypes that its carried arrays need.

        Args:
            number: The dtype of a step's number.
            steps: The arrays of the steps, with a leading axis.
            carried: The carried arrays.
            arrays: Those in the body's closure.

        Raises:
            Unstaged: The body cannot be compiled, or a carried value does not keep its structure, shape or dtype.
        """
        key = (
            number,
            tuple((x.shape[1:], x.dtype) for x in steps),
            tuple(map(_aval, carried)),
            tuple(map(_aval, arrays)),
        )
        found = self.loops.get(key)
        if found is not None and are_held(found[0].program.open_shapes):
            return found
        one = [jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in steps]
        numbered = [jax.ShapeDtypeStruct((), number), *one]
        try:
            with _agreed_by_workers(steps):
                found = self._traced(numbered, carried, arrays)
        except Exception as error:  # raised again, step by step, if it is the user's
            raise Unstaged(str(error), expected=True) from error
        self.reached = reached_places(self.template) if self.watches else []
        self.loops[key] = found
        return found

    def _traced(
        self, one: list[Any], carried: Sequence[Any], arrays: Sequence[Any]
    ) -> "tuple[StepLoop, list[Any]]":
        # A Python number takes the dtype of the tensors that are added to it, usually its own default. Other dtypes
        # need a trace with the number, to find out.
        guessed = [jnp.asarray(x, x.dtype) if x.weak_type else x for x in carried]
        given = guessed
        for _ in range(4):
            program = self._compiler.program((one, given, list(arrays)), {})
            if (
                given is guessed
                and any(x.weak_type for x in carried)
                and _has_other_dtypes(program.closed)
            ):
                given = list(carried)
                continue
            if self.out_tree != self.carried_tree:
                raise Unstaged("a variable of the loop changes its structure")
            after = program.closed.out_avals[: len(given)]
            if [_aval(x) for x in given] == [_aval(x) for x in after]:
                dtypes = [x.dtype for x in after]
                return StepLoop(program, list(range(len(given))), collects=self.collects), dtypes
            given = [_as_after(x, aval) for x, aval in zip(given, after, strict=True)]
        raise Unstaged("a variable of the loop changes its dtype")


def _refuse_closures(values: Sequence[Any]) -> None:
    """Raise Unstaged if a function that the loop leaves behind has a value of the trace."""
    for each in values:
        if isinstance(each, FunctionType | MethodType) and closed_over(each, is_traced):
            raise Unstaged(f"it keeps {each.__name__}, a function of values that it computes")


@contextmanager
def _agreed_by_workers(steps: Sequence[Any]) -> Generator[None]:
    """Trace in this block. Raises on all workers if one of them cannot: they must all run the same programs."""
    found = (replicas_of(array) for array in steps)
    over = next((replicas for replicas in found if replicas is not None and replicas.spans), None)
    error: Exception | None = None
    try:
        yield
    except Exception as raised:
        error = raised
        raise
    finally:
        if over is not None and not all(over.session.exchange("a loop of steps", error is None)):
            raise error or Unstaged("another worker cannot compile it", expected=True)


_OTHER_DTYPES: Final = re.compile(r"\b(?:b?f16|f8\w*|f64|c128|[iu](?:2|4|8|16|64))\[")


def _has_other_dtypes(closed: Any) -> bool:
    """Return True if a program has dtypes with which a Python number and a tensor give different results."""
    return _OTHER_DTYPES.search(str(closed.jaxpr)) is not None


def _aval(array: Any) -> Any:
    return array.shape, array.dtype, bool(getattr(array, "weak_type", False))


def _as_after(array: Any, aval: Any) -> Any:
    """Return a carried array with the dtype that it has after an iteration."""
    if array.shape != aval.shape:
        raise Unstaged(
            f"a variable of the loop changes its shape from {array.shape} to {aval.shape}"
        )
    if not getattr(array, "weak_type", False) and array.dtype != aval.dtype:
        raise Unstaged(
            f"a variable of the loop changes its dtype from {array.dtype} to {aval.dtype}"
        )
    return jnp.asarray(array, aval.dtype)


def is_plain_call() -> bool:
    """Return True unless the code is traced, watched or recorded: then every step must be seen by itself."""
    here = contexts.here
    return not (
        here.stagings or mode.eager or reads.here.listeners or side_effects.here.watcher is not None
    )


@final
class ManySteps:
    """Runs the body of a loop on runs of steps.

    Args:
        owner: Keeps the programs.
        body: The body, in whose closure `NEXT_STEP` stands for the iterator.
        iterator: The iterator.
        collects: Whether the results of all steps are wanted.

    Raises:
        NotComparable: The body cannot be recognized at the next call.
    """

    def __init__(
        self, owner: Function, body: FunctionType, iterator: Iterator, *, collects: bool
    ) -> None:
        self._owner = owner
        self._body = body
        self._iterator = iterator
        self._collects = collects
        self._arrays: list[Any] = []
        settings = jax.config
        known = _known.get(owner)
        if known is None:
            known = _known[owner] = KnownFunctions()
        self._key = (
            _strategy_key(),
            settings.jax_enable_x64,
            settings.jax_default_matmul_precision,
            known.key(body, self._arrays),
        )
        self._before: Any = None  # results of the last run of steps

    @property
    def are_refused(self) -> bool:
        """Whether the steps of this body could not run in a compiled loop before."""
        return self._key in self._owner.loops

    def refuse(self) -> None:
        """Remember that the steps cannot run in a compiled loop."""
        self._owner.loops[self._key] = None

    def run(
        self, steps: StepRun, numbers: Array, carried: Any
    ) -> tuple[StepLoop, list[Any]] | None:
        """Run some steps, and return their loop and its outputs; None if another thread took some of them.

        Args:
            steps: What the iterator's `peek_run` returned.
            numbers: The numbers of the iterations.
            carried: The carried values before the first step.

        Raises:
            Unstaged: The steps cannot run in a compiled loop.
        """
        leaves, step_tree = flattened(steps.value)
        if all(replicas_of(leaf) is None for leaf in leaves):
            return self._run(steps, leaves, step_tree, numbers, carried)
        with apart_from_context_mesh():
            return self._run(steps, leaves, step_tree, numbers, carried)

    def _run(
        self, steps: StepRun, leaves: list[Any], step_tree: Any, numbers: Array, carried: Any
    ) -> tuple[StepLoop, list[Any]] | None:
        values, carried_tree = flattened(carried)
        given = [_as_carried(leaf) for leaf in values]
        body = self._compiled(step_tree, carried_tree)
        _tracing.iterator = self._iterator
        try:
            loop, dtypes = body.loop_for(numbers.dtype, leaves, given, self._arrays)
        finally:
            _tracing.iterator = None  # else it would never be freed
        given = [
            jnp.asarray(x, dtype) if x.dtype != dtype or x.weak_type else x
            for x, dtype in zip(given, dtypes, strict=True)
        ]
        loop.check(leaves, given, self._arrays)
        if self._before is not None:  # so that no more than two runs of steps are in memory
            jax.block_until_ready(self._before)
        assigned: list[tuple[Any, Any, Any]] = []
        try:
            if not self._iterator.take_run(steps):
                return None
            # The user may have made JAX refuse these transfers.
            with jax.transfer_guard_host_to_device("allow"):
                own = numbers[: steps.count]
                outputs = loop(own, leaves, given, self._arrays, assigned, steps.device)
        except BaseException:  # such as Ctrl-C: as if no step had begun
            for variable, held, new in assigned:
                if variable.held is new:  # no other thread has assigned it since
                    variable.hold(held)
            self._iterator.return_run(steps)
            raise
        self._before = outputs
        if loop.program.closed.effects:
            finish_calls()
        return loop, outputs

    def _compiled(self, step_tree: Any, carried_tree: Any) -> Body:
        loops = self._owner.loops
        key = (self._key, step_tree, carried_tree, self._collects)
        found = loops.get(key)
        if found is None or not found.is_current:
            template = replaced(self._body, [HOLE] * len(self._arrays))
            found = loops[key] = Body(
                template, step_tree, carried_tree, self._collects, self._owner in watching
            )
            if len(loops) > _MOST_LOOPS:
                loops.popitem(last=False)
        return found


def _strategy_key() -> Any:
    level = contexts.frame()
    return level and (level.strategy, level.context is None)


def _as_carried(leaf: Any) -> Any:
    if isinstance(leaf, (bool, int, float, complex)):
        return jnp.asarray(leaf)
    if not is_tensor_leaf(leaf):
        raise Unstaged(f"a variable of the loop is a {type(leaf).__name__}, not a tensor")
    return leaf if isinstance(leaf, jax.Array) else jnp.asarray(leaf)
