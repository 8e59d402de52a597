"""A function of the user's for each element."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, Final, final

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.plan.function import UserFunction
from evenfeed.plan.node import Node

AUTOTUNE: Final = -1  # as TensorFlow's


@final
@dataclass(frozen=True)
class Map(Node):
    """What a function returns for each element."""

    child: Node
    function: UserFunction
    _: KW_ONLY
    num_parallel_calls: int | None = None
    deterministic: bool | None = None
    processes: bool = False

    def __post_init__(self) -> None:
        calls = self.num_parallel_calls
        if calls is not None and calls < 1 and calls != AUTOTUNE:
            raise InvalidArgumentError(
                f"num_parallel_calls must be at least 1, but got {calls}.",
                fix="pass the number of calls to run at a time, or evenfeed.data.AUTOTUNE.",
                origin=self.origin,
            )

    @property
    def element_spec(self) -> Any:
        """What the function returns."""
        return self.function.output_spec

    @property
    def size(self) -> int:
        """The child's."""
        return self.child.size
