"""Branches on tensors: `cond`, `case`, `switch_case`. On known values they are Python's own branches."""

# ruff: noqa: ARG001 - `name` is TensorFlow's argument; there is no graph to show it in.

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.dtypes import in_wanted_dtype
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.tensors.axes import known_integer
from evenfeed.tensors.control.structures import tensors_of
from evenfeed.tensors.creation import convert_to_tensor
from evenfeed.tensors.device_arrays import is_traced
from evenfeed.tensors.operands import BOOLS, check_dtypes


def cond(
    pred: object,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """Return the result of one of two functions.

    Args:
        pred: A bool. If it is unknown while JAX traces, both functions are traced, and their results must have the
            same structure, shapes and dtypes.
        true_fn: The function that is called if it is True.
        false_fn: The function that is called if it is False.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> x = tf.constant(3)
        >>> tf.cond(x > 2, lambda: x * 10, lambda: x).tolist()
        30
    """
    if not callable(true_fn) or not callable(false_fn):
        raise TypeError(
            described("cond needs two functions.", fix="write lambda: before each value.")
        )
    chosen = _condition(pred)
    if is_traced(chosen):
        return _traced("cond", lambda: _branch(chosen, true_fn, false_fn))
    return true_fn() if bool(np.asarray(chosen)) else false_fn()


def case(
    pred_fn_pairs: Sequence[tuple[object, Callable[[], Any]]],
    default: Callable[[], Any] | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str | None = None,
) -> Any:
    """Return the result of the first function whose condition is True, else that of `default`.

    Args:
        pred_fn_pairs: Pairs of a bool and a function.
        default: The function that is called if no condition is True.
        exclusive: Raise if several conditions are True. This needs their values, so the function of a `map` runs per
            element, and a compiled one as plain Python. By default, the first condition that is True decides.
        strict: Accepted for compatibility.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> x = tf.constant(3)
        >>> tf.case([(x < 0, lambda: -x), (x > 2, lambda: x * 10)], default=lambda: x).tolist()
        30
    """
    pairs = [(_condition(chosen), function) for chosen, function in pred_fn_pairs]
    if not exclusive and any(is_traced(chosen) for chosen, _ in pairs):
        return _traced("case", lambda: _first_branch(pairs, default))
    true = [function for chosen, function in pairs if bool(np.asarray(chosen))]
    if exclusive and len(true) > 1:
        raise InvalidArgumentError(
            f"{len(true)} conditions are True, but exclusive=True allows one.",
            fix="pass exclusive=False: the first condition that is True decides.",
        )
    if not true and default is None:
        raise InvalidArgumentError("No condition is True.", fix="pass a default function.")
    return true[0]() if true else cast("Callable[[], Any]", default)()


def switch_case(
    branch_index: object,
    branch_fns: Any,
    default: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """Return the result of the function with this number. Other numbers call `default`, or the last function.

    Args:
        branch_index: An integer.
        branch_fns: A list of functions, or a dict from numbers to functions.
        default: The function for all other numbers.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.switch_case(tf.constant(1), [lambda: 10, lambda: 20])
        20
    """
    branches = _numbered(branch_fns)
    otherwise = default or branches[max(branches)]
    index = convert_to_tensor(branch_index)
    if not is_traced(index):
        return branches.get(known_integer(index, "branch_index"), otherwise)()
    numbers = sorted(branches)
    functions = [*(branches[number] for number in numbers), otherwise]

    def chosen() -> Any:
        is_it = jnp.stack([index == number for number in numbers])
        place = jnp.where(jnp.any(is_it), jnp.argmax(is_it), len(numbers))
        return jax.lax.switch(place, [_returning_tensors(one) for one in functions])

    return _traced("switch_case", chosen)


def _condition(pred: object) -> Any:
    if callable(pred):
        raise ValueError(
            described("A condition must be a bool, not a function.", fix="call the function.")
        )
    chosen = convert_to_tensor(in_wanted_dtype(pred, dtypes.bool))
    check_dtypes("A condition", [chosen], BOOLS)
    if chosen.size != 1:
        raise InvalidArgumentError(
            f"A condition must be a single bool, but it has the shape {tuple(chosen.shape)}.",
            fix="reduce it with evenfeed.reduce_all or reduce_any, or choose values with evenfeed.where.",
        )
    return chosen


def _branch(chosen: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any]) -> Any:
    return jax.lax.cond(
        jnp.reshape(chosen, ()), _returning_tensors(true_fn), _returning_tensors(false_fn)
    )


def _first_branch(
    pairs: Sequence[tuple[Any, Callable[[], Any]]], default: Callable[[], Any] | None
) -> Any:
    (chosen, function), *rest = pairs
    if rest:
        return _branch(chosen, function, lambda: _first_branch(rest, default))
    return _branch(chosen, function, default or function)


def _returning_tensors(function: Callable[[], Any]) -> Callable[[], Any]:
    return lambda: tensors_of(function())


def _traced(function: str, branch: Callable[[], Any]) -> Any:
    try:
        return branch()
    except TypeError as error:
        if "must have" not in str(error):
            raise
        text = str(error).partition("\n")[0]
        raise TypeError(
            described(
                f"The functions of {function} return different results: {text}",
                fix="return tensors of the same shapes and dtypes from all functions.",
            )
        ) from error


def _numbered(branch_fns: Any) -> dict[int, Callable[[], Any]]:
    if isinstance(branch_fns, Mapping):
        return dict(cast("Mapping[int, Callable[[], Any]]", branch_fns))
    entries: list[Any] = list(branch_fns)
    if not entries:
        raise ValueError(described("switch_case got no functions.", fix="pass at least one."))
    return dict(enumerate(entries)) if callable(entries[0]) else dict(entries)
