"""Each worker reads files of its own."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from evenfeed.core.batch_split import Share
from evenfeed.core.errors import InvalidArgumentError, NotFoundError
from evenfeed.core.specs import UNKNOWN
from evenfeed.plan.batching import PaddedBatch, Rebatch, Unbatch
from evenfeed.plan.buffering import Cache, Memory, Prefetch
from evenfeed.plan.checking import AssertCardinality
from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.elementwise import Filter, Map, WithKeys
from evenfeed.plan.files import Files, reads_files
from evenfeed.plan.flattening import FlatMap, Interleave
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node, once_for_each
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
_BY_ROW: Final = (
    "choose AutoShardPolicy.DATA, which shares out rows, or AUTO, which does so without files."
)


def by_file(plan: Node, share: Share) -> Node:
    """Return the plan in which readers read every `workers`-th file; all that follows runs on those.

    Raises:
        NotFoundError: Some of the rows come from no files, or from files below a node that TensorFlow
            does not look through either.
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
        case AssertCardinality():  # it counts the rows of all files
            return own(plan.child)
        case _ if isinstance(plan, _Through):
            return _over(plan, own(plan.child), share)
        case _:
            raise NotFoundError(_why_not(plan), fix=_BY_ROW, origin=plan.origin)


def _why_not(plan: Node) -> str:
    if plan.children and reads_files(plan):
        return (
            "Each worker was to read files of its own, but sharding by file does not see through "
            f"{type(plan).__name__} to the files below it."
        )
    return "Each worker was to read files of its own, but these rows come from no files."


def _over(plan: _Through, child: Node, share: Share) -> Node:
    match plan:
        case Cache():  # what the user's own dataset keeps is that of all files
            return replace(plan, child=child, memory=Memory())
        case WithKeys():  # places are counted anew on each worker, and draws must differ
            return replace(plan, child=child, seed=(*plan.seed, share.worker))
        case _:
            return replace(plan, child=child)


def _shard(names: Node, share: Share) -> Node:
    """Return every `workers`-th name; a shuffle of the names comes behind that, so that nobody needs all."""
    mixed, plain = _without_shuffle(names)
    own = Shard(plain, share.workers, share.worker, origin=names.origin)
    return own if mixed is None else replace(mixed, child=own)


def _without_shuffle(names: Node) -> tuple[Shuffle | None, Node]:
    if isinstance(names, Shuffle):
        return names, names.child
    if isinstance(names, Map | Prefetch | Repeat | WithOptions):
        mixed, below = _without_shuffle(names.child)
        return mixed, names if mixed is None else replace(names, child=below)
    return None, names


def _count(names: Node, enough: int) -> int:
    """Return how many names there are, where need be by reading up to `enough`."""
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
            f"{count} {'file is' if count == 1 else 'files are'} too few for {share.workers} workers.",
            fix=f"write at least {share.workers} files, as many on each worker; or {_BY_ROW}",
            origin=plan.origin,
        )
