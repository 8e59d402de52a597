"""Detects tracers that a function leaves in objects while it is traced: the assignment would be lost.

`self.w = self.w - gradient` in a compiled function runs once, during the trace. From then on `self.w` is a tracer that
exists only inside the program, and no call changes it.
"""

import sys
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final, TypeAlias, cast, final
from weakref import ref

import numpy as np

from evenfeed.core.captures import Fields, Place, places_of
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax
from evenfeed.replicas.function.modified_arguments import GivenArguments, line_of, name_of
from evenfeed.replicas.function.nnx_objects import is_nnx_object
from evenfeed.replicas.regrouping import leaves_of
from evenfeed.tensors.device_arrays import is_traced

# The search stops after this many objects, and skips lists and dicts that are longer than this.
_MAX_OBJECTS: Final = 5000
_MAX_LENGTH: Final = 1000

# Objects of these libraries hold no user data.
_LIBRARIES: Final = sys.stdlib_module_names | {
    *(
        "jax",
        "jaxlib",
        "numpy",
        "ml_dtypes",
        "flax",
        "optax",
        "orbax",
        "equinox",
        "evenfeed",
        "keras",
    ),
}

_ABSENT: Final = object()


@final
class ReachableArrays:
    """The contents of all objects that a function can reach, before it is traced.

    Args:
        function: The function.
        given: The leaves of its arguments.
    """

    def __init__(self, function: Callable[..., Any], given: Sequence[Any]) -> None:
        self._function = function
        objects = [value for value in given if _is_user_object(value)]
        self._before = [(place, dict(place.items())) for place in _reachable([function, *objects])]

    def check(self) -> None:
        """Raise if a tracer replaced an array, and put the array back. Warn about other tracers.

        Raises:
            ValueError: The function has assigned to something that held an array.
        """
        lost: list[str] = []
        left: list[str] = []
        for place, before in self._before:
            for key, value in list(place.items()):
                old = before.get(key, _ABSENT)
                if value is old or not is_traced(value):
                    continue
                if isinstance(old, (jax.Array, np.ndarray)):
                    place.put(key, old)
                    lost.append(place.label(key))
                elif not _was_reported(value):
                    left.append(place.label(key))
        if lost:
            raise self._lost_error(lost[0])
        if left:
            self._warn(left[0])

    def _lost_error(self, name: str) -> ValueError:
        return ValueError(
            described(
                f"{name_of(self._function)} sets {name} while it is traced. The new value exists only inside "
                "the compiled program, so the change would be lost.",
                fix="return the new value and set it outside, or keep it in an evenfeed.Variable.",
                origin=line_of(self._function),
            )
        )

    def _warn(self, name: str) -> None:
        origin = line_of(self._function)
        warnings.warn_explicit(
            f"{name_of(self._function)} leaves a tracer in {name} while it is traced. It has no value there, and "
            "later calls do not set it: return the tensor instead.",
            UserWarning,
            origin.filename if origin else "<unknown>",
            origin.line if origin else 0,
        )


# Tracers that were recently warned about: an enclosing function finds them too.
_reported: Final[deque["ref[Any]"]] = deque(maxlen=16)


def _was_reported(tracer: Any) -> bool:
    known = any(each() is tracer for each in _reported)
    _reported.append(ref(tracer))
    return known


def call_traced(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], whole: GivenArguments
) -> Any:
    """Call a replica's function while it is traced, and raise for changes that would be lost.

    Args:
        function: The user function.
        args: The replica's arguments.
        kwargs: The replica's keyword arguments.
        whole: The arguments of all replicas.
    """
    before = GivenArguments(args, kwargs)
    reachable = ReachableArrays(function, leaves_of((args, kwargs))[0])
    result = function(*args, **kwargs)
    before.check_nothing_added(function, whole)
    reachable.check()
    return result


# --- where a tracer can be left ---------------------------------------------------------------


@final
class _Items(Place):
    """A list or a dict."""

    def __init__(self, values: Any, name: str) -> None:
        self._values = values
        self._name = name

    def items(self) -> Iterator[tuple[Any, Any]]:
        values = self._values
        yield from values.items() if isinstance(values, dict) else enumerate(values)

    def put(self, key: Any, value: Any) -> None:
        self._values[key] = value

    def label(self, key: Any) -> str:
        return f"{self._name}[{key!r}]"


def _reachable(roots: Sequence[Any]) -> Iterator[Place]:
    queue: deque[tuple[Any, str]] = deque((root, "") for root in roots)
    seen = {id(root) for root in roots}
    while queue and len(seen) < _MAX_OBJECTS:
        for place in _places(*queue.popleft()):
            yield place
            for key, part in place.items():
                if id(part) not in seen and _is_user_object(part):
                    seen.add(id(part))
                    queue.append((part, place.label(key)))


def _places(value: Any, name: str) -> Iterator[Place]:
    """Yield the places in an object that a function may assign to."""
    match value:
        case FunctionType():
            yield from places_of(value)
        case MethodType():
            yield from _places(value.__func__, name)
            yield from _places(value.__self__, "self")
        case partial():
            yield _Items([value.func, *value.args, *value.keywords.values()], name)
        case dict() | list():
            if len(cast("_Sized", value)) <= _MAX_LENGTH:
                yield _Items(value, name or "an argument")
        case _:
            attributes = getattr(value, "__dict__", None)
            if isinstance(attributes, dict):
                before = f"{name or type(value).__name__}."
                yield Fields(cast("dict[str, Any]", attributes), before)


_Sized: TypeAlias = "dict[Any, Any] | list[Any]"


def _is_user_object(value: Any) -> bool:
    if isinstance(value, (type, ModuleType)) or is_nnx_object(value):
        return False  # flax itself raises if its objects change during a trace
    if isinstance(value, (dict, list, MethodType, partial)):
        return True
    if callable(getattr(value, "__wrapped__", None)):  # an evenfeed.function has the user's in it
        return True
    owner = cast("Any", value if isinstance(value, FunctionType) else type(value))
    return str(owner.__module__).partition(".")[0] not in _LIBRARIES | {"builtins"}
