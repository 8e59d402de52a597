"""Sharding by file: each worker reads different files."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from evenfeed.core.batch_split import Share
from evenfeed.core.errors import InvalidArgumentError, NotFoundError
from evenfeed.core.specs import UNKNOWN
from evenfeed.plan.files import Files, reads_files
from evenfeed.plan.node import Node, once_for_each, with_children
from evenfeed.plan.ordering import Repeat, Shard, Shuffle, Take
from evenfeed.runtime.elements import ElementIterator

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
    if isinstance(plan, Files) and plan.as_reader:
        _check_count(len(plan.files), plan, share)
        return replace(plan, files=plan.files[share.worker :: share.workers])
    if plan.reads_files:  # in datasets that it opens for the file names that its child yields
        (names,) = plan.children
        _check_count(count_names(names, share.workers), plan, share)
        return with_children(plan, (shard_names(names, share),))
    if plan.facts.passes_files:
        return plan.of_worker(tuple(map(own, plan.children)), share.worker)
    raise NotFoundError(_why_not(plan), fix=_BY_ROW, origin=plan.origin)


def _why_not(plan: Node) -> str:
    if plan.children and reads_files(plan):
        return (
            f"The dataset cannot be sharded by file: the files are below {type(plan).__name__}, "
            "which sharding by file does not support."
        )
    return "The dataset cannot be sharded by file: it does not read files here."


def shard_names(names: Node, share: Share) -> Node:
    """Keep every `workers`-th file name. A shuffle of the names is moved above the shard."""
    shuffle, plain = _without_shuffle(names)
    own = Shard(plain, share.workers, share.worker, origin=names.origin)
    return own if shuffle is None else replace(shuffle, child=own)


def _without_shuffle(names: Node) -> tuple[Shuffle | None, Node]:
    if isinstance(names, Shuffle):
        return names, names.child
    kept = names.facts.elementwise and not names.facts.keeps_passes
    if len(names.children) == 1 and (kept or isinstance(names, Repeat)):
        shuffle, below = _without_shuffle(names.children[0])
        return shuffle, names if shuffle is None else with_children(names, (below,))
    return None, names


def count_names(names: Node, enough: int) -> int:
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
