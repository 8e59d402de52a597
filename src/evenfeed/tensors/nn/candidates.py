"""Samples of classes, for losses that do not look at all of them: `log_uniform_candidate_sampler` and its kin."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jnp
from evenfeed.tensors.axes import known_integer
from evenfeed.tensors.creation import Tensor, convert_to_tensor
from evenfeed.tensors.device_arrays import is_traced
from evenfeed.tensors.operands import INTEGERS, check_dtypes, wide
from evenfeed.tensors.randomness import uniform


class CandidateSample(NamedTuple):
    """Classes that were drawn, and how often each is expected among as many draws."""

    sampled_candidates: Any
    true_expected_count: Any
    sampled_expected_count: Any


def log_uniform_candidate_sampler(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    true_classes: object,
    num_true: int,
    num_sampled: object,
    unique: bool,
    range_max: object,
    seed: int | None = None,
    name: str | None = None,
) -> CandidateSample:
    """Draw classes; the first ones are the most likely, as words are if they are sorted by frequency.

    Args:
        true_classes: The classes of each row, as [rows, num_true].
        num_true: The number of true classes in a row.
        num_sampled: The number of classes to draw.
        unique: Draw each class once at most.
        range_max: The number of classes.
        seed: As for `random.uniform`.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> drawn, _, _ = tf.random.log_uniform_candidate_sampler([[3]], 1, 5, True, 10, seed=1)
        >>> len(set(drawn.tolist()))
        5
    """
    count = _classes(range_max)

    def probability(number: Any) -> Any:
        return jnp.log1p(1 / (number.astype(jnp.float32) + 1)) / math.log(count + 1)

    def draw(sampled: int) -> Any:
        places = uniform([sampled], seed=seed)
        numbers = jnp.exp(places * math.log(count + 1)).astype(jnp.int32) - 1
        return jnp.clip(numbers, 0, count - 1)

    truth = _checked("log_uniform_candidate_sampler", true_classes, num_true, count)
    return _sample(truth, num_sampled, unique, count, probability, draw, seed)


def uniform_candidate_sampler(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    true_classes: object,
    num_true: int,
    num_sampled: object,
    unique: bool,
    range_max: object,
    seed: int | None = None,
    name: str | None = None,
) -> CandidateSample:
    """Draw classes that are equally likely. See `log_uniform_candidate_sampler`.

    Examples:
        >>> import evenfeed as tf
        >>> drawn, _, _ = tf.random.uniform_candidate_sampler([[3]], 1, 4, True, 4, seed=1)
        >>> sorted(drawn.tolist())
        [0, 1, 2, 3]
    """
    count = _classes(range_max)

    def probability(number: Any) -> Any:
        return jnp.full(number.shape, 1 / count, jnp.float32)

    def draw(sampled: int) -> Any:
        return convert_to_tensor(uniform([sampled], 0, count, dtypes.int32, seed))

    truth = _checked("uniform_candidate_sampler", true_classes, num_true, count)
    return _sample(truth, num_sampled, unique, count, probability, draw, seed)


def all_candidate_sampler(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    true_classes: object,
    num_true: int,
    num_sampled: object,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> CandidateSample:
    """Return the first `num_sampled` classes, each once.

    Examples:
        >>> import evenfeed as tf
        >>> tf.random.all_candidate_sampler([[1]], 1, 3, True).sampled_candidates.tolist()
        [0, 1, 2]
    """
    count = known_integer(num_sampled, "num_sampled")
    truth = _checked("all_candidate_sampler", true_classes, num_true, count)
    numbers = wide(jnp.arange(count), dtypes.int64)
    return CandidateSample(
        numbers, jnp.ones(truth.shape, jnp.float32), jnp.ones(count, jnp.float32)
    )


def compute_accidental_hits(
    true_classes: object,
    sampled_candidates: object,
    num_true: int,
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Find the sampled classes that are among the true ones: their rows, their places in the sample, and weights.

    Examples:
        >>> import evenfeed as tf
        >>> rows, places, _ = tf.nn.compute_accidental_hits([[1, 2], [3, 4]], [4, 1, 7], 2)
        >>> rows.tolist(), places.tolist()
        ([0, 1], [1, 0])
    """
    truth, drawn = (np.asarray(given) for given in (true_classes, sampled_candidates))
    _check_shape("compute_accidental_hits", truth, num_true)
    rows, true_places, places = np.nonzero(truth[:, :, None] == drawn)
    order = np.lexsort([places, true_places, rows])
    weights = np.full(len(rows), np.finfo(np.float32).min, np.float32)
    return (
        convert_to_tensor(rows[order].astype(np.int32)),
        wide(convert_to_tensor(places[order].astype(np.int32)), dtypes.int64),
        convert_to_tensor(weights),
    )


def _sample(  # noqa: PLR0913, PLR0917 - what the samplers differ in
    truth: Any,
    num_sampled: object,
    unique: bool,
    count: int,
    probability: Callable[[Any], Any],
    draw: Callable[[int], Any],
    seed: int | None,
) -> CandidateSample:
    sampled = known_integer(num_sampled, "num_sampled")
    if unique and sampled > count:
        raise InvalidArgumentError(
            f"There are only {count} classes, but {sampled} different ones were requested.",
            fix="pass a smaller num_sampled, or unique=False.",
        )
    if unique:
        numbers, tries = _different(probability(jnp.arange(count)), sampled, seed)
    else:
        numbers, tries = draw(sampled), sampled

    def expected(some: Any) -> Any:
        chance = probability(some)
        return jnp.where(
            tries == sampled, chance * sampled, -jnp.expm1(tries * jnp.log1p(-chance))
        ).astype(jnp.float32)

    return CandidateSample(wide(numbers, dtypes.int64), expected(truth), expected(numbers))


def _different(chances: Any, sampled: int, seed: int | None) -> tuple[Any, Any]:
    """Draw until there are enough different classes; return them in order, and the number of draws.

    All classes race: the first to finish, at times that are exponential with these rates, are the first different
    ones of many draws. Given them, the draws of old classes in between are geometric.
    """
    # The second row refines the first, so that the fastest of millions of classes do not tie.
    coarse, fine = uniform([2, len(chances)], seed=seed)
    times = -jnp.log1p(-(coarse + fine * 2.0**-23)) / chances
    numbers = jnp.argsort(times)[:sampled]
    known = jnp.cumsum(chances[numbers])[:-1]
    places = jnp.maximum(uniform([max(sampled - 1, 0)], seed=seed), 1e-30)
    again = jnp.floor(jnp.log(places) / jnp.log(jnp.clip(known, 1e-30, 1 - 1e-7)))
    return numbers, sampled + jnp.sum(again)


def _classes(range_max: object) -> int:
    count = known_integer(range_max, "range_max")
    if count < 1:
        raise InvalidArgumentError(
            f"range_max must be at least 1, but got {count}.", fix="pass the number of classes."
        )
    return count


def _checked(function: str, true_classes: object, num_true: int, count: int) -> Any:
    truth = convert_to_tensor(true_classes)
    check_dtypes(function, [truth], INTEGERS)
    _check_shape(function, truth, num_true)
    known = None if is_traced(truth) or not truth.size else np.asarray(truth)
    if known is not None and not 0 <= known.min() <= known.max() < count:
        raise InvalidArgumentError(
            f"{function} needs classes from 0 to {count - 1}, but got {known.min()} to {known.max()}.",
            fix="pass a range_max above all classes.",
        )
    return truth


def _check_shape(function: str, truth: Any, num_true: int) -> None:
    if truth.ndim != 2 or truth.shape[1] != num_true:
        raise InvalidArgumentError(
            f"{function} needs true_classes of shape [rows, {num_true}], but got {list(truth.shape)}.",
            fix="reshape them with evenfeed.reshape(classes, [-1, num_true]).",
        )
