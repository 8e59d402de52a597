"""Runs the kernels that a traced function leaves, on whole Blocks, before the function itself.

A kernel's results are further parts of the element: for the rest of the function they are like what the
user's dataset holds.
"""

from dataclasses import dataclass
from typing import Any, final

from evenfeed.core.block import Block, Column
from evenfeed.core.handles import Handle, KernelCall, Stage
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.runtime.vectorise import Call


@final
@dataclass(frozen=True)
class Kernels:
    """The kernels of a function, in the order of the calls.

    Attributes:
        calls: The kernels, and the part that each gets.
        inputs: The specs of the user's parts.
        results: The specs of what each kernel returns.
    """

    calls: tuple[KernelCall, ...]
    inputs: tuple[TypeSpec, ...]
    results: tuple[tuple[TensorSpec, ...], ...] = ()

    @property
    def specs(self) -> list[TypeSpec]:
        """The specs of all parts: the user's, then those that kernels make."""
        return [*self.inputs, *(spec for specs in self.results for spec in specs)]

    def with_call(self, call: KernelCall) -> "Kernels":
        """Return these kernels and one more."""
        spec = self.specs[call.part]
        shape = spec.shape if isinstance(spec, TensorSpec) else TensorShape(None)
        made = tuple(call.kernel.specs(shape))
        return Kernels((*self.calls, call), self.inputs, (*self.results, made))

    def widened(self, block: Block) -> Block:
        """Return the Block with the results of the kernels as further columns."""
        columns: list[Column] = list(block.columns)
        for call in self.calls:
            columns += call.kernel.run(columns[call.part])
        return Block(tuple(columns), block.length)

    def staged(self, call: Call) -> Call:
        """Return the function as one of all parts: it gets its own, and kernels get their results."""

        def called(parts: list[Any]) -> tuple[Any, list[Any]]:
            stage = Stage(self.calls)
            found = iter([_in_stage(part, stage) for part in parts])
            own = [next(found) for _ in self.inputs]
            stage.prepare([[next(found) for _ in specs] for specs in self.results])
            return call(own)

        return called


def _in_stage(part: Any, stage: Stage) -> Any:
    return Handle(part.index, stage) if isinstance(part, Handle) else part
