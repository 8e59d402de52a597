"""Says who gets what of a distributed dataset, as text that a person reads in ten seconds."""

from collections.abc import Sequence

from evenfeed.core.cardinality import INFINITE, UNKNOWN
from evenfeed.feeding.global_batch import global_batch_size
from evenfeed.plan.node import Node
from evenfeed.replicas.mesh import Replicas


def cut_text(
    plan: Node, replicas: Replicas, sizes: Sequence[int] | None, depth: int, *, padded: bool
) -> str:
    """Say which rows of a global batch each replica gets."""
    size = global_batch_size(plan)
    lines = [_head(plan.size, replicas), f"  global batch: {_batch(size)}, {_how(sizes, padded)}"]
    lines += _shares(size, replicas, sizes)
    lines += _end(plan, size, replicas, sizes, padded)
    return "\n".join([*lines, _ahead(depth)])


def taken_text(plans: Sequence[Node], replicas: Replicas, depth: int) -> str:
    """Say which elements each replica takes."""
    count = replicas.count
    lines = [_head(plans[0].size if len(plans) > 1 else UNKNOWN, replicas)]
    if len(plans) > 1:
        lines += [
            f"  {_replica(replicas, r)}: one element of its own dataset" for r in range(count)
        ]
    else:
        lines += [f"  {_replica(replicas, r)}: elements {r}, {r + count}, …" for r in range(count)]
    return "\n".join([*lines, _ahead(depth)])


def _head(steps: int, replicas: Replicas) -> str:
    several = f"{replicas.count} replica{'s' if replicas.count > 1 else ''} of 1 worker"
    return f"DistributedDataset on {several}: {_count(steps)}"


def _count(steps: int) -> str:
    if steps == INFINITE:
        return "endless steps"
    return "steps not counted yet" if steps == UNKNOWN else f"{steps} steps"


def _batch(size: int | None) -> str:
    return "size not known" if size is None else f"{size} rows"


def _how(sizes: Sequence[int] | None, padded: bool) -> str:
    if padded:
        return "cut evenly, short ones filled with zeros and marked in `valid`"
    if sizes is None:
        return "each cut by itself, by ceiling"
    return "rows flow on from one batch to the next"


def _shares(size: int | None, replicas: Replicas, sizes: Sequence[int] | None) -> list[str]:
    if size is None:
        return [f"  {_replica(replicas, r)}: its part of each batch" for r in range(replicas.count)]
    each = sizes or _cut(size, replicas.count)
    lines: list[str] = []
    start = 0
    for replica, rows in enumerate(each):
        lines.append(f"  {_replica(replicas, replica)}: {_rows(start, rows)}")
        start += rows
    return lines


def _end(
    plan: Node, size: int | None, replicas: Replicas, sizes: Sequence[int] | None, padded: bool
) -> list[str]:
    """Say what a short last batch becomes."""
    rows = getattr(plan.children[0], "size", UNKNOWN) if plan.children else UNKNOWN
    if size is None or rows < 0 or plan.size < 0 or rows % size == 0 or plan.size * size <= rows:
        return []
    left = rows % size
    parts = ", ".join(map(str, _cut(left, replicas.count)))
    if sizes is not None:
        parts = "filled from the first replica on"
    return [f"  last step: {left} rows: {parts}{' valid' if padded else ''}"]


def _cut(rows: int, count: int) -> list[int]:
    size = -(-rows // count)
    return [max(0, min(size, rows - replica * size)) for replica in range(count)]


def _rows(start: int, count: int) -> str:
    return f"rows {start}-{start + count - 1}" if count else "no rows"


def _replica(replicas: Replicas, number: int) -> str:
    device = replicas.devices[number]
    return f"replica {number} ({device.platform.upper()}:{device.id})"


def _ahead(depth: int) -> str:
    if depth == 0:
        return "  read ahead: nothing; steps stay on the host until they are asked for"
    return f"  read ahead: {depth} step{'s' if depth > 1 else ''} on the devices, by a thread"
