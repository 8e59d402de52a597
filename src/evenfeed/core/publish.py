"""Lets public objects report their public module, and a missing name say what to use."""

import importlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from evenfeed.core.lazy import difflib

# The inner files that stand beside the namespaces, not in a folder of their own.
_INNER: Final = ("csv_datasets", "file_datasets", "older_names", "options", "record_writing")


# How alike a name must be to be proposed: of another word (keras, zeros) nobody thought.
_NEAR: Final = 0.75


def publish(module: str, names: Sequence[str], members: Mapping[str, object]) -> None:
    """Make the classes and functions among `names` report `module` as their own.

    A reader of `<class 'evenfeed.data.Dataset'>` can type that; in which inner file a class is
    written is no user's business. What another namespace has published keeps that name.
    """
    for name in names:
        value: Any = members[name]
        if callable(value) and _is_inner(getattr(value, "__module__", None)):
            value.__module__ = module


def namespaces(
    module: str, names: Collection[str], otherwise: Callable[[str], Any]
) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that loads the modules below it when they are first asked for.

    What a program does not use, it does not wait for.
    """

    def loaded(name: str) -> Any:
        if name not in names:
            return otherwise(name)
        return importlib.import_module(f"{module}.{name}")

    return loaded


def refusal(
    module: str, names: Sequence[str], instead: str, known: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """Return a module's `__getattr__` that says, for a name it lacks, what to use instead.

    Args:
        module: The module.
        names: What it has; one that is nearly the same is proposed.
        instead: What to use in general.
        known: What to use for names that programs written for TensorFlow often ask for.
    """

    def missing(name: str) -> Any:
        if known is not None and name in known:
            raise AttributeError(f"{module} has no {name!r}. {known[name]}", name=name)
        near = difflib.get_close_matches(name, names, n=1, cutoff=_NEAR)
        hint = f"Did you mean {module}.{near[0]}? " if near else ""
        raise AttributeError(f"{module} has no {name!r}. {hint}{instead}", name=name)

    return missing


def _is_inner(home: object) -> bool:
    """Tell whether a module is one of those behind the namespaces, such as evenfeed.core.specs."""
    parts = str(home).split(".")
    return parts[0] == "evenfeed" and (len(parts) > 2 or parts[-1] in _INNER)
