"""Arguments of kernels that JAX computes: a program of their own runs before the kernel, on whole columns.

`random_flip_left_right(cast(image, float32) / 255)` is a program, then a kernel. What comes after the kernel, up to the
next one, is another program.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, final

from evenfeed.core.block import Block, Column, length_of
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.side_effects import Effects
from evenfeed.core.specs import TensorSpec
from evenfeed.core.traced.kernel_stages import Kernel, KernelCall
from evenfeed.runtime.functions.calls import Calling
from evenfeed.runtime.functions.compared_traces import without_side_effects
from evenfeed.runtime.functions.compiled import Compiled, RowShapes
from evenfeed.runtime.functions.kernels import Computing, Kernels, shared_row
from evenfeed.runtime.functions.staging.row_shapes import row_shapes, rows_of
from evenfeed.runtime.functions.vectorise import Row, Traced, is_tracer, traced


def computing_first(kernels: Kernels, calling: Calling, effects: Effects) -> Computing:
    """Return a function that finds the kernel for a value which JAX computes."""

    def found(number: int, value: object) -> KernelCall | None:
        if not is_tracer(value):
            return None
        before = kernels.before(number)
        kernel = ComputedFirst(number, calling, effects, before)
        return KernelCall(kernel, tuple(range(len(before.specs))))

    return found


@final
@dataclass(frozen=True, eq=False)
class ComputedFirst(Kernel):
    """Computes an argument of the next kernel from all parts that exist before it.

    Attributes:
        number: The number of kernel calls before it.
        calling: The function.
        effects: The side effects seen so far.
        kernels: The kernels before it.
    """

    stays_on_host: ClassVar[bool] = True
    takes_ragged: ClassVar[bool] = True

    number: int
    calling: Calling
    effects: Effects = field(repr=False)
    kernels: Kernels = field(repr=False)

    def __eq__(self, other: object) -> bool:
        """Compare the place in one and the same function."""
        if not isinstance(other, ComputedFirst):
            return NotImplemented
        return self.number == other.number and self.calling is other.calling

    def __hash__(self) -> int:
        return hash((ComputedFirst, self.number))

    def specs(self, *given: Any) -> list[Any]:
        del given
        (part,) = self._found.parts
        if not isinstance(part, Row):
            raise TypeError("The argument of the kernel is a constant.")
        return [TensorSpec(part.shape, part.dtype)]

    def run(self, *columns: Column) -> list[Column]:
        block, held = Block(columns, length_of(columns[0])), self.kernels.held()
        rows = row_shapes(block, self.kernels)
        program = None if rows is None else self._compiled.program((*rows, *map(shared_row, held)))
        if rows is None or program is None or not program.may_run():
            raise InvalidArgumentError("These rows have other shapes.", fix="run them one by one.")
        pairs = zip(block.columns, rows, strict=True)
        numeric = [
            found for c, row in pairs if row is not None and (found := rows_of(c)) is not None
        ]
        outputs, failed = program.run(numeric, block.length, None, held)
        if failed is not None and failed.any():
            raise InvalidArgumentError("A row failed.", fix="run rows one by one.")
        return [outputs[0]]

    @cached_property
    def _rows(self) -> RowShapes:
        """The shapes of the parts; None for those that JAX does not get."""
        pairs = zip(self.kernels.specs, self.kernels.handles, strict=True)
        rows = [_row(spec) if not handle else None for spec, handle in pairs]
        return (*rows, *map(shared_row, self.kernels.held()))

    @cached_property
    def _found(self) -> Traced:
        try:
            return traced(self._call, self._rows)
        except Exception as error:
            raise TypeError(str(error)) from error  # so that the function runs element by element

    @cached_property
    def _compiled(self) -> Compiled:
        compiled = Compiled(self._call)
        compiled.add(self._rows, self._found)
        return compiled

    def _call(self, parts: list[Any]) -> tuple[Any, list[Any]]:
        computing = computing_first(self.kernels, self.calling, self.effects)
        call = self.kernels.staged(self.calling, self.effects, computing, stops=True)
        return without_side_effects(call, self.calling.function)(parts)


def _row(spec: Any) -> Row | None:
    if not isinstance(spec, TensorSpec):
        return None
    known = tuple(length for length in spec.shape if length is not None)
    if len(known) < len(spec.shape):
        raise TypeError("JAX computes with a part of unknown shape.")
    return Row(known, spec.dtype)
