"""Turns the host columns of a step into per-replica values on the devices, or into sharded arrays."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.iteration import StepRun
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, pack, packer
from evenfeed.core.tensor_types import host_tensor
from evenfeed.feeding.alike_steps import are_even
from evenfeed.feeding.composite_rows import CompositeRows, stays_on_host
from evenfeed.feeding.host_steps import Column, Pieces, cut
from evenfeed.replicas.array_layouts import component_names
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.values import PerReplica, PerReplicaSpec, batch_kind, per_replica_of
from evenfeed.tensors.creation import is_on_device
from evenfeed.tensors.device_arrays import narrowed


class StepPlacing(ABC):
    """Copies steps to the devices: one, or several together."""

    @abstractmethod
    def __call__(self, columns: Sequence[Column]) -> Any:
        """Return the step made from its columns."""

    @property
    @abstractmethod
    def has_runs(self) -> bool:
        """Whether several steps can go to the devices together."""

    @abstractmethod
    def kind(self, columns: Sequence[Any]) -> Any:
        """Return what steps must have in common on all workers, given their columns with a leading axis."""

    @abstractmethod
    def run_of(self, columns: Sequence[Any], count: int, room: int) -> StepRun:
        """Return `count` steps with room for `room`, from their columns with a leading axis."""

    def again(self, step: Any, most: int) -> StepRun | None:
        """Return a step that was placed before, as a run of one step with room for `most`; None if it cannot be one."""
        del step, most
        return None

    def columns_again(self, columns: Sequence[Any]) -> list[Any] | None:
        """Return the columns of a step that was placed before with a leading axis; None if it cannot be in a run."""
        del columns
        return None

    def together(self, columns: Sequence[Any], most: int, *, fills: bool) -> StepRun | None:
        """Return several of at most `most` steps, from their columns with a leading axis; None for a single step.

        With `fills`, there is always room for `most` steps, and a single one is a run too.
        """
        count = step_count(columns)
        if count < 2 - fills:
            return None
        room = most if fills else min(most, 1 << (count - 1).bit_length())
        return self.run_of(columns, count, room)


@final
class Placing(StepPlacing):
    """Turns the columns of a step into a structure of per-replica values.

    Args:
        structure: The structure of an element.
        replicas: The replicas.
        fetch: Whether to copy the rows to the devices, or leave them on the host.
        convert: Converts each value of a step.
    """

    def __init__(
        self,
        structure: Any,
        replicas: Replicas,
        *,
        fetch: bool = True,
        convert: Callable[[Any], Any] | None = None,
    ) -> None:
        self._names = component_names(structure)
        self._pack = packer(structure, DATA)
        self._replicas = replicas
        self._own = replicas.local_count
        self._fetch = fetch
        self._is_sharded = fetch and not replicas.spans
        self._value = self._single if replicas.is_lone else self._one_for_each
        self._convert = convert
        self._is_lone = replicas.is_lone and self.has_runs
        self._kind = batch_kind(replicas)
        specs: list[TypeSpec] = flatten(structure, DATA)
        self._are_scalars = [isinstance(s, TensorSpec) and s.shape.rank == 0 for s in specs]

    @property
    def replicas(self) -> Replicas:
        """The replicas that get the steps."""
        return self._replicas

    def __call__(self, columns: Sequence[Column]) -> Any:
        """Return the step made from its columns."""
        value, convert = self._value, self._convert
        if self._is_lone and all(map(_is_numbers, columns)):
            arrays = cast("Sequence[Array]", columns)
            together = self._replicas.put_together(arrays, self._names)
            if together is not None:
                return self._pack(list(together))
        placed = [value(c, name) for c, name in zip(columns, self._names, strict=True)]
        return self._pack(placed if convert is None else list(map(convert, placed)))

    @property
    def has_runs(self) -> bool:
        return self._fetch and self._convert is None

    def kind(self, columns: Sequence[Any]) -> Any:
        return [c if c is None else [c.shape[1:], str(c.dtype)] for c in columns]

    def columns_again(self, columns: Sequence[Any]) -> list[Any] | None:
        if any(c is not None and not isinstance(c, np.ndarray) for c in columns):
            return None
        found = [c if c is None else c[None] for c in columns]
        return found if are_even(found, self._own) else None

    def again(self, step: Any, most: int) -> StepRun | None:
        arrays = [x.whole if isinstance(x, PerReplica) else x for x in flatten(step, DATA)]
        is_here = self.has_runs and not self._replicas.spans
        if not is_here or not all(map(is_on_device, arrays)):
            return None
        columns: list[Array] = [np.asarray(x)[None] for x in arrays]
        return self.run_of(columns, 1, most) if all(x.size for x in columns) else None

    def run_of(self, columns: Sequence[Any], count: int, room: int) -> StepRun:
        placed = [
            c if c is None else self._steps_on_devices(with_room(c, room), name, scalars)
            for c, name, scalars in zip(columns, self._names, self._are_scalars, strict=True)
        ]
        device = self._replicas.local_devices[0] if self._replicas.is_lone else None
        return StepRun(count, self._pack(placed), device=device)

    def _steps_on_devices(self, column: Array, what: str, scalars: bool) -> Any:
        replicas = self._replicas
        array: Any = replicas.put_steps(column, what)
        if replicas.is_lone:
            return array
        return PerReplica(array=array, count=replicas.count, lifted=scalars)

    def _single(self, column: Column, what: str) -> Any:
        return None if column is None else self._pieces([column], what)[0]

    def _one_for_each(self, column: Column, what: str) -> PerReplica:
        if column is None:
            return PerReplica([None] * self._own)
        if not isinstance(column, list) and not column.ndim:
            column = [column]  # the element of a single replica
        if not isinstance(column, list):
            if self._is_sharded:
                return per_replica_of(self._kind, self._replicas.put_sharded(column, what))
            return self._per_replica(cut(column, self._own), what, are_alike=True)
        alike = _all_alike(column) if isinstance(column, Pieces) else _are_alike(column)
        return self._per_replica(column, what, are_alike=alike)

    def _per_replica(self, pieces: Sequence[Any], what: str, *, are_alike: bool) -> PerReplica:
        """Make a per-replica value. It is one array if the pieces of all workers have one shape."""
        replicas = self._replicas
        if self._fetch and are_alike and not stays_on_host(pieces[0]):
            array = replicas.put_pieces(pieces, what)
            return per_replica_of(batch_kind(replicas, lifted=pieces[0].ndim == 0), array)
        own = self._pieces(pieces, what)
        if not replicas.spans:
            return PerReplica(own)
        if isinstance(pieces[0], CompositeRows):
            return PerReplica(own, replicas=replicas)  # no program computes with them
        # Without known shapes, the pieces were padded or split evenly, so all have the same shape.
        alike = (pieces[0].shape,) * replicas.count
        shapes = pieces.shapes if isinstance(pieces, Pieces) else alike
        return PerReplica(own, replicas=replicas, shapes=shapes)

    def _pieces(self, pieces: Sequence[Any], what: str) -> Sequence[Any]:
        if not self._fetch or stays_on_host(pieces[0]):
            return [host_tensor(piece) for piece in pieces]
        return self._replicas.put_each(pieces, what)


def _is_numbers(column: Any) -> bool:
    return type(column) is np.ndarray and column.dtype != dtypes.string


def step_count(columns: Sequence[Any] | None) -> int:
    """Return the number of steps in columns with a leading axis."""
    return next((len(column) for column in columns or () if column is not None), 0)


def fitting_steps(columns: Sequence[Any] | None) -> list[Any] | None:
    """Return the steps before the first with a value that JAX's dtypes cannot hold; None if that is the first.

    That step is then taken by itself, after those before it have run, and its error is raised there.
    """
    if columns is None:
        return None
    try:
        return _narrowed(columns)
    except InvalidArgumentError:
        for number in range(step_count(columns)):
            try:
                _narrowed(_part(columns, slice(number, number + 1)))
            except InvalidArgumentError:
                return _narrowed(_part(columns, slice(number))) if number else None
        raise


def _narrowed(columns: Sequence[Any]) -> list[Any]:
    return [c if c is None else narrowed(c, "the element") for c in columns]


def _part(columns: Sequence[Any], steps: slice) -> list[Any]:
    return [c if c is None else c[steps] for c in columns]


def with_room(column: Array, length: int) -> Array:
    """Return a column with entries added up to a length, so that a few programs serve all lengths."""
    if len(column) == length:
        return column
    rest = np.zeros((length - len(column), *column.shape[1:]), column.dtype)
    return np.concatenate([column, rest])


def _are_alike(pieces: Sequence[Any]) -> bool:
    """Return True if pieces can be one array on the devices: numbers of one, non-empty shape."""
    first = pieces[0]
    if stays_on_host(first) or first.size == 0:
        return False
    return all(piece.shape == first.shape for piece in pieces)


def _all_alike(pieces: Pieces) -> bool:
    """Return True if the pieces of all workers are scalars, which form one array on the devices."""
    return not any(pieces.shapes)


def array_specs_of(spec: Any, replicas: Replicas) -> Any:
    """Return the specs of the values that `array_of` returns, from the spec of a step."""
    return pack(spec, [_array_spec(part, replicas) for part in flatten(spec, DATA)], DATA)


def _array_spec(spec: TypeSpec, replicas: Replicas) -> TypeSpec:
    if not isinstance(spec, PerReplicaSpec):
        return spec
    part = spec.value_specs[0]
    if not isinstance(part, TensorSpec) or part.shape.rank is None:
        return part
    rows = part.shape[0] if part.shape.rank else 1
    whole = TensorShape([None if rows is None else rows * replicas.count])
    return TensorSpec(whole.concatenate(part.shape[1:]), part.dtype)


def array_of(replicas: Replicas, value: Any) -> Any:
    """Return a value of a step as one sharded array."""
    if not isinstance(value, PerReplica):
        return None if value is None else _on_devices([value], replicas)
    if value.parts[0] is None:
        return None
    whole = value.whole
    if whole is not None:
        return whole
    shapes = value.shapes or [getattr(part, "shape", None) for part in value.parts]
    if len(set(shapes)) == 1:
        return _on_devices(value.parts, replicas)
    raise InvalidArgumentError(
        f"A step cannot be one array: its parts have the shapes {list(shapes)}.",
        fix="pass InputOptions(pad_partial_batches=True), or batch with drop_remainder=True and a size that is a "
        "multiple of the number of replicas.",
    )


def _on_devices(parts: Sequence[Any], replicas: Replicas) -> Any:
    """Make one array from parts of one shape, which are on one device or still on the host."""
    if any(isinstance(part, CompositeRows) for part in parts):
        raise InvalidArgumentError(
            "A step cannot be one array: it has ragged or sparse tensors, which stay on the host.",
            fix="make them dense in a map: x.to_tensor(), or sparse.to_dense(x).",
        )
    if any(map(stays_on_host, parts)):
        raise InvalidArgumentError(
            "A step cannot be one array: it has strings, which stay on the host.",
            fix="drop the strings with map, or iterate over the distributed dataset itself.",
        )
    if not parts[0].ndim and replicas.is_lone:
        return replicas.everywhere(parts[0])
    if any(isinstance(part, np.ndarray) for part in parts):
        return replicas.put_pieces([to_array(part) for part in parts], "a step")
    return replicas.joined(parts)
