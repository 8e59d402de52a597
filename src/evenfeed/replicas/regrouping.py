"""Splits structures of distributed values into replica arguments, and regroups replica results."""

from collections.abc import Sequence
from typing import Any

from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jax_tree
from evenfeed.replicas.containers import (
    close_containers,
    has_containers,
    open_containers,
    opens_more,
)
from evenfeed.replicas.key_orders import with_order
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.values import DistributedValues, PerReplica
from evenfeed.tensors.device_arrays import is_traced, unbound


def leaves_of(value: Any) -> tuple[list[Any], Any]:
    """Flatten a pytree. Distributed values are leaves."""
    leaves, tree = jax_tree.tree_flatten(value, is_leaf=_is_whole)
    return leaves_of(value) if opens_more(leaves) else (leaves, with_order(tree, value))


def packed(tree: Any, leaves: Sequence[Any]) -> Any:
    """Unflatten a pytree."""
    return tree.unflatten(leaves)


def _is_whole(value: Any) -> bool:
    return isinstance(value, DistributedValues)


def share_of(value: Any, replica: int) -> Any:
    """Return one replica's part of a structure of values."""
    leaves, tree = leaves_of(value)
    if has_containers(leaves):
        return close_containers(share_of(open_containers(value), replica))
    if not any(map(_is_whole, leaves)):
        return value
    return packed(tree, [leaf.values[replica] if _is_whole(leaf) else leaf for leaf in leaves])


def placed(replicas: Replicas, share: Any, replica: int) -> Any:
    """Copy a replica's arrays to its device, without committing them to it.

    Uncommitted arrays stay the same objects, because JAX moves them by itself.
    """

    def there(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array) or not leaf.committed:
            return leaf
        return unbound(replicas.to_replica(leaf, replica))

    leaves, tree = leaves_of(share)
    return packed(tree, [there(leaf) for leaf in leaves])


def regrouped(results: Sequence[Any], replicas: Replicas | None = None) -> Any:
    """Combine the replicas' results leaf by leaf. An object that all replicas returned stays as it is."""
    if len(results) == 1:
        return results[0]
    if any(map(has_containers, results)):
        return close_containers(regrouped(list(map(open_containers, results)), replicas))
    first, tree = _with_nones(results[0])
    rows = [first]
    for replica, result in enumerate(results[1:], start=1):
        leaves, other = _with_nones(result)
        if other != tree:
            raise ValueError(
                described(
                    f"The replicas returned different structures: replica 0 returned {tree}, and "
                    f"replica {replica} returned {other}.",
                    fix="return the same structure from every replica.",
                )
            )
        rows.append(leaves)
    return packed(tree, [_together(parts, replicas) for parts in zip(*rows, strict=True)])


def _with_nones(value: Any) -> tuple[list[Any], Any]:
    """Flatten with None as a leaf, because a replica may return None where another returns a value."""

    def is_leaf(part: Any) -> bool:
        return part is None or _is_whole(part)

    leaves, tree = jax_tree.tree_flatten(value, is_leaf=is_leaf)
    return _with_nones(value) if opens_more(leaves) else (leaves, with_order(tree, value))


def _together(parts: Sequence[Any], replicas: Replicas | None) -> Any:
    if all(part is parts[0] for part in parts[1:]):
        return parts[0]
    if any(map(_is_whole, parts)):
        raise ValueError(
            described(
                "One replica returned a distributed value where another returned something else.",
                fix="return this replica's own part: value.values[replica].",
            )
        )
    if replicas is not None:
        parts = [_on_own_device(replicas, part, replica) for replica, part in enumerate(parts)]
    return PerReplica(parts, replicas=replicas)


def _on_own_device(replicas: Replicas, part: Any, replica: int) -> Any:
    """Copy a part to its replica's device, if it was computed with an array committed elsewhere."""
    if not isinstance(part, jax.Array) or is_traced(part) or not part.committed:
        return part
    return replicas.to_replica(part, replica)
