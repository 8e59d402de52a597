"""`AllReduce`: the sum or mean of the replicas' arrays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, final

import numpy as np

from evenfeed.core.callsite import Origin, where_called
from evenfeed.core.conversion import Array
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.ragged.wrong_dtypes import WrongDtypeError
from evenfeed.replicas.collectives.collective import Collective
from evenfeed.replicas.collectives.device_programs import mapped_over, run_together
from evenfeed.replicas.collectives.eager_primitive import LinearOperation, bind_eager
from evenfeed.replicas.device_shards import shards
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.reduce.reduce_op import ReduceOp, divided
from evenfeed.replicas.run.callback_meetings import Seat


@final
@dataclass(frozen=True)
class AllReduce(Collective):
    """Sums or averages the arrays of all replicas.

    Attributes:
        op: SUM or MEAN.
    """

    op: ReduceOp

    @classmethod
    def every_form(cls) -> "Sequence[AllReduce]":
        return [AllReduce(op) for op in ReduceOp]

    def check(self, tensor: Any) -> None:
        if tensor.dtype.kind in "bOSU":
            raise WrongDtypeError(
                f"all_reduce needs numbers, but a tensor has dtype {tensor.dtype.name}.",
                fix="cast it first: evenfeed.cast(x, evenfeed.int32).",
            )

    def eager(self, seat: Seat, arrays: Sequence[Any]) -> list[Any]:
        totals = bind_eager(seat, Sum(where_called()), arrays)
        return totals if self.op is ReduceOp.SUM else _means(seat.replicas.count)(totals)

    def mapped(self, replicas: Replicas, index: Any, arrays: Sequence[Any]) -> list[Any]:
        del index
        return self._of(jax.lax.psum(list(arrays), replicas.axis), replicas.count)

    def if_equal(self, arrays: Sequence[Any], count: int) -> list[Any]:
        return self._of([(array * count).astype(array.dtype) for array in arrays], count)

    def _of(self, totals: list[Any], count: int) -> list[Any]:
        return totals if self.op is ReduceOp.SUM else [divided(total, count) for total in totals]


@final
@dataclass(frozen=True, slots=True)
class Sum(LinearOperation):
    """Sums the arrays of all replicas.

    Attributes:
        origin: The line of user code.
    """

    origin: Origin | None

    def shapes(self, own: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        return list(own)

    def description(self, own: Sequence[Any]) -> str:
        """Include the shapes, which must be the same."""
        avals = ", ".join(f"{value.dtype}{list(value.shape)}" for value in own)
        return f"all_reduce of {avals}"

    def on_devices(self, replicas: Replicas, parts: Sequence[Any]) -> Sequence[Any]:
        return sum_parts(replicas, parts)

    def on_host(self, parts: Sequence[Sequence[Array]]) -> list[Array]:
        """Sum in replica order, so that all replicas get the same bits."""
        return [
            np.asarray(sum(column[1:], start=column[0]), column[0].dtype)
            for column in zip(*parts, strict=True)
        ]

    def transpose(self, seat: Seat, changes: list[Any]) -> list[Any]:
        """Sum the cotangents of all replicas, as TensorFlow does."""
        return bind_eager(seat, self, changes)

    def select(self, places: Sequence[int]) -> "Sum":
        del places
        return self


@lru_cache(maxsize=64)
def _means(count: int) -> Any:
    """Return a program that divides sums by the number of replicas."""

    def divide(totals: list[Any]) -> list[Any]:
        return [divided(total, count) for total in totals]

    return jax.jit(divide)


def sum_parts(replicas: Replicas, parts: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """Sum arrays over the replicas, in one program.

    Args:
        replicas: The replicas.
        parts: For each replica of this worker, its arrays, on its device.

    Returns:
        For each replica of this worker, the sums, on its device.
    """
    # A scalar has no axis to shard along, so it costs one more operation in each direction.
    rows = [[part if part.ndim else jnp.expand_dims(part, 0) for part in row] for row in parts]
    scalars = [part.ndim == 0 for part in parts[0]]
    columns = [replicas.joined(column) for column in zip(*rows, strict=True)]
    program = replicas.session.program("sum", partial(_sum_program, replicas))
    totals = run_together(replicas, program, columns)
    return [
        [total[0] if scalar else total for total, scalar in zip(row, scalars, strict=True)]
        for row in zip(*map(shards, totals), strict=True)
    ]


def _sum_program(replicas: Replicas) -> Callable[..., Any]:
    def summed(columns: list[Any]) -> list[Any]:
        return jax.lax.psum(columns, replicas.axis)

    return jax.jit(mapped_over(replicas, summed))
