"""Loops over tensors: `while_loop`, `map_fn`, `foldl`, `scan`. On known values they are Python's own loops."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

# ruff: noqa: ARG001, D417, PLR0913, PLR0917 - TensorFlow's arguments; the graph has no swap memory or names

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.ragged import ragged_mapping
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.specs import TensorSpec
from evenfeed.core.structure import NEST, flatten, map_structure, pack
from evenfeed.tensors.axes import known_integer
from evenfeed.tensors.control.structures import is_for_host, parts_of, tensors_of
from evenfeed.tensors.creation import DTypeLike, convert_to_tensor
from evenfeed.tensors.device_arrays import is_tracing
from evenfeed.tensors.operands import in_dtype
from evenfeed.tensors.ragged_dispatch import for_ragged
from evenfeed.tensors.shaping import stack


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: object = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: object = None,
    name: str | None = None,
) -> Any:
    """Call `body` again and again, on what it returned before, while `cond` returns True.

    In a trace the loop is one operation: shapes and dtypes stay the same, and it has no reverse-mode gradient.

    Args:
        cond: A function of the loop variables that returns a bool.
        body: A function of the loop variables that returns their next values.
        loop_vars: A list or tuple of the first values.
        shape_invariants: Accepted for compatibility, like the arguments after it.
        maximum_iterations: The most calls of `body`.

    Examples:
        >>> import evenfeed as tf
        >>> i, total = tf.while_loop(lambda i, t: i < 4, lambda i, t: (i + 1, t + i), [0, 0])
        >>> total.tolist()
        6
    """
    most = None if maximum_iterations is None else known_integer(maximum_iterations, "iterations")
    first = tensors_of(loop_vars)
    if is_tracing() and not is_for_host(first):
        return _traced_while(cond, body, first, most)
    values, count = first, 0
    while (most is None or count < most) and bool(np.asarray(cond(*values))):
        values, count = tensors_of(_several(loop_vars, body(*values))), count + 1
    return values


@for_ragged(ragged_mapping.map_fn)
def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """Call a function with each entry of tensors along their first axis, and stack the results.

    Args:
        fn: A function of one entry: of a structure of entries, if `elems` is a structure.
        elems: A tensor, or a structure of tensors with the same number of entries.
        dtype: The older name of `fn_output_signature`.
        parallel_iterations: Accepted for compatibility, like the arguments after it.
        fn_output_signature: The dtypes or specs of the results, if they differ from `elems`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.map_fn(lambda x: x * x, tf.constant([1, 2, 3])).tolist()
        [1, 4, 9]
    """
    values, length = _entries(elems)
    wanted = fn_output_signature if fn_output_signature is not None else dtype
    if isinstance(wanted, RaggedTensorSpec):
        found = [fn(_at(values, place)) for place in range(length)]
        return ragged_mapping.rows_of_results(found, wanted)

    def call(entry: Any) -> Any:
        found = tensors_of(fn(entry))
        return found if wanted is None else map_structure(_as_asked, wanted, found, rules=NEST)

    if is_for_host(values) or not (is_tracing() or not length):
        return _stacked([call(_at(values, place)) for place in range(length)])
    if length:
        return jax.lax.map(call, values)
    found = jax.eval_shape(call, map_structure(_spec_of_entry, values, rules=NEST))
    return jax.tree.map(lambda one: jnp.zeros((0, *one.shape), one.dtype), found)


def vectorized_map(
    fn: Callable[[Any], Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True
) -> Any:
    """Like `map_fn`, but call the function once, for all entries at a time.

    Examples:
        >>> import evenfeed as tf
        >>> tf.vectorized_map(lambda x: x * x, tf.constant([1, 2, 3])).tolist()
        [1, 4, 9]
    """
    values, _ = _entries(elems)
    if is_for_host(values):
        return map_fn(fn, values)
    try:
        return jax.vmap(lambda entry: tensors_of(fn(entry)))(values)
    except (jax.errors.ConcretizationTypeError, jax.errors.TracerArrayConversionError):
        if not fallback_to_while_loop:
            raise
        return map_fn(fn, values)


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Combine the entries of tensors, from the first on: `fn(fn(first, second), third)` and so on.

    Examples:
        >>> import evenfeed as tf
        >>> tf.foldl(lambda total, x: total + x, tf.constant([1, 2, 3])).tolist()
        6
    """
    return _folded(fn, elems, initializer, reverse=False)[0]


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Combine the entries of tensors, from the last on; see `foldl`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.foldr(lambda total, x: total * 10 + x, tf.constant([1, 2, 3])).tolist()
        321
    """
    return _folded(fn, elems, initializer, reverse=True)[0]


def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Combine the entries of tensors as `foldl` does, and return what there was after each entry.

    Examples:
        >>> import evenfeed as tf
        >>> tf.scan(lambda total, x: total + x, tf.constant([1, 2, 3])).tolist()
        [1, 3, 6]
    """
    return _folded(fn, elems, initializer, reverse=reverse)[1]()


def _folded(
    fn: Callable[[Any, Any], Any], elems: Any, initializer: Any, *, reverse: bool
) -> tuple[Any, Callable[[], Any]]:
    """Return what the function returned last, and a function that stacks all that it returned."""
    values, length = _entries(elems)
    places = list(range(length))[:: -1 if reverse else 1]
    if initializer is None and not places:
        raise InvalidArgumentError("There is no entry to start with.", fix="pass an initializer.")
    first = _at(values, places.pop(0)) if initializer is None else tensors_of(initializer)
    own = [first] if initializer is None else []
    if is_tracing() and places and not is_for_host([values, first]):
        return _traced_fold(fn, first, values, places, own, reverse=reverse)
    states = [first]
    for place in places:
        states.append(tensors_of(fn(states[-1], _at(values, place))))
    all_states = [*own, *states[1:]]
    return states[-1], lambda: _stacked(all_states[:: -1 if reverse else 1])


def _traced_fold(
    fn: Callable[[Any, Any], Any],
    first: Any,
    values: Any,
    places: list[int],
    own: list[Any],
    *,
    reverse: bool,
) -> tuple[Any, Callable[[], Any]]:
    def step(state: Any, entry: Any) -> tuple[Any, Any]:
        found = tensors_of(fn(state, entry))
        return found, found

    order = np.asarray(places)
    last, after = jax.lax.scan(step, first, map_structure(lambda x: x[order], values, rules=NEST))

    def joined(*parts: Any) -> Any:
        whole = jnp.concatenate([*(part[None] for part in parts[1:]), parts[0]])
        return jnp.flip(whole, 0) if reverse else whole

    return last, lambda: map_structure(joined, after, *own, rules=NEST)


def _entries(elems: Any) -> tuple[Any, int]:
    values = tensors_of(elems)
    lengths = {part.shape[0] if part.ndim else None for part in parts_of(values)}
    if len(lengths) != 1 or None in lengths:
        raise ValueError(
            described(
                f"All tensors must have the same number of entries, but got {sorted(map(str, lengths))}.",
                fix="pass tensors with at least one axis, of the same first length.",
            )
        )
    return values, cast("int", lengths.pop())


def _at(values: Any, place: int) -> Any:
    return map_structure(lambda part: convert_to_tensor(part[place]), values, rules=NEST)


def _stacked(results: Sequence[Any]) -> Any:
    parts = zip(*(parts_of(result) for result in results), strict=True)
    stacks = [stack(list(part)) for part in parts]
    return pack(results[0], stacks, NEST)


def _spec_of_entry(part: Any) -> Any:
    return jax.ShapeDtypeStruct(part.shape[1:], part.dtype)


def _as_asked(wanted: Any, found: Any) -> Any:
    dtype: DTypeLike = wanted.dtype if isinstance(wanted, TensorSpec) else wanted
    return found if found.dtype == dtype else in_dtype(found, dtype)


def _several(loop_vars: Any, returned: Any) -> Any:
    """Return the next values of the loop variables as a list or tuple."""
    values: Any = returned if isinstance(returned, (list, tuple)) else [returned]
    if len(values) != len(loop_vars):
        raise ValueError(
            described(
                f"The body returned {len(values)} values, but there are {len(loop_vars)} loop variables.",
                fix="return the next value of each loop variable.",
            )
        )
    return values


def _traced_while(
    cond: Callable[..., Any], body: Callable[..., Any], first: Any, most: int | None
) -> Any:
    def goes_on(state: Any) -> Any:
        count, values = state
        chosen = jnp.reshape(jnp.asarray(convert_to_tensor(cond(*values))), ())
        return chosen if most is None else (count < most) & chosen

    def step(state: Any) -> Any:
        count, values = state
        return count + 1, _like(first, tensors_of(_several(first, body(*values))))

    return jax.lax.while_loop(goes_on, step, (jnp.asarray(0, np.int32), first))[1]


def _like(first: Any, values: Any) -> Any:
    return pack(first, flatten(values, NEST), NEST)
