"""TensorFlow's `tf.data.experimental`: options of distribution, and promises about cardinality."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from evenfeed.core.arguments import whole_number
from evenfeed.core.cardinality import INFINITE, UNKNOWN
from evenfeed.core.publish import publish, refusal
from evenfeed.dataset import Dataset, plan_of
from evenfeed.options import (
    AutoShardPolicy,
    AutotuneAlgorithm,
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
)
from evenfeed.plan.buffering import AUTOTUNE
from evenfeed.plan.checking import AssertCardinality

INFINITE_CARDINALITY: Final = INFINITE
UNKNOWN_CARDINALITY: Final = UNKNOWN

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "AutoShardPolicy",
    "AutotuneAlgorithm",
    "AutotuneOptions",
    "DistributeOptions",
    "ExternalStatePolicy",
    "OptimizationOptions",
    "assert_cardinality",
    "cardinality",
]


def cardinality(dataset: Dataset) -> np.int64 | int:
    """Return how many elements a dataset has, or INFINITE_CARDINALITY or UNKNOWN_CARDINALITY.

    Examples:
        >>> import evenfeed as tf
        >>> int(tf.data.experimental.cardinality(tf.data.Dataset.range(3)))
        3
    """
    return dataset.cardinality()


def assert_cardinality(expected_cardinality: int) -> Callable[[Dataset], Dataset]:
    """Return a function for `Dataset.apply` that promises how many elements there are.

    Examples:
        >>> import evenfeed as tf
        >>> promised = tf.data.Dataset.range(3).apply(tf.data.experimental.assert_cardinality(3))
        >>> len(promised)
        3
    """
    count = whole_number(expected_cardinality, "expected_cardinality")
    return lambda dataset: Dataset(AssertCardinality(plan_of(dataset), count))


publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(__name__, __all__, "The README lists what exists now.")
