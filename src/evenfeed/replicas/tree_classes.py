"""Opens dataclasses that say by TensorFlow's protocol what their parts are, in arguments and results.

Compiled functions open structures as JAX does, so such a class becomes one of JAX's when it is first seen.
"""

from collections.abc import Iterable
from typing import Any, Final

from evenfeed.core.jax_door import jax_tree
from evenfeed.core.structure import opens_itself

_tree: Any = jax_tree  # whose functions have no types

_seen: Final[set[type]] = set()


def opens_more(leaves: Iterable[Any]) -> bool:
    """Return True if JAX opens some of these leaves from now on: they must be looked for again."""
    kinds = set(map(type, leaves))
    if kinds <= _seen:
        return False
    own = [kind for kind in kinds - _seen if opens_itself(kind)]
    for kind in own:
        _register(kind)
    _seen.update(kinds)
    return bool(own)


def _register(kind: Any) -> None:
    def opened(value: Any) -> tuple[tuple[Any, ...], Any]:
        metadata, parts = value.__tf_flatten__()
        return tuple(parts), metadata

    _tree.register_pytree_node(kind, opened, kind.__tf_unflatten__)
