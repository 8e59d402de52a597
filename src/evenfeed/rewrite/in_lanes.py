"""Sharding by lane: the sources are dealt to a fixed number of lanes, and each lane runs the plan on its own."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, final

from evenfeed.core.batch_split import Share
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import INFINITE, UNKNOWN
from evenfeed.plan.addressing import why_not_addressable
from evenfeed.plan.buffering import Cache
from evenfeed.plan.checking import IgnoreErrors, Unique
from evenfeed.plan.choosing import Choose, Sample
from evenfeed.plan.combining import Zip
from evenfeed.plan.elementwise import Enumerate, Scan, TakeWhile
from evenfeed.plan.files import Files
from evenfeed.plan.flattening import GroupByWindow
from evenfeed.plan.grouping import Batches
from evenfeed.plan.node import Node, once_for_each, with_children
from evenfeed.plan.options import DistributeOptions
from evenfeed.plan.ordering import Shard, Skip, Take
from evenfeed.rewrite.by_file import count_names, shard_names
from evenfeed.runtime.explain_text import counted, method_of

# These count all rows, of which a lane has only some.
_COUNT_ALL: Final = (Take, Skip, Shard, Zip)
_ALSO_ALONE: Final = (Choose, GroupByWindow, IgnoreErrors, Sample, Scan)
# Why nodes do not run in each lane on its own, if their rows have no positions.
_NEED_ALL: Final[dict[type[Node], str]] = {
    Enumerate: "a lane does not know how many rows the lanes before it have",
    Shard: "it counts the rows of all lanes",
    Skip: "it counts the rows of all lanes",
    Take: "it counts the rows of all lanes",
    TakeWhile: "a lane does not know where the others stop",
    Unique: "a row that two lanes have would come twice",
    Zip: "its datasets may have different numbers of rows in a lane, so that other rows would meet",
}
_POSITIONS_FIRST: Final = "call it where rows have positions, before filter() and the like"
_NEVER_HAVE_POSITIONS: Final = (TakeWhile, Unique)
_BY_ROW: Final = (
    "choose AutoShardPolicy.DATA, which also resumes on any number of workers, but reads more"
)


@final
@dataclass(frozen=True)
class Lane:
    """The part of a dataset that is read independently of all others.

    Attributes:
        plan: Its plan. A batch has the lane's rows of a global batch.
        reads: What it reads of each source.
        draws: For each random node of the plan, in the order of `walk`, whether it draws for this lane alone. Those
            below the rows that are dealt draw the same in all lanes.
    """

    plan: Node
    reads: tuple[str, ...]
    draws: tuple[bool, ...]


def in_lanes(plan: Node, options: DistributeOptions, share: Share) -> tuple[Lane, ...]:
    """Return the lanes of a plan.

    Raises:
        InvalidArgumentError: The number of lanes is missing, or does not suit the workers, the batches or the sources.
    """
    lanes = _number(options, plan)
    if lanes % share.workers:
        most = [str(count) for count in range(1, lanes + 1) if lanes % count == 0]
        raise InvalidArgumentError(
            f"{counted(lanes, 'lane')} cannot be dealt evenly to {share.workers} workers.",
            fix=f"use {_either(most)} workers. A new num_lanes means a new order of the data.",
            origin=plan.origin,
        )
    return tuple(_Dealing(Share(lane, lanes)).lane(plan) for lane in range(lanes))


def _number(options: DistributeOptions, plan: Node) -> int:
    lanes = options.num_lanes
    if lanes is None or lanes < 1:
        what = "needs the number of lanes" if lanes is None else f"needs lanes, but got {lanes}"
        raise InvalidArgumentError(
            f"AutoShardPolicy.LANES {what}.",
            fix="set options.experimental_distribute.num_lanes to the largest number of workers that you may use; "
            "each number that divides it can read the data.",
            origin=plan.origin,
        )
    return lanes


@final
class _Dealing:
    """Makes the plan of one lane."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._reads: list[str] = []
        self._common: set[int] = set()  # the identities of nodes below rows that are dealt
        self._of_rows = once_for_each(self._dealt)

    def lane(self, plan: Node) -> Lane:
        """Return the lane of a plan."""
        made = once_for_each(self._batches)(plan)
        draws = (id(node.identity) not in self._common for node in made.walk() if node.facts.random)
        return Lane(made, tuple(self._reads), tuple(draws))

    def _batches(self, node: Node, own: Callable[[Node], Node]) -> Node:
        """Return the lane's part of global batches."""
        if isinstance(node, Batches):
            size = self._size(node)
            return replace(self._over(node, (self._of_rows(node.child),)), batch_size=size)
        if not node.children:
            raise InvalidArgumentError(
                "The dataset has no batches, of which lanes could give rows.",
                fix="call batch(global_batch_size) on the dataset before you distribute it.",
                origin=node.origin,
            )
        facts = node.facts
        if not (facts.by_position or facts.elementwise) or isinstance(node, Zip):
            raise InvalidArgumentError(
                f"Global batches cannot be taken from lanes through {method_of(node)}.",
                fix="call it before batch(), and make batch(global_batch_size) the last step that changes rows.",
                origin=node.origin,
            )
        children = tuple(map(own, node.children))
        computes = not (facts.by_position or facts.same_elements)
        if computes and any(
            a.element_spec != b.element_spec for a, b in zip(children, node.children, strict=True)
        ):
            raise InvalidArgumentError(
                f"{method_of(node)} expects global batches of a fixed size, but in a lane a batch has only the rows of "
                "that lane.",
                fix=f"call {method_of(node)} before batch(), or leave out drop_remainder=True.",
                origin=node.origin,
            )
        return self._over(node, children)

    def _size(self, node: Batches) -> int:
        size, rest = divmod(node.batch_size, self._share.workers)
        if rest:
            lanes = self._share.workers
            near = [str(count * lanes) for count in (size, size + 1) if count]
            raise InvalidArgumentError(
                f"A global batch of {counted(node.batch_size, 'row')} cannot take the same number of rows from each of "
                f"{lanes} lanes.",
                fix=f"use batch({') or batch('.join(near)}), or another num_lanes.",
                origin=node.origin,
            )
        return size

    def _dealt(self, node: Node, own: Callable[[Node], Node]) -> Node:
        """Return the lane's rows of a node below the batches."""
        lanes = self._share.workers
        if isinstance(node, Files) and len(node.files) >= lanes:
            files = node.files[self._share.worker :: lanes]
            self._reads.append(f"{counted(len(files), 'file')} from {files[0].path}")
            return replace(node, files=files)
        if isinstance(node, Files) and why_not_addressable(_selected(node)) is not None:
            return self._parts(node)
        if node.reads_files and not isinstance(node, Files):
            (names,) = node.children
            if count_names(names, lanes) < lanes:
                raise self._too_few(node, "its names of files are fewer than the lanes")
            self._reads.append(
                f"files {self._share.worker}, {self._share.worker + lanes}, … of those named"
            )
            return with_children(node, (shard_names(names, self._share),))
        if isinstance(node, (Choose, Sample)):  # each lane chooses on its own
            parts = tuple(map(own, node.parts))
            return with_children(node, (*parts, *node.children[len(parts) :]))
        runs = node.facts.passes_files or isinstance(node, _ALSO_ALONE)
        if node.children and runs and not isinstance(node, _COUNT_ALL):
            return self._over(node, tuple(map(own, node.children)))
        return self._range(node)

    def _over(self, node: Node, children: tuple[Node, ...]) -> Node:
        """Return a node over the children of this lane."""
        made = node.of_worker(children, self._share.worker)
        if isinstance(made, Cache) and made.filename:
            name = f"{made.filename}-lane-{self._share.worker}-of-{self._share.workers}"
            return replace(made, filename=name)
        return made

    def _range(self, node: Node) -> Node:
        """Return the lane's range of the rows of a node."""
        origin = node.origin
        reason = why_not_addressable(_selected(node))
        size = _row_count(node) if reason is None else UNKNOWN
        if size < 0:
            raise self._not_in_ranges(node)
        start, stop = (size * (self._share.worker + i) // self._share.workers for i in (0, 1))
        self._common |= {id(part.identity) for part in node.walk()}
        rows = "no rows" if start == stop else f"rows {start}-{stop - 1}"
        self._reads.append(f"{rows} of {method_of(node)}")
        return Take(Skip(node, start, origin=origin), stop - start, origin=origin)

    def _parts(self, node: Files) -> Node:
        """Return the lane's range of the bytes of all files; a row belongs to the lane in whose range it begins."""
        parts = node.in_range(self._share.worker, self._share.workers)
        if parts is None:
            raise self._too_few(node, "the rows of its files are found only from their start")
        own = [f"bytes {p.extent[0]}-{p.extent[1] - 1} of {p.path}" for p in parts.files]
        self._reads += own or [f"no rows of {method_of(node)}"]
        return parts

    def _not_in_ranges(self, node: Node) -> InvalidArgumentError:
        """Return the error for a node whose rows cannot be dealt."""
        why = _NEED_ALL.get(type(node))
        if why is None:
            infinite = node.size == INFINITE
            why = "it has infinitely many rows" if infinite else "its rows have no positions"
            return self._too_few(node, why)
        return InvalidArgumentError(
            f"{method_of(node)} cannot be dealt to {counted(self._share.workers, 'lane')}: {why}.",
            fix=f"{_BY_ROW}."
            if isinstance(node, _NEVER_HAVE_POSITIONS)
            else f"{_POSITIONS_FIRST}; or {_BY_ROW}.",
            origin=node.origin,
        )

    def _too_few(self, node: Node, why: str) -> InvalidArgumentError:
        lanes = self._share.workers
        return InvalidArgumentError(
            f"{method_of(node)} cannot be dealt to {counted(lanes, 'lane')}: {why}.",
            fix=f"read at least {lanes} files, or rows with positions (arrays, ranges, Parquet, TFRecord), or uncompressed lines; or {_BY_ROW}.",
            origin=node.origin,
        )


def _selected(node: Node) -> Node:
    """Return a plan that selects rows by position: files are then counted, if they can be."""
    return Skip(node, 1, origin=node.origin)


def _row_count(node: Node) -> int:
    if node.size == UNKNOWN and isinstance(node, Files):
        counts = node.counted()
        return UNKNOWN if counts is None else sum(counts)
    return node.size


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def seeds_of_lane(lane: Lane, number: int, seeds: list[list[int]]) -> list[list[int]]:
    """Return the seed numbers of a lane's random nodes, given those of the pass."""
    return [
        [*numbers[:-1], number, numbers[-1]] if own else numbers
        for own, numbers in zip(lane.draws, seeds, strict=True)
    ]
