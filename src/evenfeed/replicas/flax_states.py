"""Lets `flax.serialization` save values of all replicas, where a program has loaded flax."""

import sys
from typing import Any, Final

from evenfeed.core.lazy_jax import jax_tree

_tree: Any = jax_tree  # whose functions have no types
_MODULE: Final = "flax.serialization"
_known: Final[set[type]] = set()


def register_state(kind: type) -> None:
    """Let flax know a class whose values are pytrees; nothing, as long as flax is not loaded."""
    if kind in _known or _MODULE not in sys.modules:
        return
    _known.add(kind)
    flax: Any = sys.modules[_MODULE]
    flax.register_serialization_state(kind, _state_of, _with_state, override=True)


def _state_of(value: Any) -> dict[str, Any]:
    return {str(place): leaf for place, leaf in enumerate(_tree.tree_leaves(value))}


def _with_state(value: Any, state: dict[str, Any]) -> Any:
    tree = _tree.tree_structure(value)
    return _tree.tree_unflatten(tree, [state[str(place)] for place in range(tree.num_leaves)])
