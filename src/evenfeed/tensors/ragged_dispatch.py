"""Lets functions of tensors take ragged tensors."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from evenfeed.core.ragged.ragged_functions import map_flat_values
from evenfeed.core.ragged.ragged_tensors import RaggedTensor

Function = TypeVar("Function", bound=Callable[..., Any])


def for_ragged(
    instead: Callable[..., Any], *, several: bool = False
) -> Callable[[Function], Function]:
    """Call another function with the same arguments if one of them is a ragged tensor.

    Args:
        instead: The function for ragged tensors.
        several: Whether the first argument is a list of tensors.
    """

    def decorated(function: Function) -> Function:
        @wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            given = [*args, *kwargs.values()]
            if several and given and isinstance(given[0], (list, tuple)):
                given = list(cast("list[Any]", given[0]))
            if any(isinstance(part, RaggedTensor) for part in given):
                return instead(*args, **kwargs)
            return function(*args, **kwargs)

        return cast("Function", called)

    return decorated


def for_flat_values(function: Function) -> Function:
    """Call a function with the flat values of a ragged tensor, and put its result into the same rows."""

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if any(isinstance(part, RaggedTensor) for part in (*args, *kwargs.values())):
            return map_flat_values(function, *args, **kwargs)
        return function(*args, **kwargs)

    return cast("Function", called)
