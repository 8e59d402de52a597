"""Pickles user functions for other processes: by name if a module has them, otherwise by value."""

import inspect
import io
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, TypeAlias, cast, final

from evenfeed.core.callsite import Origin
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy import cloudpickle
from evenfeed.runtime.functions.calls import name_of

# What happens with large arrays: None keeps them in the pickle.
BufferCallback: TypeAlias = Callable[[pickle.PickleBuffer], Any] | None

_PROTOCOL: Final = 5
_FIX: Final = (
    "make what it uses inside of the function, pass something that pickle can copy, or omit processes=True: "
    "num_parallel_calls=… runs it in threads."
)


def pickled_function(function: Any, buffers: BufferCallback = None) -> bytes:
    """Return a function, or an object that holds it, as a pickle.

    Functions and classes of a module go by name. Others go by value, with the values that they use at this moment:
    lambdas, inner functions, and those of the main program, so that no process needs to load that program. If a value
    cannot be copied, a function of the main program goes by name after all.
    """
    by_name = io.BytesIO()
    names = _NamePickler(by_name, buffers)
    try:
        names.dump(function)
    except Exception:  # noqa: BLE001 - user classes can raise anything; by value it raises again
        return _by_value(function, buffers)
    if not names.needs_main:
        return by_name.getvalue()
    try:
        return _by_value(function, buffers)
    except Exception:
        if _main_has_a_file():
            return by_name.getvalue()
        raise


def check_pickles(function: Callable[..., Any]) -> None:
    """Raise, at the line of user code that runs now, if a function cannot be sent to other processes."""
    try:
        pickled_function(function, _dropped)
    except Exception as error:
        raise unsendable(function, error) from error


def unsendable(
    function: Callable[..., Any], error: Exception, origin: Origin | None = None
) -> InvalidArgumentError:
    """Return the error for a function that cannot be pickled. It names what the function uses, if that is to blame."""
    blamed = next((what for what, value in _used_by(function) if not _pickles(value)), None)
    uses = "" if blamed is None else f" It uses {blamed}."
    why = str(error).partition("\n")[0].rstrip(".")
    what = f"{name_of(function)} cannot be sent to another process: {why}.{uses}"
    return InvalidArgumentError(what, fix=_FIX, origin=origin)


def _by_value(function: Any, buffers: BufferCallback) -> bytes:
    file = io.BytesIO()
    cast("Any", cloudpickle).Pickler(file, _PROTOCOL, buffer_callback=buffers).dump(function)
    return file.getvalue()


def _dropped(_: pickle.PickleBuffer) -> None:
    """Keep the bytes of arrays out of a pickle that is only a test."""


def _pickles(value: Any) -> bool:
    try:
        pickled_function(value, _dropped)
    except Exception:  # noqa: BLE001 - user classes can raise anything
        return False
    return True


def _used_by(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a function uses: a description and the value of each."""
    if isinstance(function, partial):
        bound = cast("partial[Any]", function)
        yield from ((f"the argument {_short(value)}", value) for value in bound.args)
        yield from ((f"the argument {key}", value) for key, value in bound.keywords.items())
        yield from _used_by(bound.func)
    elif inspect.ismethod(function):
        yield f"the object {_short(function.__self__)}", function.__self__
    elif inspect.isfunction(function):
        found = inspect.getclosurevars(function)
        for name, value in {**found.nonlocals, **found.globals}.items():
            yield f"the variable {name}, {_short(value)}", value


def _short(value: object) -> str:
    kind = type(value)
    return f"of type {kind.__module__}.{kind.__qualname__}"


def _main_has_a_file() -> bool:
    main = sys.modules["__main__"]
    if main.__spec__ is not None:
        return True
    path = getattr(main, "__file__", None)
    return path is not None and os.path.isfile(path)


@final
class _NamePickler(pickle.Pickler):
    """Pickles by name, and finds out whether the names are in the main program."""

    def __init__(self, file: io.BytesIO, buffers: BufferCallback) -> None:
        super().__init__(file, _PROTOCOL, buffer_callback=buffers)
        self.needs_main = False

    def reducer_override(self, obj: Any) -> Any:
        self.needs_main |= getattr(obj, "__module__", None) == "__main__"
        return NotImplemented
