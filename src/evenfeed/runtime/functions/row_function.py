"""Users' functions on Blocks: traced once, then run on whole Blocks or element by element."""

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any, Literal, TypeAlias, final

from numpy import ndarray

from evenfeed.core.block import Block, Positions, of_rows
from evenfeed.core.callsite import Origin
from evenfeed.core.errors import described
from evenfeed.core.handles import NewKernel
from evenfeed.core.seeds import begin_call
from evenfeed.core.side_effects import ProbeAbandoned, noted
from evenfeed.runtime.functions.blockwise import on_blocks, threads_for
from evenfeed.runtime.functions.calls import (
    Asked,
    Calling,
    argument_types,
    as_argument,
    explained,
    host_rules,
    on_the_host,
)
from evenfeed.runtime.functions.compiled import Compiled
from evenfeed.runtime.functions.first_calls import FirstCalls, Result
from evenfeed.runtime.functions.metering import Meter
from evenfeed.runtime.functions.probing import NewVariables, spec_of_first, spec_without_values
from evenfeed.runtime.functions.purity import chance_noted
from evenfeed.runtime.functions.results import Results
from evenfeed.runtime.functions.tracing import Finding, found_by_tracing, kernels_for, not_traced
from evenfeed.runtime.processes.portable import EffectsElsewhere
from evenfeed.runtime.run import FirstElements, Run

Way: TypeAlias = Literal["vectorised", "per element"]


@final
class FailedRow(Exception):  # noqa: N818 - not an error of its own: it carries the user's
    """A function failed at one row of a Block.

    Attributes:
        index: Which row.
        before: The results of the rows before it; None where it was the first.
        error: The user's exception, with its note.
        damaged: How many rows from this one on are lost to the same damage of a file, which is told once; 0
            where the file is not damaged.
    """

    def __init__(
        self, index: int, before: Block | None, error: Exception, *, damaged: int = 0
    ) -> None:
        super().__init__(index)
        self.index = index
        self.before = before
        self.error = error
        self.damaged = damaged


@final
class RowFunction:
    """A user's function that takes and gives elements.

    Attributes:
        origin: The user's line that asked for it.
        effects: What it reads and changes besides its arguments, as far as it was seen.
        way: How it runs.
        why: Why it runs that way, for explain().
        parallel_calls: How many elements to work on at a time, where it runs per element.
        meter: How fast it ran so far, without what it took to compile it.
    """

    def __init__(self, asked: Asked, finding: Finding) -> None:
        self.origin = asked.origin
        self.effects = finding.effects
        self.way: Way = "vectorised" if finding.compiled is not None else "per element"
        self.why = finding.why
        self.parallel_calls = asked.num_parallel_calls
        self.meter = Meter()
        self._asked = asked
        self._calling = finding.calling
        self._compiled: Compiled | None = finding.compiled
        self._kernels = finding.kernels
        self._results = Results(asked, finding)
        self._tensors = argument_types(asked.input_spec, casts=finding.casts)
        self._first_calls = FirstCalls()
        self._recalled = FirstCalls()
        self._itself = object()  # the same for all passes
        self._was_called = False
        self._drawn = Counter[Any]()

    def __repr__(self) -> str:
        return f"<function {self.name}, asked for at {self.origin}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _traced, (self._asked,)  # programs are not sent: the other side traces again

    def sendable(self) -> "Callable[[], RowFunction]":
        """Return what makes this function in another process, per element, without tracing it there."""
        asked = replace(self._asked, first_elements=None)
        return partial(_as_found, asked, self.output_spec, casts=self._results.casts)

    @property
    def is_pure(self) -> bool:
        """Whether it gives the same for the same element each time, and nobody sees that it was called."""
        return not self.effects

    @property
    def name(self) -> str:
        """What the user calls it."""
        return self._calling.name

    @property
    def asked(self) -> tuple[Any, ...]:
        """What decides its results: the user's function, and what was said of it."""
        return self._asked.function, self._asked.vectorize, self._asked.output_signature

    @property
    def is_vectorised(self) -> bool:
        """Whether it runs on whole Blocks."""
        return self.way == "vectorised"

    @property
    def opens_datasets(self) -> bool:
        """Whether it returns datasets, which are read in place of the element."""
        return self._asked.returns_values

    @property
    def threads(self) -> int:
        """How many threads share a Block, where it runs on these."""
        return threads_for(self._kernels, self.parallel_calls)

    @property
    def variables(self) -> tuple[Any, ...]:
        """Those that it reads, where it runs on whole Blocks: what they hold then is what it sees."""
        return self._kernels.variables

    @property
    def compilations(self) -> int:
        """How often it was compiled, or is being compiled."""
        return 0 if self._compiled is None else self._compiled.compilations

    @property
    def is_spec_known(self) -> bool:
        """Whether `output_spec` is known without reading an element."""
        return self._results.spec is not None or self._asked.returns_values

    @property
    def output_spec(self) -> Any:
        """The specs of what it returns; where they were not known, those of the first element."""
        if self._results.spec is None and not self._asked.returns_values:
            self._try_first_elements()
        return self._results.spec

    @property
    def first_elements(self) -> FirstElements | None:
        """The first elements that it is given, of which some may have been read."""
        return self._asked.first_elements

    def recalling(self) -> "RowFunction":
        """Return the same function for the pass over the first elements: those are not called again."""
        return self._like(_recalled=self._first_calls.handed_over())

    def in_pass(self, run: Run) -> "RowFunction":
        """Return the same function for one pass, in which the sequences of its random operations begin."""
        if self.is_vectorised:
            return self
        # A dataset that is made for each element has another function each time, of the same line.
        key = self._itself if run.is_outermost else (self.name, self.origin)
        return self._like(_drawn=run.draws_of(key, self._drawn if self._recalled else None))

    def _like(self, **changes: Any) -> "RowFunction":
        made = object.__new__(RowFunction)
        vars(made).update(vars(self), **changes)
        return made

    def _try_first_elements(self) -> None:
        """Learn what it returns from the first element at which it does not fail, or else without values."""
        for result in self.first_results():
            if not isinstance(result, Exception):
                return
        spec = spec_without_values(self._calling, self.effects)
        if spec is not None:
            self._results.learn(spec)
            return
        if errors := self._first_calls.errors():
            raise errors[0]
        raise ValueError(
            described(
                f"What {self.name} returns is not known: it needs values to run, and there is "
                "no element to call it with.",
                fix="say it: map(..., output_signature=tf.TensorSpec(shape, dtype)).",
                origin=self.origin,
            )
        )

    def first_results(self) -> Iterator[Result]:
        """Yield what comes of the first elements, before a pass asks for it; see `recalling`."""
        return self._first_calls.make(self.one, self.first_elements)

    def one(self, parts: list[Any], number: int | None = None) -> list[Any]:
        """Return the parts of the result for one element; what the function returned, with `returns_values`."""
        known = self._recalled.take(number) if self._recalled else None
        if isinstance(known, Exception):
            raise known from known.__cause__
        if known is not None:
            return known
        began = perf_counter()
        try:
            with host_rules(), self._noted():
                result = self._one(parts)
        except Exception as error:  # noqa: BLE001 - it goes on with a note
            raised = explained(error, self._calling, self._asked.doing, self.origin, number, parts)
        else:
            self.meter.add(1, perf_counter() - began)
            return result
        raise raised from raised.__cause__

    def rows(self, block: Block, first: int | Positions = 0) -> Block:
        """Return the results for a whole Block.

        Args:
            block: The elements.
            first: The number of the first one, or of each, for the note of an error.

        Raises:
            FailedRow: The function failed at one of them.
        """
        began, compilations = perf_counter(), self.compilations
        done = self._all_at_once(block, first) if self._compiled is not None else None
        singly = done is None
        done = self._one_by_one(block, first) if done is None else done
        if self.compilations == compilations:
            self.meter.add(block.length, perf_counter() - began, singly=singly)
        return done

    def _noted(self) -> AbstractContextManager[None]:
        """Take down what the function does besides returning a result."""
        if self._was_called:
            return noted(self.effects, self._drawn)
        self._was_called = True
        return self._noted_with_chance()

    @contextmanager
    def _noted_with_chance(self) -> Generator[None]:
        """Take down what the function draws too: at the first call only, for it takes a while."""
        with chance_noted(self._asked.function, self.effects), noted(self.effects, self._drawn):
            yield

    def _one(self, parts: list[Any]) -> list[Any]:
        begin_call()
        arguments = [
            part.view(tensor) if tensor and type(part) is ndarray else as_argument(part)
            for part, tensor in zip(parts, self._tensors, strict=True)
        ]
        if self._asked.returns_values:
            return [self._calling.plain(arguments)]
        if self._results.spec is None:
            spec, structure, leaves = spec_of_first(self._calling, arguments, self.effects)
            self._results.learn(spec)
            return self._results.fitted(structure, leaves)
        structure, leaves = self._calling(arguments)
        return self._results.fitted(structure, [on_the_host(leaf) for leaf in leaves])

    def _one_by_one(self, block: Block, first: int | Positions) -> Block:
        done: list[list[Any]] = []
        rows = block.cut_up()
        with host_rules(), self._noted():
            for index in range(block.length):
                known = self._recalled.take(first, index) if self._recalled else None
                if isinstance(known, Exception):
                    raise FailedRow(index, of_rows(done) if done else None, known)
                try:
                    done.append(known or self._one(rows.row(index)))
                except Exception as error:  # noqa: BLE001 - it goes on with a note
                    before = of_rows(done) if done else None
                    raise self._failed(block, index, before, error, first) from None
        return of_rows(done)

    def _all_at_once(self, block: Block, first: int | Positions) -> Block | None:
        """Return the results of the compiled function; None where this Block must go one by one."""
        assert self._compiled is not None
        try:
            found = on_blocks(self._compiled, self._kernels, block, self.threads)
        except (Exception, NewKernel, NewVariables, ProbeAbandoned):  # noqa: BLE001 - one by one it fails again, at the row that is wrong
            return None
        if found is None:
            return None
        done, failed = found
        if failed is not None and failed.any():
            index = int(failed.argmax())
            error = IndexError("it is out of bounds for the tensor that it is applied to.")
            before = done.cut(0, index) if index else None
            raise self._failed(block, index, before, error, first)
        return done

    def _failed(
        self,
        block: Block,
        index: int,
        before: Block | None,
        error: Exception,
        first: int | Positions,
    ) -> FailedRow:
        number, parts = (
            first + index if isinstance(first, int) else int(first[index]),
            block.row(index),
        )
        told = explained(error, self._calling, self._asked.doing, self.origin, number, parts)
        return FailedRow(index, before, told)


def trace(  # noqa: PLR0913 - what a user says of a function
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
        function: The user's.
        input_spec: The specs of the elements that it gets.
        origin: The user's line that asked for it.
        vectorize: False runs it element by element, on NumPy values.
        output_signature: What it returns, where it cannot be traced.
        num_parallel_calls: How many elements to work on at a time, where it runs per element.
        returns: What it has to return, where it cannot be traced: results are compared with it.
        spread: Whether a tuple arrives as separate arguments.
        returns_values: The function returns something else than tensors, such as a Dataset: it is
            never traced, and `one` returns a list of that one value.
        first_elements: Asked only where the spec is needed and cannot be found by tracing.
        doing: What a note of an error says was being done.
        untraced: Why it must not be traced, where it must not.
        may_draw: Whether to raise DrawsForElements where elements need random bits.
    """
    return _traced(
        Asked(
            function,
            input_spec,
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


def _traced(asked: Asked) -> RowFunction:
    calling = Calling(asked.function, asked.input_spec, spread=asked.spread)
    if asked.returns_values:
        kernels = kernels_for(asked.input_spec)
        return RowFunction(asked, Finding(calling, None, kernels, "it returns a dataset", None))
    if asked.untraced is not None:
        found = not_traced(calling, asked.input_spec, asked.untraced, asked.output_signature)
        return RowFunction(asked, found)
    found = found_by_tracing(
        calling,
        asked.input_spec,
        asked.origin,
        vectorize=asked.vectorize,
        signature=asked.output_signature,
        doing=asked.doing,
        may_draw=asked.may_draw,
    )
    if found.output_spec is None:
        found = replace(found, output_spec=asked.returns)
    return RowFunction(asked, found)


def _as_found(asked: Asked, spec: Any, *, casts: bool) -> RowFunction:
    calling = Calling(asked.function, asked.input_spec, spread=asked.spread)
    kernels = kernels_for(asked.input_spec)
    effects = EffectsElsewhere(calling.name)
    return RowFunction(
        asked, Finding(calling, None, kernels, "processes=True", spec, effects, casts=casts)
    )
