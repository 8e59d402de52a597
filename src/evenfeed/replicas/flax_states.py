"""Lets `flax.serialization` save distributed values, if the program has imported flax."""

import sys
from typing import Any, Final

from evenfeed.core.lazy_jax import jax_tree

_MODULE: Final = "flax.serialization"
_known: Final[set[type]] = set()


def register_state(kind: type) -> None:
    """Register a pytree class with flax. Does nothing unless flax is loaded."""
    if kind in _known or _MODULE not in sys.modules:
        return
    _known.add(kind)
    flax: Any = sys.modules[_MODULE]
    flax.register_serialization_state(kind, _state_of, _with_state, override=True)


def _state_of(value: Any) -> dict[str, Any]:
    return {str(index): leaf for index, leaf in enumerate(jax_tree.tree_leaves(value))}


def _with_state(value: Any, state: dict[str, Any]) -> Any:
    tree = jax_tree.tree_structure(value)
    return jax_tree.tree_unflatten(tree, [state[str(index)] for index in range(tree.num_leaves)])
