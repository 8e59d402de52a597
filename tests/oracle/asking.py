"""Finds the programs and runs them: under TensorFlow to record its answers, under evenfeed to compare."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.oracle.plain import Raised

HERE = Path(__file__).parent
ANSWERS = HERE / "answers"
SUBJECTS = sorted(path.stem for path in (HERE / "programs").glob("*.py"))


def programs(subject: str) -> dict[str, Callable[..., dict[str, Any]]]:
    """Return the public functions that a file of programs defines, by name."""
    module = importlib.import_module(f"tests.oracle.programs.{subject}")
    return {
        name: value
        for name, value in sorted(vars(module).items())
        if callable(value)
        and not name.startswith("_")
        and getattr(value, "__module__", None) == module.__name__
        and not isinstance(value, type)
    }


def ask(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return what the call returns, or what it raised."""
    try:
        return function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - every error is an answer
        return Raised(tuple(kind.__name__ for kind in type(error).__mro__))
