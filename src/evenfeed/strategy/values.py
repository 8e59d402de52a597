"""Values that differ from replica to replica."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, final

from evenfeed.core.conversion import is_tensor
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.jax_door import jax
from evenfeed.core.specs import CompositeSpec, Specified, TypeSpec, type_spec_from_value
from evenfeed.strategy.hardware import Device
from evenfeed.strategy.replicas import Replicas
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

    Args:
        values: The parts, by replica: arrays on their devices, or values of the host.
        array: The same as one array that is sharded over the replicas along its first axis, if that
            is what there is; the parts are then taken from it when they are asked for.

    Examples:
        >>> import evenfeed as tf
        >>> print(tf.distribute.PerReplica([tf.constant([1, 2]), tf.constant([3, 4])]))
        PerReplica:{
          0: tf.Tensor([1 2], shape=(2,), dtype=int32),
          1: tf.Tensor([3 4], shape=(2,), dtype=int32)
        }
    """

    __slots__ = ("_array", "_parts")

    def __init__(self, values: Sequence[Any] = (), *, array: "jax.Array | None" = None) -> None:
        self._array = array
        self._parts = None if array is not None else tuple(values)

    @property
    def values(self) -> tuple[Any, ...]:
        """The parts, by replica."""
        if self._parts is None:
            self._parts = _shards(self.array)
        return self._parts

    @property
    def array(self) -> "jax.Array":
        """All parts as one `jax.Array`, sharded over the replicas along its first axis.

        Raises:
            InvalidArgumentError: The parts are text or None, are not of one shape and dtype, or
                share a device.
        """
        if self._array is None:
            self._array = _joined(self.values)
        return self._array

    def __reduce__(self) -> tuple[Any, ...]:
        # By its parts: a pickled jax.Array comes back on one device, where it would be one part.
        return PerReplica, (self.values,)


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


def _shards(array: "jax.Array") -> tuple[Any, ...]:
    shards = sorted(array.addressable_shards, key=lambda shard: shard.index[0].start or 0)
    return tuple(shard.data for shard in shards)


def _joined(parts: Sequence[Any]) -> "jax.Array":
    """Make one sharded array of parts that lie on their devices already, without copying them."""
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
    shape = (len(parts) * parts[0].shape[0], *parts[0].shape[1:])
    sharding = Replicas(own).sharding
    return _jax.make_array_from_single_device_arrays(shape, sharding, list(parts))


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
    if not shapes[0]:
        raise _not_one_array(
            "they are scalars, without an axis to be cut along",
            "give each part an axis with jax.numpy.expand_dims(part, 0).",
        )


def _not_one_array(why: str, fix: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"The replicas' parts are not one sharded array: {why}.", fix=fix)


def _is_text(part: Any) -> bool:
    return is_tensor(part) and part.dtype.kind in "OSU"


def _device(part: Any) -> Device | None:
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
