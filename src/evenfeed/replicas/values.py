"""`PerReplica` and its spec, and `DistributedValues`, the base class of distributed values."""

import sys
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from operator import attrgetter
from typing import Any, Final, TypeAlias, final

from evenfeed.core.lazy_jax import jax, jax_tree
from evenfeed.core.specs import CompositeSpec, Specified, TypeSpec, type_spec_from_value
from evenfeed.core.structure import Composite
from evenfeed.replicas.context_mesh import apart_from_context_mesh
from evenfeed.replicas.mesh import Replicas, replicas_of
from evenfeed.replicas.one_array import (
    Shapes,
    are_alike,
    count_here,
    first_of,
    is_at_hand,
    joined_parts,
    not_one_array,
    pieces_of,
)
from evenfeed.replicas.run.avals import Aval, avals_of_all
from evenfeed.tensors.device_arrays import unbound
from evenfeed.tensors.printing import tensor_repr, tensor_text


class DistributedValues(Specified, Composite):
    """A value with one part for each replica."""

    _loose: tuple[Any, ...] | None

    @property
    @abstractmethod
    def parts(self) -> tuple[Any, ...]:
        """The parts in replica order, committed to their devices. evenfeed's own programs use these."""

    @property
    def values(self) -> tuple[Any, ...]:
        """The parts in replica order, on their devices but not committed: JAX can combine them."""
        if self._loose is None:
            self._loose = tuple(map(unbound, self.parts))
        return self._loose

    @property
    def _type_spec(self) -> "PerReplicaSpec":
        return PerReplicaSpec(*map(type_spec_from_value, self.values))

    def _components(self) -> tuple[Any, ...]:
        return self.values

    def _with_components(self, components: Sequence[Any]) -> "PerReplica":
        return PerReplica(components)

    @property
    def part_count(self) -> int:
        """The number of parts on this worker."""
        return len(self.parts)

    def __str__(self) -> str:
        return self._shown(tensor_text)

    def __repr__(self) -> str:
        return self._shown(tensor_repr)

    def _shown(self, show: Callable[[Any], str]) -> str:
        parts = (f"  {index}: {show(part)}" for index, part in enumerate(self.values))
        return f"{type(self).__name__}:{{\n" + ",\n".join(parts) + "\n}"


@final
class PerReplica(DistributedValues):
    """A value with a different part for each replica, such as the rows of a global batch.

    It is a JAX pytree. Its leaf for `jax.jit` and `jax.tree.map` is one sharded array if the parts form
    one; otherwise its leaves are the parts.

    Args:
        values: The parts in replica order: arrays on their devices, or host values.
        array: Instead of `values`, one array that is sharded over the replicas along its first axis. The
            parts are taken from it on demand.
        lifted: The parts are scalars, which are rows of length one in `array`.
        count: The number of parts in `array`, if it is a tracer and has no devices.
        replicas: The replicas of the parts, if other workers have some of the parts. Without it, the first
            operation of a multi-worker strategy treats the parts as those of this worker.
        shapes: The shapes of the parts of all replicas, if the parts of other workers are known.

    Examples:
        >>> import evenfeed as tf
        >>> print(tf.distribute.PerReplica([tf.constant([1, 2]), tf.constant([3, 4])]))
        PerReplica:{
          0: tf.Tensor([1 2], shape=(2,), dtype=int32),
          1: tf.Tensor([3 4], shape=(2,), dtype=int32)
        }
    """

    __slots__ = (
        "_array",
        "_count",
        "_joint",
        "_kind",
        "_lifted",
        "_loose",
        "_parts",
        "_replicas",
        "_shapes",
    )

    def __init__(  # noqa: PLR0913 - keyword-only arguments
        self,
        values: Sequence[Any] = (),
        *,
        array: "jax.Array | None" = None,
        lifted: bool = False,
        count: int | None = None,
        replicas: Replicas | None = None,
        shapes: Shapes | None = None,
    ) -> None:
        _register()
        register_state(PerReplica)
        self._replicas = replicas
        self._shapes = shapes
        self._array = array
        self._count = count
        self._kind: _Kind | None = None
        self._joint: PerReplica | None = None
        self._loose = None
        self._lifted = lifted
        self._parts = None if array is not None else tuple(values)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The parts in replica order, committed to their devices."""
        if self._parts is None:
            parts = pieces_of(self.array, self.part_count)
            with apart_from_context_mesh():
                self._parts = tuple(map(first_of, parts)) if self._lifted else parts
        return self._parts

    @property
    def array(self) -> "jax.Array":
        """All parts as one `jax.Array`, sharded over the replicas along its first axis.

        Scalar parts become rows of length one.

        Raises:
            InvalidArgumentError: The parts are strings or None, differ in shape or dtype, or share a
                device.
        """
        if self._array is None:
            agree([self])
            if self.is_open:
                raise not_one_array(
                    "the parts of other workers have another type", "use value.values."
                )
            self._array, self._lifted = joined_parts(self.parts, self._replicas, self._shapes)
        return self._array

    @property
    def part_count(self) -> int:
        """The number of parts on this worker."""
        return count_here(self._array, self._count) if self._parts is None else len(self._parts)

    def __getitem__(self, replica: int) -> Any:
        return self.values[replica]

    def __len__(self) -> int:
        return self.part_count

    @property
    def replicas(self) -> Replicas | None:
        """The replicas of the parts, if other workers have some of the parts."""
        return self._replicas

    @property
    def replica_count(self) -> int:
        """The number of parts over all workers."""
        array: Any = self._array
        if array is None:
            return self.part_count if self._replicas is None else self._replicas.count
        if is_at_hand(array):
            return self.part_count
        owner = replicas_of(array)
        return len(array.sharding.device_set) if owner is None else owner.count

    @property
    def shapes(self) -> Shapes | None:
        """The shapes of the parts of all replicas, or None if other workers' parts are unknown."""
        return self._shapes

    @property
    def is_open(self) -> bool:
        """Whether other workers have parts whose shapes are not known here."""
        own = self._replicas is None or not self._replicas.spans
        return not own and self._array is None and self._shapes is None

    @property
    def is_local(self) -> bool:
        """Whether all known parts are on this worker."""
        if self._replicas is not None and self._replicas.spans:
            return False
        return is_at_hand(self._array)

    def among(self, replicas: Replicas) -> "PerReplica":
        """Return a value over all workers, whose parts on this worker are these.

        The result is cached, so that workers exchange its shapes once, not at each use.
        """
        if self._joint is None or self._joint.replicas is not replicas:
            self._joint = PerReplica(self.parts, replicas=replicas)
        return self._joint

    def close(self, avals: Sequence[Aval | None]) -> None:
        """Store the shapes of all replicas' parts. If all are tensors, copy them to their devices."""
        tensors = [aval for aval in avals if aval is not None and not aval.is_text]
        alike = len(tensors) == len(avals) and len({aval.dtype for aval in tensors}) == 1
        if not alike or self._replicas is None:
            return
        self._shapes = tuple(aval.shape for aval in tensors)
        self._parts = tuple(self._replicas.to_replica(p, r) for r, p in enumerate(self.parts))
        self._loose = None

    @property
    def is_lifted(self) -> bool:
        """Whether the parts are scalars, which are rows of length one in `array`."""
        return self._lifted

    @property
    def whole(self) -> "jax.Array | None":
        """The array, or None if the parts do not form one."""
        if self._array is None and not self.is_open and are_alike(self.parts, self._shapes):
            return self.array
        return self._array

    def opened(self) -> "tuple[tuple[Any, ...], _Kind]":
        """Flatten it for `jax.tree`: return its array or its parts, and the metadata."""
        kind = self._kind  # cached, because every compiled step flattens its arguments
        if kind is None:
            if self.whole is None:
                return self.parts, (self.part_count, False, False, self._replicas, self._shapes)
            kind = self._kind = (self.replica_count, True, self._lifted, None, None)
        return (self._array,), kind

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickle the parts: an unpickled jax.Array is on one device, so it would be a single part.
        return PerReplica, (self.parts,)


@cache
def _register() -> None:
    """Register the pytree node when the first value is made, because JAX is loaded by then."""
    jax.tree_util.register_pytree_node(PerReplica, PerReplica.opened, _closed)


_FLAX: Final = "flax.serialization"
_known_to_flax: Final[set[type]] = set()


def register_state(kind: type) -> None:
    """Let flax save values of a pytree class. Does nothing unless the program has imported flax."""
    if kind in _known_to_flax or _FLAX not in sys.modules:
        return
    _known_to_flax.add(kind)
    flax: Any = sys.modules[_FLAX]
    flax.register_serialization_state(kind, _state_of, _with_state, override=True)


def _state_of(value: Any) -> dict[str, Any]:
    return {str(index): leaf for index, leaf in enumerate(jax_tree.tree_leaves(value))}


def _with_state(value: Any, state: dict[str, Any]) -> Any:
    tree = jax_tree.tree_structure(value)
    return jax_tree.tree_unflatten(tree, [state[str(index)] for index in range(tree.num_leaves)])


def agree(values: Sequence[PerReplica]) -> bool:
    """Exchange the shapes of values that are only known in part, between all workers.

    All workers must call it. If everything is known already, no message is sent.

    Returns:
        True if there were such values.
    """
    unknown = [value for value in values if value.is_open]
    if not unknown:
        return False
    replicas = unknown[0].replicas
    assert replicas is not None
    every = avals_of_all(replicas, [value.parts for value in unknown])
    for value, avals in zip(unknown, every, strict=True):
        value.close(avals)
    return True


# The pytree metadata of a PerReplica: the number of parts, whether they are one array, whether they are scalars,
# and, if other workers have some, the replicas and the shapes of all parts.
_Kind: TypeAlias = tuple[int, bool, bool, Replicas | None, Shapes | None]


# The array of a value and its metadata, each None if not known yet: `opened` finds them, but it is a call of Python.
array_and_kind: Final = attrgetter("_array", "_kind")


def batch_kind(replicas: Replicas, *, lifted: bool = False) -> _Kind:
    """Return the metadata of per-replica values that are one array of a batch, for `per_replica_of`."""
    _register()
    register_state(PerReplica)
    return replicas.count, True, lifted, None, None


def per_replica_of(kind: _Kind, array: "jax.Array") -> PerReplica:
    """Return one of the values of a kind, without finding out again what its array says about them."""
    return _closed(kind, (array,))


# Compiled steps make their results with this function, because it is faster than `__init__`.
def _closed(kind: _Kind, children: Sequence[Any]) -> PerReplica:
    count, is_whole, lifted, replicas, shapes = kind
    if not is_whole:
        return PerReplica(children, replicas=replicas, shapes=shapes)
    made = _new(PerReplica)
    made._replicas = made._joint = made._parts = made._shapes = made._loose = None
    made._array, made._count, made._lifted = children[0], count, lifted
    made._kind = kind  # it flattens the way it was unflattened, whatever replaces its array
    if children[0] is None:
        made._parts = (None,) * count
    return made


_new: Any = object.__new__


@final
class PerReplicaSpec(CompositeSpec, Composite):
    """The specs of a per-replica value, one for each replica."""

    __slots__ = ("_value_specs",)

    def __init__(self, *value_specs: TypeSpec) -> None:
        self._value_specs = value_specs

    @property
    def value_specs(self) -> tuple[TypeSpec, ...]:
        """The specs in replica order."""
        return self._value_specs

    @property
    def value_type(self) -> type:
        return PerReplica

    @property
    def _parts(self) -> tuple[TypeSpec, ...]:
        return self._value_specs

    @property
    def _frame(self) -> int:
        return len(self._value_specs)

    def _with_parts(self, parts: Sequence[TypeSpec]) -> "PerReplicaSpec":
        return PerReplicaSpec(*parts)

    def _components(self) -> tuple[TypeSpec, ...]:
        return self._value_specs

    def _with_components(self, components: Sequence[TypeSpec]) -> "PerReplicaSpec":
        return PerReplicaSpec(*components)

    def __repr__(self) -> str:
        return f"PerReplicaSpec({', '.join(map(repr, self.value_specs))})"
