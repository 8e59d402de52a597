"""Datasets whose global batches are cut over the replicas of one worker."""

from typing import Any, final

from evenfeed.core import dtypes
from evenfeed.core.cardinality import INFINITE
from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.iteration import NextElement
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, pack, paths
from evenfeed.dataset import Dataset, plan_of
from evenfeed.plan.node import Node
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.values import PerReplica, PerReplicaSpec
from evenfeed.runtime.elements import ElementIterator


@final
class DistributedDataset:
    """A dataset of which each replica gets its own part of every global batch.

    Made by `Strategy.experimental_distribute_dataset`. It can be iterated over and says its
    `element_spec`; what changes the data belongs on the Dataset it is made from.
    """

    def __init__(self, dataset: Dataset, replicas: Replicas) -> None:
        self._plan = plan_of(dataset)
        self._replicas = replicas
        _distributed_spec(self._plan, replicas)  # what cannot be cut is refused here and now

    @property
    def element_spec(self) -> Any:
        """The specs of what a step yields, a PerReplicaSpec for each part on several replicas."""
        # Not kept: whether 64 bits arrive depends on JAX's x64, which may be turned on later.
        return _distributed_spec(self._plan, self._replicas)

    @property
    def cardinality(self) -> int:
        """The number of global batches, or `INFINITE_CARDINALITY` or `UNKNOWN_CARDINALITY`."""
        return self._plan.size

    def __iter__(self) -> "DistributedIterator":
        return DistributedIterator(self._plan, self._replicas)

    def __getattr__(self, name: str) -> Any:
        what = f"A DistributedDataset has no {name!r}."
        if name in vars(Dataset):
            what += f" Call {name} on the Dataset, before it is distributed."
        raise AttributeError(what, name=name, obj=self)


@final
class DistributedIterator(NextElement):
    """Goes once through a DistributedDataset; each step is one part of a batch for every replica.

    Several threads may share it: each step goes to one of them.
    """

    def __init__(self, plan: Node, replicas: Replicas) -> None:
        self._plan = plan
        self._replicas = replicas
        self._structure = plan.element_spec
        self._names = [_name(path) for path in paths(self._structure, DATA)]
        # The only thing here that changes from step to step, with a lock of its own.
        self._elements = ElementIterator(plan)

    @property
    def element_spec(self) -> Any:
        """The specs of what a step yields."""
        return _distributed_spec(self._plan, self._replicas)

    def __next__(self) -> Any:
        parts = flatten(next(self._elements), DATA)
        placed = [self._placed(part, name) for part, name in zip(parts, self._names, strict=True)]
        return pack(self._structure, placed, DATA)

    def _placed(self, part: Array | None, what: str) -> Any:
        replicas = self._replicas
        if part is None:
            return None if replicas.count == 1 else PerReplica([None] * replicas.count)
        if replicas.count == 1:
            return replicas.put(part, 0, what)
        if len(part) % replicas.count == 0 and part.dtype != dtypes.string:
            return PerReplica(array=replicas.put_sharded(part, what))
        pieces = enumerate(cut(part, replicas.count))
        return PerReplica([replicas.put(piece, replica, what) for replica, piece in pieces])


def cut(batch: Array, count: int) -> list[Array]:
    """Cut a batch into `count` pieces as TensorFlow does: by ceiling, so that the last may be empty."""
    size = -(-len(batch) // count)
    return [batch[i * size : (i + 1) * size] for i in range(count)]


def _name(path: str) -> str:
    return f"the element's part {path}" if path else "the element"


def _distributed_spec(plan: Node, replicas: Replicas) -> Any:
    """Return the specs of a step: each part of an element is cut, and 64 bits may not arrive."""
    parts: list[TypeSpec] = flatten(plan.element_spec, DATA)
    pieces = [_piece_spec(part, replicas) for part in parts]
    if plan.size != INFINITE and any(_is_open(piece) for piece in pieces):
        # The last step may be short, and then it is short in every part.
        pieces = [_opened(piece) for piece in pieces]
    if replicas.count > 1:
        pieces = [PerReplicaSpec(*[piece] * replicas.count) for piece in pieces]
    return pack(plan.element_spec, pieces, DATA)


def _piece_spec(spec: TypeSpec, replicas: Replicas) -> TypeSpec:
    if not isinstance(spec, TensorSpec):
        return spec
    dtype = replicas.arriving(spec.dtype)
    if replicas.count == 1:
        return TensorSpec(spec.shape, dtype)
    if spec.shape.rank == 0:
        raise InvalidArgumentError(
            f"An element with a scalar part, {spec}, cannot be cut over {replicas.count} replicas.",
            fix="call batch(global_batch_size) on the dataset before you distribute it.",
        )
    rows = spec.shape[0]
    even = rows is not None and rows % replicas.count == 0
    first = rows // replicas.count if even and rows is not None else None
    return TensorSpec(TensorShape([first]).concatenate(spec.shape[1:]), dtype)


def _is_open(spec: TypeSpec) -> bool:
    return isinstance(spec, TensorSpec) and bool(spec.shape.rank) and spec.shape[0] is None


def _opened(spec: TypeSpec) -> TypeSpec:
    if not isinstance(spec, TensorSpec) or not spec.shape.rank:
        return spec
    return TensorSpec(TensorShape([None]).concatenate(spec.shape[1:]), spec.dtype)
