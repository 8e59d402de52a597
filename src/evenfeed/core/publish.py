"""Public namespaces: sets the `__module__` of public objects, and explains missing names."""

import importlib
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from evenfeed.core.lazy import difflib

# How similar a name must be to be suggested; a lower value suggests unrelated names (keras, zeros).
_NEAR: Final = 0.85
# The namespaces of names that are typed without them: evenfeed.Dataset, evenfeed.MirroredStrategy.
_HOMES: Final = (
    "evenfeed.data",
    "evenfeed.distribute",
    "evenfeed.io",
    "evenfeed.train",
    "evenfeed.data.experimental",
)


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


def aliases(
    source: str, names: Collection[str], otherwise: Callable[[str], Any]
) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that finds some names in another namespace, which it imports at first use."""

    def found(name: str) -> Any:
        if name not in names:
            return otherwise(name)
        return getattr(importlib.import_module(source), name)

    return found


def members_of(source: str, module: str, otherwise: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that takes names from another module, which it imports at first use.

    Args:
        source: The module that has the members, and lists them in `__all__`.
        module: The namespace under which users find them.
        otherwise: Called with any other name.
    """

    def member(name: str) -> Any:
        if name.startswith("__"):
            return otherwise(name)
        found = importlib.import_module(source)
        names: Sequence[str] = found.__all__
        if name not in names:
            return otherwise(name)
        publish(module, names, vars(found))
        vars(sys.modules[module])[name] = vars(found)[name]
        return vars(found)[name]

    return member


def moved(
    module: str, sources: Sequence[str], otherwise: Callable[[str], Any]
) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that raises, and says which other namespace has the name.

    Args:
        module: The module.
        sources: The namespaces that may have it.
        otherwise: Called with a name that none of them has.
    """

    def missing(name: str) -> Any:
        for source in sources:
            if name in importlib.import_module(source).__all__:
                raise AttributeError(
                    f"{module} has no {name!r}. Use {source}.{name}, which has the arguments of TensorFlow 2. "
                    "See docs/from_tensorflow.md.",
                    name=name,
                )
        return otherwise(name)

    return missing


def refusal(module: str, names: Sequence[str], instead: str) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that raises for a missing name and says what to use instead.

    Args:
        module: The module.
        names: The names that it has; the error suggests a similar one.
        instead: The advice for a name that `evenfeed.core.names.use_instead` does not list.
    """

    def missing(name: str) -> Any:
        if name.startswith("__"):  # Python asks every module for some
            raise AttributeError(f"{module} has no {name!r}.", name=name)
        names_of_tensorflow = importlib.import_module("evenfeed.core.names.use_instead")
        path = f"{module}.{name}".partition(".")[2]
        advice = names_of_tensorflow.advice_for(path)
        if advice is not None:
            page = names_of_tensorflow.page_for(path)
            more = "" if "docs/" in advice else f" See {page}."
            raise AttributeError(f"{module} has no {name!r}. {advice}{more}", name=name)
        near = difflib.get_close_matches(name, names, n=1, cutoff=_NEAR)
        found = f"{module}.{near[0]}" if near else _elsewhere(name)
        hint = f"Did you mean {found}? " if found else ""
        raise AttributeError(f"{module} has no {name!r}. {hint}{instead}", name=name)

    return missing


def _elsewhere(name: str) -> str | None:
    """Return the full name of something that has this name in a namespace where people may not look for it."""
    for home in _HOMES:
        if name in importlib.import_module(home).__all__:
            return f"{home}.{name}"
    dataset = importlib.import_module(_HOMES[0]).Dataset
    return f"{_HOMES[0]}.Dataset.{name}" if name in dir(dataset) else None


def _is_inner(home: object) -> bool:
    """Return True for an internal module, such as evenfeed.core.specs."""
    parts = str(home).split(".")
    return parts[0] == "evenfeed" and len(parts) > 2
