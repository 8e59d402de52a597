"""Keeps the order of the keys of dicts, which JAX sorts when it flattens a pytree: `a, b = batch.values()` relies on it."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, TypeAlias, cast, final

from evenfeed.core.lazy_jax import jax_tree

# What has to be reordered: by key for a dict, by place for a list or tuple; None if nothing has.
Order: TypeAlias = "dict[Any, Order] | list[Order] | None"

_SORTED: Final = frozenset({dict, defaultdict})


def order_of(value: Any) -> Order:
    """Return the order of the keys in a structure; None if all are sorted."""
    if type(value) in _SORTED:
        keys: Order = {key: order_of(part) for key, part in value.items()}
        return keys if any(keys.values()) or not _is_sorted(list(keys)) else None
    if type(value) is list or isinstance(value, tuple):
        parts: Order = [order_of(part) for part in cast("Sequence[Any]", value)]
        return parts if any(parts) else None
    return None


def _is_sorted(keys: list[Any]) -> bool:
    try:
        return keys == sorted(keys)
    except TypeError:  # JAX refuses them, too
        return True


def in_order(value: Any, order: Order) -> Any:
    """Return a structure with its keys in this order."""
    match order:
        case None:
            return value
        case dict():
            made = {key: in_order(value[key], own) for key, own in order.items()}
            return made if type(value) is dict else defaultdict(value.default_factory, made)
        case _:
            parts = [in_order(part, own) for part, own in zip(value, order, strict=True)]
            return parts if type(value) is list else _tuple(value, parts)


def _tuple(value: Any, parts: list[Any]) -> Any:
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


@final
class _OrderedTree:
    """The structure of a pytree and the order of its keys. Equal to structures that differ in the order only."""

    __slots__ = ("order", "tree")

    def __init__(self, tree: Any, order: Order) -> None:
        self.tree = tree
        self.order = order

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """Return the pytree with these leaves, and with its keys in order."""
        return in_order(self.tree.unflatten(leaves), self.order)

    def __eq__(self, other: object) -> bool:
        return self.tree == (other.tree if isinstance(other, _OrderedTree) else other)

    def __hash__(self) -> int:
        return hash(self.tree)

    def __repr__(self) -> str:
        return repr(self.tree)


def flattened(value: Any) -> tuple[list[Any], Any]:
    """Return the leaves of a pytree, and its structure with the order of its keys."""
    leaves, tree = jax_tree.tree_flatten(value)
    return leaves, with_order(tree, value)


def with_order(tree: Any, value: Any) -> Any:
    """Return the structure of `value`, with the order of its keys unless they are sorted."""
    order = order_of(value)
    return tree if order is None else _OrderedTree(tree, order)
