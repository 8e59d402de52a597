"""`flax.nnx` objects among the arguments of a function: changes to them reach the caller's objects.

An nnx module is a pytree to JAX. A traced function, and each replica, gets a copy of it, and assignments to the copy
would be lost. So the objects are split into arrays, which are passed as arguments and returned as results. Then the
caller's objects are updated with them, as `nnx.jit` does. Nothing here imports flax: a program that has such objects
has loaded it.
"""

# flax and JAX leave parts of their own types unknown.
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jax_tree
from evenfeed.replicas import contexts
from evenfeed.replicas.function.outputs import is_tensor_leaf
from evenfeed.replicas.function.staging import Unstaged
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.mirrored_values import Mirrored
from evenfeed.replicas.values import DistributedValues, PerReplica

# The reason why a function cannot be traced.
CLOSES_OVER: Final = "it changes nnx objects that it closes over"

# The result of `nnx.split`: the graph definition of the objects, and their arrays.
_Split: TypeAlias = tuple[Any, Any]


def is_nnx_object(value: object) -> bool:
    """Return True if `value` is an nnx module, optimizer, variable or the like, which functions may change."""
    nnx: Any = sys.modules.get("flax.nnx")
    return nnx is not None and isinstance(value, _kinds(nnx))


@cache
def _kinds(nnx: Any) -> tuple[type, ...]:
    return (getattr(nnx, "Pytree", nnx.Module), nnx.Variable)


def changes_from_outside(error: Exception) -> bool:
    """Return True if flax reports that a traced function changes an object that is not among its arguments."""
    errors: Any = sys.modules.get("flax.errors")
    return errors is not None and isinstance(error, errors.TraceContextError)


@final
class Hole:
    """Stands for one of the objects, while they are split into arrays."""

    __slots__ = ("place",)

    def __init__(self, place: int) -> None:
        self.place = place


@cache
def _hole(place: int) -> Hole:
    return Hole(place)  # one per index, so that programs are found in the cache


@final
class NnxObjects:
    """The nnx objects of one call.

    Args:
        objects: The caller's objects, each once.

    Attributes:
        split: Their graph definition, and their arrays as a pytree.
    """

    def __init__(self, objects: Sequence[Any]) -> None:
        self._objects = list(objects)
        self._places = {id(each): place for place, each in enumerate(objects)}
        self.split: _Split = _nnx().split(self._objects)

    def hole_for(self, value: Any) -> Any:
        """Return the hole for one of the objects; any other value as it is."""
        place = self._places.get(id(value))
        return value if place is None else _hole(place)

    def check_kept(self, before: Sequence[Any]) -> None:
        """Raise Unstaged if they have other arrays or another structure than when `arrays` returned `before`."""
        after = self.arrays()
        pairs = zip(before, after, strict=False)
        is_same = len(before) == len(after) and all(new is old for old, new in pairs)
        if not is_same or _nnx().graphdef(self._objects) != self.split[0]:
            raise Unstaged(CLOSES_OVER)

    def arrays(self) -> list[Any]:
        """Return their arrays as they are now."""
        return jax_tree.tree_leaves(_nnx().split(self._objects)[1])

    def without(self, value: Any) -> Any:
        """Return a tree with holes instead of the objects."""
        return _replaced(value, self.hole_for)

    def take_back(self, result: Any, after: _Split, replicas: Replicas | None = None) -> Any:
        """Update the caller's objects as the function did, and return its result with them.

        Args:
            result: The first result of a function made by `with_nnx_objects`.
            after: Its second result: the objects.
            replicas: The replicas that ran the function.

        Raises:
            ValueError: The replicas have changed an object differently.
            Unstaged: The objects come from outside the function that is being traced.
        """
        kind, arrays = after
        found, tree = _with_paths(arrays)
        if any(leaf is not None for _, leaf in found) or kind != self.split[0]:
            given, own_tree = _with_paths(self.split[1])
            if tree != own_tree:
                raise _structure_error()
            before = dict(given)
            leaves = [before[p] if x is None else _single_value(p, x, replicas) for p, x in found]
            self._update(kind, jax_tree.tree_unflatten(tree, leaves))
        return _replaced(result, lambda x: self._objects[x.place] if isinstance(x, Hole) else x)

    def _update(self, kind: Any, arrays: Any) -> None:
        nnx = _nnx()
        try:
            nnx.update(self._objects, arrays)
            if kind != self.split[0]:
                self._set_attributes(nnx.merge(kind, arrays))
        except Exception as error:
            if changes_from_outside(error):
                raise Unstaged(CLOSES_OVER) from None
            raise
        if kind != self.split[0] and nnx.graphdef(self._objects) != kind:
            raise _structure_error()

    def _set_attributes(self, changed: Sequence[Any]) -> None:
        """Set attributes without arrays, such as those that `module.eval()` sets."""
        nnx = _nnx()
        own = dict(nnx.iter_graph(self._objects))
        for path, value in nnx.iter_graph(list(changed)):
            if path in own and isinstance(value, _SETTINGS) and own[path] != value:
                setattr(own[path[:-1]], path[-1], value)


def nnx_objects_in(value: Any, others: Callable[[], Sequence[Any]] = tuple) -> NnxObjects | None:
    """Return the nnx objects in a tree; None if there are none.

    Args:
        value: The tree.
        others: Returns further objects. Called only if flax is loaded.
    """
    nnx: Any = sys.modules.get("flax.nnx")
    if nnx is None:
        return None

    def is_leaf(part: Any) -> bool:
        # A State comes from nnx.split: its variables are parts of a tree that is passed on.
        return isinstance(part, (*_kinds(nnx), nnx.State))

    leaves = jax_tree.tree_leaves(value, is_leaf=is_leaf)
    found = {id(x): x for x in (*leaves, *others()) if is_nnx_object(x)}
    return NnxObjects(list(found.values())) if found else None


def _structure_error() -> ValueError:
    return ValueError(
        described(
            "A function added objects to an nnx object among its arguments, or removed some.",
            fix="build modules before passing them; inside, only assign to their variables.",
        )
    )


_SETTINGS: Final = (bool, int, float, complex, str, bytes, type(None))


def _nnx() -> Any:
    return sys.modules["flax.nnx"]


def with_nnx_objects(
    function: Callable[..., Any], fill: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """Return a function of arrays for a function of nnx objects. It also returns the objects' arrays.

    Args:
        function: Called with the arguments, including the objects.
        fill: Returns the function with the objects instead of holes in its closure.
    """

    def run(split: _Split, args: Any, kwargs: Any) -> tuple[Any, _Split]:
        given, tree = jax_tree.tree_flatten(split[1])
        # The merged objects share their variables with the state, which must stay unchanged.
        objects = _nnx().merge(split[0], jax_tree.tree_unflatten(tree, given))

        def filled(value: Any) -> Any:
            return objects[value.place] if isinstance(value, Hole) else value

        own = function if fill is None else fill(function, filled)
        own_args, own_kwargs = _replaced((args, kwargs), filled)
        places = {id(each): place for place, each in enumerate(objects)}
        result = own(*own_args, **own_kwargs)
        with_holes = _replaced(result, lambda x: _hole(places[id(x)]) if id(x) in places else x)
        return with_holes, _changes((given, tree), _nnx().split(objects))

    return run


def _changes(before: tuple[list[Any], Any], after: _Split) -> _Split:
    """Return the objects after a call, without the arrays that have not changed."""
    old, old_tree = before
    new, tree = jax_tree.tree_flatten(after[1])
    if tree == old_tree:
        new = [None if leaf is given else leaf for leaf, given in zip(new, old, strict=True)]
    level = contexts.staging()
    if level is not None and level.within is not None:
        level.carried = sum(map(is_tensor_leaf, new))
    elif level is not None and level.over is not None:
        # In a function across replicas: all devices hold the arrays, and they stay there.
        count = level.over.count
        new = [Mirrored(array=x, count=count) if is_tensor_leaf(x) else x for x in new]
    return after[0], jax_tree.tree_unflatten(tree, new)


def _single_value(path: Sequence[Any], leaf: Any, replicas: Replicas | None) -> Any:
    """Return the single value that an object holds from now on.

    Raises:
        ValueError: The replicas have different values.
    """
    found = single_value(leaf, replicas)
    if found is not None:
        return found
    raise ValueError(
        described(
            f"The replicas have set {_name(path)} of an nnx object to different values, but it holds one value "
            "for all of them.",
            fix="combine them first, with get_replica_context().all_reduce; or pass "
            "nnx.split(module), call nnx.merge inside, and return nnx.state(module) of each replica.",
        )
    )


def single_value(leaf: Any, replicas: Replicas | None) -> Any:
    """Return the value that all replicas have; None if they have different ones."""
    if isinstance(leaf, Mirrored):
        return leaf.array
    if not isinstance(leaf, PerReplica):
        return leaf
    if contexts.staging() is None and replicas is not None and _are_equal(leaf.parts):
        placed = [replicas.to_replica(part, r) for r, part in enumerate(leaf.parts)]
        return replicas.held_alike(placed)
    if leaf.whole is None and all(part is leaf.parts[0] for part in leaf.parts):
        return leaf.parts[0]
    return None


def _are_equal(parts: Sequence[Any]) -> bool:
    if not all(map(is_tensor_leaf, parts)):
        return False
    first, *others = [_bits(part) for part in parts]
    return all(other == first for other in others)


def _bits(part: Any) -> Any:
    plain: Any = jax.random.key_data(part) if _is_key(part) else part
    array = np.asarray(plain)
    return array.shape, array.dtype, array.tobytes()


def _is_key(part: Any) -> bool:
    return jax.numpy.issubdtype(part.dtype, jax.dtypes.prng_key)


def _with_paths(arrays: Any) -> tuple[list[tuple[Sequence[Any], Any]], Any]:
    """Return the leaves of a split with their paths, including those that did not change."""

    def is_leaf(value: Any) -> bool:
        return value is None or isinstance(value, DistributedValues)

    return jax_tree.tree_flatten_with_path(arrays, is_leaf=is_leaf)


def _name(path: Sequence[Any]) -> str:
    """Return the attribute that a path leads to. The first key is the index of the object."""
    keys = [getattr(key, "key", getattr(key, "idx", None)) for key in path[1:]]
    return ".".join(str(key) for key in keys if key is not None) or "the value"


def _replaced(value: Any, swap: Callable[[Any], Any]) -> Any:
    def is_leaf(part: Any) -> bool:
        return swap(part) is not part or isinstance(part, DistributedValues)

    leaves, tree = jax_tree.tree_flatten(value, is_leaf=is_leaf)
    swapped = [swap(leaf) for leaf in leaves]
    same = all(new is old for new, old in zip(swapped, leaves, strict=True))
    return value if same else jax_tree.tree_unflatten(tree, swapped)
