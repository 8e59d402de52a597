"""Variables with one copy on each of several replicas."""

import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any, final

from evenfeed.core import side_effects
from evenfeed.core.callsite import where_called
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.replicas import contexts
from evenfeed.replicas.collectives.all_reduce import AllReduce
from evenfeed.replicas.collectives.collective import Collective
from evenfeed.replicas.collectives.device_programs import unfolded
from evenfeed.replicas.collectives.from_first import FromFirst, copies_of_chief
from evenfeed.replicas.context_mesh import apart_from_context_mesh
from evenfeed.replicas.device_shards import shards
from evenfeed.replicas.function.staging import Staging, Unstaged
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.mirrored_values import Mirrored
from evenfeed.replicas.reduce.reduce_op import ReduceOp, VariableAggregation
from evenfeed.replicas.reduce.reduced_slices import aggregated_slices
from evenfeed.replicas.replica_context import Replica
from evenfeed.replicas.run.avals import avals_of_all
from evenfeed.replicas.run.host_callback import call_on_host, parts_here
from evenfeed.replicas.values import DistributedValues, PerReplica
from evenfeed.replicas.variables.assignments import How, Partly
from evenfeed.replicas.variables.scoped_variables import (
    ScopedVariable,
    check_adds_up,
    check_summable,
)
from evenfeed.replicas.worker_parts import of_all_workers
from evenfeed.tensors.device_arrays import unbound
from evenfeed.tensors.indexed_slices import IndexedSlices


class DistributedVariable(ScopedVariable):
    """A variable with one copy on each of several replicas.

    The copies are one array with a replica axis, which is sharded over the devices. A replica that runs
    as plain Python only writes its own copy. The array is rebuilt from the copies when it is next needed.
    """

    is_shared = False  # whether the array has a single entry, for all replicas

    @property
    def replicas(self) -> Replicas:
        """The replicas that hold a copy."""
        assert self.home is not None
        return self.home

    @cached_property
    def layout(self) -> Any:
        """The sharding of all copies as one array."""
        return self.replicas.laid_out(self._spec)

    def _hold(self, array: Any) -> None:
        replicas = self.replicas
        own = [array] * replicas.local_count
        self._check_initial_shapes(own)
        self._copies: list[Any] | None = copies_of_chief(replicas, array)
        self._array = None

    def _check_initial_shapes(self, copies: list[Any]) -> None:
        """Check that all workers have one initial shape. Broadcasting another would crash processes."""
        (avals,) = avals_of_all(self.replicas, [copies])
        if len(set(avals)) > 1:
            found = [f"{aval.dtype}{list(aval.shape)}" for aval in avals if aval is not None]
            raise InvalidArgumentError(
                f"The initial value of the variable {self.name!r} differs between workers: "
                f"{', '.join(dict.fromkeys(found))}.",
                fix="use the same shape and dtype on all workers; the variable gets the chief's value.",
            )

    @property
    def held(self) -> Any:
        """All copies, as one array with a leading replica axis."""
        if self._array is None:
            assert self._copies is not None
            self._array = self.replicas.stacked(self._copies)
            if self._spec is not None:  # a whole copy may not fit on a device for long
                self._array, self._copies = jax.device_put(self._array, self.layout), None
        return self._array

    def hold(self, array: Any) -> None:
        restored = self._spec is not None and array.sharding != self.layout
        self._array = jax.device_put(array, self.layout) if restored else array
        self._copies = None

    def _twin(self) -> dict[str, Any]:
        return {**self.__dict__, "_copies": self._copies and list(self._copies)}

    @property
    def copies(self) -> list[Any]:
        """The copies in replica order, each on its device."""
        if self._copies is None:
            self._copies = [shard[0] for shard in shards(self.held)]
        return self._copies

    def rows_of(self, stack: Any) -> Sequence[Any]:
        """Return the entry of each of this worker's replicas, with the leading axis, on its device."""
        return shards(stack)

    def stack_of(self, rows: Sequence[Any]) -> Any:
        """Make the array from the entries of this worker's replicas."""
        return self.replicas.joined(rows)

    @property
    def stack(self) -> Any:
        """All copies at this point of the program, as one array with a leading replica axis."""
        level = contexts.staging()
        if level is None:
            return self.held
        held = level.read(self)
        if level.within is self.replicas:
            return self.replicas.gathered(unfolded(self.replicas, held))
        self._check_not_uneven(level)
        return held

    def _check_not_uneven(self, level: Staging) -> None:
        """Abort a trace with separate parts, because it cannot read the copies of other workers."""
        if level.uneven and self.replicas.spans:
            raise Unstaged(f"it reads the copies of {self.name!r} on other workers", expected=True)

    @property
    def values(self) -> tuple[Any, ...]:
        """The copies in replica order, on their devices but not committed: JAX can combine them."""
        return tuple(map(unbound, self.parts))

    @property
    def parts(self) -> tuple[Any, ...]:
        """The copies in replica order, committed to their devices."""
        watcher = side_effects.here.watcher
        found = None if watcher is None else watcher.read(self)
        if found is not None:
            return (found,) * self.replicas.count
        if contexts.staging() is None:
            return tuple(self.copies)
        stack = self.stack
        return tuple(stack[replica] for replica in range(self.replicas.count))

    @property
    def device(self) -> str:
        """The name of the device of the current replica's copy, or of the first copy."""
        own = self._eager_replica() if contexts.staging() is None else None
        return self._device_of(self.copies[own or 0])

    # --- reading ---------------------------------------------------------------------------

    def _current(self) -> Any:
        level = contexts.staging()
        inside = self._is_inside()
        if not inside:
            self._check_readable()
        if level is None:
            own = self._eager_replica()
            with apart_from_context_mesh():
                return unbound(self._aggregate_copies() if own is None else self.copies[own])
        held = level.read(self)
        if level.within is not self.replicas:
            return (
                self._aggregate_in_callback(held) if level.uneven else self._aggregate_stack(held)
            )
        return held if inside else self._aggregate_mapped(held)

    def _eager_replica(self) -> int | None:
        """Return the replica whose copy eager code uses here, or None across replicas."""
        level = self._own_frame()
        if level is None or level.updating is not None:
            return None if level is None else level.updating
        return None if level.context is None else level.context.replica.place

    def _check_readable(self) -> None:
        pass

    def _aggregate_in_callback(self, stack: Any) -> Any:
        """Aggregate the copies in a host callback, for a trace in which replicas have separate parts."""

        def aggregate(array: Any) -> list[Any]:
            return [self._aggregate_held(array)]

        return call_on_host(aggregate, [jax.eval_shape(self._aggregate_stack, stack)], stack)[0]

    def _aggregate_held(self, stack: Any) -> Any:
        return self.rows_of(stack)[0][0]

    def _aggregate_copies(self) -> Any:
        return self.copies[0]

    def at_rest(self) -> Any:
        return self._aggregate_copies()

    def _aggregate_stack(self, stack: Any) -> Any:
        return stack[0]

    def _aggregate_mapped(self, copy: Any) -> Any:
        """Return the value of all copies, inside a shard_map."""
        return copy

    # --- assigning -------------------------------------------------------------------------

    def _trapped(self, how: How, value: Any) -> Any:
        return super()._trapped(
            how, value.values[0] if isinstance(value, DistributedValues) else value
        )

    def _change(self, how: How, value: Any) -> Any:
        self._check_strategy()
        if contexts.staging() is not None:
            return self._change_here(how, value)
        self._check_at_rest()
        with apart_from_context_mesh():
            return self._change_here(how, value)

    def _change_here(self, how: How, value: Any) -> Any:
        level = self._own_frame()
        if level is not None and level.context is not None:
            self._check_assigned(value)
            fitting = self._fitting(how, value)
            return self._change_own(how, self._aggregate_assigned(level.context.replica, fitting))
        if level is not None and level.updating is not None:
            return self._change_own(how, self._fitting(how, value))
        return self._change_all(how, value)

    def _check_assigned(self, value: Any) -> None:
        """Check that the replicas may assign this value."""
        check_summable(self, value)
        check_adds_up(self)

    def _aggregate_assigned(self, replica: Replica, value: Any) -> Any:
        """Aggregate the values that the replicas assign."""
        if contexts.here.agreed:
            return value
        if self.aggregation is VariableAggregation.NONE:
            self._warn_of_copies()
            return value
        if isinstance(value, IndexedSlices):
            return aggregated_slices(replica.perform, self.replicas.count, self.aggregation, value)
        return replica.perform(collective_for(self.aggregation), [value])[0]

    def _warn_of_copies(self) -> None:
        if self._warned:
            return
        self._warned = True
        origin = where_called()
        warnings.warn_explicit(
            f"The variable {self.name!r} has no aggregation: each replica assigns its own copy, so the "
            "copies may now differ. Create it with aggregation=evenfeed.VariableAggregation.MEAN, "
            "SUM or ONLY_FIRST_REPLICA to keep them equal.",
            UserWarning,
            origin.filename if origin else "<unknown>",
            origin.line if origin else 0,
        )

    _warned = False

    def _change_own(self, how: How, value: Any) -> Any:
        level = contexts.staging()
        if level is not None:
            new = self._changed(how, level.read(self), value)
            level.write(self, new)
            return new
        own = self._eager_replica()
        assert own is not None
        with self._changing:
            copies = self.copies
            new = self._changed(how, unbound(copies[own]), value)
            copies[own] = self.replicas.to_replica(new, own)
            self._array = None
            return unbound(copies[own])

    def _change_all(self, how: How, value: Any) -> Any:
        level = contexts.staging()
        if level is None:
            return self._change_copies(how, value)
        if level.within is self.replicas:  # in a merge_call inside a shard_map
            own = value
            if isinstance(value, DistributedValues):
                own = jnp.stack(value.values)[jax.lax.axis_index(self.replicas.axis)]
            return self._change_own(how, self._fitting(how, own))
        if level.uneven:
            return self._change_in_callback(level, how, value)
        return self._change_stack(level, how, value)

    def _change_stack(self, level: Staging, how: How, value: Any) -> Any:
        stack, parts = level.read(self), self._parts(how, value)
        new = jnp.stack([self._changed(how, stack[r], part) for r, part in enumerate(parts)])
        level.write(self, jax.lax.with_sharding_constraint(new, self.layout))
        if not self.replicas.spans and not isinstance(value, DistributedValues):
            first = jax.lax.with_sharding_constraint(new[0], self.replicas.replicated)
            return Mirrored(array=first, count=self.replicas.count)
        rows = new if new.ndim == 1 else new.reshape(-1, *new.shape[2:])
        rows = jax.lax.with_sharding_constraint(rows, self.replicas.sharding)
        return PerReplica(array=rows, lifted=new.ndim == 1, count=self.replicas.count)

    def _change_in_callback(self, level: Staging, how: How, value: Any) -> Any:
        """Change this worker's copies when the traced program runs, in a host callback."""
        if isinstance(how, Partly):
            raise Unstaged(f"it changes a part of {self.name!r}", expected=True)
        replicas, held = self.replicas, level.read(self)
        parts = self._parts(how, value)

        def changed(stack: Any, *own: Any) -> list[Any]:
            copies = [row[0] for row in self.rows_of(stack)]
            placed = [replicas.to_replica(part, r) for r, part in enumerate(own)]
            new = [self._changed(how, *pair) for pair in zip(copies, placed, strict=True)]
            return [self.stack_of([copy[None] for copy in new]), *new]

        each = jax.ShapeDtypeStruct(parts[0].shape, held.dtype)
        whole = jax.ShapeDtypeStruct((held.shape[0], *each.shape), held.dtype)
        new, *copies = call_on_host(changed, [whole, *[each] * replicas.local_count], held, *parts)
        level.write(self, new)
        if not isinstance(value, DistributedValues) and not replicas.spans:
            return Mirrored(array=copies[0], count=replicas.count)
        return PerReplica(copies, replicas=replicas, shapes=(each.shape,) * replicas.count)

    def _change_copies(self, how: How, value: Any) -> Any:
        parts = self._parts(how, value)
        placed = [self._placed(part, r) for r, part in enumerate(parts)]
        with self._changing:
            pairs = zip(self.copies, placed, strict=True)
            self._copies = [self._changed(how, old, new) for old, new in pairs]
            self._array = None
        if isinstance(value, PerReplica):
            return PerReplica(self._copies, replicas=self.replicas)
        return Mirrored(self._copies)

    def _placed(self, part: Any, replica: int) -> Any:
        if isinstance(part, IndexedSlices):
            return part.mapped(lambda tensor: self.replicas.to_replica(tensor, replica))
        return self.replicas.to_replica(part, replica)

    def _parts(self, how: How, value: Any) -> list[Any]:
        """Return the part for each copy of a value that is assigned across replicas."""
        level = contexts.staging()
        uneven = level is not None and level.uneven
        local = level is None or uneven
        count = self.replicas.local_count if local else self.replicas.count
        if not isinstance(value, DistributedValues):
            return [self._fitting(how, value)] * count
        value = of_all_workers(self.replicas, value)
        parts = parts_here(value, self.replicas) if uneven else value.parts
        if len(parts) != count:
            raise ValueError(
                described(
                    f"A value with {value.part_count} parts cannot be assigned to the {count} copies of "
                    f"{self.name!r}.",
                    fix="assign a value from the strategy that made the variable.",
                )
            )
        return [self._fitting(how, part) for part in parts]


def collective_for(aggregation: VariableAggregation) -> Collective:
    """Return the collective that aggregates the replicas' values."""
    if aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
        return FromFirst()
    return AllReduce(ReduceOp.from_variable_aggregation(aggregation))


@final
class MirroredVariable(DistributedVariable):
    """A variable whose copies are kept equal on every assignment."""
