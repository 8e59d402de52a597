"""Variables of which the replicas of a `MeshStrategy` share one value: one array, split over any axes of the mesh."""

from functools import cached_property, partial
from typing import Any, final

import numpy as np

from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.replicas import contexts
from evenfeed.replicas.block_copies import copied
from evenfeed.replicas.collectives.device_programs import held_by_all
from evenfeed.replicas.collectives.from_first import copies_of_chief
from evenfeed.replicas.context_mesh import apart_from_context_mesh, run_apart
from evenfeed.replicas.device_shards import assembled, locally_held
from evenfeed.replicas.mirrored_values import Mirrored
from evenfeed.replicas.reduce.reduce_op import VariableAggregation
from evenfeed.replicas.replica_context import Replica
from evenfeed.replicas.values import PerReplica
from evenfeed.replicas.variables.assignments import How, Partly
from evenfeed.replicas.variables.mirrored_variables import DistributedVariable
from evenfeed.tensors.device_arrays import is_traced
from evenfeed.tensors.indexed_slices import IndexedSlices


@final
class SharedVariable(DistributedVariable):
    """A variable with one value for all replicas, laid out over the mesh by a `PartitionSpec`.

    Its stack of copies has a single entry. Replicas that run as plain Python have copies of their own until the next compiled step.
    """

    is_shared = True

    @cached_property
    def layout(self) -> Any:
        return jax.sharding.NamedSharding(
            self.replicas.mesh, jax.sharding.PartitionSpec(None, *(self._spec or ()))
        )

    @cached_property
    def value_layout(self) -> Any:
        """The sharding of its value."""
        return jax.sharding.NamedSharding(
            self.replicas.mesh, jax.sharding.PartitionSpec(*(self._spec or ()))
        )

    def _hold(self, array: Any) -> None:
        first = array
        if self.replicas.spans:
            own = [array] * self.replicas.local_count
            self._check_initial_shapes(own)
            first = copies_of_chief(self.replicas, array)[0]
        self._array, self._copies = self._laid_out(first), None

    def _laid_out(self, value: Any) -> Any:
        """Return the stack with a value that each process has, or that is on the mesh already."""
        if self.replicas.spans and getattr(value, "is_fully_addressable", True):
            rows: Any = np.asarray(value)[None]
            return copied(rows.shape, self.layout, rows.__getitem__)
        return jax.device_put(jnp.expand_dims(value, 0), self.layout)

    @property
    def held(self) -> Any:
        """Its value as an array with a leading axis of length 1."""
        if self._array is None:
            assert self._copies is not None
            self._array, self._copies = self._laid_out(self._copies[0]), None
        return self._array

    def hold(self, array: Any) -> None:
        self._array, self._copies = array, None

    def hold_value(self, value: Any) -> None:
        """Replace its value with an array that each process has, or that is on the mesh already."""
        self.hold(self._laid_out(value))

    def rows_of(self, stack: Any) -> list[Any]:
        return [self.replicas.to_replica(stack, r) for r in range(self.replicas.local_count)]

    def stack_of(self, rows: Any) -> Any:
        return jax.device_put(rows[0], self.layout)

    @property
    def copies(self) -> list[Any]:
        if self._copies is None:
            whole = self._to_host(self._whole())
            self._copies = [
                self.replicas.to_replica(whole, r) for r in range(self.replicas.local_count)
            ]
        return self._copies

    @property
    def stack(self) -> Any:
        level = contexts.staging()
        if level is not None and level.within is self.replicas:
            return super().stack
        held = self.held if level is None else level.read(self)
        return jnp.broadcast_to(held, (self.replicas.count, *held.shape[1:]))

    @property
    def device(self) -> str:
        return self._device_of(self.held)

    def __repr__(self) -> str:
        level = contexts.staging()
        value = self._whole() if level is None else self.value()
        if is_traced(value) or locally_held(value):
            return super().__repr__()
        # Other processes have parts of it: printing must not wait for them.
        return f"<SharedVariable {self.name!r} shape={self.shape} dtype={self.dtype} sharding={self.value_layout.spec}>"

    # --- reading ---------------------------------------------------------------------------

    def _whole(self) -> Any:
        """Return its value outside of all traces, as one array on the mesh."""
        held = self.held
        known = self._known_whole
        if known is None or known[0] is not held:
            key = ("value of a variable", self.value_layout)
            program = self.replicas.session.program(key, partial(_first_entry, self.value_layout))
            known = self._known_whole = held, run_apart(program)(held)
        return known[1]

    _known_whole: "tuple[Any, Any] | None" = None

    def _aggregate_copies(self) -> Any:
        return self._whole()

    def _to_host(self, value: Any) -> Any:
        if is_traced(value):
            return value
        with apart_from_context_mesh():
            return assembled(value) if locally_held(value) else held_by_all(self.replicas, value)

    # --- assigning -------------------------------------------------------------------------

    def _aggregate_assigned(self, replica: Replica, value: Any) -> Any:
        if self.aggregation is not VariableAggregation.NONE:
            return super()._aggregate_assigned(replica, value)
        if contexts.staging() is None:
            raise ValueError(not_one_value(self.name))
        return value  # a compiled step checks that the replicas assign the same

    def _change_copies(self, how: How, value: Any) -> Any:
        if isinstance(value, PerReplica):
            raise ValueError(not_one_value(self.name))
        given = value.value() if isinstance(value, Mirrored) else value
        new = self._fitting(how, given)
        with self._changing:
            if isinstance(how, Partly):
                self.hold_value(self._changed(how, self._whole(), self._everywhere(new)))
            else:
                stack = self._changed(how, self.held, self._laid_out(new))
                self.hold(jax.device_put(stack, self.layout))
        return self

    def _everywhere(self, part: Any) -> Any:
        if isinstance(part, IndexedSlices):
            return part.mapped(self.replicas.everywhere)
        return self.replicas.everywhere(part)

    def _change_stack(self, level: Any, how: How, value: Any) -> Any:
        if isinstance(value, PerReplica):
            raise ValueError(not_one_value(self.name))
        given = value.value() if isinstance(value, Mirrored) else value
        new = self._changed(how, level.read(self)[0], self._fitting(how, given))
        level.write(self, jax.lax.with_sharding_constraint(new[None], self.layout))
        whole = jax.lax.with_sharding_constraint(new, self.replicas.replicated)
        return Mirrored(array=whole, count=self.replicas.count)


def _first_entry(layout: Any) -> Any:
    def first(stack: Any) -> Any:
        return stack[0]

    return jax.jit(first, out_shardings=layout)


def not_one_value(name: str) -> str:
    """Return the error text for replicas that assign different values to one variable."""
    return described(
        f"The replicas share the variable {name!r}, but each assigns a value of its own.",
        fix="create it with aggregation=evenfeed.VariableAggregation.MEAN or SUM; or assign the same value on all, "
        "such as a result of all_reduce, in an evenfeed.function; or create it with "
        "synchronization=evenfeed.VariableSynchronization.ON_READ, so that each replica has a copy.",
    )
