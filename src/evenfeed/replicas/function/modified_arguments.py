"""Detects changes that a function makes to copies of its arguments, which would be lost.

A compiled function, and each replica, gets copies of the lists, dicts and other pytrees among its arguments.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

from evenfeed.core.callsite import Origin
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax_tree
from evenfeed.replicas.function.nnx_objects import is_nnx_object
from evenfeed.replicas.values import DistributedValues, PerReplica

# The leaves of an argument, and its structure.
_Flattened: TypeAlias = tuple[list[Any], Any]


@final
class GivenArguments:
    """The arguments of a call, as they are before it.

    Args:
        args: The positional arguments.
        kwargs: The keyword arguments.
        names: The names of the positional arguments, as far as they are known.
    """

    def __init__(
        self, args: Sequence[Any], kwargs: dict[str, Any], names: Sequence[str] = ()
    ) -> None:
        known = [*names, *(f"args[{place}]" for place in range(len(names), len(args)))]
        named = [*zip(known, args, strict=False), *kwargs.items()]
        self._given = [(name, value, _flattened(value)) for name, value in named]

    def check_same(self, function: Callable[..., Any]) -> None:
        """Raise for any change, as TensorFlow does in a compiled function.

        Raises:
            ValueError: An argument has changed.
        """
        for name, value, before in self._given:
            if not _is_same(value, before):
                raise _modified(function, name, "It gets a copy, so the change would be lost.")

    def check_nothing_added(self, function: Callable[..., Any], whole: "GivenArguments") -> None:
        """Raise if a replica's function adds something to an argument that all replicas share.

        Removing something loses nothing, and a replica may change its own part of a batch.

        Args:
            function: The function.
            whole: The arguments of all replicas.

        Raises:
            ValueError: An argument contains something new.
        """
        for (name, value, before), (_, _, of_all) in zip(self._given, whole._given, strict=True):
            is_part = any(isinstance(leaf, PerReplica) for leaf in of_all[0])
            if not is_part and not _is_same(value, before) and _has_new_leaves(value, before):
                raise _modified(
                    function, name, "Each replica gets a copy, so the change would be lost."
                )


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function, for messages."""
    return str(getattr(function, "__name__", type(function).__name__))


def line_of(function: Callable[..., Any]) -> Origin | None:
    """Return the line where a function is defined; None if unknown."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None else Origin(code.co_filename, code.co_firstlineno)


def _flattened(value: Any) -> _Flattened:
    return jax_tree.tree_flatten(value, is_leaf=_is_whole)


def _is_whole(value: Any) -> bool:
    # Changes of nnx objects reach the caller. The results of nnx.split share their variables with nnx.merge.
    return isinstance(value, DistributedValues) or is_nnx_object(value)


def _is_same(value: Any, before: _Flattened) -> bool:
    leaves, tree = _flattened(value)
    if tree != before[1]:
        return False
    if all(map(_is_same_leaf, leaves, before[0])):
        return True
    again, _ = _flattened(value)  # a class may create new leaves each time it is flattened
    return not all(map(_is_same_leaf, leaves, again))


def _has_new_leaves(value: Any, before: _Flattened) -> bool:
    return any(
        not any(_is_same_leaf(leaf, old) for old in before[0]) for leaf in _flattened(value)[0]
    )


def _is_same_leaf(leaf: Any, other: Any) -> bool:
    plain = (bool, int, float, complex, str, bytes)
    return leaf is other or (
        isinstance(leaf, plain) and type(leaf) is type(other) and leaf == other
    )


def _modified(function: Callable[..., Any], name: str, why: str) -> ValueError:
    return ValueError(
        described(
            f"{name_of(function)} should not modify its argument {name}. {why}",
            fix="change a copy of it, such as dict(x) or list(x), and return that.",
            origin=line_of(function),
        )
    )
