"""Compiled programs that call Python functions of the user while they run: these may raise, and have side effects."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, cast

from evenfeed.core.lazy_jax import jax
from evenfeed.replicas.run.varying import equations_in


def ignored(_: Any) -> None:
    """Do nothing: a program that calls it with an argument runs other calls on all devices."""


def calls_python(jaxpr: Any) -> bool:
    """Return True if a program calls Python functions that may raise. Random draws never do."""
    return any(True for _ in _called(jaxpr, "debug_callback", "io_callback", "pure_callback"))


def needs_values(jaxpr: Any) -> bool:
    """Return True if a program computes with the results of Python functions."""
    return any(True for _ in _called(jaxpr, "io_callback", "pure_callback"))


def _called(jaxpr: Any, *primitives: str) -> Iterator[Any]:
    """Yield the equations that call Python functions, except our own, which draw random numbers."""
    for equation in (each for one in jaxpr.eqns for each in equations_in(one)):
        if equation.primitive.name in primitives and not _is_own(equation.params["callback"]):
            yield equation


def _is_own(callback: Any) -> bool:
    function = getattr(callback, "callback_func", callback)
    if _holds_ignored(function):
        return True
    if isinstance(function, partial):
        function = cast("partial[Any]", function).func
    return str(getattr(function, "__module__", "")).startswith("evenfeed.")


def _holds_ignored(function: Any) -> bool:
    """Return True if `jax.debug.callback` wraps `ignored` in this function."""
    try:
        return any(x.cell_contents is ignored for x in getattr(function, "__closure__", None) or ())
    except ValueError:  # a captured variable has no value yet
        return False


def wait_for_calls(arrays: Sequence[Any]) -> None:
    """Wait for arrays of a program that calls Python functions. Raises what XLA reports if one of them fails."""
    try:
        jax.block_until_ready(arrays)
    except Exception as error:
        if "callback" in str(error).lower():  # else a worker was lost, for example
            error.add_note(
                "in a Python function that a compiled program called. Its variables keep the values from before the program."
            )
        raise
