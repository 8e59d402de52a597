"""Hints for TensorFlow's AutoGraph. evenfeed does not rewrite Python code, so they change nothing."""

from collections.abc import Callable
from typing import Any, TypeVar, overload

_Function = TypeVar("_Function", bound=Callable[..., Any])


@overload
def do_not_convert(func: None = None) -> Callable[[_Function], _Function]: ...
@overload
def do_not_convert(func: _Function) -> _Function: ...
def do_not_convert(func: Any = None) -> Any:
    """Return the function itself: no Python code is rewritten.

    Examples:
        >>> import evenfeed as tf
        >>> @tf.autograph.experimental.do_not_convert
        ... def double(x):
        ...     return x * 2
        >>> [int(x) for x in tf.data.Dataset.range(3).map(double)]
        [0, 2, 4]
    """
    return do_not_convert if func is None else func


def set_loop_options(
    parallel_iterations: int | None = None,
    swap_memory: bool | None = None,
    maximum_iterations: object = None,
    shape_invariants: object = None,
) -> None:
    """Do nothing: a loop of Python stays one. Pass these options to `evenfeed.while_loop`.

    Examples:
        >>> import evenfeed as tf
        >>> for _ in range(2):
        ...     tf.autograph.experimental.set_loop_options(parallel_iterations=1)
    """
    del parallel_iterations, swap_memory, maximum_iterations, shape_invariants


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Do nothing: there is no rewritten code to tell about.

    Examples:
        >>> import evenfeed as tf
        >>> tf.autograph.set_verbosity(0)
    """
    del level, alsologtostdout


def trace(*args: object) -> None:
    """Print the arguments: in a function that is compiled, once, while it is traced.

    Examples:
        >>> import evenfeed as tf
        >>> tf.autograph.trace("tracing", 1)
        tracing 1
    """
    print(*args)  # noqa: T201 - what it is for
