"""The specs of what a step yields."""

from collections.abc import Sequence
from typing import Any

from evenfeed.core import dtypes
from evenfeed.core.cardinality import INFINITE
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.feeding.host_steps import is_static
from evenfeed.plan.node import Node
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.values import PerReplicaSpec


def cut_spec(plan: Node, replicas: Replicas) -> Any:
    """Return the specs where each global batch is cut over the replicas."""
    parts: list[TypeSpec] = flatten(plan.element_spec, DATA)
    return _for_all(plan, [_cut(part, replicas) for part in parts], replicas)


def taken_spec(plan: Node, replicas: Replicas) -> Any:
    """Return the specs where each replica takes elements as they are."""
    parts: list[TypeSpec] = flatten(plan.element_spec, DATA)
    return _for_all(plan, [_arriving(part, replicas) for part in parts], replicas)


def padded_spec(plan: Node, replicas: Replicas, rows: int) -> Any:
    """Return the specs where every step has `rows` rows for each replica, and says which are valid."""
    parts: list[TypeSpec] = flatten(plan.element_spec, DATA)
    pieces = [_with_rows(_cut(part, replicas), rows) for part in parts]
    valid = _several(TensorSpec([rows], dtypes.bool), replicas)
    return pack(plan.element_spec, [_several(p, replicas) for p in pieces], DATA), valid


def _for_all(plan: Node, pieces: Sequence[TypeSpec], replicas: Replicas) -> Any:
    if plan.size != INFINITE and not is_static(plan):
        # The last step may be short, and then it is short in every part.
        pieces = [_with_rows(piece, None) for piece in pieces]
    return pack(plan.element_spec, [_several(piece, replicas) for piece in pieces], DATA)


def _several(piece: TypeSpec, replicas: Replicas) -> TypeSpec:
    return piece if replicas.count == 1 else PerReplicaSpec(*[piece] * replicas.count)


def _arriving(spec: TypeSpec, replicas: Replicas) -> TypeSpec:
    if not isinstance(spec, TensorSpec):
        return spec
    return TensorSpec(spec.shape, replicas.arriving(spec.dtype))


def _cut(spec: TypeSpec, replicas: Replicas) -> TypeSpec:
    arriving = _arriving(spec, replicas)
    if not isinstance(arriving, TensorSpec) or replicas.count == 1:
        return arriving
    if arriving.shape.rank == 0:
        raise InvalidArgumentError(
            f"An element with a scalar part, {spec}, cannot be cut over {replicas.count} replicas.",
            fix="call batch(global_batch_size) on the dataset before you distribute it.",
        )
    rows = arriving.shape[0]
    even = rows is not None and rows % replicas.count == 0
    return _with_rows(arriving, rows // replicas.count if even and rows is not None else None)


def _with_rows(spec: TypeSpec, rows: int | None) -> TypeSpec:
    if not isinstance(spec, TensorSpec) or not spec.shape.rank:
        return spec
    return TensorSpec(TensorShape([rows]).concatenate(spec.shape[1:]), spec.dtype)
