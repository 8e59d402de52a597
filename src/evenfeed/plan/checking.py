"""Elements that are checked on their way: seen before, failed, or more or fewer than promised."""

from collections import deque
from dataclasses import KW_ONLY, dataclass, field
from threading import Lock
from typing import NamedTuple, final

from evenfeed.core import dtypes
from evenfeed.core.errors import EvenfeedError, InvalidArgumentError, described
from evenfeed.core.specs import INFINITE, UNKNOWN, TensorSpec
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


class Skipped(NamedTuple):
    """An element that was left out.

    Attributes:
        file: Where it was to come from; None where no file is to blame.
        offset: At which byte of the file, or of what the file holds where it is compressed; None where
            that is not known.
        reason: The error: its class, what it says, and what was being done.
    """

    file: str | None
    offset: int | None
    reason: str


@final
class Ignored:
    """What was left out in all passes over a dataset.

    Attributes:
        count: How many elements.
        skipped: What is known of them, of the last thousand.
    """

    def __init__(self) -> None:
        self.count = 0
        self.skipped: deque[Skipped] = deque(maxlen=1000)
        self._lock = Lock()

    def add(self, error: BaseException) -> Skipped:
        """Count an error."""
        skipped = _skipped(error)
        with self._lock:
            self.count += 1
            self.skipped.append(skipped)
        return skipped

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return Ignored, ()


def _skipped(error: BaseException) -> Skipped:
    known = isinstance(error, EvenfeedError)
    said = "\n".join([str(error), *getattr(error, "__notes__", [])])
    reason = f"{type(error).__name__}: {said}"
    return Skipped(error.file, error.offset, reason) if known else Skipped(None, None, reason)


@final
@dataclass(frozen=True)
class IgnoreErrors(_SomeOfThem):
    """Leaves out elements that fail."""

    _: KW_ONLY
    log_warning: bool = False
    max_total: int | None = None
    max_consecutive: int | None = None
    ignored: Ignored = field(default_factory=Ignored, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name, most in (
            ("max_total", self.max_total),
            ("max_consecutive", self.max_consecutive),
        ):
            if most is not None and most < 0:
                raise InvalidArgumentError(
                    f"{name} must be at least 0, but got {most}.",
                    fix="pass how many errors to ignore, or None for all.",
                    origin=self.origin,
                )


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
