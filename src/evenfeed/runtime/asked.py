"""What was asked of a user's function: how to call it, and what is known of its arguments and results."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from evenfeed.core.callsite import Origin
from evenfeed.runtime.run import FirstElements


@final
@dataclass(frozen=True, slots=True)
class Asked:
    """What `trace` was asked, to ask it again in another process."""

    function: Callable[..., Any]
    input_spec: Any
    origin: Origin | None
    vectorize: bool | None
    output_signature: Any
    num_parallel_calls: int | None
    returns: Any
    spread: bool
    returns_values: bool
    first_elements: FirstElements | None
    doing: str
    untraced: str | None
    may_draw: bool
