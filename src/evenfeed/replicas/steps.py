"""Compiles the function of a `run` that stands in code which itself runs as plain Python."""

from collections.abc import Callable
from threading import Lock
from typing import Any, Final

from evenfeed.replicas import contexts
from evenfeed.replicas.closures import HOLE, Unlike, identity, replaced
from evenfeed.replicas.compiling import Compiler
from evenfeed.replicas.driving import say_why
from evenfeed.replicas.function import Function
from evenfeed.replicas.staging import Unstaged

_MOST: Final = 256
_lock: Final = Lock()


def compiled_run(  # noqa: PLR0913, PLR0917 - a run, and whose it is
    owner: Function,
    strategy: Any,
    fn: Callable[..., Any],
    args: Any,
    kwargs: Any,
    otherwise: Callable[..., Any],
) -> Any:
    """Run a function on the replicas compiled; where that cannot be, as plain Python.

    A function that is defined anew at each call is the same one as long as its code and what it closes
    over are the same; arrays that it closes over are arguments of the program.

    The programs belong to `owner`: `fn` itself, or the `evenfeed.function` that calls `run`. Globals and
    attributes that the Python code reads are constants of a program, so a new owner must read them again.
    """
    arrays: list[Any] = []
    try:
        key = (strategy, identity(fn, arrays))
    except Unlike:
        return otherwise(strategy, strategy.extended.replicas, fn, args, kwargs)
    compiler = _compiler(owner, key, fn, len(arrays))
    if compiler is not None:
        traces = compiler.traces
        try:
            result = compiler((arrays, *args), kwargs, contexts.frame())
            if compiler.traces != traces:
                _know_again(owner, compiler, key, fn, len(arrays))
            return result
        except Unstaged as reason:
            if reason.always:
                owner.steps[key] = None
                say_why(f"{_name(fn)} runs as plain Python on each replica", reason)
    return otherwise(strategy, strategy.extended.replicas, fn, args, kwargs)


def _compiler(owner: Function, key: Any, fn: Callable[..., Any], arrays: int) -> Compiler | None:
    steps = owner.steps
    with _lock:
        if key in steps:
            steps.move_to_end(key)
            return steps[key]
        strategy = key[0]
        # Without its arrays: the memory of those of the first call would be held for good.
        template = replaced(fn, [HOLE] * arrays)

        def run(own: list[Any], *args: Any, **kwargs: Any) -> Any:
            return strategy.run(replaced(template, own), args=args, kwargs=kwargs)

        compiler = steps[key] = Compiler(run)
        if len(steps) > _MOST:
            steps.popitem(last=False)
        return compiler


def _know_again(
    owner: Function, compiler: Compiler, key: Any, fn: Callable[..., Any], count: int
) -> None:
    """Let a function be the same one after its trace, which may have added to a list of the user's."""
    arrays: list[Any] = []
    try:
        after = (key[0], identity(fn, arrays))
    except Unlike:
        return
    if after != key and len(arrays) == count:
        with _lock:
            owner.steps[after] = compiler


def _name(fn: Callable[..., Any]) -> str:
    return str(getattr(fn, "__name__", type(fn).__name__))
