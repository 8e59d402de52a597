"""Finds changes that a function makes to its arguments, where it got copies of them: they would be lost.

A function that is compiled, and each replica, gets copies of the lists, dicts and other trees among its arguments.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, final

from evenfeed.core.callsite import Origin
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax_tree
from evenfeed.replicas.function.nnx_objects import is_nnx_object
from evenfeed.replicas.values import DistributedValues, PerReplica

_tree: Any = jax_tree  # whose functions have no types

# The leaves of an argument, and its structure.
_Opened: TypeAlias = tuple[list[Any], Any]


@final
class GivenArguments:
    """The arguments of a call, as they are before it.

    Args:
        args: Those by position.
        kwargs: Those by name.
        names: The names of those by position, as far as they are known.
    """

    def __init__(
        self, args: Sequence[Any], kwargs: dict[str, Any], names: Sequence[str] = ()
    ) -> None:
        known = [*names, *(f"args[{place}]" for place in range(len(names), len(args)))]
        named = [*zip(known, args, strict=False), *kwargs.items()]
        self._given = [(name, value, _opened(value)) for name, value in named]

    def check_same(self, function: Callable[..., Any]) -> None:
        """Refuse any change, as TensorFlow does for a function that it compiles.

        Raises:
            ValueError: An argument is not what it was.
        """
        for name, value, before in self._given:
            if not _is_same(value, before):
                raise _modified(function, name, "It gets a copy, and the change is lost.")

    def check_nothing_added(self, function: Callable[..., Any], whole: "GivenArguments") -> None:
        """Refuse what a replica's function puts into an argument that all replicas are given.

        What it takes out is no loss, nor what it does to its own part of a batch.

        Args:
            function: The function.
            whole: The arguments of all replicas.

        Raises:
            ValueError: There is something new in an argument.
        """
        for (name, value, before), (_, _, of_all) in zip(self._given, whole._given, strict=True):
            is_part = any(isinstance(leaf, PerReplica) for leaf in of_all[0])
            if not is_part and not _is_same(value, before) and _has_more(value, before):
                raise _modified(function, name, "Each replica gets a copy, and the change is lost.")


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of a function, for a message."""
    return str(getattr(function, "__name__", type(function).__name__))


def line_of(function: Callable[..., Any]) -> Origin | None:
    """Return the line where a function is defined; None where it does not say."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return None if code is None else Origin(code.co_filename, code.co_firstlineno)


def _opened(value: Any) -> _Opened:
    return _tree.tree_flatten(value, is_leaf=_is_whole)


def _is_whole(value: Any) -> bool:
    # Changes of nnx objects reach the caller. Those of nnx.split are changed by what nnx.merge makes of them.
    return isinstance(value, DistributedValues) or is_nnx_object(value)


def _is_same(value: Any, before: _Opened) -> bool:
    leaves, tree = _opened(value)
    if tree != before[1]:
        return False
    if all(map(_is_one, leaves, before[0])):
        return True
    again, _ = _opened(value)  # a class may make its leaves anew each time
    return not all(map(_is_one, leaves, again))


def _has_more(value: Any, before: _Opened) -> bool:
    return any(not any(_is_one(leaf, old) for old in before[0]) for leaf in _opened(value)[0])


def _is_one(leaf: Any, other: Any) -> bool:
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
