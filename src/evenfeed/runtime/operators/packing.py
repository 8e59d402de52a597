"""The operator for pack."""

from collections import deque
from math import ceil
from typing import Any, Final, final

import numpy as np

from evenfeed.core.block import Block
from evenfeed.core.conversion import Positions
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.structure import DATA, flatten, paths
from evenfeed.plan.packing import CONCAT, ERROR, TRUNCATE, Pack, packable
from evenfeed.runtime.operator import Operator, State, read_full
from evenfeed.runtime.operators.first_fit import FirstFit
from evenfeed.runtime.operators.packed_sequences import Concatenating, Opening, Packer, TokenRows
from evenfeed.runtime.provenance import with_origin
from evenfeed.runtime.step import Step, runs

# How fast the length of the longest row is forgotten.
_KEPT: Final = 0.9


@runs(Pack)
def _pack(step: Step[Pack]) -> Operator:
    return PackRows(step.child, step.node)


@final
class PackRows(Operator):
    """Packs rows into sequences.

    Rows in open sequences were read but not returned. So the position is the one before the row that opened the oldest
    open sequence, with the room that the sequences open at that time had left. `restore` reads the rows again from there,
    and skips what was returned since. An element that fails is skipped; its error comes after the sequences that
    were finished before it.
    """

    def __init__(self, child: Operator, node: Pack) -> None:
        self._child = child
        self._node = node
        self._lengths = np.array(node.lengths)
        specs = flatten(node.child.element_spec, DATA)
        self._dtypes: list[Any] = [packable(spec).dtype for spec in specs]
        self._packer: Packer = (Concatenating if node.strategy == CONCAT else FirstFit)(node)
        # Sequences and errors, how many were ever made, and how many were returned.
        self._ready: deque[Block | Exception] = deque()
        self._made = 0
        self._returned = 0
        self._position = Opening(child.state(), 0, [], 0)
        self._asked = 1
        self._mean = self._longest = 1.0  # the length of a row, as a part of a sequence

    @property
    def reads_freely(self) -> bool:
        return self._child.reads_freely

    def read(self, most: int) -> Block | None:
        while not self._ready:
            if not self._advance(most):
                return None
        first = self._ready[0]
        if isinstance(first, Exception):
            self._ready.popleft()
            self._returned += 1
            raise first
        found = first.cut(0, most)
        if found.length == first.length:
            self._ready.popleft()
        else:
            self._ready[0] = first.cut(most, first.length)
        self._returned += found.length
        return found

    def _advance(self, most: int) -> bool:
        """Read some rows and pack them; return False at the end."""
        self._position = self._before_oldest()
        before = self._child.state()
        try:
            block = self._child.read(self._rows_for(most))
        except Exception as error:
            if self._child.state() == before:  # every read would fail
                raise
            self._add(error)
            return True
        if block is None:
            last = self._packer.flush()
            if last is None or self._node.drop_remainder:
                return False
            self._add(last)
            return True
        self._take(block, before)
        return True

    def _rows_for(self, most: int) -> int:
        """Return how many rows to read for `most` sequences.

        If reading ahead could be observed, they must not suffice for more, so all count as long as the longest.
        """
        wanted = most - self._packer.filled
        if self._child.reads_freely:
            rows = ceil(wanted / self._mean)
        else:
            rows = int(wanted / self._longest)
        self._asked = max(1, min(rows, 2 * self._asked))
        return self._asked

    def _take(self, block: Block, before: State) -> None:
        rows = TokenRows.of(block, self._dtypes)
        fractions = np.clip(rows.counts / self._lengths, 0, 1).max(axis=1)
        least = 1 / max(self._node.lengths)
        self._mean = max(least, float(fractions.mean()))
        self._longest = max(least, float(fractions.max()), _KEPT * self._longest)
        wrong = np.flatnonzero(self._is_wrong(rows.counts))
        if self._node.too_long == TRUNCATE:
            rows = rows.shortened(self._lengths)
        start = 0
        for stop in [*wrong.tolist(), block.length]:
            if start < stop:
                at = Opening(before, start, [], self._made)
                sequences = self._packer.add(rows.cut(start, stop), at)
                if sequences is not None:
                    self._add(sequences)
            if stop < block.length:
                place = self._child.provenance(block.length)(stop)
                self._add(with_origin(self._refusal(rows.counts[stop]), place))
            start = stop + 1

    def _add(self, event: Block | Exception) -> None:
        self._ready.append(event)
        self._made += event.length if isinstance(event, Block) else 1

    def _is_wrong(self, counts: Positions) -> Any:
        """Return which rows cannot be packed."""
        wrong = (counts < 0).any(axis=1)
        if self._node.too_long == ERROR:
            wrong |= (counts > self._lengths).any(axis=1)
        if self._node.strategy == CONCAT:
            wrong |= (counts != counts[:, :1]).any(axis=1)
        return wrong

    def _refusal(self, counts: Positions) -> InvalidArgumentError:
        """Return the error for a row that cannot be packed."""
        names = [path or "the row" for path in paths(self._node.child.element_spec, DATA)]
        sizes = dict(zip(names, counts.tolist(), strict=True))
        origin = self._node.origin
        if (counts < 0).any():
            name = next(name for name, count in sizes.items() if count < 0)
            return InvalidArgumentError(
                f"pack() needs rows that are vectors of tokens, but {name} is not one.",
                fix="return vectors from the map before; call unbatch() on batches of rows.",
                origin=origin,
            )
        if self._node.strategy == CONCAT and len(set(sizes.values())) > 1:
            return InvalidArgumentError(
                'strategy="concat" cuts all components of a row at the same tokens, but they have '
                f"{_listed(sizes)}.",
                fix='give them one length, or pass strategy="first_fit".',
                origin=origin,
            )
        limits = dict(zip(names, self._node.lengths, strict=True))
        long = {name: count for name, count in sizes.items() if count > limits[name]}
        return InvalidArgumentError(
            f"A row is too long to be packed: it has {_listed(long)}, but a sequence has room for "
            f"{_listed({name: limits[name] for name in long})}.",
            fix='pass too_long="split" or too_long="truncate", or a larger length.',
            origin=origin,
        )

    def _before_oldest(self) -> Opening:
        oldest = self._packer.oldest
        return Opening(self._child.state(), 0, [], self._made) if oldest is None else oldest

    def state(self) -> State:
        position = self._position if self._ready else self._before_oldest()
        before, row, free, made = position
        return [before, row, free, self._returned - made]

    def restore(self, state: State) -> None:
        before, row, free, skipped = state
        self._child.restore(before)
        self._position = Opening(before, row, free, 0)
        self._packer.restart(free, self._position)
        self._ready.clear()
        self._made = self._returned = 0
        for _ in read_full(self._child, row):
            pass
        while self._returned < skipped:
            returned = self._returned
            try:
                if self.read(skipped - returned) is None:
                    return
            except Exception:  # it was raised before the state was saved
                if self._returned == returned:
                    raise

    def children(self) -> tuple[Operator, ...]:
        return (self._child,)


def _listed(sizes: dict[str, int]) -> str:
    return ", ".join(
        f"{count:,} tokens" if name == "the row" else f"{count:,} in {name}"
        for name, count in sizes.items()
    )
