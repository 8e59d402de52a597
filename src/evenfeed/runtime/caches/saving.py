"""Writes elements to files, for `save` and for the first pass of a snapshot."""

from typing import Any, final

import numpy as np

from evenfeed.core.block import Block, Positions
from evenfeed.core.concurrency.progress import LongWork
from evenfeed.core.errors import InvalidArgumentError, NotFoundError, described
from evenfeed.core.specs import INFINITE, UNKNOWN, TensorSpec
from evenfeed.formats.pages.saved import Saved, SavedWriter, find_saved
from evenfeed.plan.buffering import Snapshot
from evenfeed.plan.node import Node
from evenfeed.runtime.functions.calls import never_stopping
from evenfeed.runtime.functions.row_function import RowFunction
from evenfeed.runtime.operator import FailedRow, Operator, State, all_blocks, read_full
from evenfeed.runtime.run import Build, Inner, Run


def save_elements(
    plan: Node, path: str, compression: str, shard: RowFunction | None, build: Build
) -> None:
    """Write all elements of a plan to a directory. A failure leaves nothing behind."""
    if plan.size == INFINITE:
        raise InvalidArgumentError(
            "The dataset is infinite, so it cannot be saved.",
            fix="call take(count) first.",
        )
    writer = SavedWriter(path, plan.element_spec, compression)
    elements = build(plan, Run(plan), 0)
    number, size = 0, None if plan.size == UNKNOWN else plan.size
    try:
        with LongWork(f"Saving to {path}", size, "elements") as progress:
            for block in all_blocks(elements):
                writer.add(block, _shards(shard, block, number))
                number += block.length
                progress.add(block.length)
            writer.finish()
    except BaseException:
        writer.discard()
        raise
    finally:
        elements.close()


def check_shard(function: RowFunction) -> RowFunction:
    """Return a shard function; raise if it does not return scalar integers."""
    spec: Any = function.output_spec
    is_integer = isinstance(spec, TensorSpec) and spec.shape.rank == 0 and spec.dtype.kind in "iu"
    if is_integer:
        return function
    raise TypeError(
        described(
            f"shard_func must return the number of a shard, a scalar int64, but it returns {spec}.",
            fix="return an integer, such as x % 4.",
            origin=function.origin,
        )
    )


def _shards(function: RowFunction | None, block: Block, first: int) -> Positions | None:
    if function is None:
        return None
    try:
        (numbers,) = function.rows(block, first).columns
    except FailedRow as failed:
        error = failed.error
    else:
        return np.asarray(numbers).astype(np.int64)
    raise error from error.__cause__


@final
class KeepSnapshot(Operator):
    """Reads the snapshot if there is one; otherwise reads the input and writes a snapshot.

    A pass that ends early, or in which an element fails, leaves no snapshot: the element may succeed the
    next time. A restored pass writes no snapshot, because another program read its first elements.
    """

    def __init__(self, node: Snapshot, run: Run, epoch: int, build: Build) -> None:
        self._node = node
        self._run = run
        self._epoch = epoch
        self._build = build
        # Decided before the first read, whatever other iterators complete in the meantime.
        self._keeping = run.keeping(node, epoch)
        self._elements: Inner | None = None
        # Which pass over the input this is; None while the snapshot is read.
        self._origin: Any = None
        self._writer: SavedWriter | None = None
        self._passed = 0
        self._has_failed = False
        self._is_unreadable = False  # the snapshot cannot be read
        # Elements that could not be written, and the position before them.
        self._unwritten: tuple[Block, State] | None = None

    def read(self, most: int) -> Block | None:
        if self._is_unreadable:
            return None
        if self._unwritten is not None:
            (unwritten, _), self._unwritten = self._unwritten, None
            self._passed += unwritten.length
            return unwritten
        elements = self._elements or self._start()
        before = None if self._writer is None else elements.state()
        block: Block | None = None
        try:
            block = elements.operator.read(most)
            self._write(block)
        except BaseException:
            self._has_failed = True
            self._give_up()
            if block is not None:  # the elements come after the error
                self._unwritten = block, before
            raise
        if block is None and self._origin is not None and not self._has_failed:
            self._run.complete(self._node, self._origin)
        self._passed += 0 if block is None else block.length
        return block

    def _start(self) -> Inner:
        saved, node = self._find_saved(), self._node
        self._elements = self._open(saved)
        if saved is None:
            spec = node.child.element_spec
            self._writer = SavedWriter(node.folder, spec, node.compression, self._origin)
        return self._elements

    def _find_saved(self) -> Saved | None:
        """Return the snapshot. If it cannot be opened, that is the only error of this pass."""
        try:
            return find_saved(self._node.folder)
        except Exception:
            self._is_unreadable = True
            raise

    def _open(self, saved: Saved | None) -> Inner:
        """Open the snapshot or the input."""
        kept = self._keeping.kept(self._epoch)
        if kept is not None and saved is not None and saved.origin == kept:
            self._origin = None
            made = self._run.opened(self._node, self._epoch, 0, lambda: self._files(saved))
            return Inner(*made, self._build)
        if kept is not None and (isinstance(kept, str) or not self._node.in_order):
            raise NotFoundError(
                f"The snapshot that was being read is no longer in {self._node.folder}.",
                fix="start a new pass, or restore the directory first.",
                origin=self._node.origin,
            )
        self._origin = self._run.below(self._node, self._epoch) if kept is None else kept
        state, epoch = self._origin
        below = self._node.child
        return Inner(below, self._run.begun(below, state), self._build, epoch)

    def _files(self, saved: Saved) -> Node:
        with never_stopping("reader_func", self._node.origin):
            return self._node.reading(saved.files, saved.spec_like(self._node.element_spec))

    def _write(self, block: Block | None) -> None:
        if self._writer is None:
            return
        if block is None:
            self._writer.finish(replace=False)
            self._writer = None
            return
        shard = self._node.shard
        function = shard if isinstance(shard, RowFunction) else None
        self._writer.add(block, _shards(function, block, self._passed))

    def _give_up(self) -> None:
        if self._writer is not None:
            self._writer.discard()
        self._writer = None

    def state(self) -> State:
        if self._elements is None:
            return None
        position = self._elements.state() if self._unwritten is None else self._unwritten[1]
        return [self._has_failed, self._passed, self._origin is None, position]

    def restore(self, state: State) -> None:
        self.close()
        self._elements = self._unwritten = None
        self._has_failed, self._passed = False, 0
        self._is_unreadable = False
        if state is None:
            return
        self._has_failed, self._passed, in_files, position = state
        self._elements = self._open(find_saved(self._node.folder))
        if in_files == (self._origin is None):
            self._elements.restore(position)
        else:
            for _ in read_full(self._elements.operator, self._passed):
                pass

    def close(self) -> None:
        self._give_up()
        super().close()

    def children(self) -> tuple[Operator, ...]:
        return () if self._elements is None else (self._elements.operator,)
