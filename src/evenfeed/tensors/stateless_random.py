"""Random tensors that depend on nothing but a seed, with TensorFlow's numbers."""

# ruff: noqa: ARG001 - `name` is TensorFlow's argument; there is no graph to show it in.

from enum import Enum
from typing import Any, cast, final

from evenfeed.core import dtypes
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.core.randomness import philox
from evenfeed.tensors.creation import DTypeLike, convert_to_tensor
from evenfeed.tensors.distributions import (
    Source,
    categories_of,
    normal_of,
    seeded,
    shuffled_by,
    uniform_of,
)
from evenfeed.tensors.shaping import stack


@final
class Algorithm(Enum):
    """The algorithm of random numbers. `AUTO_SELECT` is `PHILOX`; there is no other."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


def algorithm_of(alg: object) -> Algorithm:
    """Return the algorithm for an argument: a member of `Algorithm`, its number or its name."""
    if isinstance(alg, str):
        name = alg.strip().lower().replace("-", "").replace("_", "")
        known = {"philox": Algorithm.PHILOX, "autoselect": Algorithm.AUTO_SELECT}
        found = known.get(name)
    else:
        found = alg if isinstance(alg, Algorithm) else _numbered(alg)
    if found is None or found is Algorithm.THREEFRY:
        raise ValueError(
            described(
                f"The algorithm must be 'philox' or 'auto_select', but got {shortened(alg)}.",
                fix="pass alg='philox': it gives the same numbers on all devices.",
            )
        )
    return found


def _numbered(alg: object) -> Algorithm | None:
    if not isinstance(alg, int):
        raise TypeError(
            described(
                f"The algorithm must be a name or a member of evenfeed.random.Algorithm, but got {shortened(alg)}.",
                fix="pass alg='philox'.",
            )
        )
    return next((known for known in Algorithm if known.value == alg), None)


def stateless_uniform(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    shape: object,
    seed: object,
    minval: object = 0,
    maxval: object = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
    alg: object = "auto_select",
) -> Any:
    """Draw uniform random numbers from `minval` up to `maxval`, exclusive, that depend only on the seed.

    Args:
        shape: The shape of the result.
        seed: Two integers.
        minval: The lower bound, inclusive; for floats it may be a tensor.
        maxval: The upper bound, exclusive. The default is 1 for floats. None for both bounds draws from the whole
            range of an integer dtype.
        dtype: A float dtype, int32 or int64; uint32 or uint64 from their whole range.
        name: Accepted for compatibility.
        alg: "philox" or "auto_select", which is the same.

    Examples:
        >>> import evenfeed as tf
        >>> tf.random.stateless_uniform([3], seed=(1, 2), minval=0, maxval=100, dtype=tf.int32).tolist()
        [40, 49, 94]
    """
    return uniform_of(_source(seed, alg), shape, minval, maxval, dtype)


def stateless_normal(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    shape: object,
    seed: object,
    mean: object = 0.0,
    stddev: object = 1.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
    alg: object = "auto_select",
) -> Any:
    """Draw numbers from a normal distribution that depend only on the seed.

    Args:
        shape: The shape of the result, before `mean` and `stddev` broadcast with it.
        seed: Two integers.
        mean: The mean of the distribution, which may be a tensor.
        stddev: The standard deviation, which may be a tensor.
        dtype: A float dtype.
        name: Accepted for compatibility.
        alg: "philox" or "auto_select", which is the same.

    Examples:
        >>> import evenfeed as tf
        >>> [round(number, 3) for number in tf.random.stateless_normal([2], seed=(1, 2)).tolist()]
        [0.544, 0.207]
    """
    return normal_of(_source(seed, alg), shape, mean, stddev, dtype)


def stateless_truncated_normal(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    shape: object,
    seed: object,
    mean: object = 0.0,
    stddev: object = 1.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
    alg: object = "auto_select",
) -> Any:
    """Draw normal numbers less than 2 standard deviations from the mean, that depend only on the seed.

    The arguments are those of `stateless_normal`.

    Examples:
        >>> import evenfeed as tf
        >>> bool(abs(tf.random.stateless_truncated_normal([1000], seed=(1, 2))).max() < 2)
        True
    """
    return normal_of(_source(seed, alg), shape, mean, stddev, dtype, draw=philox.truncated_normals)


def stateless_categorical(
    logits: object,
    num_samples: object,
    seed: object,
    dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Any:
    """Draw classes, that depend only on the seed.

    Args:
        logits: For each row, the logarithm of the probability of each class, up to a constant.
        num_samples: The number of draws for each row.
        seed: Two integers.
        dtype: int32 or int64.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.random.stateless_categorical([[0.0, -100.0]], 3, seed=(1, 2), dtype=tf.int32).tolist()
        [[0, 0, 0]]
    """
    return categories_of(_source(seed, "auto_select"), logits, num_samples, dtype)


def stateless_shuffle(
    value: object, seed: object, alg: object = "auto_select", name: str | None = None
) -> Any:
    """Return a tensor with its first axis in a random order, that depends only on the seed.

    Examples:
        >>> import evenfeed as tf
        >>> tf.random.experimental.stateless_shuffle([1, 2, 3, 4], seed=(1, 2)).tolist()
        [1, 4, 3, 2]
    """
    return shuffled_by(_source(seed, alg), value)


def split(seed: object, num: int = 2, alg: object = "auto_select") -> Any:
    """Make several seeds of one.

    Args:
        seed: Two integers.
        num: The number of seeds.
        alg: "philox" or "auto_select", which is the same.

    Returns:
        A tensor of shape [num, 2], with the dtype of the seed.

    Examples:
        >>> import evenfeed as tf
        >>> tf.random.split((1, 2), 3).tolist()
        [[1105988140, 1738052849], [-335576002, 370444179], [10670227, -246211131]]
    """
    dtype: DTypeLike = convert_to_tensor(seed).dtype
    return uniform_of(_source(seed, alg), [num, 2], None, None, dtype)


def fold_in(seed: object, data: object, alg: object = "auto_select") -> Any:
    """Make a seed of a seed and a number, such as the index of a replica.

    Args:
        seed: Two integers.
        data: The number.
        alg: "philox" or "auto_select", which is the same.

    Returns:
        A seed, with the dtype of `data`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.random.fold_in((1, 2), 3).tolist()
        [1105988140, 3]
    """
    number = convert_to_tensor(data)
    drawn = uniform_of(_source(seed, alg), [], None, None, cast("DTypeLike", number.dtype))
    return stack([drawn, number])


def _source(seed: object, alg: object) -> Source:
    algorithm_of(alg)
    stream = seeded(seed)
    return lambda _: stream
