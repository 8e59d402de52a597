"""The values of variables, and of the arrays and pytrees that are attributes of a checkpoint."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast, final

import numpy as np

from evenfeed.checkpoints.tracking import VALUE, ArrayInfo, ArrayLeaf, Tracked, tracked
from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax, jax_tree, jnp
from evenfeed.core.shapes import TensorShape
from evenfeed.replicas.context_mesh import apart_from_context_mesh
from evenfeed.replicas.mirrored_values import Mirrored
from evenfeed.replicas.reduce.reduce_op import VariableAggregation
from evenfeed.replicas.variables.mirrored_variables import DistributedVariable
from evenfeed.replicas.variables.scoped_variables import check_adds_up, check_readable, is_on_read
from evenfeed.replicas.variables.shared_variables import SharedVariable
from evenfeed.replicas.variables.variable import Variable


@tracked.register
def _(value: Variable) -> Tracked:
    return Tracked(leaf=VariableLeaf(value))


@final
class VariableLeaf(ArrayLeaf):
    """The value of a variable. Copies that are synchronized on read are saved as what reading them gives."""

    def __init__(self, variable: Variable) -> None:
        self._variable = variable

    def arrays(self) -> dict[str, Any]:
        variable = self._variable
        if not isinstance(variable, DistributedVariable):
            return {VALUE: variable.at_rest()}
        if isinstance(variable, SharedVariable):
            return {VALUE: variable.at_rest()}
        if not is_on_read(variable):
            return {VALUE: variable.replicas.held_alike(variable.copies)}
        check_readable(variable)
        check_adds_up(variable)
        return {VALUE: np.asarray(variable.at_rest())}

    def targets(self, found: Mapping[str, ArrayInfo], where: str) -> dict[str, Any]:
        if VALUE not in found:
            return {}
        info, variable = found[VALUE], self._variable
        if not variable.shape.is_compatible_with(info.shape):
            raise ValueError(
                described(
                    f"The variable {variable.name!r} has shape {variable.shape}, but the checkpoint has a value of "
                    f"shape {TensorShape(info.shape)} for it, at {where!r}.",
                    fix="create the variable with that shape, or leave it out of the Checkpoint.",
                )
            )
        _check_dtype(f"The variable {variable.name!r}", np.dtype(variable.dtype), info, where)
        shared = isinstance(variable, SharedVariable)
        return {VALUE: variable.value_layout if shared else None}

    def put(self, arrays: Mapping[str, Any]) -> None:
        variable, array = self._variable, arrays[VALUE]
        # Restored below whatever trace or replica runs: the value is the same for all.
        with apart_from_context_mesh(), jax.ensure_compile_time_eval():
            value = jnp.asarray(_narrowed(array, np.dtype(variable.dtype)))
            if isinstance(variable, SharedVariable):
                variable.hold_value(value)
            elif isinstance(variable, DistributedVariable):
                replicas, parts = variable.replicas, _copies_of(variable, value)
                placed = [replicas.to_replica(part, place) for place, part in enumerate(parts)]
                variable.hold(replicas.stacked(placed))
            else:
                home = variable.home
                variable.hold(value if home is None else home.to_replica(value, 0))


def _copies_of(variable: DistributedVariable, value: Any) -> list[Any]:
    """Return the value of each of this worker's copies, so that reading the variable gives `value`."""
    replicas = variable.replicas
    if not is_on_read(variable) or variable.aggregation is not VariableAggregation.SUM:
        return [value] * replicas.local_count
    if value.dtype.kind not in "iu":
        return [(value / replicas.count).astype(value.dtype)] * replicas.local_count
    share = value // replicas.count
    first = value - share * (replicas.count - 1)  # with the remainder, which would be lost
    return [first if replica == 0 else share for replica in replicas.own]


@final
@dataclass(frozen=True)
class Slot:
    """An attribute of a checkpoint that holds arrays, not an object with values of its own.

    Restoring replaces the attribute.

    Attributes:
        holder: The checkpoint.
        name: The name of the attribute.
    """

    holder: Any
    name: str


@tracked.register
def _(value: Slot) -> Tracked:
    return Tracked(leaf=SlotLeaf(value))


def is_tree_of_arrays(value: Any) -> bool:
    """Return True for arrays, numbers, and pytrees of them that are not empty."""
    leaves = jax_tree.tree_leaves(value, is_leaf=_is_mirrored)
    return bool(leaves) and all(map(_is_number, leaves))


def _is_mirrored(value: Any) -> bool:
    """Return True for a result that is the same on all replicas: it is saved as one array."""
    return isinstance(value, Mirrored)


def _is_number(leaf: Any) -> bool:
    if isinstance(leaf, (np.ndarray, np.generic)):
        return np.dtype(cast("Any", leaf).dtype).kind not in "OSUM"
    if isinstance(leaf, Mirrored):
        leaf = leaf.array
    return isinstance(leaf, (bool, int, float, complex)) or is_device_array(leaf)


def is_device_array(value: Any) -> bool:
    """Return True for a `jax.Array` with a value."""
    return isinstance(value, jax.Array) and not isinstance(value, jax.core.Tracer)


@final
class SlotLeaf(ArrayLeaf):
    """The arrays of a pytree. A restored tree has the structure and the shardings of the one it replaces."""

    def __init__(self, slot: Slot) -> None:
        self._slot = slot

    def _named(self) -> dict[str, Any]:
        value = getattr(self._slot.holder, self._slot.name)
        leaves, _ = jax_tree.tree_flatten_with_path(value, is_leaf=_is_mirrored)
        return {f"{VALUE}{jax_tree.keystr(path)}": leaf for path, leaf in leaves}

    def arrays(self) -> dict[str, Any]:
        return {name: _to_save(leaf) for name, leaf in self._named().items()}

    def targets(self, found: Mapping[str, ArrayInfo], where: str) -> dict[str, Any]:
        own = self._named()
        if own.keys() != found.keys():
            missing, extra = sorted(own.keys() - found.keys()), sorted(found.keys() - own.keys())
            raise ValueError(
                described(
                    f"The arrays in {where!r} have another structure than those in the checkpoint, which lacks "
                    f"{_listed(missing)} and has {_listed(extra)}.",
                    fix="make the same tree as in the program that saved it (for optax: the same optimizer), or leave "
                    "it out of the Checkpoint.",
                )
            )
        for name, leaf in own.items():
            path = f"{where}{name.removeprefix(VALUE)}"
            if tuple(np.shape(_to_save(leaf))) != found[name].shape:
                raise ValueError(
                    described(
                        f"The array {path!r} has shape {np.shape(_to_save(leaf))}, but the checkpoint has shape "
                        f"{found[name].shape}.",
                        fix="make an array of that shape, or leave it out of the Checkpoint.",
                    )
                )
            _check_dtype(f"The array {path!r}", np.dtype(_to_save(leaf).dtype), found[name], path)
        return {name: _sharding_of(leaf) for name, leaf in own.items()}

    def put(self, arrays: Mapping[str, Any]) -> None:
        slot = self._slot
        own = self._named()
        leaves = [_as_before(leaf, arrays[name]) for name, leaf in own.items()]
        value = getattr(slot.holder, slot.name)
        tree = jax_tree.tree_structure(value, is_leaf=_is_mirrored)
        # Not through setattr, which would restore it again.
        vars(slot.holder)[slot.name] = jax_tree.tree_unflatten(tree, leaves)


def _is_key(leaf: Any) -> bool:
    """Return True for an array of `jax.random.key`s, which has no bytes of its own."""
    return isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _to_save(leaf: Any) -> Any:
    if isinstance(leaf, Mirrored):
        return leaf.array
    if _is_key(leaf):
        return jax.random.key_data(leaf)
    return leaf if isinstance(leaf, jax.Array) else np.array(leaf)  # the user may change it


def _sharding_of(leaf: Any) -> Any:
    """Return the sharding to restore an array with; None if it is on one device."""
    if isinstance(leaf, Mirrored):
        return _sharding_of(leaf.array)
    if not isinstance(leaf, jax.Array) or _is_key(leaf):
        return None
    sharding: Any = leaf.sharding
    return sharding if sharding.num_devices > 1 else None


def _as_before(old: Any, new: Any) -> Any:
    """Convert a stored array to the kind of the leaf that it replaces."""
    if isinstance(old, Mirrored):
        return Mirrored(array=_as_before(old.array, new), count=old.part_count)
    if _is_key(old):
        return jax.random.wrap_key_data(jnp.asarray(new), impl=jax.random.key_impl(old))
    if isinstance(old, jax.Array):
        if isinstance(new, jax.Array):
            return new
        narrow = _narrowed(new, np.dtype(old.dtype))
        committed: Any = old
        return jax.device_put(narrow, old.sharding) if committed.committed else jnp.asarray(narrow)
    narrow = _narrowed(new, np.asarray(old).dtype)
    if isinstance(old, np.ndarray):
        return narrow
    return narrow[()] if isinstance(old, np.generic) else type(old)(narrow[()])


def _check_dtype(what: str, own: "np.dtype[Any]", info: ArrayInfo, where: str) -> None:
    stored = np.dtype(info.dtype)
    # Without x64, JAX has 32-bit integers where the program that saved may have had 64.
    if stored == own or {stored.name, own.name} in (
        {"int32", "int64"},
        {"uint32", "uint64"},
    ):
        return
    raise InvalidArgumentError(
        f"{what} has dtype {dtypes.name_of(own)}, but the checkpoint has {dtypes.name_of(stored)} for it, at {where!r}.",
        fix=f"create it with dtype {dtypes.name_of(stored)}, or leave it out of the Checkpoint.",
    )


def _narrowed(array: Any, dtype: "np.dtype[Any]") -> Any:
    """Convert integers to the width that the program has now. Raises if a number does not fit."""
    if array.dtype == dtype:
        return array
    narrow = array.astype(dtype)
    if not np.array_equal(narrow, array):
        raise InvalidArgumentError(
            f"The checkpoint has integers of dtype {array.dtype.name} that do not fit into {dtype.name}.",
            fix="set JAX_ENABLE_X64=1, as in the program that saved it.",
        )
    return narrow


def _listed(names: list[str]) -> str:
    shown = ", ".join(name.removeprefix(VALUE) or "a single array" for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown or "nothing else"
