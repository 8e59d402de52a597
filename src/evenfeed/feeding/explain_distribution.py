"""The text of `DistributedDataset.explain()`: what each replica gets at each step."""

import json
from collections.abc import Sequence
from typing import Any, Final

from evenfeed.core.batch_split import Share
from evenfeed.core.specs import INFINITE, UNKNOWN
from evenfeed.feeding.ahead.steps_together import most_together
from evenfeed.feeding.global_batch import global_batch_size
from evenfeed.feeding.input_options import InputOptions
from evenfeed.feeding.lane_steps import size_of_lanes
from evenfeed.feeding.reading import BatchReading, ElementReading
from evenfeed.feeding.step_meters import DistributedStats, device_names
from evenfeed.plan.node import Node
from evenfeed.plan.options import AutoShardPolicy
from evenfeed.replicas.mesh import Replicas
from evenfeed.rewrite.in_lanes import Lane
from evenfeed.runtime.explain import Explanation, explained_plan
from evenfeed.runtime.explain_text import counted, rate_text

_POLICIES: Final = {
    AutoShardPolicy.FILE: "each reads its own files",
    AutoShardPolicy.DATA: "each reads its rows of every batch",
    AutoShardPolicy.OFF: "each reads all the data",
    AutoShardPolicy.HINT: "each reads its shard in place of SHARD_HINT",
    AutoShardPolicy.LANES: "each reads its own lanes",
}


def cut_text(
    reading: BatchReading, replicas: Replicas, options: InputOptions, state: Any
) -> Explanation:
    """Describe which rows of a global batch each replica of this worker gets, and the position of a state."""
    size, share, sizes = global_batch_size(reading.plan), reading.share, reading.sizes
    padded = options.pad_partial_batches
    lines = _table(replicas, share, _shares(reading, size))
    lanes = reading.sharded.lanes
    how = f"the same number of each of {counted(len(lanes), 'lane')}"
    lines.append(f"batches: {_size(size)}, {how if lanes else _how(sizes, padded=padded)}")
    rest = reading.plan.short_batch
    if (
        rest is not None
        and size is not None
        and not lanes
        and (sizes is None or share.workers == 1)
    ):
        last = share.counts(rest) if sizes is None else _filled(rest, sizes)
        numbers = ", ".join(map(str, last)) + (" valid" if padded else "")
        lines.append(f"last step: {counted(rest, 'row')}, by replica: {numbers}")
    if share.workers > 1:
        lines += [f"workers: {_POLICIES[reading.sharded.policy]}", *reading.sharded.notes]
    each = max(1, len(lanes) // share.workers)
    owners = [f"worker {number // each}" for number in range(len(lanes))]
    lines += lanes_text(lanes, owners, state) if lanes else position_text(state)
    even = share.everyone == 1 or (size is not None and size % share.everyone == 0)
    together = most_together(reading.plan, 1) if even and reading.reads_runs else 1
    lines += _ahead(options, together)
    steps = size_of_lanes([lane.plan for lane in lanes]) if lanes else reading.plan.size
    return _text(steps, lines, [reading.sharded.plan], share)


def taken_text(
    size: int, reading: ElementReading, replicas: Replicas, options: InputOptions, state: Any
) -> Explanation:
    """Describe which elements each replica takes, and the position of a state."""
    plans, count = reading.plans, reading.share.replicas
    own = "one element per step from its own dataset"
    in_turn = [f"elements {r}, {r + count}, {r + 2 * count}, …" for r in range(count)]
    lines = _table(replicas, reading.share, [own] * count if len(plans) > 1 else in_turn)
    most = most_together(plans[0], count) if len(plans) == 1 else 1
    lines += [*position_text(state), *_ahead(options, most)]
    return _text(size, lines, plans, reading.share)


def lanes_text(lanes: Sequence[Lane], owners: Sequence[str], state: Any) -> list[str]:
    """Describe each lane: what it reads, on which worker, and its cursor in the state."""
    cursors = [""] * len(lanes) if state is None else [f"  at {_cursor(at)}" for at in state["at"]]
    lines = [
        f"lane {number}  {owner}  {', '.join(lane.reads)}{cursor}"
        for number, (lane, owner, cursor) in enumerate(zip(lanes, owners, cursors, strict=True))
    ]
    return [*lines, "state: one cursor per lane, gathered from all workers"]


def position_text(state: Any) -> list[str]:
    """Describe a position: of all workers, or of each of them."""
    if state is None:
        return []
    parts = [part["at"] for part in state.get("each", [state])]
    return [f"at: {', '.join(_cursor(at) for at in part)}" for part in parts]


def _cursor(at: Any) -> str:
    """Return the position in a plan, and how many elements after it were returned."""
    more = f" and {counted(at['rows'], 'element')} more" if at["rows"] else ""
    return f"{json.dumps(at['at'])}{more}"


def _text(
    size: int,
    lines: Sequence[str],
    plans: Sequence[Node],
    share: Share,
) -> Explanation:
    where = f"{counted(share.replicas, 'replica')} of worker {share.worker}"
    where += f" of {share.workers}" if share.workers > 1 else ""
    head = f"DistributedDataset: {steps_text(size)} on {where}"
    text = [head, *(f"  {line}" for line in lines)]
    for number, plan in enumerate(plans):
        text.append("  dataset:" if len(plans) == 1 else f"  dataset of replica {number}:")
        text += [f"    {line}" for line in explained_plan(plan, 0).splitlines()]
    return Explanation("\n".join(text))


def steps_text(size: int) -> str:
    """Return a number of steps in words."""
    return {INFINITE: "infinitely many steps", UNKNOWN: "an unknown number of steps"}.get(
        size, counted(size, "step")
    )


def _size(size: int | None) -> str:
    return "of unknown size" if size is None else f"{counted(size, 'row')} over all replicas"


def _how(sizes: Sequence[int] | None, *, padded: bool) -> str:
    if padded:
        return "each split separately, and padded with zeros that `valid` marks"
    if sizes is None:
        return "each split separately, rounding up"
    return "and rows flow on from batch to batch"


def _shares(reading: BatchReading, size: int | None) -> list[str]:
    """Describe the rows of each replica of this worker."""
    share, sizes = reading.share, reading.sizes
    if size is None:
        return ["its part of each batch"] * share.replicas
    if reading.sharded.lanes:
        own = size // share.workers
        pieces = Share(replicas=share.replicas).pieces(own)
        first = share.worker * own
        return [_rows(first + start, stop - start) for start, stop in pieces]
    if sizes is None:
        return [_rows(start, stop - start) for start, stop in share.pieces(size)]
    if share.workers > 1:
        return [f"{counted(rows, 'row')} at the first step" for rows in sizes[: share.replicas]]
    starts = [sum(sizes[:replica]) for replica in range(len(sizes))]
    return [_rows(*pair) for pair in zip(starts, sizes, strict=True)]


def _rows(start: int, count: int) -> str:
    if count == 0:
        return "no rows"
    which = f"{start}-{start + count - 1}" if count > 1 else f"{start}"
    return f"{counted(count, 'row')} per step: {which} of each batch"


def _filled(rows: int, sizes: Sequence[int]) -> list[int]:
    """Return the number of rows per replica if the first replicas are filled first."""
    return [max(0, min(size, rows - sum(sizes[:index]))) for index, size in enumerate(sizes)]


def _table(replicas: Replicas, share: Share, shares: Sequence[str]) -> list[str]:
    names = device_names(replicas)
    width = max(map(len, names))
    pairs = enumerate(zip(names, shares, strict=True), share.worker * share.replicas)
    return [f"replica {number}  {name:{width}}  {share}" for number, (name, share) in pairs]


def _ahead(options: InputOptions, together: int) -> list[str]:
    """Describe how many steps are brought to the devices ahead, and together for a loop in one program."""
    lines = [f"prefetch: {prefetch_text(options)}"]
    return [*lines, *together_text(together)] if options.experimental_fetch_to_device else lines


def together_text(together: int) -> list[str]:
    """Describe how many steps are brought to the devices together."""
    if together < 2:
        return []
    return [f"in one program: up to {counted(together, 'step')}, copied together"]


def prefetch_text(options: InputOptions) -> str:
    """Describe how many steps are prefetched."""
    if not options.experimental_fetch_to_device:
        return "none; steps stay NumPy arrays on the host"
    depth = options.experimental_per_replica_buffer_size
    if depth == 0:
        return "none; a step is copied to the devices when it is needed"
    return f"{counted(depth, 'step')}, copied to the devices by a thread"


def steps_taken_text(stats: DistributedStats, pipelines: Sequence[Explanation]) -> Explanation:
    """Describe the figures of a distributed iterator, given the explanations of what it reads."""
    where = f"worker {stats.worker}" + (f" of {stats.workers}" if stats.workers > 1 else "")
    rate = rate_text(stats.steps_per_second, "steps")
    times = [
        ("waiting for data", stats.waited_seconds),
        ("reading", stats.read_seconds),
        ("copying to the devices", stats.copy_seconds),
        ("waiting for room", stats.room_wait_seconds),
    ]
    shares = [f"{what} {part / stats.seconds:.0%}" for what, part in times if stats.seconds]
    text = [
        f"DistributedIterator: {counted(stats.steps, 'step')} on {where}, {rate}",
        *([f"  {', '.join(shares)}"] if shares else []),
        f"  prefetched: {stats.buffered:.2g} of {stats.buffer_size} on average",
        *(
            f"  replica {one.replica}  {one.device}  {counted(one.rows, 'row')}, "
            f"waited {one.waited_seconds:.3g} s for data"
            for one in stats.replicas
        ),
        f"  advice: {stats.advice}",
    ]
    for pipeline in pipelines:
        text += ["  dataset:", *(f"    {line}" for line in pipeline.splitlines()[:-1])]
    return Explanation("\n".join(text))
