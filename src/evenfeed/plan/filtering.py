"""Which elements stay, as a user's function says."""

from dataclasses import dataclass
from typing import Any, final

from evenfeed.core import dtypes
from evenfeed.core.cardinality import UNKNOWN
from evenfeed.core.errors import described
from evenfeed.core.specs import TensorSpec
from evenfeed.plan.function import UserFunction
from evenfeed.plan.node import SameElements


@dataclass(frozen=True)
class _Chosen(SameElements):
    """The elements of a child that a function chooses: how many, nobody knows before."""

    predicate: UserFunction

    def __post_init__(self) -> None:
        answer = self.predicate.output_spec
        if not _is_one_bool(answer):
            raise ValueError(
                described(
                    f"A predicate must return one bool, but {self.predicate} returns {answer}.",
                    fix="return a comparison such as x > 0; reduce an array with jnp.all or jnp.any.",
                    origin=self.origin,
                )
            )

    @property
    def size(self) -> int:
        """Unknown."""
        return UNKNOWN


@final
@dataclass(frozen=True)
class Filter(_Chosen):
    """The elements for which the predicate is true."""


@final
@dataclass(frozen=True)
class TakeWhile(_Chosen):
    """The elements before the first for which the predicate is false."""


def _is_one_bool(spec: Any) -> bool:
    return (
        isinstance(spec, TensorSpec) and spec.dtype == dtypes.bool and spec.shape.rank in (0, None)
    )
