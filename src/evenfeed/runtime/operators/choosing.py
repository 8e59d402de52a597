"""Operators for choose_from_datasets and sample_from_datasets, and for the counter and random sources."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from evenfeed.core.block import Block, Positions, concatenated, items
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.randomness.random_bits import key_of, raw
from evenfeed.plan.choosing import Choose, Counter, Random, Sample
from evenfeed.plan.node import Node
from evenfeed.runtime.functions.called_functions import draws_in_turn
from evenfeed.runtime.operator import Operator, PushbackReader, State
from evenfeed.runtime.step import Step, runs

# The most numbers to make at a time: a shuffle of everything asks for more than fit into memory.
_MOST: Final = 1 << 20

# The fewest choices to serve at a time.
_LEAST: Final = 16


@runs(Counter)
def _count_on(step: Step[Counter]) -> Operator:
    return CountOn(step.node)


@final
class CountOn(Operator):
    """Counts without end."""

    def __init__(self, node: Counter) -> None:
        self._node = node
        self._next = 0

    def read(self, most: int) -> Block:
        most = min(most, _MOST)
        steps = np.arange(self._next, self._next + most, dtype=np.int64)
        self._next += most
        whole = self._node.dtype.kind in "iu"
        numbers = self._node.start + self._node.step * (
            steps if whole else steps.astype(np.float64)
        )
        return Block((numbers.astype(self._node.dtype),), most)

    def state(self) -> State:
        return self._next

    def restore(self, state: State) -> None:
        self._next = state


@runs(Random)
def _draw_numbers(step: Step[Random]) -> Operator:
    return DrawNumbers(step.seed)


@final
class DrawNumbers(Operator):
    """Random 32-bit numbers without end; any of them can be drawn again."""

    def __init__(self, seed: tuple[int, ...]) -> None:
        self._key = key_of(*seed)
        self._next = 0

    def read(self, most: int) -> Block:
        most = min(most, _MOST)
        numbers = raw(self._key, self._next, most) >> np.uint64(32)
        self._next += most
        return Block((numbers.astype(np.int64),), most)

    def state(self) -> State:
        return self._next

    def restore(self, state: State) -> None:
        self._next = state


@final
class DrawChoices(Operator):
    """Draws, by weight, the index of the child to read next."""

    def __init__(self, weights: Sequence[float] | Operator, seed: tuple[int, ...]) -> None:
        self._weights = weights
        self._key = key_of(*seed)
        self._next = 0

    def read(self, most: int) -> Block | None:
        if not isinstance(self._weights, Operator):
            choices = np.searchsorted(self._ends[:-1], self._points(most, self._ends[-1]), "right")
            return Block((choices,), most)
        block = self._weights.read(most)
        if block is None:
            return None
        ends = _ends_of(np.asarray(block.columns[0], np.float64))
        points = self._points(block.length, ends[:, -1])
        choices = (points[:, None] >= ends[:, :-1]).sum(axis=1, dtype=np.int64)
        return Block((choices,), block.length)

    @cached_property
    def _ends(self) -> Array:
        """The ends of the ranges from which each child is drawn, if all draws have the same weights."""
        return _ends_of(np.asarray([self._weights], np.float64))[0]

    def _points(self, count: int, stop: Any) -> Array:
        """Draw numbers from 0 up to `stop`."""
        draws = raw(self._key, self._next, count) >> np.uint64(11)
        self._next += count
        return draws.astype(np.float64) * 2.0**-53 * stop

    def state(self) -> State:
        inner = self._weights.state() if isinstance(self._weights, Operator) else None
        return [self._next, inner]

    def restore(self, state: State) -> None:
        self._next, inner = state
        if isinstance(self._weights, Operator):
            self._weights.restore(inner)

    def children(self) -> tuple[Operator, ...]:
        return (self._weights,) if isinstance(self._weights, Operator) else ()


def _ends_of(weights: Array) -> Array:
    with np.errstate(over="ignore"):  # reported by the error below
        ends = np.cumsum(np.where(weights > 0, weights, 0), axis=1)
    finite = np.isfinite(ends[:, -1])
    if not finite.all():  # nothing could be drawn, and no dataset would ever end
        raise InvalidArgumentError(
            f"Weights must have a finite sum, but got {weights[~finite][0].tolist()}.",
            fix="divide the weights by the largest one.",
        )
    return ends


@runs(Choose)
def _read_chosen(step: Step[Choose]) -> Operator:
    return ReadChosen(step.children[:-1], step.children[-1], step.node, singly=_reads_singly(step))


@runs(Sample)
def _read_drawn(step: Step[Sample]) -> Operator:
    weights = step.node.weights
    given = step.children[-1] if isinstance(weights, Node) else weights
    parts = step.children[: len(step.node.parts)]
    choices = DrawChoices(given, step.seed)
    return ReadChosen(parts, choices, step.node, singly=_reads_singly(step))


def _reads_singly(step: Step[Choose] | Step[Sample]) -> bool:
    """Return True if it is observable that elements after the end are read: the next round draws other numbers."""
    ends_early = step.node.stop_on_empty and step.run.may_restart
    return ends_early and any(map(draws_in_turn, step.node.children))


@final
class ReadChosen(Operator):
    """Reads the next element of the child that each choice names.

    Args:
        children: The operators to read from.
        choices: The operator of the choices.
        node: The node.
        singly: Whether to follow one choice at a time, so that nothing is read after the end.
    """

    def __init__(
        self,
        children: Sequence[Operator],
        choices: Operator,
        node: Choose | Sample,
        *,
        singly: bool = False,
    ) -> None:
        self._singly = singly
        self._feeds = [PushbackReader(child) for child in children]
        self._choices = PushbackReader(choices)
        self._node = node
        self._ended = [False] * len(children)
        # How many choices to serve at a time: what is read behind a choice that cannot be served is given back.
        self._together = _LEAST
        # Errors of reads made ahead of their choice, each with the position before the read.
        self._failed: dict[int, tuple[State, Exception]] = {}

    def read(self, most: int) -> Block | None:
        while not all(self._ended):
            block = self._choices.read(1 if self._singly else most)
            if block is None:
                return None
            choices = self._numbers(block)
            places = self._open(choices)[: self._together]
            if len(places) == self._together:
                choices = choices[: int(places[-1]) + 1]
            rows, served, may_go_on = self._serve(choices[places])
            passed = rows is None and len(places) > 0
            # Children that return fewer elements than asked for, as filters do, are no reason to ask for less.
            self._together = max(_LEAST, min(_MOST, 2 * (self._together if may_go_on else served)))
            used = int(places[served]) + passed if served < len(places) else len(choices)
            self._choices.give_back(block.length - used)
            if rows is not None:
                return rows
            if passed:
                self._pass_over(int(choices[places[0]]))
        return None

    def _open(self, choices: Positions) -> Positions:
        """Return the places of the choices that do not name a child which has ended."""
        if not any(self._ended):
            return np.arange(len(choices))
        inside = (choices >= 0) & (choices < len(self._ended))
        ended = np.array(self._ended)[np.where(inside, choices, 0)]
        return np.flatnonzero(~(inside & ended))

    def _numbers(self, block: Block) -> Positions:
        """Return the choices up to the first that is not a single number; the rank may be unknown."""
        column = block.columns[0]
        if isinstance(column, np.ndarray) and column.ndim == 1:
            return column
        rows: list[Array] = list(map(np.asarray, items(column)))
        count = next((index for index, row in enumerate(rows) if row.size != 1), len(rows))
        if count:
            return np.array([row.item() for row in rows[:count]], np.int64)
        self._choices.give_back(block.length - 1)
        raise InvalidArgumentError(
            f"A choice must be a single number, but has shape {rows[0].shape}.",
            fix="unbatch the choices.",
            origin=self._node.origin,
        )

    def _serve(self, choices: Positions) -> tuple[Block | None, int, bool]:
        """Read what the first choices name; return it, how many choices were used, and whether all children had more."""
        blocks: dict[int, Block | None] = {}
        used, groups = len(choices), _by_child(choices)
        for number, places in groups.items():
            block = blocks[number] = self._read_one(number, len(places))
            served = 0 if block is None else block.length
            if served < len(places):
                used = min(used, int(places[served]))
        may_go_on = None not in blocks.values()
        for number, block in blocks.items():
            count = int(np.searchsorted(groups[number], used))
            if block is not None:
                self._feeds[number].give_back(block.length - count)
                blocks[number] = block.cut(0, count) if count else None
        return self._in_order(choices[:used], blocks), used, may_go_on

    def _read_one(self, number: int, count: int) -> Block | None:
        if not 0 <= number < len(self._feeds) or self._ended[number] or number in self._failed:
            return None
        before = self._feeds[number].state()
        try:
            block = self._feeds[number].read(count)
        except Exception as error:  # noqa: BLE001 - raised when its choice is reached
            self._failed[number] = before, error
            return None
        return block

    def _in_order(self, choices: Positions, blocks: dict[int, Block | None]) -> Block | None:
        known = {number: block for number, block in blocks.items() if block is not None}
        if not known:
            return None
        rows = np.argsort(np.argsort(choices, kind="stable"), kind="stable")
        return concatenated([known[number] for number in sorted(known)]).gather(rows)

    def _pass_over(self, number: int) -> None:
        """Skip a choice without an element: it is invalid, its child failed, or its child has ended."""
        if not 0 <= number < len(self._feeds):
            raise InvalidArgumentError(
                f"A choice names dataset {number}, but there are {len(self._feeds)}.",
                fix=f"choose indices from 0 to {len(self._feeds) - 1}.",
                origin=self._node.origin,
            )
        if number in self._failed:
            _, error = self._failed.pop(number)
            raise error
        # Not earlier: a child that was read ahead of its choice must not end the others early.
        self._ended[number] = True
        if self._node.stop_on_empty:
            self._ended = [True] * len(self._feeds)

    def state(self) -> State:
        feeds = [
            self._failed[place][0] if place in self._failed else feed.state()
            for place, feed in enumerate(self._feeds)
        ]
        return [self._choices.state(), feeds, list(self._ended)]

    def restore(self, state: State) -> None:
        choices, feeds, ended = state
        self._ended = list(ended)  # a copy: the state may be restored again
        self._failed = {}
        self._choices.restore(choices)
        for feed, inner in zip(self._feeds, feeds, strict=True):
            feed.restore(inner)

    def children(self) -> tuple[Operator, ...]:
        return (*(feed.child for feed in self._feeds), self._choices.child)


def _by_child(choices: Positions) -> dict[int, Positions]:
    """Return where each child is chosen, by its number."""
    if not len(choices):
        return {}
    order = np.argsort(choices, kind="stable")
    ordered = choices[order]
    starts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    numbers = ordered[[0, *starts.tolist()]].tolist()
    return dict(zip(numbers, np.split(order, starts), strict=True))
