"""Variables with one copy on each replica."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import warnings
from collections.abc import Callable
from typing import Any, final

from evenfeed.core.callsite import where_called
from evenfeed.core.errors import described
from evenfeed.core.jax_door import jax, jnp
from evenfeed.replicas import contexts
from evenfeed.replicas.mesh import AXIS, Replicas, shards
from evenfeed.replicas.reduction import ReduceOp, VariableAggregation, divided
from evenfeed.replicas.replica import Replica
from evenfeed.replicas.values import DistributedValues, Mirrored, PerReplica
from evenfeed.replicas.variables import Variable, add, shown, subtract


class DistributedVariable(Variable):
    """A variable with one copy on each replica.

    The copies are one array with an axis for the replicas, of which each device holds its own. A
    replica that runs as plain Python writes only its copy; the array is then made of the copies when
    it is next asked for.
    """

    replicas: Replicas

    def _hold(self, array: Any) -> None:
        level = contexts.frame()
        assert level is not None
        self.replicas = level.replicas
        count = self.replicas.count
        self._copies: list[Any] | None = [self.replicas.to_replica(array, r) for r in range(count)]
        self._array = None

    @property
    def held(self) -> Any:
        """All copies, as one array with an axis for the replicas."""
        if self._array is None:
            assert self._copies is not None
            self._array = self.replicas.stacked(self._copies)
        return self._array

    def hold(self, array: Any) -> None:
        """Take the copies that a program has computed."""
        self._array = array
        self._copies = None

    @property
    def copies(self) -> list[Any]:
        """The copies, by replica, each on its device."""
        if self._copies is None:
            self._copies = [shard[0] for shard in shards(self.held)]
        return self._copies

    @property
    def values(self) -> tuple[Any, ...]:
        """The copies, by replica."""
        return tuple(self.copies)

    # --- where the code runs that reads or assigns -----------------------------------------

    def _own(self) -> int | None:
        """Return whose copy the code that runs works on; None across replicas."""
        level = contexts.frame()
        if level is None or level.replicas is not self.replicas:
            return None
        if level.updating is not None:
            return level.updating
        return None if level.context is None else level.context.replica.index

    def _meeting(self) -> Replica | None:
        """Return the replica that must meet the others before it assigns."""
        level = contexts.frame()
        if level is None or level.context is None or level.replicas is not self.replicas:
            return None
        return level.context.replica

    def _check_strategy(self) -> None:
        level = contexts.frame()
        if level is not None and level.context is not None and level.replicas is not self.replicas:
            raise ValueError(
                described(
                    f"The variable {self.name!r} was made in the scope of another strategy than the one that runs.",
                    fix="create it in the scope of the strategy whose run uses it.",
                )
            )

    def value(self) -> Any:
        """Return what it holds: in a replica's function its own copy, outside what all stand for."""
        self._check_strategy()
        level = contexts.staging()
        own = self._own()
        if level is None:
            return self._across() if own is None else self.copies[own]
        held = level.read(self)
        return held if level.within is not None else self._of_stack(held)

    def _across(self) -> Any:
        return self.copies[0]

    def _of_stack(self, stack: Any) -> Any:
        return stack[0]

    # --- assigning -------------------------------------------------------------------------

    def _change(self, how: Callable[[Any, Any], Any], value: Any) -> Any:
        self._check_strategy()
        replica = self._meeting()
        if replica is not None:
            return self._change_own(how, self._agreed(replica, how, self._fitting(value)))
        own = self._own()
        if own is not None:
            return self._change_own(how, self._fitting(value))
        return self._change_all(how, value)

    def _agreed(self, replica: Replica, how: Callable[[Any, Any], Any], value: Any) -> Any:
        """Return what the replicas together assign."""
        del how
        match self.aggregation:
            case VariableAggregation.SUM:
                return replica.all_reduce(ReduceOp.SUM, [value])[0]
            case VariableAggregation.MEAN:
                return replica.all_reduce(ReduceOp.MEAN, [value])[0].astype(self.dtype)
            case VariableAggregation.ONLY_FIRST_REPLICA:
                return replica.from_first(value)
            case _:
                self._warn_of_copies()
                return value

    def _warn_of_copies(self) -> None:
        if self.replicas.count > 1 and not self._warned:
            self._warned = True
            origin = where_called()
            warnings.warn_explicit(
                f"The variable {self.name!r} has no aggregation: each replica assigns its own copy, and the "
                "copies may differ from here on. Create it with aggregation=evenfeed.VariableAggregation.MEAN, "
                "SUM or ONLY_FIRST_REPLICA to keep them equal.",
                UserWarning,
                origin.filename if origin else "<unknown>",
                origin.line if origin else 0,
            )

    _warned = False

    def _change_own(self, how: Callable[[Any, Any], Any], value: Any) -> Any:
        level = contexts.staging()
        if level is not None:
            new = how(level.read(self), value)
            level.write(self, jnp.broadcast_to(new, jnp.shape(new)).astype(self.dtype))
            return new
        own = self._own()
        assert own is not None
        self._check_at_rest()
        copies = self.copies
        copies[own] = self.replicas.to_replica(how(copies[own], value), own)
        self._array = None
        return copies[own]

    def _change_all(self, how: Callable[[Any, Any], Any], value: Any) -> Any:
        level = contexts.staging()
        if level is not None and level.within is not None:  # in merge_call, for this replica
            own = jnp.stack(value.values)[_index()] if isinstance(value, PerReplica) else value
            return self._change_own(how, self._fitting(own))
        if level is not None:
            new = how(level.read(self), self._stacked(value))
            level.write(self, new)
            return PerReplica(array=_rows(new), lifted=new.ndim == 1, count=self.replicas.count)
        self._check_at_rest()
        parts = value.values if isinstance(value, DistributedValues) else None
        count = self.replicas.count
        given = [self._fitting(value if parts is None else parts[r]) for r in range(count)]
        placed = [self.replicas.to_replica(part, r) for r, part in enumerate(given)]
        self._copies = [how(old, new) for old, new in zip(self.copies, placed, strict=True)]
        self._array = None
        return Mirrored(self._copies) if parts is None else PerReplica(self._copies)

    def _stacked(self, value: Any) -> Any:
        """Return a value that is assigned in a traced function for all copies."""
        count = self.replicas.count
        if isinstance(value, PerReplica):
            return jnp.reshape(value.array, (count, *self._shape.as_list()))
        fitting = self._fitting(value)
        return jnp.broadcast_to(fitting, (count, *fitting.shape))

    def __repr__(self) -> str:
        lines = [f"  {r}: {self._shown(r, copy)}" for r, copy in enumerate(self.copies)]
        return f"{type(self).__name__}:{{\n" + ",\n".join(lines) + "\n}"

    def _shown(self, replica: int, copy: Any) -> str:
        name = self.name if replica == 0 else f"{self.name[:-2]}/replica_{replica}:0"
        return shown(name, self.shape, copy)


@final
class MirroredVariable(DistributedVariable):
    """A variable whose copies are kept equal when they are assigned."""


@final
class SyncOnReadVariable(DistributedVariable):
    """A variable that each replica changes for itself, and whose copies are brought together when read."""

    def _agreed(self, replica: Replica, how: Callable[[Any, Any], Any], value: Any) -> Any:
        del replica, how
        return value

    def _across(self) -> Any:
        self._check_readable()
        if self.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            return self.copies[0]
        return self._of_stack(
            jnp.stack([self.replicas.to_replica(copy, 0) for copy in self.copies])
        )

    def _of_stack(self, stack: Any) -> Any:
        self._check_readable()
        if self.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            return stack[0]
        total = jnp.sum(stack, axis=0, dtype=stack.dtype)
        if self.aggregation is VariableAggregation.SUM:
            return total
        return divided(total, self.replicas.count).astype(stack.dtype)

    def _change_all(self, how: Callable[[Any, Any], Any], value: Any) -> Any:
        self._check_readable()
        if self.aggregation is VariableAggregation.SUM:
            if how in (add, subtract):
                raise ValueError(
                    described(
                        f"The variable {self.name!r} sums what its replicas add; outside of run there is no "
                        "replica to add to.",
                        fix="add to it inside strategy.run, or assign the whole sum with assign().",
                    )
                )
            value = divided(self._fitting(value), self.replicas.count)
            value = value.astype(self.dtype)
        return super()._change_all(how, value)

    def _check_readable(self) -> None:
        if self.aggregation is VariableAggregation.NONE:
            raise ValueError(
                described(
                    f"The variable {self.name!r} has no aggregation: outside of run its copies are no one value.",
                    fix="create it with aggregation=evenfeed.VariableAggregation.SUM or MEAN, or read its copies "
                    "with strategy.experimental_local_results(variable).",
                )
            )


def _index() -> Any:
    return jax.lax.axis_index(AXIS)


def _rows(stack: Any) -> Any:
    """Return copies with an axis for the replicas as one array cut along its first axis."""
    return stack if stack.ndim == 1 else stack.reshape(-1, *stack.shape[2:])
