"""Values that differ from replica to replica."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias, final

import numpy as np

from evenfeed.core.conversion import is_tensor
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.jax_door import jax, jnp
from evenfeed.core.specs import CompositeSpec, Specified, TypeSpec, type_spec_from_value
from evenfeed.replicas.mesh import Replicas, shards
from evenfeed.tensors.placement import is_traced
from evenfeed.tensors.printing import tensor_repr, tensor_text

_jax: Any = jax  # whose arrays do not say the type of their devices


class DistributedValues(Specified):
    """A value with one part for each replica."""

    @property
    @abstractmethod
    def values(self) -> tuple[Any, ...]:
        """The parts, by replica."""

    @property
    def _type_spec(self) -> "PerReplicaSpec":
        return PerReplicaSpec(*map(type_spec_from_value, self.values))

    def __getitem__(self, replica: int) -> Any:
        return self.values[replica]

    def __len__(self) -> int:
        return len(self.values)

    def __str__(self) -> str:
        return self._shown(tensor_text)

    def __repr__(self) -> str:
        return self._shown(tensor_repr)

    def _shown(self, show: Callable[[Any], str]) -> str:
        parts = (f"  {index}: {show(part)}" for index, part in enumerate(self.values))
        return f"{type(self).__name__}:{{\n" + ",\n".join(parts) + "\n}"


@final
class PerReplica(DistributedValues):
    """A value that differs from replica to replica, such as each replica's part of a batch.

    It is a pytree of JAX: `jax.jit` and `jax.tree.map` take it as its one sharded array where it has
    one, else as its parts.

    Args:
        values: The parts, by replica: arrays on their devices, or values of the host.
        array: The same as one array that is sharded over the replicas along its first axis, if that
            is what there is; the parts are then taken from it when they are asked for.
        lifted: The parts are scalars, which stand in `array` as rows of length one.
        count: How many parts `array` has, where it is one that JAX traces and cannot say it.
        replicas: Whose parts they are, where other workers have some of them.

    Examples:
        >>> import evenfeed as tf
        >>> print(tf.distribute.PerReplica([tf.constant([1, 2]), tf.constant([3, 4])]))
        PerReplica:{
          0: tf.Tensor([1 2], shape=(2,), dtype=int32),
          1: tf.Tensor([3 4], shape=(2,), dtype=int32)
        }
    """

    __slots__ = ("_array", "_count", "_kind", "_lifted", "_parts", "_replicas")

    def __init__(
        self,
        values: Sequence[Any] = (),
        *,
        array: "jax.Array | None" = None,
        lifted: bool = False,
        count: int | None = None,
        replicas: Replicas | None = None,
    ) -> None:
        _register()
        self._replicas = replicas
        self._array = array
        self._count = count
        self._kind: _Kind | None = None
        self._lifted = lifted
        self._parts = None if array is not None else tuple(values)

    @property
    def values(self) -> tuple[Any, ...]:
        """The parts, by replica."""
        if self._parts is None:
            parts = _pieces(self.array, len(self))
            self._parts = tuple(part[0] for part in parts) if self._lifted else parts
        return self._parts

    @property
    def array(self) -> "jax.Array":
        """All parts as one `jax.Array`, sharded over the replicas along its first axis.

        Scalars are rows of length one in it.

        Raises:
            InvalidArgumentError: The parts are text or None, are not of one shape and dtype, or
                share a device.
        """
        if self._array is None:
            self._array, self._lifted = _joined(self.values, self._replicas)
        return self._array

    def __len__(self) -> int:
        return _count_here(self._array, self._count) if self._parts is None else len(self._parts)

    @property
    def replica_count(self) -> int:
        """How many parts there are in all, those of other workers too."""
        array: Any = self._array
        if array is None or is_traced(array):
            return len(self)
        return len(array.sharding.device_set)

    @property
    def is_lifted(self) -> bool:
        """Whether `array` has one row for the scalar of each replica."""
        return self._lifted

    @property
    def whole(self) -> "jax.Array | None":
        """The array, or None where the parts are not one."""
        if self._array is None and _are_alike(self.values):
            return self.array
        return self._array

    def opened(self) -> "tuple[tuple[Any, ...], _Kind]":
        """Return what `jax.tree` takes it as, its one array or its parts, and what it keeps besides."""
        kind = self._kind  # kept: every compiled step opens its arguments
        if kind is None:
            if self.whole is None:
                return self.values, (len(self), False, False)
            kind = self._kind = (len(self), True, self._lifted)
        return (self._array,), kind

    def __reduce__(self) -> tuple[Any, ...]:
        # By its parts: a pickled jax.Array comes back on one device, where it would be one part.
        return PerReplica, (self.values,)


@final
class Mirrored(DistributedValues):
    """A value that every replica holds, and that is the same for all.

    Args:
        values: The copies, by replica, each on its device.
        array: The same as one array that is replicated over the replicas' devices.
        count: How many replicas there are, where JAX traces the array and cannot say it.
    """

    __slots__ = ("_array", "_count", "_parts")

    def __init__(
        self,
        values: Sequence[Any] = (),
        *,
        array: "jax.Array | None" = None,
        count: int | None = None,
    ) -> None:
        _register()
        self._array = array
        self._count = count
        self._parts = None if array is not None else tuple(values)

    @property
    def values(self) -> tuple[Any, ...]:
        """The copies, by replica."""
        if self._parts is None:
            self._parts = _copies(self.array, len(self))
        return self._parts

    def __len__(self) -> int:
        return _count_here(self._array, self._count) if self._parts is None else len(self._parts)

    @property
    def array(self) -> "jax.Array":
        """The value as one `jax.Array` that is replicated over the replicas' devices."""
        if self._array is None:
            assert self._parts is not None
            self._array = _replicated(self._parts)
        return self._array

    def __jax_array__(self) -> Any:
        return self.values[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.values[0], dtype, copy=copy)

    def __reduce__(self) -> tuple[Any, ...]:
        return Mirrored, (self.values,)


@cache
def _register() -> None:
    """Make the values pytrees, when the first one is made: JAX is loaded by then."""
    register = _jax.tree_util.register_pytree_node
    register(PerReplica, PerReplica.opened, _closed)
    register(Mirrored, _opened_mirrored, _closed_mirrored)


# What `jax.tree` keeps of a PerReplica: how many parts, whether they are one array, of scalars.
_Kind: TypeAlias = tuple[int, bool, bool]


# A compiled step makes its results by this: it costs less than the checks of `__init__`.
def _closed(kind: _Kind, children: Sequence[Any]) -> PerReplica:
    count, is_whole, lifted = kind
    if not is_whole:
        return PerReplica(children)
    made = _new(PerReplica)
    made._replicas = made._kind = made._parts = None
    made._array, made._count, made._lifted = children[0], count, lifted
    return made


_new: Any = object.__new__


@final
class PerReplicaSpec(CompositeSpec):
    """The specs of a per-replica value, one for each replica."""

    __slots__ = ("_value_specs",)

    def __init__(self, *value_specs: TypeSpec) -> None:
        self._value_specs = value_specs

    @property
    def value_specs(self) -> tuple[TypeSpec, ...]:
        """The specs, by replica."""
        return self._value_specs

    @property
    def value_type(self) -> type:
        """PerReplica."""
        return PerReplica

    @property
    def _parts(self) -> tuple[TypeSpec, ...]:
        return self._value_specs

    @property
    def _frame(self) -> int:
        return len(self._value_specs)

    def _with_parts(self, parts: Sequence[TypeSpec]) -> "PerReplicaSpec":
        return PerReplicaSpec(*parts)

    def __repr__(self) -> str:
        return f"PerReplicaSpec({', '.join(map(repr, self.value_specs))})"


def _opened_mirrored(value: Mirrored) -> tuple[tuple[Any, ...], int]:
    return (value.array,), len(value)


def _closed_mirrored(count: int, children: Sequence[Any]) -> Mirrored:
    return Mirrored(array=children[0], count=count)


def _replicated(parts: Sequence[Any]) -> "jax.Array":
    """Make one replicated array of equal copies that lie on their devices already."""
    replicas = Replicas([device for part in parts if (device := _device(part)) is not None])
    make: Any = _jax.make_array_from_single_device_arrays
    return make(parts[0].shape, replicas.replicated, list(parts))


def _count_here(array: Any, count: int | None) -> int:
    """Return how many parts of an array this worker has, of so many where JAX cannot say it."""
    if count is None or not (is_traced(array) or getattr(array, "is_fully_addressable", True)):
        return len(array.sharding.addressable_devices)
    return count


def _pieces(array: "jax.Array", count: int) -> tuple[Any, ...]:
    # In a traced function an array has no shards yet.
    return tuple(jnp.split(array, count)) if is_traced(array) else shards(array)


def _copies(array: "jax.Array", count: int) -> tuple[Any, ...]:
    if is_traced(array):
        return (array,) * count
    return tuple(shard.data for shard in array.addressable_shards)


def _are_alike(parts: Sequence[Any]) -> bool:
    """Tell whether the parts are arrays of one shape and dtype, each on a device of its own."""
    devices = [_device(part) for part in parts]
    if not parts or None in devices or len(set(devices)) < len(parts):
        return False
    return len({(part.shape, part.dtype) for part in parts}) == 1


def _joined(parts: Sequence[Any], of: Replicas | None) -> "tuple[jax.Array, bool]":
    """Make one sharded array of parts that lie on their devices already; tell whether they are scalars."""
    _check_numbers(parts)
    _check_alike(parts)
    devices = [_device(part) for part in parts]
    own = [device for device in dict.fromkeys(devices) if device is not None]
    if len(own) < len(parts):
        raise _not_one_array(
            f"they lie on {[_place(part) for part in parts]}",
            "put each part on a device of its own with jax.device_put(part, device), or join them "
            "on one device with jax.numpy.concatenate(value.values).",
        )
    replicas = Replicas(own) if of is None else of
    if parts[0].shape:
        return replicas.joined(parts), False
    return replicas.stacked(parts), True


def _check_numbers(parts: Sequence[Any]) -> None:
    if any(isinstance(part, (str, bytes)) or _is_text(part) for part in parts):
        raise _not_one_array("they are text, which stays on the host", "use value.values.")
    if not parts:
        raise _not_one_array("there are none", "pass one part for each replica.")
    others = [type(part).__name__ for part in parts if not is_tensor(part)]
    if others:
        raise _not_one_array(f"they are no arrays but {', '.join(others)}", "use value.values.")


def _check_alike(parts: Sequence[Any]) -> None:
    shapes = [tuple(part.shape) for part in parts]
    if len(set(shapes)) > 1:
        raise _not_one_array(
            f"their shapes are {shapes}",
            "choose a batch size that the number of replicas divides, and drop_remainder=True.",
        )
    names = [str(part.dtype) for part in parts]
    if len(set(names)) > 1:
        raise _not_one_array(f"their dtypes are {names}", "cast the parts to one dtype.")


def _not_one_array(why: str, fix: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"The replicas' parts are not one sharded array: {why}.", fix=fix)


def _is_text(part: Any) -> bool:
    return is_tensor(part) and part.dtype.kind in "OSU"


def _device(part: Any) -> Any:
    """Return the one device of an array; None for an array of the host, of several, or of none yet."""
    if not isinstance(part, _jax.Array) or is_traced(part):
        return None
    devices = list(part.devices())
    return devices[0] if len(devices) == 1 else None


def _place(part: Any) -> str:
    if not isinstance(part, _jax.Array):
        return "the host"
    if is_traced(part):
        return "no device yet (JAX is tracing)"
    return " and ".join(sorted(map(str, part.devices())))
