"""A user function in a plan: traced once, then run on whole Blocks or element by element."""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, Literal, TypeAlias, final

from evenfeed.core.batchable_specs import spec_of_argument
from evenfeed.core.block import Block, Positions
from evenfeed.core.callsite import Origin
from evenfeed.core.randomness.drawn_columns import Turns
from evenfeed.core.side_effects import Effects, noted
from evenfeed.core.structure import DATA, map_structure
from evenfeed.plan.node import Identity, Node
from evenfeed.runtime.functions.blockwise import can_fail, on_blocks, threads_for
from evenfeed.runtime.functions.calls import (
    TraceArguments,
    argument_types,
    explained,
    host_rules,
    name_of,
)
from evenfeed.runtime.functions.compiled import Compiled
from evenfeed.runtime.functions.element_calls import ElementCalls, Passing
from evenfeed.runtime.functions.kernels import Kernels
from evenfeed.runtime.functions.probing import spec_without_values, unknown_spec
from evenfeed.runtime.functions.reach.purity import chance_noted
from evenfeed.runtime.functions.reach.shared_findings import Finding
from evenfeed.runtime.functions.results import Results
from evenfeed.runtime.functions.staging.row_failures import failure
from evenfeed.runtime.functions.tracing import finding_elsewhere, finding_of
from evenfeed.runtime.live_state import CallRecord, Meter, calls_of, new_calls
from evenfeed.runtime.operator import FailedRow
from evenfeed.runtime.peek import FirstCalls, Result
from evenfeed.runtime.processes.portable import EffectsElsewhere
from evenfeed.runtime.run import FirstElements, Run

Way: TypeAlias = Literal["vectorised", "per element"]


@final
class RowFunction:
    """A user function from elements to elements.

    Attributes:
        origin: The line of user code that asked for it.
        calling: The user function, and how it is called.
        way, why: How it runs, and why, for explain().
        parallel_calls: How many elements to process at a time, if it runs per element.
    """

    def __init__(self, asked: TraceArguments, finding: Finding) -> None:
        self.origin = asked.origin
        self.way: Way = "vectorised" if finding.compiled is not None else "per element"
        self.why = finding.why
        self.parallel_calls = asked.num_parallel_calls
        self._asked = asked
        self._can_wait = finding.compiled is None and not asked.returns_values
        self.calling = finding.calling
        self._compiled: Compiled | None = finding.compiled
        self._kernels = finding.kernels
        self._results = Results(asked, finding)
        tensors = argument_types(asked.input_spec, casts=finding.casts)
        self._calls = ElementCalls(
            finding.calling, self._results, tensors, returns_values=asked.returns_values
        )
        self._first_calls, self._recalled = FirstCalls(), FirstCalls()
        self._itself = Identity()  # the same in the copies for all passes
        self._record: CallRecord | None = None  # only in the copy for a pass
        self._pass_meter: Meter | None = None  # only in the copy for a pass that is measured
        new_calls(self._itself, finding.effects)
        self._drawn = Counter[Any]()

    def __repr__(self) -> str:
        return f"<function {self.name}, asked for at {self.origin}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _traced, (self._asked,)  # programs are not pickled: the other process traces again

    def sendable(self) -> "Callable[[], RowFunction]":
        """Return a picklable factory that makes this function in another process, per element and untraced."""
        asked = replace(self._asked, first_elements=None)
        return partial(_made_untraced, asked, self.output_spec, casts=self._results.casts)

    @property
    def record(self) -> CallRecord:
        """What its calls have shown."""
        return self._record or calls_of(self._itself)

    @property
    def effects(self) -> Effects:
        """The side effects seen so far."""
        return self.record.effects

    @property
    def meter(self) -> Meter:
        """How fast it has run so far, without compilations."""
        return self._pass_meter or self.record.meter

    @property
    def is_pure(self) -> bool:
        """Whether it has no side effects, and always returns the same for the same element."""
        return not self.effects

    @property
    def why_sequential(self) -> str | None:
        """Why it must be called for one element after another; None if it is pure and runs on whole Blocks."""
        what = self.effects.text() or ("" if self.is_vectorised else "runs per element")
        return f"{self.name} {what}" if what else None

    @property
    def can_fail(self) -> bool:
        """Whether it may raise for some elements."""
        return self._compiled is None or can_fail(self._compiled, self._kernels)

    @property
    def name(self) -> str:
        """Its name in user code."""
        return self.calling.name

    @property
    def asked(self) -> tuple[Any, ...]:
        """What determines its results: the user function and its options."""
        return self._asked.function, self._asked.vectorize, self._asked.output_signature

    @property
    def is_vectorised(self) -> bool:
        """Whether it runs on whole Blocks."""
        return self.way == "vectorised"

    @property
    def opens_datasets(self) -> bool:
        """Whether it returns datasets, which replace the element."""
        return self._asked.returns_values

    @property
    def threads(self) -> int:
        """How many threads share a Block, if it runs on whole Blocks."""
        return threads_for(self._kernels, self.parallel_calls)

    @property
    def variables(self) -> tuple[Any, ...]:
        """The variables that it reads, if it runs on whole Blocks. It uses their values at the time it runs."""
        return self._kernels.variables

    @property
    def compilations(self) -> int:
        """How often it was compiled, counting compilations in progress."""
        return 0 if self._compiled is None else self._compiled.compilations

    @property
    def is_spec_known(self) -> bool:
        """Whether `output_spec` is known without reading an element."""
        return self._results.spec is not None or self._asked.returns_values

    @property
    def output_spec(self) -> Any:
        """The output spec; if it is unknown, calls the function with the first elements."""
        if self._results.spec is None and not self._asked.returns_values:
            self._try_first_elements()
        return self._results.spec

    @property
    def first_elements(self) -> FirstElements | None:
        """The first elements that it gets. Some of them may have been read already."""
        return self._asked.first_elements

    def recalling(self) -> "RowFunction":
        """Return a copy for the pass over the first elements, which are not passed to the function again."""
        return self._like(_recalled=self._first_calls.handed_over())

    def in_pass(self, run: Run, node: Node) -> "RowFunction":
        """Return a copy for one pass over a node, at whose start its random operations restart their sequences."""
        record = calls_of(self._itself)
        meter = run.meter and run.meter.function_meter(node, record.meter, splits=self._can_wait)
        if self.is_vectorised and not self._kernels.operations:
            return self._like(_record=record, _pass_meter=meter)
        record.was_called = False
        key: Any = self._itself
        if not run.is_outermost:  # an inner dataset has new function objects for each element
            key = self.name, self.origin, run.number_of(node)
        drawn = run.draws_of(key, self._drawn if self._recalled else None)
        return self._like(_record=record, _drawn=drawn, _pass_meter=meter)

    def _like(self, **changes: Any) -> "RowFunction":
        made = object.__new__(RowFunction)
        vars(made).update(vars(self), **changes)
        return made

    def _try_first_elements(self) -> None:
        """Find the output spec from the first element that does not fail, or else without values."""
        if not all(isinstance(result, Exception) for result in self.first_results()):
            return
        if (spec := spec_without_values(self.calling, self.effects)) is not None:
            self._results.learn(spec)
            return
        if errors := self._first_calls.errors():
            raise errors[0]
        raise unknown_spec(self.name, self.origin)

    def first_results(self) -> Iterator[Result]:
        """Yield the results of the first elements, before a pass reads them; see `recalling`."""
        return self._first_calls.make(self.one, self.first_elements)

    def one(self, parts: list[Any], number: int | None = None) -> list[Any]:
        """Return the parts of the result for one element; with `returns_values`, the result itself in a list."""
        start, calls = self.meter.begin(), self._calls
        with host_rules(), self._noted():
            known = self._known(number)
            try:
                found = calls.one(calls.arguments(parts), self.effects) if known is None else known
            except Exception as error:  # noqa: BLE001 - raised again with a note
                found = self._explained(error, number, parts)
        if isinstance(found, Exception):
            raise found from found.__cause__
        self.meter.end(start, 1)
        return found

    @property
    def traced(self) -> tuple[Compiled, Kernels] | None:
        """Its programs and kernels, to run them in another way; None if that would be observable."""
        if self._compiled is None or not self.is_pure or self._recalled:
            return None
        return self._compiled, self._kernels

    def each(
        self, block: Block, number: int, indices: Iterable[int], caught: type[BaseException]
    ) -> Iterator[tuple[int, Result | BaseException]]:
        """Yield some `indices` of a Block with their results, or with the errors of a class that they raise."""
        arguments, count, start = self._calls.reader(block), 0, self.meter.begin()
        with host_rules(), self._noted():
            call, recalls = self._calls.caller(self.effects), bool(self._recalled)
            for index in indices:
                found: Any = self._known(number + index) if recalls else None
                if found is None:
                    try:
                        found = call(arguments(index))
                    except caught as error:
                        found = error
                        if isinstance(error, Exception):
                            found = self._explained(error, number + index, block.row(index))
                yield index, found
                count += 1
        self.meter.end(start, count)

    def _known(self, number: int | None) -> Result | None:
        """Return the result of an element that was passed to the function before this pass."""
        return self._recalled.take(number) if self._recalled else None

    def _explained(self, error: Exception, number: int | None, parts: list[Any]) -> Exception:
        return explained(error, self.calling, self._asked.doing, self.origin, number, parts)

    def rows(self, block: Block, first: int | Positions = 0, passing: Passing = None) -> Block:
        """Return the results for a whole Block.

        Args:
            block: The elements.
            first: The number of the first element, or the numbers of all, for the notes of errors.
            passing: Passes elements on, and so sees when the function is called for each, if it runs per element.

        Raises:
            FailedRow: The function failed at an element.
        """
        meter, compilations = self.meter, self.compilations
        start = meter.begin()
        found = self._all_at_once(block, first) if self._compiled is not None else None
        done = self._one_by_one(block, first, passing) if found is None else found
        if self.compilations == compilations:
            meter.end(start, block.length, singly=found is None)
        return done

    def _noted(self) -> AbstractContextManager[None]:
        """Record the side effects of the function in this context."""
        calls = self.record
        if calls.was_called:
            return noted(calls.effects, self._drawn)
        calls.was_called = True
        return self._noted_with_draws(calls.effects)

    @contextmanager
    def _noted_with_draws(self, effects: Effects) -> Generator[None]:
        """Also record random draws: only at the first call of a pass, because that is slow."""
        drawing = chance_noted(self._asked.function, effects, self.calling.specs)
        with drawing, noted(effects, self._drawn):
            yield

    def _one_by_one(self, block: Block, first: int | Positions, passing: Passing) -> Block:
        done: list[Any] = []
        elements = self._calls.elements(block)
        answering = partial(self._recalled.answering, first=first, done=done)
        around = answering if self._recalled else None
        with host_rules(), self._noted():
            fill, joined = self._calls.filler(done, self.effects, around)
            try:
                fill(elements if passing is None else passing(elements))
            except Exception as error:  # noqa: BLE001 - raised again with a note
                before = joined(done) if done else None
                if isinstance(error, FailedRow):  # known from before this pass
                    raise FailedRow(error.index, before, error.error) from None
                raise self._failed(block, len(done), before, error, first) from None
        return joined(done)

    def _singly(self, block: Block) -> Block:
        """Return the results for elements of a shape that few elements have."""
        with host_rules(), self._noted():
            found = self._calls.block(block, self.effects)
        self.meter.add_singly(block.length)
        return found

    def _all_at_once(self, block: Block, first: int | Positions) -> Block | None:
        """Return the results of the compiled function; None if this Block must run element by element."""
        assert self._compiled is not None
        turns = Turns(self._drawn, self._kernels.operations)
        singly = None if self._recalled else self._singly
        found = on_blocks(self._compiled, self._kernels, block, self.parallel_calls, turns, singly)
        if found is None:
            return None
        done, failed = found
        if failed is not None and failed.any():
            index = int((failed != 0).argmax())
            turns.advance(index + 1)
            before = done.cut(0, index) if index else None
            raise self._failed(block, index, before, failure(failed[index]), first)
        turns.advance(block.length)
        return done

    def _failed(
        self,
        block: Block,
        index: int,
        before: Block | None,
        error: Exception,
        first: int | Positions,
    ) -> FailedRow:
        number = first + index if isinstance(first, int) else int(first[index])
        return FailedRow(index, before, self._explained(error, number, block.row(index)))


def trace(  # noqa: PLR0913 - the options of a user function
    function: Callable[..., Any],
    input_spec: Any,
    origin: Origin | None,
    *,
    vectorize: bool | None = None,
    output_signature: Any = None,
    num_parallel_calls: int | None = None,
    returns: Any = None,
    spread: bool = True,
    returns_values: bool = False,
    first_elements: FirstElements | None = None,
    doing: str = "mapping",
    untraced: str | None = None,
    may_draw: bool = False,
) -> RowFunction:
    """Trace a function and choose how it runs.

    Args:
        function: The user function.
        input_spec: The spec of the elements that it gets.
        origin: The line of user code that asked for it.
        vectorize: False runs it element by element, on NumPy values.
        output_signature: The output spec, for a function that cannot be traced.
        num_parallel_calls: How many elements to process at a time, if it runs per element.
        returns: The output spec that is required of a function that cannot be traced. Results are compared with it.
        spread: Whether a tuple is passed as separate arguments.
        returns_values: Whether the function returns something other than tensors, such as a Dataset. It is then
            never traced, and `one` returns a list of that one value.
        first_elements: The first elements, read only if the output spec is needed and tracing cannot find it.
        doing: The action that the notes of errors name.
        untraced: Why it must not be traced; None if it may be.
        may_draw: Whether to raise DrawsForElements if elements need random bits.
    """
    return _traced(
        TraceArguments(
            function,
            map_structure(spec_of_argument, input_spec, rules=DATA),
            origin,
            vectorize,
            output_signature,
            num_parallel_calls,
            returns,
            spread,
            returns_values,
            first_elements,
            doing,
            untraced,
            may_draw,
        )
    )


def _traced(asked: TraceArguments) -> RowFunction:
    return RowFunction(asked, finding_of(asked))


def _made_untraced(asked: TraceArguments, spec: Any, *, casts: bool) -> RowFunction:
    effects = EffectsElsewhere(name_of(asked.function))
    return RowFunction(asked, finding_elsewhere(asked, spec, effects, casts=casts))
