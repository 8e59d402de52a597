"""Dicts, lists and tuples of users' own classes: TensorFlow opens them, and JAX does not."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, cast, final

from evenfeed.core.lazy_jax import jax_tree
from evenfeed.core.structure import NEST, is_branch, opened, opens_itself
from evenfeed.replicas.values import DistributedValues

_tree: Any = jax_tree  # whose functions have no types


@final
class _Kind:
    """What a container is besides its parts: equal for those of one class with the same keys."""

    __slots__ = ("_identity", "rebuild")

    def __init__(self, container: Any) -> None:
        branch = opened(container, NEST)
        assert branch is not None
        self._identity: tuple[type[Any], tuple[str, ...]] = type(container), branch.labels
        # Of one without its values: programs are kept for a kind, and would keep these alive.
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
    """Stands for a container where JAX works on trees."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: _Kind, parts: Sequence[Any]) -> None:
        _register()
        self.kind = kind
        self.parts = tuple(parts)

    def taken_apart(self) -> tuple[tuple[Any, ...], _Kind]:
        """Return its parts, and what it is besides."""
        return self.parts, self.kind


@cache
def _register() -> None:
    _tree.register_pytree_node(_Opened, _Opened.taken_apart, _Opened)


def has_containers(value: Any) -> bool:
    """Return True if there is a container in a structure that JAX does not open."""
    return any(map(_is_container, _tree.tree_leaves(value, is_leaf=_is_whole)))


def open_containers(value: Any) -> Any:
    """Return a structure of JAX's, with what stands for them in the place of containers."""
    return _tree.tree_map(_open, value, is_leaf=_is_whole) if has_containers(value) else value


def close_containers(value: Any) -> Any:
    """Return a structure with the containers that `open_containers` found in it, and other parts."""
    return _tree.tree_map(_close, value, is_leaf=_is_whole_or_opened)


def call_closed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function with containers, where it is given what stands for them."""
    closed_args, closed_kwargs = close_containers((args, kwargs))
    return function(*closed_args, **closed_kwargs)


def _open(leaf: Any) -> Any:
    if not _is_container(leaf):
        return leaf
    branch = opened(leaf, NEST)
    assert branch is not None
    return _Opened(_Kind(leaf), [open_containers(part) for part in branch.parts])


def _close(leaf: Any) -> Any:
    if not isinstance(leaf, _Opened):
        return leaf
    return leaf.kind.rebuild([close_containers(part) for part in leaf.parts])


def _is_container(leaf: Any) -> bool:
    return isinstance(leaf, (Mapping, list, tuple)) and is_branch(cast("Any", leaf), NEST)


def _is_whole(value: Any) -> bool:
    return isinstance(value, DistributedValues)


def _is_whole_or_opened(value: Any) -> bool:
    return isinstance(value, (DistributedValues, _Opened))


_dataclass_tree: Any = jax_tree  # whose functions have no types

_seen: Final[set[type]] = set()


def opens_more(leaves: Iterable[Any]) -> bool:
    """Return True if JAX opens some of these leaves from now on: they must be looked for again."""
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

    _dataclass_tree.register_pytree_node(kind, opened, kind.__tf_unflatten__)
