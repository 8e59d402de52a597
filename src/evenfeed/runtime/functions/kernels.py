"""The kernels of a traced function (text, images), which run on whole Blocks before its compiled program.

The results of a kernel become additional parts of the element. The rest of the function uses them like the parts
of the dataset.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Block, Column
from evenfeed.core.conversion import Array
from evenfeed.core.handles import Handle, handle_of
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.randomness.drawn_columns import DrawnColumn, RandomOperation, Turns
from evenfeed.core.shapes import TensorShape
from evenfeed.core.side_effects import Effects, ProbeAbandoned, watched_by
from evenfeed.core.specs import NoneTensorSpec, TensorSpec, TypeSpec
from evenfeed.core.traced.kernel_stages import KernelCall, NewKernel, RowKernel, Stage, on_stage
from evenfeed.plan.windows import ElementValue
from evenfeed.runtime.functions.calls import Calling
from evenfeed.runtime.functions.probing import NewVariables, Probe
from evenfeed.runtime.functions.vectorise import Call, Row

# Returns the call that computes a value before the next kernel, given the number of calls so far.
Computing: TypeAlias = Callable[[int, object], KernelCall | None]


@final
@dataclass(frozen=True)
class Kernels:
    """The kernels of a function, in call order.

    Attributes:
        calls: The kernels, and the parts that each one gets.
        inputs: The specs of the parts of an element.
        results: The specs of the results of each kernel.
        computed: The kernel results that could stay on the host, but that JAX computes with.
        variables: The variables that the function reads. Their values are arguments of its program.
        draws_columns: Whether random operations draw numbers for whole Blocks.
        tensors: The values of the tensors that the function captures, if these are arguments of its program.
    """

    calls: tuple[KernelCall, ...]
    inputs: tuple[TypeSpec, ...]
    results: tuple[tuple[TypeSpec, ...], ...] = ()
    computed: frozenset[int] = frozenset()
    variables: tuple[Any, ...] = ()
    draws_columns: bool = True
    tensors: tuple[Array, ...] = ()

    @cached_property
    def specs(self) -> list[TypeSpec]:
        """The specs of all parts: those of the element, then the kernel results."""
        return [*self.inputs, *(spec for specs in self.results for spec in specs)]

    @cached_property
    def handles(self) -> list[bool]:
        """For each part, whether it is a handle while the function is traced."""
        made = [
            (call.kernel.stays_on_host, spec)
            for call, specs in zip(self.calls, self.results, strict=True)
            for spec in specs
        ]
        used = {part for call in self.calls if _is_row_kernel(call) for part in call.parts}
        own = [
            _is_not_numeric(s) or (i in used and _has_unknown_shape(s))
            for i, s in enumerate(self.inputs)
        ]
        first = len(own)
        return own + [
            _is_not_numeric(spec) or (stays and first + number not in self.computed)
            for number, (stays, spec) in enumerate(made)
        ]

    @property
    def hide_values(self) -> bool:
        """Whether some part with a value is a handle while the function is traced: text, an image, a dataset."""
        pairs = zip(self.specs, self.handles, strict=True)
        return any(handle and not isinstance(spec, NoneTensorSpec) for spec, handle in pairs)

    @property
    def in_rows(self) -> bool:
        """Whether there are row kernels, whose work threads can share."""
        return any(map(_is_row_kernel, self.calls))

    @property
    def wait(self) -> bool:
        """Whether some of them wait for a disk or the network."""
        return any(isinstance(call.kernel, RowKernel) and call.kernel.waits for call in self.calls)

    @cached_property
    def operations(self) -> tuple[RandomOperation, ...]:
        """The random operations that draw numbers for whole Blocks."""
        return tuple(
            call.kernel.operation for call in self.calls if isinstance(call.kernel, DrawnColumn)
        )

    def with_call(self, call: KernelCall) -> "Kernels":
        """Return these kernels with one more call."""
        given = [self.specs[part] for part in call.parts]
        if not call.kernel.takes_ragged:
            if any(isinstance(spec, RaggedTensorSpec) for spec in given):
                raise TypeError("This function of a ragged tensor needs its values.")
            given = map(_tensor_spec, given)
        made = tuple(call.kernel.specs(*given))
        return replace(self, calls=(*self.calls, call), results=(*self.results, made))

    def with_computed(self, part: int) -> "Kernels":
        """Return the same kernels, with one result passed to JAX."""
        return replace(self, computed=self.computed | {part})

    def with_variables(self, variables: tuple[Any, ...]) -> "Kernels":
        """Return the same kernels, for a function that also reads these variables."""
        return replace(self, variables=(*self.variables, *variables))

    def held(self) -> list[Array]:
        """Return the current values of the variables, and those of the tensors that the function captures."""
        return [*(np.asarray(variable.at_rest()) for variable in self.variables), *self.tensors]

    @property
    def takes_more(self) -> bool:
        """Whether the program gets more than the parts of an element."""
        return bool(self.calls or self.variables or self.tensors)

    def computable(self, part: int) -> bool:
        """Return True if a handle could be an array instead; the result of a row kernel needs a fixed shape."""
        spec = self.specs[part]
        by_column = part in self._column_results
        return (
            self.handles[part]
            and not _is_not_numeric(spec)
            and (by_column or not _has_unknown_shape(spec))
        )

    def has_fixed_shape(self, part: int) -> bool:
        """Return True if a part is a tensor with the same shape in all elements."""
        spec = self.specs[part]
        return isinstance(spec, TensorSpec) and spec.shape.is_fully_defined()

    @cached_property
    def _column_results(self) -> frozenset[int]:
        """The results of kernels that work on whole columns."""
        made = [
            _is_row_kernel(call)
            for call, specs in zip(self.calls, self.results, strict=True)
            for _ in specs
        ]
        return frozenset(len(self.inputs) + i for i, by_row in enumerate(made) if not by_row)

    def uncomputed(self) -> int | None:
        """Return a part that is a handle but could be an array; None if there is none."""
        return next((part for part in range(len(self.specs)) if self.computable(part)), None)

    def widened(self, block: Block, turns: Turns, start: int) -> Block:
        """Return the Block with the kernel results as additional columns, if any; row kernels produce lists.

        Args:
            block: Some elements of a Block.
            turns: Where random operations are in their sequences, before the first element of the whole Block.
            start: The index of the first element in the whole Block.
        """
        if not self.calls:
            return block
        columns: list[Column] = list(block.columns)
        for call in self.calls:
            kernel = call.kernel
            if isinstance(kernel, DrawnColumn):
                columns += kernel.run(turns.at(kernel.operation, start, block.length))
            else:
                columns += kernel.run(*(columns[part] for part in call.parts))
        return Block(tuple(columns), block.length)

    def before(self, number: int) -> "Kernels":
        """Return the kernels of the first calls."""
        return replace(self, calls=self.calls[:number], results=self.results[:number])

    def staged(
        self, call: Calling, effects: Effects, computing: Computing, *, stops: bool = False
    ) -> Call:
        """Return the function with all parts as arguments: those of the element, then the kernel results.

        The values of the variables that it reads come after the parts, and then the tensors that it captures.

        Args:
            call: The function.
            effects: The side effects seen so far.
            computing: Returns the call that computes an argument of a kernel.
            stops: Whether to return the argument that the next kernel needs, instead of the results.

        Raises:
            NewVariables: The function reads other variables.
        """

        def called(parts: list[Any]) -> tuple[Any, list[Any]]:
            stage = Stage(self.calls, self.computable, computing, self.has_fixed_shape)
            count = len(self.specs)
            pairs = zip(parts[:count], self.specs, strict=True)
            found = iter([_in_stage(part, spec, stage) for part, spec in pairs])
            own = [next(found) for _ in self.inputs]
            results = [[next(found) for _ in specs] for specs in self.results]
            stage.prepare(own, results)
            tensors = parts[count + len(self.variables) :]
            held = dict(zip(self.variables, parts[count:], strict=False))
            probe = Probe(effects, held, draws_columns=self.draws_columns)
            filled = call.capturing(tensors) if tensors else call
            with on_stage(stage), watched_by(probe):
                result = _first_argument(filled, own) if stops else filled(own)
            if probe.new:
                raise NewVariables(probe.new)
            if any(_is_value(leaf) for leaf in result[1]):
                raise ProbeAbandoned("it returns values that are not arrays")
            return result

        return called


def _first_argument(call: Call, own: list[Any]) -> tuple[Any, list[Any]]:
    """Call a function until a kernel needs something that JAX computes, and return that."""
    try:
        call(own)
    except NewKernel as reached:
        if reached.value is not None:
            return None, [reached.value]
    raise TypeError("The function must call the same operations each time it is traced.")


def _is_value(leaf: Any) -> bool:
    return isinstance(leaf, ElementValue) and not isinstance(leaf, Handle)


def shared_row(array: Array) -> Row:
    """Return the shape and dtype of the value of a variable."""
    return Row(array.shape, array.dtype, shared=True)


def _in_stage(part: Any, spec: TypeSpec, stage: Stage) -> Any:
    """Return what the user function gets for a part: None, an array, or a handle with its stage."""
    if isinstance(spec, NoneTensorSpec):
        return None
    return handle_of(part.index, stage, spec) if isinstance(part, Handle) else part


def _is_row_kernel(call: KernelCall) -> bool:
    return isinstance(call.kernel, RowKernel)


def _is_not_numeric(spec: TypeSpec) -> bool:
    """Return True if JAX cannot hold a part."""
    return not isinstance(spec, TensorSpec) or spec.dtype == dtypes.string


def _has_unknown_shape(spec: TypeSpec) -> bool:
    return isinstance(spec, TensorSpec) and not spec.shape.is_fully_defined()


def _tensor_spec(spec: TypeSpec) -> TensorSpec:
    return spec if isinstance(spec, TensorSpec) else TensorSpec(TensorShape(None), dtypes.string)
