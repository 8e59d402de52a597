"""Says who gets what of a distributed dataset, as text that a person reads in ten seconds."""

from collections.abc import Sequence

from evenfeed.core.cardinality import INFINITE, UNKNOWN
from evenfeed.feeding.global_batch import global_batch_size, short_batch
from evenfeed.feeding.input_options import InputOptions
from evenfeed.plan.node import Node
from evenfeed.replicas.mesh import Replicas
from evenfeed.runtime.explaining import Explanation, explained_plan
from evenfeed.runtime.labels import counted


def cut_text(
    plan: Node, replicas: Replicas, sizes: Sequence[int] | None, options: InputOptions
) -> Explanation:
    """Say which rows of a global batch each replica gets.

    Args:
        plan: Makes the batches.
        replicas: Who gets them.
        sizes: How many rows each replica gets where they flow on from batch to batch; else None.
        options: How they are brought.
    """
    size = global_batch_size(plan)
    padded = options.pad_partial_batches
    shares = _cut(size, replicas.count) if size is not None and sizes is None else sizes
    lines = _shares(shares, replicas)
    lines.append(f"batches: {_size(size)}, {_how(sizes, padded=padded)}")
    rest = short_batch(plan)
    if rest is not None and shares is not None:
        last = _cut(rest, replicas.count) if sizes is None else _filled(rest, sizes)
        told = ", ".join(map(str, last)) + (" of them valid" if padded else "")
        lines.append(f"last step: {counted(rest, 'row')}, for each replica {told}")
    return _text(plan.size, replicas, options, lines, [plan])


def taken_text(
    size: int, plans: Sequence[Node], replicas: Replicas, options: InputOptions
) -> Explanation:
    """Say which elements each replica takes."""
    count = replicas.count
    own = "one element a step of its own dataset"
    in_turn = [f"elements {r}, {r + count}, {r + 2 * count}, …" for r in range(count)]
    lines = _table(replicas, [own] * count if len(plans) > 1 else in_turn)
    return _text(size, replicas, options, lines, plans)


def _text(
    size: int,
    replicas: Replicas,
    options: InputOptions,
    lines: Sequence[str],
    plans: Sequence[Node],
) -> Explanation:
    head = f"DistributedDataset: {_steps(size)} on {counted(replicas.count, 'replica')} of worker 0"
    text = [head, *(f"  {line}" for line in [*lines, f"read ahead: {_ahead(options)}"])]
    for number, plan in enumerate(plans):
        text.append("  dataset:" if len(plans) == 1 else f"  dataset of replica {number}:")
        text += [f"    {line}" for line in explained_plan(plan, 0).splitlines()]
    return Explanation("\n".join(text))


def _steps(size: int) -> str:
    return {INFINITE: "endless steps", UNKNOWN: "steps that are not counted yet"}.get(
        size, counted(size, "step")
    )


def _size(size: int | None) -> str:
    return (
        "of a size that is not known"
        if size is None
        else f"{counted(size, 'row')} over all replicas"
    )


def _how(sizes: Sequence[int] | None, *, padded: bool) -> str:
    if padded:
        return "each cut by itself, and filled with zeros that `valid` marks"
    if sizes is None:
        return "each cut by itself, by ceiling"
    return "and rows flow on from one to the next"


def _shares(sizes: Sequence[int] | None, replicas: Replicas) -> list[str]:
    if sizes is None:
        return _table(replicas, ["its part of each batch"] * replicas.count)
    starts = [sum(sizes[:replica]) for replica in range(len(sizes))]
    return _table(replicas, [_rows(*pair) for pair in zip(starts, sizes, strict=True)])


def _rows(start: int, count: int) -> str:
    if count == 0:
        return "no rows"
    which = f"{start}-{start + count - 1}" if count > 1 else f"{start}"
    return f"{counted(count, 'row')} a step: {which} of each batch"


def _cut(rows: int, count: int) -> list[int]:
    """Return how many rows each replica gets of a batch that is cut by ceiling."""
    return _filled(rows, [-(-rows // count)] * count)


def _filled(rows: int, sizes: Sequence[int]) -> list[int]:
    """Return how many rows each replica gets where the first ones take all they can."""
    return [max(0, min(size, rows - sum(sizes[:place]))) for place, size in enumerate(sizes)]


def _table(replicas: Replicas, shares: Sequence[str]) -> list[str]:
    names = [f"{device.platform.upper()}:{device.id}" for device in replicas.devices]
    width = max(map(len, names))
    pairs = enumerate(zip(names, shares, strict=True))
    return [f"replica {number}  {name:{width}}  {share}" for number, (name, share) in pairs]


def _ahead(options: InputOptions) -> str:
    if not options.experimental_fetch_to_device:
        return "nothing; steps stay NumPy arrays on the host"
    depth = options.experimental_per_replica_buffer_size
    if depth == 0:
        return "nothing; a step goes to the devices when it is asked for"
    return f"{counted(depth, 'step')}, brought to the devices by a thread"
