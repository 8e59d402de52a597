"""One replica of a function that runs as plain Python."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, final

from evenfeed.core.jax_door import jax, jnp
from evenfeed.replicas.collectives import gather_parts, reduce_parts
from evenfeed.replicas.crew import Crew, Resolve
from evenfeed.replicas.in_programs import reduced_in_program
from evenfeed.replicas.reduction import ReduceOp
from evenfeed.replicas.regrouping import regrouped, share_of
from evenfeed.replicas.replica import Replica
from evenfeed.tensors.placement import is_traced


@final
class EagerReplica(Replica):
    """A replica whose function is plain Python: it meets the others in its thread.

    Inside `jax.grad` the values are there, so it meets as well. Inside `jit`, `scan` and `vmap` they
    are not: there the meeting becomes a call from the compiled program.

    Args:
        crew: All replicas of this run.
        number: Which one this is.
        across: Makes a block run across replicas.
    """

    def __init__(
        self, crew: Crew, number: int, across: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self.replicas = crew.replicas
        self._crew = crew
        self._number = number
        self._across = across

    @property
    def index(self) -> int:
        """Return its number."""
        return self._number

    def all_reduce(self, op: ReduceOp, arrays: Sequence[Any]) -> list[Any]:
        """Meet the others; gradients meet in the same way."""
        own = [self._here(jnp.asarray(array)) for array in arrays]

        def reduced(values: list[Any]) -> list[Any]:
            return self._reduced(op, values)

        through = jax.custom_vjp(reduced)
        through.defvjp(
            lambda values: (reduced(values), None), lambda _, changes: (self._changes(op, changes),)
        )
        return through(own)

    def _changes(self, op: ReduceOp, changes: list[Any]) -> list[Any]:
        """Reduce gradients; those of integers do not exist."""
        floats = [i for i, change in enumerate(changes) if change.dtype != jax.dtypes.float0]
        reduced = iter(self._reduced(op, [changes[i] for i in floats])) if floats else iter(())
        return [next(reduced) if i in floats else change for i, change in enumerate(changes)]

    def _reduced(self, op: ReduceOp, values: list[Any]) -> list[Any]:
        if any(is_traced(value) for value in values):
            return reduced_in_program(self.replicas, self._number, op, values)
        own = [self._here(value) for value in values]
        shapes = [(value.shape, str(value.dtype)) for value in own]
        return self._meet(
            f"all_reduce of {op.name} of {shapes}",
            own,
            lambda parts: reduce_parts(self.replicas, op, parts),
        )

    def all_gather(self, arrays: Sequence[Any], axis: int) -> list[Any]:
        """Meet the others, whose arrays may have other lengths along the axis."""

        def joined(parts: list[Any]) -> Sequence[Any]:
            columns = [gather_parts(self.replicas, part, axis) for part in zip(*parts, strict=True)]
            return list(zip(*columns, strict=True))

        own = [self._here(jnp.asarray(array)) for array in arrays]
        return list(self._meet(f"all_gather of {len(own)} along axis {axis}", own, joined))

    def from_first(self, array: Any) -> Any:
        """Meet the others, and take what replica 0 brings."""

        def copies(parts: list[Any]) -> Sequence[Any]:
            return [self.replicas.to_replica(parts[0], r) for r in range(self.replicas.count)]

        return self._meet("an assignment of the first replica's value", jnp.asarray(array), copies)

    def merge(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Meet the others, and call the function once across replicas."""
        count = self.replicas.count

        def merged(brought: list[Any]) -> Sequence[Any]:
            whole_args, whole_kwargs = regrouped(brought)
            with self._across():
                result = function(*whole_args, **whole_kwargs)
            return [self._placed(share_of(result, replica), replica) for replica in range(count)]

        return self._meet("merge_call", (tuple(args), kwargs), merged)

    def _placed(self, share: Any, replica: int) -> Any:
        """Bring what was computed across replicas to the device of one."""

        def placed(leaf: Any) -> Any:
            return self.replicas.to_replica(leaf, replica) if isinstance(leaf, jax.Array) else leaf

        return jax.tree.map(placed, share)

    def _meet(self, what: str, brought: Any, resolve: Resolve) -> Any:
        return self._crew.meet(self._number, what, brought, resolve)

    def _here(self, value: Any) -> Any:
        return value if is_traced(value) else self.replicas.to_replica(value, self._number)
