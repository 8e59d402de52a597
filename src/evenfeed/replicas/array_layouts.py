"""How the arrays of a step are laid out over devices, given their shardings: who holds which rows of a batch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import lcm, prod
from typing import Any, TypeAlias, final

import numpy as np

from evenfeed.core.batch_split import HeldRows
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, paths
from evenfeed.replicas.block_copies import BlockCopies, copied
from evenfeed.replicas.device_shards import axes_of, row_axes
from evenfeed.replicas.given_shardings import resolved, sharding_for_each
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.owned_arrays import owned
from evenfeed.tensors.device_arrays import narrowed

# Returns the process of a device. Tests replace it, to lay out arrays over the processes of a large cluster.
ProcessOf: TypeAlias = Callable[[Any], int]


def _own_process(device: Any) -> int:
    return device.process_index


@final
@dataclass(frozen=True)
class ArrayLayout:
    """The shardings of all components of a step, and the rows that each process needs for them.

    Attributes:
        names: What the user calls the components.
        shardings: Their shardings, in order; None for a component without values.
        valid: The sharding of a bool for each row.
        rows: The rows of a batch that this process reads.
        processes: The processes with devices, in order.
        process_of: Returns the process of a device.
        replicas: The replicas of a strategy, if each has a shard of rows; None for arrays without a strategy.
        columns: For each component, the part of each row that this process reads; None for whole rows.
    """

    names: tuple[str, ...]
    shardings: tuple[Any, ...]
    valid: Any
    rows: HeldRows
    processes: tuple[int, ...]
    process_of: ProcessOf = _own_process
    replicas: Replicas | None = None
    columns: "tuple[RowPart | None, ...]" = ()

    def held_columns(self, specs: Sequence[TypeSpec]) -> "tuple[RowPart | None, ...]":
        """Return the part of each row that the devices of this process hold, for each component with such a spec."""
        here = self.processes[self.rows.worker]
        pairs = zip(specs, self.shardings, strict=True)
        return tuple(_held_part(spec, one, here, self.process_of) for spec, one in pairs)

    def padded(self, length: int | None) -> "ArrayLayout":
        """Return the layout of batches that are padded to a length; None if they are not padded."""
        return replace(self, rows=self.rows._replace(length=length))

    @property
    def shard_count(self) -> int:
        """The number of shards of the rows of the first component."""
        return row_shards(self.valid)

    def devices(self, shard: int) -> list[Any]:
        """Return the devices that hold a shard of the rows of the first component, in the order of their ids."""
        size = self.shard_count
        index = self.valid.devices_indices_map((size,))
        held = [device for device, (own,) in index.items() if shard in range(*own.indices(size))]
        return sorted(held, key=lambda device: (self.process_of(device), device.id))

    def put(self, component: int, own: Array, length: int) -> "jax.Array":
        """Copy this process's rows of a batch to its devices, as a part of one global array.

        Args:
            component: The index of the component.
            own: The rows that this process reads, in order: whole, or the part in `columns`. Rows that are missing at the end
            become zeros.
            length: The number of rows of the global array.
        """
        name, sharding = self.names[component], self.shardings[component]
        rows = owned(narrowed(own, name))
        part = self._part(component, rows.shape[1:])
        shape = (length, *self.row_shape(component, rows))
        check_divides(name, shape[1:], sharding)
        block = partial(self.block, rows, length, part)
        return self._copies[component](shape, rows.dtype, block)

    @cached_property
    def _copies(self) -> tuple[BlockCopies, ...]:
        return tuple(map(BlockCopies, self.shardings))

    def row_shape(self, component: int, own: Array, first: int = 1) -> tuple[int, ...]:
        """Return the shape of a whole row, given an array of rows, or of parts of rows. Rows begin at dimension `first`."""
        part = self._part(component, own.shape[first:])
        return own.shape[first:] if part is None else part.whole

    def _part(self, component: int, shape: tuple[int, ...]) -> "RowPart | None":
        """Return the part that rows of a shape are; None for whole rows, as of a state of another reader."""
        part = self.columns[component] if self.columns else None
        return None if part is None or part.shape != shape else part

    def put_steps(self, component: int, own: Array, length: int) -> "jax.Array":
        """Copy this process's rows of several full batches, whose first axis is the steps."""
        name, sharding = self.names[component], self.shardings[component]
        rows = owned(narrowed(own, name))
        shape = (len(rows), length, *self.row_shape(component, rows, 2))
        check_divides(name, shape[2:], sharding)
        part = self._part(component, rows.shape[2:])
        block = partial(self._block_of_steps, rows, length, part)
        return copied(shape, _of_steps(sharding), block)

    def put_valid_steps(self, own: Array, length: int) -> "jax.Array":
        """Make the array with a bool for each row of several steps."""
        block = partial(self._block_of_steps, own, length, None)
        return copied((len(own), length), _of_steps(self.valid), block)

    def _block_of_steps(self, own: Array, length: int, part: "RowPart | None", index: Any) -> Array:
        columns = index[2:] if part is None else part.within(index[2:])
        rows = _rows_at(self.rows, own.swapaxes(0, 1), index[1], length).swapaxes(0, 1)
        return rows[(slice(None), slice(None), *columns)]

    def block(self, own: Array, length: int, part: "RowPart | None", index: Any) -> Array:
        """Return the block of a device, given its index in the global array. Of missing rows, zeros."""
        columns = index[1:] if part is None else part.within(index[1:])
        return _rows_at(self.rows, own, index[0], length)[(slice(None), *columns)]

    def put_valid(self, own: Array, length: int) -> "jax.Array":
        """Make the array with a bool for each row, given those of this process."""
        return self._valid_copies((length,), own.dtype, partial(self.block, own, length, None))

    @cached_property
    def _valid_copies(self) -> BlockCopies:
        return BlockCopies(self.valid)


@final
@dataclass(frozen=True)
class RowPart:
    """A part of each row of an array.

    Attributes:
        whole: The shape of a row.
        slices: The part, along each dimension of a row.
    """

    whole: tuple[int, ...]
    slices: tuple[slice, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the part."""
        return tuple(own.stop - own.start for own in self.slices)

    def within(self, index: Sequence[slice]) -> tuple[slice, ...]:
        """Return where a block of a row is in the part."""
        found: list[slice] = []
        for own, wanted, size in zip(self.slices, index, self.whole, strict=True):
            start, stop, _ = wanted.indices(size)
            found.append(slice(start - own.start, stop - own.start))
        return tuple(found)

    def __str__(self) -> str:
        spans = zip(self.slices, self.whole, strict=True)
        return ", ".join(f"{own.start}-{own.stop - 1} of {size}" for own, size in spans)


def _held_part(spec: TypeSpec, sharding: Any, here: int, process_of: ProcessOf) -> RowPart | None:
    """Return the part of each row that the devices of a process hold; None for whole rows, or if sizes are unknown."""
    if not isinstance(spec, TensorSpec) or not spec.shape.rank:
        return None
    sizes = spec.shape[1:].as_list()
    row = tuple(size for size in sizes if size is not None)
    if len(row) < len(sizes):
        return None
    index = sharding.devices_indices_map((row_shards(sharding), *row))
    blocks = [own[1:] for device, own in index.items() if process_of(device) == here]
    dimensions = zip(zip(*blocks, strict=True), row, strict=True)
    spans = [[wanted.indices(size) for wanted in own] for own, size in dimensions]
    slices = tuple(slice(min(own)[0], max(stop for _, stop, _ in own)) for own in spans)
    part = RowPart(row, slices)
    return None if part.shape == row else part


def _rows_at(held: HeldRows, own: Array, index: slice, length: int) -> Array:
    """Return some rows of a global batch of `length`, out of those that a process read. Missing ones are zeros."""
    start, stop, _ = index.indices(length)
    if start == stop:
        return own[:0]
    size = length // held.shards
    first = held.own_shards.index(start // size) * size
    found = own[first : first + stop - start]
    if len(found) == stop - start:
        return found
    whole = np.zeros((stop - start, *own.shape[1:]), own.dtype)
    whole[: len(found)] = found
    return whole


def layout_of(
    structure: Any,
    sharding: Any,
    mesh: Any = None,
    *,
    process_of: ProcessOf = _own_process,
    here: int | None = None,
) -> ArrayLayout:
    """Return the layout of batches with a structure of specs.

    Args:
        structure: The specs of the components of a batch.
        sharding: A `NamedSharding` or a `PartitionSpec` for all components, or a structure of them.
        mesh: The mesh of each `PartitionSpec`; by default that of `jax.set_mesh`.
        process_of: Returns the process of a device.
        here: This process.

    Raises:
        TypeError: A sharding is something else.
        InvalidArgumentError: A sharding does not suit its component.
    """
    specs: list[TypeSpec] = flatten(structure, DATA)
    names = component_names(structure)
    given = [resolved(one, mesh) for one in sharding_for_each(sharding, structure)]
    shardings = tuple(
        one if isinstance(spec, TensorSpec) else None
        for one, spec in zip(given, specs, strict=True)
    )
    used = [one for one in shardings if one is not None]
    if not used:
        raise InvalidArgumentError(
            "The elements have no tensors that could be put on devices.",
            fix="put numbers into the elements: Dataset.from_tensor_slices(array).batch(n).",
        )
    others_have_rows = any(isinstance(spec, TensorSpec) and spec.shape.rank for spec in specs)
    for name, spec, one in zip(names, specs, shardings, strict=True):
        if one is not None:
            _check_rank(name, spec, one, others_have_rows=others_have_rows)
    rows, processes = _holders(used, process_of, here)
    return ArrayLayout(names, shardings, _of_rows(used[0]), rows, processes, process_of)


def held_rows(sharding: Any, mesh: Any = None) -> HeldRows:
    """Return the rows of a batch that this process reads for shardings, whatever the structure of the batch."""
    given = [resolved(one, mesh) for one in flatten(sharding, DATA)]
    return _holders(given, _own_process, None)[0]


def _holders(
    shardings: Sequence[Any], process_of: ProcessOf, here: int | None
) -> tuple[HeldRows, tuple[int, ...]]:
    """Return the rows that this process reads, and the processes with devices, in order."""
    shards = lcm(*map(row_shards, shardings))
    processes = tuple(sorted({process_of(d) for one in shardings for d in one.device_set}))
    own = jax.process_index() if here is None else here
    for one in shardings:
        _check_here(one, own, process_of)
    held = tuple(_held_by(process, shardings, shards, process_of) for process in processes)
    return HeldRows(processes.index(own), held, shards), processes


def component_names(structure: Any) -> tuple[str, ...]:
    """Return what error messages call the components of an element."""
    found = paths(structure, DATA)
    return tuple(f"the element's component {path}" if path else "the element" for path in found)


def axes_in_words(layout: ArrayLayout) -> str:
    """Return the mesh axes that split rows, for error messages: `data=4`."""
    used = [sharding for sharding in layout.shardings if sharding is not None]
    axes = {name: one.mesh.shape[name] for one in used for name in row_axes(one)}
    listed = ", ".join(f"{name}={size}" for name, size in axes.items())
    return f"the mesh axes {listed}" if len(axes) > 1 else f"the mesh axis {listed}"


def row_shards(sharding: Any) -> int:
    """Return into how many parts a sharding splits the rows of an array."""
    return parts_along(0, sharding.mesh, sharding.spec)


def parts_along(dimension: int, mesh: Any, spec: Any) -> int:
    """Return into how many parts a `PartitionSpec` splits a dimension."""
    axes = axes_of(spec[dimension]) if dimension < len(spec) else ()
    return prod(mesh.shape[axis] for axis in axes)


def check_divides(name: str, inner: Sequence[int | None], sharding: Any) -> None:
    """Raise if a sharding cannot split the dimensions of an array after its rows evenly. None is an unknown size."""
    for number, size in enumerate(inner, 1):
        parts = parts_along(number, sharding.mesh, sharding.spec)
        if size is not None and size % parts:
            raise InvalidArgumentError(
                f"Dimension {number} of {name} has size {size}, which {sharding.spec} cannot split evenly into {parts} "
                "parts.",
                fix=f"pad it to {-(-size // parts) * parts} in a map, or leave that dimension whole: None in the "
                "PartitionSpec.",
            )


def _held_by(
    process: int, shardings: Sequence[Any], shards: int, process_of: ProcessOf
) -> tuple[int, ...]:
    """Return the shards of rows that the devices of a process hold for some component."""
    found: set[int] = set()
    for sharding in dict.fromkeys(map(_of_rows, shardings)):
        for device, (rows,) in sharding.devices_indices_map((shards,)).items():
            if process_of(device) == process:
                found.update(range(*rows.indices(shards)))
    return tuple(sorted(found))


def _of_rows(sharding: Any) -> Any:
    """Return the sharding of an array with one number for each row."""
    first = sharding.spec[0] if len(sharding.spec) else None
    return jax.sharding.NamedSharding(sharding.mesh, jax.sharding.PartitionSpec(first))


def _of_steps(sharding: Any) -> Any:
    """Return the sharding of several arrays, stacked."""
    spec = jax.sharding.PartitionSpec(None, *sharding.spec)
    return jax.sharding.NamedSharding(sharding.mesh, spec)


def _check_rank(name: str, spec: TypeSpec, sharding: Any, *, others_have_rows: bool) -> None:
    assert isinstance(spec, TensorSpec)
    rank = spec.shape.rank
    if rank == 0:
        # The elements may be batches with one value for all rows, or no batches at all.
        raise InvalidArgumentError(
            f"{name[0].upper()}{name[1:]} is a scalar, {spec}, and has no rows to split.",
            fix="add it before batch, so that each row has the value, or leave it out with a map."
            if others_have_rows
            else "call batch(global_batch_size) on the dataset before you distribute it.",
        )
    if rank is None:
        return
    if len(sharding.spec) > rank:
        raise InvalidArgumentError(
            f"{sharding.spec} is for arrays with at least {len(sharding.spec)} dimensions, but {name} has {rank}.",
            fix="pass a sharding for each component, in the structure of an element.",
        )
    check_divides(name, [spec.shape[number] for number in range(1, rank)], sharding)


def _check_here(sharding: Any, here: int, process_of: ProcessOf) -> None:
    processes = sorted({process_of(device) for device in sharding.device_set})
    if here not in processes:
        raise InvalidArgumentError(
            f"The mesh has devices of the processes {processes}, but none of this one, process {here}.",
            fix="make the mesh of devices of all processes, from jax.devices().",
        )
