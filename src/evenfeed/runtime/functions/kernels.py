"""Runs the kernels that a traced function leaves, on whole Blocks, before the function itself.

A kernel's results are further parts of the element: for the rest of the function they are like what the
user's dataset holds.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Block, Column
from evenfeed.core.conversion import Array
from evenfeed.core.handles import Handle, KernelCall, RowKernel, Stage, on_stage
from evenfeed.core.shapes import TensorShape
from evenfeed.core.side_effects import Effects, ProbeAbandoned, watched_by
from evenfeed.core.specs import NoneTensorSpec, TensorSpec, TypeSpec
from evenfeed.plan.windows import ElementValue
from evenfeed.runtime.functions.probing import NewVariables, Probe
from evenfeed.runtime.functions.vectorise import Call, Row


@final
@dataclass(frozen=True)
class Kernels:
    """The kernels of a function, in the order of the calls.

    Attributes:
        calls: The kernels, and the parts that each gets.
        inputs: The specs of the user's parts.
        results: The specs of what each kernel returns.
        computed: The results of kernels that could stay on the host, but with which JAX computes.
        variables: Those that the function reads: their values are arguments of its program.
    """

    calls: tuple[KernelCall, ...]
    inputs: tuple[TypeSpec, ...]
    results: tuple[tuple[TensorSpec, ...], ...] = ()
    computed: frozenset[int] = frozenset()
    variables: tuple[Any, ...] = ()

    @cached_property
    def specs(self) -> list[TypeSpec]:
        """The specs of all parts: the user's, then those that kernels make."""
        return [*self.inputs, *(spec for specs in self.results for spec in specs)]

    @cached_property
    def handles(self) -> list[bool]:
        """Which of all parts are handles while the function is traced."""
        made = [
            (call.kernel.stays_on_host, spec)
            for call, specs in zip(self.calls, self.results, strict=True)
            for spec in specs
        ]
        used = {part for call in self.calls if _by_row(call) for part in call.parts}
        own = [_is_alien(s) or (i in used and _varies(s)) for i, s in enumerate(self.inputs)]
        first = len(own)
        return own + [
            _is_alien(spec) or (stays and first + number not in self.computed)
            for number, (stays, spec) in enumerate(made)
        ]

    @property
    def hide_values(self) -> bool:
        """Whether a handle stands for a value while the function is traced: text, an image, a dataset."""
        pairs = zip(self.specs, self.handles, strict=True)
        return any(handle and not isinstance(spec, NoneTensorSpec) for spec, handle in pairs)

    @property
    def in_rows(self) -> bool:
        """Whether there is work that threads can share, row by row."""
        return any(map(_by_row, self.calls))

    def with_call(self, call: KernelCall) -> "Kernels":
        """Return these kernels and one more."""
        made = tuple(call.kernel.specs(*(_tensor_spec(self.specs[part]) for part in call.parts)))
        return replace(self, calls=(*self.calls, call), results=(*self.results, made))

    def with_computed(self, part: int) -> "Kernels":
        """Return the same kernels, one of whose results JAX gets."""
        return replace(self, computed=self.computed | {part})

    def with_variables(self, variables: tuple[Any, ...]) -> "Kernels":
        """Return the same kernels, for a function that reads these variables too."""
        return replace(self, variables=(*self.variables, *variables))

    def held(self) -> list[Array]:
        """Return what the variables hold now."""
        return [np.asarray(variable.at_rest()) for variable in self.variables]

    def computable(self, part: int) -> bool:
        """Tell whether a part that is a handle could be an array instead, of one shape if it is made by rows."""
        spec = self.specs[part]
        by_column = part in self._made_by_column
        return self.handles[part] and not _is_alien(spec) and (by_column or not _varies(spec))

    @cached_property
    def _made_by_column(self) -> frozenset[int]:
        """The parts that kernels make for all elements at once."""
        made = [
            _by_row(call)
            for call, specs in zip(self.calls, self.results, strict=True)
            for _ in specs
        ]
        return frozenset(len(self.inputs) + i for i, by_row in enumerate(made) if not by_row)

    def uncomputed(self) -> int | None:
        """Return a part that is a handle and could be an array; None where there is none."""
        return next((part for part in range(len(self.specs)) if self.computable(part)), None)

    def widened(self, block: Block) -> Block:
        """Return the Block with the results of the kernels as further columns, those by rows as lists."""
        columns: list[Column] = list(block.columns)
        for call in self.calls:
            columns += call.kernel.run(*(columns[part] for part in call.parts))
        return Block(tuple(columns), block.length)

    def staged(self, call: Call, effects: Effects) -> Call:
        """Return the function as one of all parts: it gets its own, and kernels get their results.

        Behind the parts come the values of the variables that it is known to read.

        Raises:
            NewVariables: It reads others.
        """

        def called(parts: list[Any]) -> tuple[Any, list[Any]]:
            stage = Stage(self.calls, self.computable)
            count = len(self.specs)
            pairs = zip(parts[:count], self.specs, strict=True)
            found = iter([_in_stage(part, spec, stage) for part, spec in pairs])
            own = [next(found) for _ in self.inputs]
            results = [[next(found) for _ in specs] for specs in self.results]
            stage.prepare(own, results)
            probe = Probe(effects, dict(zip(self.variables, parts[count:], strict=True)))
            with on_stage(stage), watched_by(probe):
                result = call(own)
            if probe.new:
                raise NewVariables(probe.new)
            if any(isinstance(leaf, ElementValue) for leaf in result[1]):
                raise ProbeAbandoned("it returns datasets or Optionals")
            return result

        return called


def shared_row(array: Array) -> Row:
    """Return the shape and dtype of what a variable holds."""
    return Row(array.shape, array.dtype, shared=True)


def _in_stage(part: Any, spec: TypeSpec, stage: Stage) -> Any:
    """Return what the user's function gets for a part: None itself, or a handle that knows its stage."""
    if isinstance(spec, NoneTensorSpec):
        return None
    return Handle(part.index, stage, spec) if isinstance(part, Handle) else part


def _by_row(call: KernelCall) -> bool:
    return isinstance(call.kernel, RowKernel)


def _is_alien(spec: TypeSpec) -> bool:
    """Tell whether JAX has no arrays for a part."""
    return not isinstance(spec, TensorSpec) or spec.dtype == dtypes.string


def _varies(spec: TypeSpec) -> bool:
    return isinstance(spec, TensorSpec) and not spec.shape.is_fully_defined()


def _tensor_spec(spec: TypeSpec) -> TensorSpec:
    return spec if isinstance(spec, TensorSpec) else TensorSpec(TensorShape(None), dtypes.string)
