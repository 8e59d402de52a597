"""The specs of what a step yields."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from evenfeed.core import dtypes
from evenfeed.core.cardinality import INFINITE
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.shapes import TensorShape
from evenfeed.core.shares import Share
from evenfeed.core.specs import NoneTensorSpec, TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.feeding.host_steps import is_static
from evenfeed.plan.node import Node
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.values import PerReplicaSpec


@final
@dataclass(frozen=True)
class Arrival:
    """Who gets the steps, and whether they go to the devices, where JAX may have no 64-bit types."""

    replicas: Replicas
    share: Share
    fetch: bool = True

    def dtype(self, given: DType) -> DType:
        """Return the dtype in which values arrive."""
        return self.replicas.arriving(given) if self.fetch else given


def cut_spec(plan: Node, arrival: Arrival) -> Any:
    """Return the specs where each global batch is cut over the replicas."""
    parts: list[TypeSpec] = flatten(plan.element_spec, DATA)
    return _for_all(plan, [_cut(part, arrival) for part in parts], arrival, short=False)


def taken_spec(plan: Node, arrival: Arrival) -> Any:
    """Return the specs where each replica takes elements as they are."""
    parts: list[TypeSpec] = flatten(plan.element_spec, DATA)
    short = arrival.share.everyone > 1 and not is_static(plan)  # replicas may get no element
    return _for_all(plan, [_arriving(part, arrival) for part in parts], arrival, short=short)


def padded_spec(plan: Node, arrival: Arrival, rows: int) -> Any:
    """Return the specs where every step has `rows` rows for each replica, and says which are valid."""
    parts: list[TypeSpec] = flatten(plan.element_spec, DATA)
    pieces = [_with_rows(_cut(part, arrival), rows) for part in parts]
    valid = _several(TensorSpec([rows], dtypes.bool), arrival)
    return pack(plan.element_spec, [_several(p, arrival) for p in pieces], DATA), valid


def _for_all(plan: Node, pieces: Sequence[TypeSpec], arrival: Arrival, *, short: bool) -> Any:
    if plan.size != INFINITE and (arrival.share.workers > 1 or short):
        # The last step may be short in every part, and a worker may run dry before it.
        pieces = [_with_rows(piece, None) for piece in pieces]
    return pack(plan.element_spec, [_several(piece, arrival) for piece in pieces], DATA)


def _several(piece: TypeSpec, arrival: Arrival) -> TypeSpec:
    if arrival.share.everyone == 1:
        return piece
    return PerReplicaSpec(*[piece] * arrival.share.replicas)


def _arriving(spec: TypeSpec, arrival: Arrival) -> TypeSpec:
    if isinstance(spec, TensorSpec):
        return TensorSpec(spec.shape, arrival.dtype(spec.dtype))
    if isinstance(spec, NoneTensorSpec):
        return spec
    raise TypeError(
        described(
            f"Replicas get tensors, but a part of the elements is {spec}.",
            fix="turn it into tensors first: flat_map takes datasets apart, map opens an Optional.",
        )
    )


def _cut(spec: TypeSpec, arrival: Arrival) -> TypeSpec:
    arriving, count = _arriving(spec, arrival), arrival.share.everyone
    if not isinstance(arriving, TensorSpec) or count == 1:
        return arriving
    if arriving.shape.rank == 0:
        raise InvalidArgumentError(
            f"An element with a scalar part, {spec}, cannot be cut over {count} replicas.",
            fix="call batch(global_batch_size) on the dataset before you distribute it.",
        )
    rows = arriving.shape[0]
    even = rows is not None and rows % count == 0
    return _with_rows(arriving, rows // count if even and rows is not None else None)


def _with_rows(spec: TypeSpec, rows: int | None) -> TypeSpec:
    if not isinstance(spec, TensorSpec) or not spec.shape.rank:
        return spec
    return TensorSpec(TensorShape([rows]).concatenate(spec.shape[1:]), spec.dtype)
