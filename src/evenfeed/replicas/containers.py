"""Makes JAX flatten containers that TensorFlow flattens but JAX does not.

These are user subclasses of dicts, lists and tuples, which are replaced by registered pytree nodes, and
classes with `__tf_flatten__`, which are registered themselves.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final, cast, final

from evenfeed.core.lazy_jax import jax_tree
from evenfeed.core.structure import NEST, is_branch, opened, opens_itself
from evenfeed.replicas.key_orders import in_order, order_of
from evenfeed.replicas.values import DistributedValues


@final
class _Kind:
    """The pytree metadata of a container. Equal for containers of one class with the same keys."""

    __slots__ = ("_identity", "order", "rebuild")

    def __init__(self, container: Any) -> None:
        branch = opened(container, NEST)
        assert branch is not None
        self._identity: tuple[type[Any], tuple[str, ...]] = type(container), branch.labels
        self.order = order_of(list(branch.parts))
        # Rebuild from an empty container: compiled programs keep the kind, and with it would keep the values alive.
        hollow = opened(branch.rebuild([None] * len(branch.parts)), NEST)
        self.rebuild: Callable[[Sequence[Any]], Any] = (hollow or branch).rebuild

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kind) and other._identity == self._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    def __repr__(self) -> str:
        return f"{self._identity[0].__name__}{self._identity[1]}"


@final
class _Opened:
    """A pytree node that replaces a container in a tree for JAX."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: _Kind, parts: Sequence[Any]) -> None:
        _register()
        self.kind = kind
        self.parts = tuple(parts)

    def flatten(self) -> tuple[tuple[Any, ...], _Kind]:
        """Return its children and metadata, for `register_pytree_node`."""
        return self.parts, self.kind


@cache
def _register() -> None:
    jax_tree.register_pytree_node(_Opened, _Opened.flatten, _Opened)


def has_containers(value: Any) -> bool:
    """Return True if a structure has a container that JAX does not flatten."""
    return any(map(_is_container, jax_tree.tree_leaves(value, is_leaf=_is_whole)))


def open_containers(value: Any) -> Any:
    """Replace the containers that JAX does not flatten with pytree nodes."""
    if not has_containers(value):
        return value
    return in_order(jax_tree.tree_map(_open, value, is_leaf=_is_whole), order_of(value))


def close_containers(value: Any) -> Any:
    """Undo `open_containers`. The leaves may have changed in between."""
    return in_order(jax_tree.tree_map(_close, value, is_leaf=_is_whole_or_opened), order_of(value))


def call_closed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function after undoing `open_containers` on its arguments."""
    closed_args, closed_kwargs = close_containers((args, kwargs))
    return function(*closed_args, **closed_kwargs)


def opened_call(
    fn: Callable[..., Any], args: Any, kwargs: Any
) -> tuple[Callable[..., Any], Any, Any]:
    """Return a call of the same function whose arguments JAX can flatten."""
    if not has_containers((args, kwargs)):
        return fn, args, kwargs
    return partial(call_closed, fn), *open_containers((args, kwargs))


def _open(leaf: Any) -> Any:
    if not _is_container(leaf):
        return leaf
    branch = opened(leaf, NEST)
    assert branch is not None
    return _Opened(_Kind(leaf), [open_containers(part) for part in branch.parts])


def _close(leaf: Any) -> Any:
    if not isinstance(leaf, _Opened):
        return leaf
    return leaf.kind.rebuild(
        [close_containers(part) for part in in_order(list(leaf.parts), leaf.kind.order)]
    )


def _is_container(leaf: Any) -> bool:
    return isinstance(leaf, (Mapping, list, tuple)) and is_branch(cast("Any", leaf), NEST)


def _is_whole(value: Any) -> bool:
    return isinstance(value, DistributedValues)


def _is_whole_or_opened(value: Any) -> bool:
    return isinstance(value, (DistributedValues, _Opened))


_seen: Final[set[type]] = set()


def opens_more(leaves: Iterable[Any]) -> bool:
    """Register the classes of leaves that have `__tf_flatten__`. Return True if any is new; then flatten again."""
    kinds = set(map(type, leaves))
    if kinds <= _seen:
        return False
    own = [kind for kind in kinds - _seen if opens_itself(kind)]
    for kind in own:
        _register_dataclass(kind)
    _seen.update(kinds)
    return bool(own)


def _register_dataclass(kind: Any) -> None:
    def opened(value: Any) -> tuple[tuple[Any, ...], Any]:
        metadata, parts = value.__tf_flatten__()
        return tuple(parts), metadata

    jax_tree.register_pytree_node(kind, opened, kind.__tf_unflatten__)
