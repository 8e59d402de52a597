"""Runs functions as plain Python: those that cannot be compiled as a whole, or all of them if the user asks for it."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast, final

from evenfeed.core.errors import OutOfRangeError
from evenfeed.core.structure import NEST, flatten, mapping_like, opened, pack
from evenfeed.core.tensor_types import HostTensor, host_tensor
from evenfeed.replicas import contexts
from evenfeed.replicas.function.loops.loop_source import with_compiled_loops
from evenfeed.replicas.function.staging import Unstaged
from evenfeed.replicas.variables.variable import Variable
from evenfeed.tensors.control.scopes import name_scope
from evenfeed.tensors.creation import convert_to_tensor

# Python types whose values a compiled function returns as tensors.
_PLAIN: Final = frozenset({bool, int, float, complex, str, bytes})


@final
class _Mode:
    """How all functions run, in all threads."""

    def __init__(self) -> None:
        self.eager = False


mode: Final = _Mode()


@final
class _LoopRunner:
    """Runs loops over `tf.range` in compiled programs. `run/many_steps.py` provides it, which is above this module."""

    run: Callable[..., Any] | None = None


loop_runner: Final = _LoopRunner()


def with_loops(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that runs as plain Python, except for loops that can be compiled."""
    run = loop_runner.run
    return function if run is None else with_compiled_loops(function, run)


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Run all functions as plain Python from now on, for debuggers and prints; or compile them again.

    Args:
        run_eagerly: Whether functions run as plain Python.

    Examples:
        >>> import evenfeed as tf
        >>> double = tf.function(lambda x: print("Python runs") or x * 2)
        >>> tf.config.run_functions_eagerly(True)
        >>> _ = double(1), double(1)
        Python runs
        Python runs
        >>> tf.config.run_functions_eagerly(False)
        >>> _ = double(1), double(1)
        Python runs
    """
    mode.eager = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Return True if functions run as plain Python."""
    return mode.eager


def drive(owner: Any, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function as plain Python; its calls of `strategy.run` are compiled.

    Args:
        owner: The `evenfeed.function`. It keeps the programs of its calls of `strategy.run`, unless another
            `evenfeed.function` called it.
        function: Its Python code.
        args: The arguments.
        kwargs: The keyword arguments.

    Raises:
        OutOfRangeError: A `next` in the function reached the end of the data. A StopIteration would silently end
            a loop around the call.
    """
    outer = contexts.here.driving
    contexts.here.driving = owner if outer is None else outer
    try:
        with name_scope(""):
            result = function(*args, **kwargs)
    except StopIteration as end:
        error = OutOfRangeError(
            "The data has ended.",
            fix="loop over the dataset inside the function, or ask get_next_as_optional().has_value().",
        )
        for note in getattr(end, "__notes__", ()):
            error.add_note(note)
        raise error from None
    finally:
        contexts.here.driving = outer
    is_outermost = outer is None and contexts.replica_context() is None
    return _as_tensors(result) if is_outermost else _with_values(result)


def _as_tensors(result: Any) -> Any:
    """Convert the values in a result."""
    leaves = flatten(result, NEST)
    tensors = list(map(_tensor, leaves))
    if _are_same(leaves, tensors):
        return result
    return pack(result, tensors, NEST)


def _with_values(result: Any) -> Any:
    """Replace the variables in a result by their values: a later assignment must not change what a function returned.

    Plain Python code gets the result, so its dicts may have keys that cannot be sorted.
    """
    if isinstance(result, Variable):
        return result.value()
    if isinstance(result, Mapping):
        return _mapping_with_values(cast("Mapping[Any, Any]", result))
    branch = opened(result, NEST)
    if branch is None:
        return result
    values = list(map(_with_values, branch.parts))
    return result if _are_same(branch.parts, values) else branch.rebuild(values)


def _mapping_with_values(result: Mapping[Any, Any]) -> Any:
    before = list(result.values())
    values = list(map(_with_values, before))
    if _are_same(before, values):
        return result
    return mapping_like(result, dict(zip(result, values, strict=True)))


def _are_same(before: Sequence[Any], after: Sequence[Any]) -> bool:
    return all(one is other for one, other in zip(before, after, strict=True))


def _tensor(leaf: Any) -> Any:
    """Convert a variable, a Python value or a NumPy value to a tensor, as a compiled function does."""
    if isinstance(leaf, Variable):
        return leaf.value()
    if type(leaf) in _PLAIN:
        return convert_to_tensor(leaf)
    return leaf if isinstance(leaf, HostTensor) else host_tensor(leaf)


def warn_not_compiled(what: str, reason: Unstaged) -> None:
    """Warn that something is not compiled, at the line that prevents it. Does not warn about iterators."""
    if reason.expected:
        return
    origin = reason.origin
    warnings.warn_explicit(
        f"{what}: {reason.why}",
        UserWarning,
        origin.filename if origin else "<unknown>",
        origin.line if origin else 0,
    )
