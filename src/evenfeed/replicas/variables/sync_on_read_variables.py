"""Variables whose copies replicas change independently, such as the sums of a metric."""

from typing import Any, final

from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.replicas import contexts
from evenfeed.replicas.collectives.device_programs import held_by_all, unfolded
from evenfeed.replicas.reduce.reduce_op import VariableAggregation, divided
from evenfeed.replicas.replica_context import Replica
from evenfeed.replicas.values import DistributedValues
from evenfeed.replicas.variables.assignments import How, add, subtract
from evenfeed.replicas.variables.mirrored_variables import DistributedVariable, collective_for
from evenfeed.replicas.variables.scoped_variables import (
    check_adds_up,
    check_assignable,
    check_readable,
)


@final
class SyncOnReadVariable(DistributedVariable):
    """A variable whose copies the replicas change independently. Reading it aggregates the copies."""

    def _check_assigned(self, value: Any) -> None:
        pass

    def _aggregate_assigned(self, replica: Replica, value: Any) -> Any:
        del replica
        return value

    def _check_readable(self) -> None:
        level = contexts.frame()
        if level is not None and level.context is not None:
            self._check_strategy()  # the replicas of another strategy cannot aggregate the copies
        check_readable(self)
        check_adds_up(self)

    def _aggregate_copies(self) -> Any:
        first = self.aggregation is VariableAggregation.ONLY_FIRST_REPLICA
        if first and not self.replicas.spans:
            return self.copies[0]
        if self.replicas.spans:
            return self._aggregate_stack(held_by_all(self.replicas, self.held))
        return self._aggregate_stack(
            jnp.stack([self.replicas.to_replica(copy, 0) for copy in self.copies])
        )

    def _aggregate_held(self, stack: Any) -> Any:
        return self._aggregate_stack(held_by_all(self.replicas, stack))

    def _aggregate_stack(self, stack: Any) -> Any:
        if self.aggregation is VariableAggregation.ONLY_FIRST_REPLICA:
            return stack[0]
        total = jnp.sum(unfolded(self.replicas, stack), axis=0, dtype=stack.dtype)
        if self.aggregation is VariableAggregation.SUM:
            return total
        return divided(total, self.replicas.count)

    def _aggregate_mapped(self, copy: Any) -> Any:
        own, index = unfolded(self.replicas, copy), jax.lax.axis_index(self.replicas.axis)
        return collective_for(self.aggregation).mapped(self.replicas, index, [own])[0]

    def _change_all(self, how: How, value: Any) -> Any:
        check_assignable(self, adds=how in (add, subtract))
        if self.aggregation is VariableAggregation.SUM and not isinstance(value, DistributedValues):
            share = divided(self._fitting(how, value), self.replicas.count).astype(self.dtype)
            super()._change_all(how, share)
            return (
                share * self.replicas.count
            )  # what the variable reads now, not the copy of one replica
        return super()._change_all(how, value)
