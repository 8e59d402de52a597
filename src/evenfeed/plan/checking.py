"""Elements that are checked on their way: seen before, failed, or more or fewer than promised."""

from collections import deque
from dataclasses import KW_ONLY, dataclass, field
from threading import Lock
from typing import final

from evenfeed.core import dtypes
from evenfeed.core.cardinality import INFINITE, UNKNOWN
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.specs import TensorSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.plan.node import SameElements


@dataclass(frozen=True)
class _SomeOfThem(SameElements):
    """A node that passes on the child's elements, though perhaps not all of them."""

    @property
    def size(self) -> int:
        """Not known."""
        return UNKNOWN


@final
@dataclass(frozen=True)
class Unique(_SomeOfThem):
    """The first of equal elements, which have one part of whole numbers or text."""

    def __post_init__(self) -> None:
        specs = flatten(self.child.element_spec, DATA)
        for spec in specs:
            known = isinstance(spec, TensorSpec)
            if not known or spec.dtype not in (dtypes.int32, dtypes.int64, dtypes.string):
                raise TypeError(
                    described(
                        f"unique compares int32, int64 and string, but the elements hold {spec}.",
                        fix="map the elements to a key of one of those dtypes first.",
                        origin=self.origin,
                    )
                )
        if len(specs) != 1:
            raise InvalidArgumentError(
                f"unique compares elements of one part, but these have {len(specs)}.",
                fix="map the elements to one part first.",
                origin=self.origin,
            )


@final
class Ignored:
    """Counts what was ignored in all passes over a dataset, and remembers the last few errors."""

    def __init__(self) -> None:
        self.count = 0
        self.last: deque[str] = deque(maxlen=16)
        self._lock = Lock()

    def add(self, error: BaseException) -> None:
        """Count an error."""
        with self._lock:
            self.count += 1
            self.last.append(f"{type(error).__name__}: {error}")

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return Ignored, ()


@final
@dataclass(frozen=True)
class IgnoreErrors(_SomeOfThem):
    """Leaves out elements that fail."""

    _: KW_ONLY
    log_warning: bool = False
    max_errors: int | None = None
    ignored: Ignored = field(default_factory=Ignored, compare=False, repr=False)


@final
@dataclass(frozen=True)
class AssertCardinality(_SomeOfThem):
    """Promises how many elements there are; it is an error while reading if there are not."""

    count: int

    def __post_init__(self) -> None:
        if self.count < INFINITE:
            raise InvalidArgumentError(
                f"A cardinality to assert is at least 0, or infinite, but got {self.count}.",
                fix="pass the number of elements, or evenfeed.data.INFINITE_CARDINALITY.",
                origin=self.origin,
            )

    @property
    def size(self) -> int:
        """What was promised."""
        return self.count
