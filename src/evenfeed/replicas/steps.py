"""Compiles the function of a `run` that stands in code which itself runs as plain Python."""

from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType
from typing import Any, Final

from evenfeed.replicas.function import Compiler, Function
from evenfeed.replicas.staging import Unstaged

_MOST: Final = 256
_compilers: Final[OrderedDict[Any, Compiler | None]] = OrderedDict()


def compiled_run(
    strategy: Any,
    fn: Callable[..., Any],
    args: Any,
    kwargs: Any,
    otherwise: Callable[..., Any],
) -> Any:
    """Run a function on the replicas compiled; where that cannot be, as plain Python.

    A function that is defined anew at each call is the same one as long as its code and what it
    closes over are the same.
    """
    key = (strategy, identity(fn))
    if key not in _compilers:
        _compilers[key] = Compiler(lambda *a, **k: strategy.run(fn, args=a, kwargs=k))
        if len(_compilers) > _MOST:
            _compilers.popitem(last=False)
    compiler = _compilers[key]
    if compiler is not None:
        try:
            return compiler(args, kwargs)
        except Unstaged:
            _compilers[key] = None
    return otherwise(strategy, strategy.extended.replicas, fn, args, kwargs)


def identity(value: Any) -> Any:
    """Return what is equal for functions that do the same."""
    if isinstance(value, Function):
        return identity(value.python_function)
    if isinstance(value, FunctionType):
        cells = tuple(identity(cell.cell_contents) for cell in value.__closure__ or ())
        defaults = tuple(map(identity, value.__defaults__ or ()))
        return value.__code__, cells, defaults
    if isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
        return type(value), value
    return _Object(value)


class _Object:
    """Stands for one object, which it keeps alive."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Object) and other._value is self._value

    def __hash__(self) -> int:
        return id(self._value)
