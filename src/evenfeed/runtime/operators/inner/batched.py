"""Steps of a template that join elements to batches, or split batches."""

import numpy as np

from evenfeed.core.block import Block, Positions, concatenated
from evenfeed.core.conversion import Array
from evenfeed.core.specs import TypeSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.plan.batching import PaddedBatch, Unbatch
from evenfeed.plan.grouping import Batch, Batches
from evenfeed.runtime.operators.batching import split_together
from evenfeed.runtime.operators.grouping import folded, stackable
from evenfeed.runtime.operators.inner.expanded import Expanded, NotExpandable, check_size, runs
from evenfeed.runtime.operators.padded_rows import Padding


def batched(node: Batch | PaddedBatch | Unbatch, below: Expanded) -> Expanded:
    """Return the batches of each dataset, or the rows of its batches."""
    if not below.rows.length:
        raise NotExpandable
    match node:
        case Batch():
            return _batches(below, node)
        case PaddedBatch():
            return _padded_batches(below, node)
        case Unbatch():
            return _unbatched(below)


def _batches(below: Expanded, node: Batch) -> Expanded:
    """Return batches. Those of one size become one array; otherwise each is an array."""
    specs: list[TypeSpec] = flatten(node.row_spec, DATA)
    below = _without_rest(below, node) if node.drop_remainder else below
    size, lengths = node.batch_size, below.lengths
    full, rest = lengths // size, lengths % size
    columns = [stackable(*pair) for pair in zip(below.rows.columns, specs, strict=True)]
    if any(type(column) is not np.ndarray for column in columns):
        raise NotExpandable
    rows = Block(tuple(columns), below.rows.length)
    if not rest.any():
        return Expanded(folded(rows, int(full.sum()), specs), full)
    if not full.any() and (rest == rest[0]).all():
        return Expanded(folded(rows, len(lengths), specs), full + 1)
    pairs, counts = _cuts(below, size)
    lists = tuple([column[at:end] for at, end in pairs] for column in np_columns(rows))
    return Expanded(Block(lists, len(pairs)), counts)


def _without_rest(below: Expanded, node: Batches) -> Expanded:
    """Drop the elements that do not fill a batch."""
    lengths = below.lengths // node.batch_size * node.batch_size
    if np.array_equal(lengths, below.lengths):
        return below
    return Expanded(below.picked(below.starts, lengths), lengths)


def _cuts(below: Expanded, size: int) -> tuple[list[tuple[int, int]], Positions]:
    """Return the first index of each batch and the one behind its last, and how many batches each dataset has."""
    counts = -(-below.lengths // size)
    starts = np.repeat(below.starts, counts) + runs(np.zeros_like(counts), counts) * size
    stops = np.minimum(starts + size, np.repeat(below.starts + below.lengths, counts))
    return list(zip(starts.tolist(), stops.tolist(), strict=True)), counts


def _padded_batches(below: Expanded, node: PaddedBatch) -> Expanded:
    below = _without_rest(below, node) if node.drop_remainder else below
    pairs, counts = _cuts(below, node.batch_size)
    if not pairs:
        raise NotExpandable
    pad = Padding(node)
    batches = [pad(below.rows.cut(at, end)) for at, end in pairs]
    return Expanded(concatenated(batches), counts)


def _unbatched(below: Expanded) -> Expanded:
    found = split_together(below.rows)
    if found is None:
        raise NotExpandable
    rows, lengths = found
    ends = np.concatenate([[0], np.cumsum(lengths)])
    check_size(lengths, rows)
    return Expanded(rows, ends[below.starts + below.lengths] - ends[below.starts])


def np_columns(rows: Block) -> list[Array]:
    """Return the columns, which are all arrays."""
    return [np.asarray(column) for column in rows.columns]
