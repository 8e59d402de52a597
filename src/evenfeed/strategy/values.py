"""Values that differ from replica to replica."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, final

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.jax_door import jax
from evenfeed.core.specs import CompositeSpec, Specified, TypeSpec, type_spec_from_value
from evenfeed.tensors.printing import tensor_repr, tensor_text


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
        """All parts as one `jax.Array`, sharded over the replicas along its first axis."""
        if self._array is None:
            raise InvalidArgumentError(
                "The replicas' parts are not one sharded array: "
                f"their shapes are {[getattr(part, 'shape', None) for part in self.values]}.",
                fix="choose a batch size that the number of replicas divides, and drop_remainder=True.",
            )
        return self._array


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
