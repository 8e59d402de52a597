"""`Record`: the operations that run while a tape records, in plain Python and in traced functions alike.

JAX hands each operation to the current trace. A `_Recorder` is a trace that lets the trace below it compute, and
writes down the operation with its inputs and outputs. So values stay what they are: arrays in plain Python, tracers in a
function that is compiled.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final, final

from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jax_extend_core
from evenfeed.tensors.device_arrays import same_memory

# Gradients end at these operations, as in TensorFlow.
_ENDS: Final = frozenset({"stop_gradient", "floor", "ceil", "round"})
# Operations that call a jaxpr once, on their inputs, and have no derivative of their own.
_CALLS: Final = frozenset({"jit", "pjit", "checkpoint", "remat", "closed_call"})


@final
@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One recorded operation.

    Attributes:
        primitive: The JAX primitive.
        params: Its parameters.
        inputs: The arrays that it got.
        outputs: The arrays that it returned.
    """

    primitive: Any
    params: dict[str, Any]
    inputs: Sequence[Any]
    outputs: Sequence[Any]

    def on(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Perform it on other inputs."""
        return _performed(self.primitive, self.params, inputs)

    def reaches(self, given: Sequence[bool]) -> list[bool]:
        """Return, for each output, whether it has a derivative with respect to one of the `given` inputs."""
        avals = [jax.typeof(output) for output in self.outputs]
        return _reached(self.primitive, self.params, given, avals)


@final
class Record:
    """The operations of one tape, in order.

    Attributes:
        operations: The operations.
        paused: Whether nothing is recorded at the moment.
        is_open: Whether the tape's block runs.
        below: The trace below all recorders, when it was opened.
    """

    def __init__(self) -> None:
        self.operations: list[Operation] = []
        self.paused = False
        self.is_open = False
        self.below: Any = None
        self._setting: Any = None

    def open(self) -> None:
        """Record the operations from here on."""
        trace = current_trace()
        self.below = _without_recorders(trace)
        self._setting = jax_extend_core.set_current_trace(_recorder_class()(self, trace))
        self._setting.__enter__()
        self.is_open = True

    def close(self) -> None:
        """Stop recording. A recorder below that of another open tape stays in place until that one closes."""
        self.is_open = False
        kind, trace = _recorder_class(), current_trace()
        while isinstance(trace, kind) and not trace.record.is_open:
            trace.record._setting.__exit__(None, None, None)
            trace = current_trace()

    def add(self, primitive: Any, params: dict[str, Any], inputs: Any, outputs: Any) -> None:
        """Append an operation."""
        if self.is_open and not self.paused:
            self.operations.append(Operation(primitive, params, tuple(inputs), tuple(outputs)))


def current_trace() -> Any:
    """Return the trace that performs operations now."""
    with jax_extend_core.take_current_trace() as trace:
        return trace


@contextmanager
def beneath_tapes() -> Generator[None]:
    """Run a block in the trace below all recorders, so that nothing is recorded."""
    with jax_extend_core.set_current_trace(_without_recorders(current_trace())):
        yield


def _without_recorders(trace: Any) -> Any:
    kind: Any = _recorder_class()
    while isinstance(trace, kind):
        trace = trace.below
    return trace


def _performed(primitive: Any, params: dict[str, Any], inputs: Sequence[Any]) -> Sequence[Any]:
    found = primitive.bind(*inputs, **primitive.get_bind_params(params))
    return found if primitive.multiple_results else [found]


@cache
def _recorder_class() -> type:
    """Return the class of recorders. JAX is loaded when the first tape is opened."""
    parent: Any = jax.core.Trace

    @final
    class Recorder(parent):
        __slots__ = ("below", "record")

        def __init__(self, record: Record, below: Any) -> None:
            parent.__init__(self)
            self.record = record
            self.below = below
            self.requires_low = below.requires_low

        def stage_value(self, val: Any) -> Any:
            return self.below.stage_value(val)

        def process_primitive(self, primitive: Any, args: Any, params: Any, /) -> Any:
            with jax_extend_core.set_current_trace(self.below):
                found = primitive.bind(*args, **params)
            outputs = found if primitive.multiple_results else [found]
            if primitive.name == "stop_gradient":
                outputs = _told_apart(args, outputs)
            self.record.add(primitive, params, args, outputs)
            return outputs if primitive.multiple_results else outputs[0]

        def process_custom_jvp_call(
            self, primitive: Any, fun: Any, jvp: Any, args: Any, /, **params: Any
        ) -> Any:
            return self._staged(primitive, args, {"subfuns": (fun, jvp), **params})

        def process_custom_vjp_call(
            self, primitive: Any, fun: Any, fwd: Any, bwd: Any, args: Any, /, **params: Any
        ) -> Any:
            return self._staged(primitive, args, {"subfuns": (fun, fwd, bwd), **params})

        def process_shard_map(self, *args: Any, **params: Any) -> Any:
            del args, params
            raise ValueError(
                described(
                    "A tape does not record jax.shard_map.",
                    fix="open the tape inside the mapped function, or use jax.grad.",
                )
            )

        def process_call(self, primitive: Any, fun: Any, args: Any, params: Any, /) -> Any:
            return self._staged(primitive, args, {"subfuns": (fun,), **params})

        def _staged(self, primitive: Any, args: Any, params: dict[str, Any]) -> Any:
            """Perform an operation on Python functions. They can be called only once, so their jaxprs are recorded."""
            with jax_extend_core.set_current_trace(self.below):
                closed = jax.make_jaxpr(partial(primitive.bind, **params))(*args)
                outputs = _evaluated(closed, args, self.record.add)
            return outputs if primitive.multiple_results else outputs[0]

    return Recorder


def _told_apart(inputs: Sequence[Any], outputs: Sequence[Any]) -> list[Any]:
    """Return outputs as objects of their own: an input that is returned has another derivative there."""
    given = set(map(id, inputs))
    return [same_memory(output) if id(output) in given else output for output in outputs]


def _evaluated(closed: Any, args: Sequence[Any], add: Callable[..., None]) -> list[Any]:
    """Evaluate a jaxpr, and call `add` for each operation."""
    jaxpr = closed.jaxpr
    names = [*jaxpr.constvars, *jaxpr.invars]
    held = dict(zip(names, [*closed.consts, *args], strict=True))

    def value(atom: Any) -> Any:
        return held[atom] if isinstance(atom, jax_extend_core.Var) else atom.val

    for equation in jaxpr.eqns:
        inputs = [value(atom) for atom in equation.invars]
        outputs = _told_apart(inputs, _performed(equation.primitive, equation.params, inputs))
        add(equation.primitive, equation.params, inputs, outputs)
        held.update(zip(equation.outvars, outputs, strict=True))
    return [value(atom) for atom in jaxpr.outvars]


def is_differentiable(value: Any) -> bool:
    """Return True if a value is an array of real or complex floating-point numbers."""
    return isinstance(value, jax.Array) and _is_inexact(value)


def _is_inexact(aval: Any) -> bool:
    return jax.numpy.issubdtype(aval.dtype, jax.numpy.inexact)


def _reached(
    primitive: Any, params: dict[str, Any], given: Sequence[bool], outputs: Sequence[Any]
) -> list[bool]:
    if primitive.name in _ENDS or not any(given):
        return [False] * len(outputs)
    if primitive.name not in _CALLS:
        return [_is_inexact(output) for output in outputs]
    inner = params.get("jaxpr", params.get("call_jaxpr"))
    jaxpr: Any = getattr(inner, "jaxpr", inner)
    known = {var for var, own in zip(jaxpr.invars, given, strict=True) if own}
    for equation in jaxpr.eqns:
        own = [isinstance(atom, jax_extend_core.Var) and atom in known for atom in equation.invars]
        avals = [var.aval for var in equation.outvars]
        results = _reached(equation.primitive, equation.params, own, avals)
        known.update(var for var, own in zip(equation.outvars, results, strict=True) if own)
    return [isinstance(atom, jax_extend_core.Var) and atom in known for atom in jaxpr.outvars]
