"""Layers that prepare data in `Dataset.map`."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from evenfeed.core import side_effects
from evenfeed.core.side_effects import ProbeAbandoned
from evenfeed.tensors.device_arrays import is_traced


def assigning(own: Callable[..., Any]) -> Callable[..., Any]:
    """Report an assignment to the dataset whose function makes it, such as a random layer that draws.

    A value of a trace must not stay in the variable, so the function runs per element.
    """

    def assign(self: Any, value: Any) -> None:
        watcher = side_effects.here.watcher
        if watcher is not None:
            watcher.traps(SimpleNamespace(name=self.path, made_under=None))
            if is_traced(value):
                raise ProbeAbandoned(f"assigns the variable {self.path!r}")
        own(self, value)

    return assign
