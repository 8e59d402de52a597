"""Public namespaces: sets the `__module__` of public objects, and explains missing names."""

import importlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from evenfeed.core.lazy import difflib

# How similar a name must be to be suggested; a lower value suggests unrelated names (keras, zeros).
_NEAR: Final = 0.75


def publish(module: str, names: Sequence[str], members: Mapping[str, object]) -> None:
    """Set `__module__` of the classes and functions in `names` to `module`.

    A user who sees `<class 'evenfeed.data.Dataset'>` can type that name; the internal file does not matter.
    An object that another namespace has already published keeps that module.
    """
    for name in names:
        value: Any = members[name]
        if callable(value) and _is_inner(getattr(value, "__module__", None)):
            value.__module__ = module


def namespaces(
    module: str, names: Collection[str], otherwise: Callable[[str], Any]
) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that imports its submodules at first use.

    A program does not wait for modules that it does not use.
    """

    def loaded(name: str) -> Any:
        if name not in names:
            return otherwise(name)
        return importlib.import_module(f"{module}.{name}")

    return loaded


def refusal(
    module: str, names: Sequence[str], instead: str, known: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that raises for a missing name and says what to use instead.

    Args:
        module: The module.
        names: The names that it has; the error suggests a similar one.
        instead: The general advice.
        known: Specific advice for names that TensorFlow programs often use.
    """

    def missing(name: str) -> Any:
        if known is not None and name in known:
            raise AttributeError(f"{module} has no {name!r}. {known[name]}", name=name)
        near = difflib.get_close_matches(name, names, n=1, cutoff=_NEAR)
        hint = f"Did you mean {module}.{near[0]}? " if near else ""
        raise AttributeError(f"{module} has no {name!r}. {hint}{instead}", name=name)

    return missing


def _is_inner(home: object) -> bool:
    """Return True for an internal module, such as evenfeed.core.specs."""
    parts = str(home).split(".")
    return parts[0] == "evenfeed" and len(parts) > 2
