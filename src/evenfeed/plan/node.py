"""The root of all plan nodes."""

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from evenfeed.core.callsite import Origin, where_called


@dataclass(frozen=True)
class Node(ABC):
    """One step of a plan. Two nodes are equal if they say the same, wherever they were written."""

    _: KW_ONLY
    origin: Origin | None = field(default_factory=where_called, compare=False, repr=False)

    @property
    @abstractmethod
    def element_spec(self) -> Any:
        """The specs of an element's parts, in its own structure."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of elements, or `INFINITE` or `UNKNOWN`."""
