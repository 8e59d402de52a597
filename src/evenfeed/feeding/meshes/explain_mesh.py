"""The text of `GlobalBatches.explain()`: which devices and processes hold which rows of a batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, paths
from evenfeed.feeding.explain_distribution import (
    position_text,
    prefetch_text,
    steps_text,
    together_text,
)
from evenfeed.feeding.input_options import InputOptions
from evenfeed.plan.node import Node
from evenfeed.replicas.array_layouts import ArrayLayout
from evenfeed.runtime.explain import Explanation, explained_plan
from evenfeed.runtime.explain_text import counted


@final
@dataclass(frozen=True)
class MeshInput:
    """What `explain` tells about global batches.

    Attributes:
        size: The number of steps.
        rows: The number of rows of a batch; None if it varies.
        short: The number of rows of a short last batch; None if there is none.
        specs: The specs of the components.
        plan: The plan of this process.
        notes: Messages for the user.
        together: The most steps that are brought to the devices together.
    """

    size: int
    rows: int | None
    short: int | None
    specs: Any
    plan: Node
    notes: Sequence[str]
    together: int = 1


def mesh_text(
    given: MeshInput, layout: ArrayLayout, options: InputOptions, state: Any
) -> Explanation:
    """Describe who holds which rows, how each component is split, and the position of a state."""
    rows = layout.rows
    length = given.rows if rows.length is None else rows.length
    lines = [*_holders(layout, length), *_components(layout, given.specs, length), _readers(layout)]
    if rows.length is not None:
        lines.append(
            f"batches: {_rows(given.rows)}, padded to {rows.length}; `valid` marks the rest"
        )
    if given.short is not None:
        lines.append(f"last step: {counted(given.short, 'row')}")
    lines += [*given.notes, *position_text(state), f"prefetch: {prefetch_text(options)}"]
    lines += together_text(given.together)
    kind = "GlobalBatches" if layout.replicas is None else "DistributedDataset"
    head = f"{kind}: {steps_text(given.size)} of {_rows(length)} on {_devices(layout)}"
    plan = [f"    {line}" for line in explained_plan(given.plan, 0).splitlines()]
    return Explanation("\n".join([head, *(f"  {line}" for line in lines), "  dataset:", *plan]))


def _rows(count: int | None) -> str:
    return "an unknown number of rows" if count is None else counted(count, "row")


def _devices(layout: ArrayLayout) -> str:
    mesh = layout.valid.mesh
    axes = ", ".join(f"{name}={size}" for name, size in mesh.shape.items())
    several = len(layout.processes)
    where = f" of {several} processes" if several > 1 else ""
    return f"{counted(mesh.size, 'device')}{where}: {axes}"


def _holders(layout: ArrayLayout, length: int | None) -> list[str]:
    """Describe which devices hold each shard of rows of the first component."""
    count = layout.shard_count
    named = [_span(shard, count, length) for shard in range(count)]
    width = max(map(len, named))
    return [f"{name:{width}}  {_holding(layout, shard)}" for shard, name in enumerate(named)]


def _span(shard: int, shards: int, length: int | None) -> str:
    if length is None or length % shards:
        return f"part {shard + 1} of {shards}"
    each = length // shards
    first, last = shard * each, (shard + 1) * each - 1
    return f"rows {first}-{last}" if each > 1 else f"row {first}"


def _holding(layout: ArrayLayout, shard: int) -> str:
    by_process: dict[int, list[str]] = {}
    for device in layout.devices(shard):
        name = f"{device.platform.upper()}:{device.id}"
        by_process.setdefault(layout.process_of(device), []).append(name)
    if len(layout.processes) == 1:
        return " ".join(name for names in by_process.values() for name in names)
    return ", ".join(
        f"process {process}: {' '.join(names)}" for process, names in by_process.items()
    )


def _components(layout: ArrayLayout, specs: Any, length: int | None) -> list[str]:
    """Describe the sharding of each component, and the shape of a device's block."""
    pairs = zip(paths(specs, DATA), flatten(specs, DATA), layout.shardings, strict=True)
    lines = [
        f"{path or 'element'}: {spec.shape} {spec.dtype.name} by {sharding.spec}{_block(spec, sharding, length)}"
        for path, spec, sharding in pairs
        if isinstance(spec, TensorSpec)
    ]
    named = zip(paths(specs, DATA), layout.columns, strict=False)
    parts = [f"{path or 'element'}: {part}" for path, part in named if part is not None]
    return [*lines, *(f"this process reads of each row of {part}" for part in parts)]


def _block(spec: TypeSpec, sharding: Any, length: int | None) -> str:
    assert isinstance(spec, TensorSpec)
    if length is None or spec.shape.rank is None or not spec.shape[1:].is_fully_defined():
        return ""
    return f", {sharding.shard_shape((length, *spec.shape[1:].as_list()))} on each device"


def _readers(layout: ArrayLayout) -> str:
    """Describe which rows this process reads, and which processes read the same rows."""
    rows = layout.rows
    own = f"this process reads {len(rows.own_shards)} of {counted(rows.shards, 'shard')} of rows"
    same = [layout.processes[w] for w, held in enumerate(rows.held) if held == rows.own_shards]
    others = [str(process) for process in same if process != layout.processes[rows.worker]]
    if not others:
        return own
    return f"{own}, as {'does process' if len(others) == 1 else 'do processes'} {', '.join(others)}"
