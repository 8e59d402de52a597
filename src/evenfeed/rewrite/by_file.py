"""Sharding by file: each worker reads different files."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from evenfeed.core.batch_split import Share
from evenfeed.core.errors import InvalidArgumentError, NotFoundError
from evenfeed.core.specs import UNKNOWN
from evenfeed.plan.batching import PaddedBatch, Rebatch, Unbatch
from evenfeed.plan.buffering import Cache, Prefetch
from evenfeed.plan.checking import AssertCardinality
from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.elementwise import Filter, Map, WithKeys
from evenfeed.plan.files import Files, reads_files
from evenfeed.plan.flattening import FlatMap, Interleave
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Identity, Node, once_for_each
from evenfeed.plan.options import WithOptions
from evenfeed.plan.ordering import Repeat, Shard, Shuffle, Skip, Take
from evenfeed.plan.windows import Window
from evenfeed.runtime.elements import ElementIterator

_Through: TypeAlias = (
    Batch
    | Cache
    | Filter
    | FlatMap
    | Interleave
    | Map
    | PaddedBatch
    | Prefetch
    | Rebatch
    | Repeat
    | Shard
    | Shuffle
    | Skip
    | Take
    | Unbatch
    | Window
    | WithKeys
    | WithOptions
)
_BY_ROW: Final = "choose AutoShardPolicy.DATA, which shards by row, or AUTO, which does so if there are no files."


def by_file(plan: Node, share: Share) -> Node:
    """Rewrite a plan so that its readers read every `workers`-th file.

    Raises:
        NotFoundError: Some rows do not come from files, or come from files below a node that sharding
            by file does not support; TensorFlow does not support it either.
        InvalidArgumentError: There are fewer files than workers.
    """
    return once_for_each(partial(_by_file, share))(plan)


def _by_file(share: Share, plan: Node, own: Callable[[Node], Node]) -> Node:
    match plan:
        case Files(as_reader=True):
            _check_count(len(plan.files), plan, share)
            return replace(plan, files=plan.files[share.worker :: share.workers])
        case FlatMap() | Interleave() if reads_files(plan.function.stand_in):
            _check_count(_count(plan.child, share.workers), plan, share)
            return replace(plan, child=_shard(plan.child, share))
        case Zip():
            return replace(plan, parts=tuple(map(own, plan.parts)))
        case Concatenate():
            return replace(plan, first=own(plan.first), second=own(plan.second))
        case AssertCardinality():  # It asserts the number of rows of all files.
            return own(plan.child)
        case _ if isinstance(plan, _Through):
            return _over(plan, own(plan.child), share)
        case _:
            raise NotFoundError(_why_not(plan), fix=_BY_ROW, origin=plan.origin)


def _why_not(plan: Node) -> str:
    if plan.children and reads_files(plan):
        return (
            f"The dataset cannot be sharded by file: the files are below {type(plan).__name__}, "
            "which sharding by file does not support."
        )
    return "The dataset cannot be sharded by file: it does not read files here."


def _over(plan: _Through, child: Node, share: Share) -> Node:
    match plan:
        case Cache():  # The memory of the original plan caches the rows of all files.
            return replace(plan, child=child, identity=Identity())
        case WithKeys():  # Positions start at 0 on each worker, but random numbers must differ.
            return replace(plan, child=child, seed=(*plan.seed, share.worker))
        case _:
            return replace(plan, child=child)


def _shard(names: Node, share: Share) -> Node:
    """Keep every `workers`-th file name. A shuffle of the names is moved above the shard."""
    shuffle, plain = _without_shuffle(names)
    own = Shard(plain, share.workers, share.worker, origin=names.origin)
    return own if shuffle is None else replace(shuffle, child=own)


def _without_shuffle(names: Node) -> tuple[Shuffle | None, Node]:
    if isinstance(names, Shuffle):
        return names, names.child
    if isinstance(names, Map | Prefetch | Repeat | WithOptions):
        shuffle, below = _without_shuffle(names.child)
        return shuffle, names if shuffle is None else replace(names, child=below)
    return None, names


def _count(names: Node, enough: int) -> int:
    """Return the number of file names. If it is unknown, reads up to `enough` of them."""
    if names.size != UNKNOWN:
        return names.size if names.size >= 0 else enough
    iterator = ElementIterator(Take(names, enough, origin=None))
    try:
        return sum(1 for _ in iterator)
    finally:
        iterator.close()


def _check_count(count: int, plan: Node, share: Share) -> None:
    if count < share.workers:
        raise InvalidArgumentError(
            f"Sharding by file needs at least one file per worker, but there "
            f"{'is 1 file' if count == 1 else f'are {count} files'} for {share.workers} workers.",
            fix=f"write at least {share.workers} files, ideally a multiple of that; or {_BY_ROW}",
            origin=plan.origin,
        )
