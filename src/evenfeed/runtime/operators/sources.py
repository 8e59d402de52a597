"""The sources of plans: ranges and arrays as rows with positions, and the operator for from_generator."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from operator import itemgetter
from time import perf_counter
from types import FunctionType
from typing import Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core.block import Block, Column, Positions, of_rows, read_only
from evenfeed.core.conversion import Array, shortened
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.side_effects import Noting, here, watched_by
from evenfeed.core.sparse.sparse_specs import SparseTensorSpec
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.specs import TypeSpec
from evenfeed.core.structure import DATA, flatten, opened
from evenfeed.plan.sources import (
    FromGenerator,
    Range,
    Sliced,
    Tensor,
    TensorSlice,
    parts_up_to,
)
from evenfeed.plan.windows import ElementValue, Held
from evenfeed.runtime.functions.calls import name_of, never_stopping
from evenfeed.runtime.functions.private_copies import holds_arrays, keeper, kept
from evenfeed.runtime.functions.reach.purity import chance_noted
from evenfeed.runtime.functions.results import all_of, column_maker, converted
from evenfeed.runtime.live_state import effects_of, last_generator_of
from evenfeed.runtime.operator import Operator, State
from evenfeed.runtime.positions.indexing import Indexed, Lookup, addresses, forward
from evenfeed.runtime.positions.rows import OneRow, Rows
from evenfeed.runtime.step import Step, runs


@addresses(Range)
def _numbers(lookup: Lookup[Range]) -> Indexed:
    return forward(Numbers(lookup.node))


# np.arange counts to the number after the last one, which must fit in 64 bits too.
_LARGE: Final = 1 << 62


@final
class Numbers(Rows):
    """The numbers of a range."""

    fetch_copies = True
    run_copies = True

    def __init__(self, node: Range) -> None:
        self._node = node
        self.size = node.size

    def fetch(self, positions: Positions) -> Block:
        numbers = self._node.start + self._node.step * positions
        return Block((numbers.astype(self._node.dtype, copy=False),), len(positions))

    def run(self, start: int, count: int) -> Block:
        step = self._node.step
        first = self._node.start + step * start
        last = first + step * count
        if max(abs(first), abs(last)) > _LARGE:
            return super().run(start, count)
        numbers = np.arange(first, last, step, dtype=np.int64)
        return Block((numbers.astype(self._node.dtype, copy=False),), count)


@addresses(Tensor)
def _one(lookup: Lookup[Tensor]) -> Indexed:
    return forward(OneRow(list(map(_one_row, lookup.node.arrays))))


def _one_row(value: Array | ElementValue | None) -> Column:
    if isinstance(value, ElementValue):
        return [value]
    return None if value is None else value[None]


@addresses(TensorSlice)
def _slices(lookup: Lookup[TensorSlice]) -> Indexed:
    columns = [_rows_of(values) for values in lookup.node.arrays]
    return forward(Arrays(columns, lookup.node.size))


def _rows_of(values: Sliced | None) -> Column:
    if isinstance(values, SparseTensor):
        return SparseTensorSpec.from_value(values).rows_of(values)
    return values


@addresses(Held)
def _held(lookup: Lookup[Held]) -> Indexed:
    return forward(Arrays(lookup.node.columns, lookup.node.size))


@final
class Arrays(Rows):
    """The rows of arrays and ragged tensors of equal length. `fetch` copies; `run` returns views."""

    fetch_copies = True

    def __init__(self, columns: Sequence[Column], size: int) -> None:
        # Changing an element must not change the source.
        self._block = read_only(Block(tuple(columns), size))
        self.size = size

    def fetch(self, positions: Positions) -> Block:
        return self._block.gather(positions)

    def run(self, start: int, count: int) -> Block:
        return self._block.cut(start, start + count)


# In seconds. After this time, return what a slow generator has yielded so far.
_PATIENCE: Final = 0.01

# Large groups convert fast, but 700 new tuples would trigger Python's garbage collector.
_TOGETHER: Final = 512

Parts: TypeAlias = list[Sequence[Any]]
_NOTHING: Final = object()

Transpose: TypeAlias = Callable[[Sequence[Any]], Parts | None]


@final
class _Started:
    """Goes on with an iterator. `islice` calls `iter` each time, and some iterators then start over."""

    def __init__(self, iterator: Iterator[Any]) -> None:
        self._iterator = iterator

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._iterator)


@runs(FromGenerator)
def _pull_elements(step: Step[FromGenerator]) -> Operator:
    return PullElements(step.node)


@final
class PullElements(Operator):
    """Pulls elements from the iterable that a user function returns, and converts many at a time.

    It never pulls more than it is asked for. Generators cannot go back, so `restore` calls the function again and skips
    as many elements as were passed before. The state counts these, including elements that failed.
    """

    def __init__(self, node: FromGenerator) -> None:
        self._node = node
        self._specs: list[TypeSpec] = flatten(node.signature, DATA)
        self._makers = [column_maker(spec) for spec in self._specs]
        self._transpose = _transposer(node.signature)
        self._iterator: Iterator[Any] | None = None
        self._pulled: list[Any] = []
        self._error: Exception | None = None  # raised after the elements pulled before it
        self._passed = 0
        self._step = 1  # how many to pull before checking the time
        self._keep = keeper(node.signature)
        self._is_first = True
        # One for the whole pass: a generator may read an iterator that it made while yielding earlier elements.
        self._effects = effects_of(node)
        self._watcher = Noting(self._effects, here.watcher)

    def read(self, most: int) -> Block | None:
        most = min(most, _TOGETHER)
        with watched_by(self._watcher):
            if self._iterator is None:
                with chance_noted(self._node.generator, self._effects):
                    self._pull(most - len(self._pulled))
            else:
                self._pull(most - len(self._pulled))
        if self._pulled:
            return self._converted(most)
        if self._error is not None:
            error, self._error = self._error, None
            self._passed += 1
            raise error
        return None

    def _pull(self, count: int) -> None:
        end = perf_counter() + _PATIENCE
        step = self._step
        while count > 0 and self._error is None:
            before, asked = len(self._pulled), min(step, count)
            try:
                # Elements appended before the iterable raises stay in the list.
                iterator = self._started() if self._iterator is None else self._iterator
                self._take(islice(iterator, asked))
            except Exception as error:  # noqa: BLE001 - raised after the elements before it
                self._error = self._noted(error)
            got = len(self._pulled) - before
            count -= got
            if perf_counter() > end:
                self._step = 1
                return
            if got < asked:
                return
            self._step = step  # the next read starts with the last step that was fast enough
            step *= 8

    def _take(self, elements: Iterator[Any]) -> None:
        if self._is_first:  # a step of one element
            self._is_first = False
            first = next(elements, _NOTHING)
            if first is _NOTHING:
                return
            if self._keep is None and holds_arrays(first):
                self._keep = kept
            self._pulled.append(first if self._keep is None else self._keep(first))
        # Copied before the iterable goes on and writes to them again.
        self._pulled.extend(elements if self._keep is None else map(self._keep, elements))

    def _started(self) -> Iterator[Any]:
        if self._iterator is None:
            args = [
                arg[()] for arg in self._node.args
            ]  # 0-d arrays become scalars, as in TensorFlow
            # Only __next__ may signal the end with StopIteration.
            with never_stopping(name_of(self._node.generator), self._node.origin):
                found: Any = self._node.generator(*args)
            if last_generator_of(self._node).is_again(found):
                self._warn_of_exhaustion()
            self._iterator = iter(())
            try:
                with never_stopping(type(found).__name__, self._node.origin):
                    started: Iterator[Any] = iter(found)
                    is_python = isinstance(type(started).__iter__, FunctionType)
                    self._iterator = _Started(started) if is_python else started
            except TypeError:
                raise InvalidArgumentError(
                    f"generator must return an iterable, but returned {shortened(found)}.",
                    fix="pass a function that yields elements, or returns a list or an iterator.",
                    origin=self._node.origin,
                ) from None
        return self._iterator

    def _warn_of_exhaustion(self) -> None:
        origin, name = self._node.origin, name_of(self._node.generator)
        text = (
            f"{name} returned the same generator as for the pass before. It goes on where that pass stopped, and has no "
            "elements if it was at the end. Return a new generator from each call: create it in the function."
        )
        filename, line = (origin.filename, origin.line) if origin else ("<unknown>", 0)
        warnings.warn_explicit(text, UserWarning, filename, line)

    def _noted(self, error: Exception) -> Exception:
        place = self._passed + len(self._pulled)
        error.add_note(
            f"while pulling element {place} from the generator passed at {self._node.origin}"
        )
        return error

    def _converted(self, most: int) -> Block:
        rows = self._pulled if len(self._pulled) <= most else self._pulled[:most]
        block = self._together(rows) or self._one_by_one(rows)
        self._pulled = self._pulled[block.length :]
        self._passed += block.length
        return block

    def _together(self, rows: list[Any]) -> Block | None:
        """Convert all rows column by column; return None if a row needs individual conversion."""
        parts = self._transpose(rows)
        if parts is None:
            return None
        columns: list[Column] = []
        for make, values in zip(self._makers, parts, strict=True):
            made = make(values)
            if made is None:
                return None
            columns.append(made[0])
        return Block(tuple(columns), len(rows))

    def _one_by_one(self, rows: list[Any]) -> Block:
        """Return the rows before the first that does not fit; if that is the first row, raise its error."""
        good: list[list[Any]] = []
        for row in rows:
            try:
                good.append(self._element(row))
            except (TypeError, ValueError, OverflowError) as error:
                if good:
                    break
                del self._pulled[0]
                self._passed += 1
                raise self._mismatch(row, error) from None
        return of_rows(good)

    def _element(self, row: Any) -> list[Any]:
        parts = parts_up_to(self._node.signature, row)
        return [converted(part, spec) for part, spec in zip(parts, self._specs, strict=True)]

    def _mismatch(self, row: Any, error: Exception) -> InvalidArgumentError:
        what = error.message if isinstance(error, InvalidArgumentError) else str(error)
        return InvalidArgumentError(
            f"Element {self._passed - 1} of the generator, {shortened(row)}, "
            f"does not match output_signature: {what.partition(chr(10))[0]}",
            fix=f"yield values that match {self._node.signature}, or change output_signature.",
            origin=self._node.origin,
        )

    def state(self) -> State:
        return self._passed

    def restore(self, state: State) -> None:
        self.close()
        self._error = None
        with watched_by(self._watcher):
            self._pass_over(state)
        self._passed = state

    def _pass_over(self, count: int) -> None:
        for _ in range(count):
            try:
                next(self._started())
            except StopIteration:
                return
            except Exception:  # noqa: BLE001, S112 - raised when it was first reached
                continue

    def close(self) -> None:
        """Release the iterable, so that a generator's `finally` runs."""
        self._iterator = None
        self._pulled = []


def _transposer(signature: Any) -> Transpose:
    """Return a function that turns rows into columns, or returns None if a row does not match `signature`."""
    branch = opened(signature, DATA)
    if branch is None:
        return lambda rows: [rows]
    kind = type(signature)  # pyright: ignore[reportUnknownVariableType]
    if kind not in (tuple, dict):
        return lambda _: None
    split = _of_pairs if len(branch.parts) == 2 else _of_tuples
    if kind is dict:
        split = partial(_of_dicts, sorted(signature))
    inner = [_transposer(part) for part in branch.parts]
    flat = all(opened(part, DATA) is None for part in branch.parts)

    def transpose(rows: Sequence[Any]) -> Parts | None:
        if not all_of(rows, kind):
            return None
        columns = split(rows)
        if columns is None or len(columns) != len(inner):
            return None
        return columns if flat else _nested(inner, columns)

    return transpose


def _of_pairs(rows: Sequence[tuple[Any, ...]]) -> Parts | None:
    # Faster than zip, whose iterator for each row would also wake up the garbage collector.
    try:
        return [[one for one, _ in rows], [two for _, two in rows]]
    except ValueError:
        return None


def _of_tuples(rows: Sequence[tuple[Any, ...]]) -> Parts | None:
    try:
        return list(zip(*rows, strict=True))
    except ValueError:
        return None


def _of_dicts(keys: list[Any], rows: Sequence[dict[Any, Any]]) -> Parts | None:
    if set(map(len, rows)) != {len(keys)}:
        return None
    try:
        return [list(map(itemgetter(key), rows)) for key in keys]
    except KeyError:
        return None


def _nested(inner: Sequence[Transpose], columns: Parts) -> Parts | None:
    parts: Parts = []
    for transpose, column in zip(inner, columns, strict=True):
        found = transpose(column)
        if found is None:
            return None
        parts.extend(found)
    return parts
