"""`Dataset.rejection_resample`: rejects elements so that classes follow a target distribution.

Each element comes either from the original dataset, or from a filtered one that keeps an element of
class i with probability a_i. With r_i = target_i / initial_i, drawing from the original with probability
m = min r and filtering with a_i = (r_i - m) / (max r - m) rejects the fewest elements.

The arithmetic works on NumPy arrays and on tracers.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.specs import TensorSpec
from evenfeed.dataset.face import Face, checked_function, dataset_of, plan_of, shuffle_seed
from evenfeed.plan.elementwise import WithKeys
from evenfeed.runtime.functions.calls import bound

if TYPE_CHECKING:
    from evenfeed.dataset.dataset import Dataset

# TensorFlow's values: the estimate is updated every 32 elements, and starts with 10 elements of each class.
ESTIMATED_AT_A_TIME: Final = 32
_SEEN_BEFORE: Final = 10


def distribution(value: Any, name: str) -> Array:
    """Convert a distribution over classes to a float32 vector."""
    array = to_array(value)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iufb":
        raise InvalidArgumentError(
            f"{name} must be a vector of numbers, but got {shortened(value)}.",
            fix=f"pass one number per class: {name}=[0.5, 0.5].",
        )
    return array.astype(np.float32)


def check_class(spec: Any) -> None:
    """Raise unless `class_func` returns a scalar integer."""
    is_number = isinstance(spec, TensorSpec) and spec.dtype.kind in "iu"
    if not is_number:
        raise TypeError(
            described(
                f"class_func must return an integer, but returns {spec}.",
                fix="return the index of the class: tf.cast(label, tf.int32).",
            )
        )
    if spec.shape.rank not in (0, None):
        raise ValueError(
            described(
                f"class_func must return a scalar, but returns {spec}.",
                fix="call rejection_resample before batch, or call unbatch first.",
            )
        )


def chances(initial: Any, target: Array) -> tuple[Any, Any]:
    """Return the probability a_i of keeping each class, and the probability m of drawing from the original."""
    # If all ratios are equal, this divides 0 by 0; m is then 1 and nothing is rejected.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = target / (initial + np.finfo(np.float32).tiny)
        least = ratio.min()
        return (ratio - least) / (ratio.max() - least), least


def known_chances(initial_dist: Any, target: Array) -> tuple[Array, Array]:
    """Return the probabilities for a given initial distribution."""
    initial = distribution(initial_dist, "initial_dist")
    if target.shape != initial.shape:
        raise InvalidArgumentError(
            f"target_dist has {len(target)} classes, but initial_dist has {len(initial)}.",
            fix="pass one number per class in both.",
        )
    return chances(initial, target)


def initial_counts(classes: int) -> Array:
    """Return the class counts that an estimate starts from."""
    return np.full(classes, _SEEN_BEFORE, np.int64)


def estimated(seen: Any, classes: Any) -> tuple[Any, Any]:
    """Update the class counts. Return them, and the estimated distribution for each element of the next batch."""
    counts = seen + (classes[:, None] == np.arange(len(seen))).sum(0)
    parts = (counts / counts.sum()).astype(dtypes.float32)
    return counts, parts + np.zeros((ESTIMATED_AT_A_TIME, 1), np.float32)


def weights(_: Any, original: Any) -> Any:
    """Return the sampling weights of the original and of the filtered dataset."""
    return original * np.array([1, -1], np.float32) + np.array([0, 1], np.float32)


def is_kept(words: Any, kept: Any, classed: tuple[Any, Any]) -> Any:
    """Return True if an element is kept. 24 of its random bits decide."""
    number = classed[0]
    # A negative class is out of range. As an index it would count from the end.
    place = (number >= 0) * number + (number < 0) * len(kept)
    return (words[0] >> np.uint32(8)) * np.float32(2.0**-24) < kept[place]


class Resampling(Face):
    """The method that changes the distribution of classes."""

    __slots__ = ()

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> "Dataset":
        """Reject and repeat elements so that their classes follow a target distribution.

        The dataset is read in several concurrent passes.

        Args:
            class_func: Returns the class of an element, an integer from 0.
            target_dist: The target distribution, one number per class.
            initial_dist: The actual distribution, one number per class; estimated while reading by
                default.
            seed: Combined with the global seed; makes the draws the same in every run.
            name: Accepted for compatibility; ignored.

        Returns:
            A dataset of pairs `(class, element)`.

        Examples:
            >>> import numpy as np
            >>> import evenfeed as tf
            >>> rare = tf.data.Dataset.range(10_000).map(lambda x: tf.cast(x % 10 == 0, tf.int32))
            >>> even = rare.rejection_resample(lambda x: x, target_dist=[0.5, 0.5], seed=1)
            >>> bool(0.45 < np.mean([label for label, x in even]) < 0.55)
            True
        """
        del name
        target = distribution(target_dist, "target_dist")
        spreads = type(self.element_spec) is tuple
        classed = dataset_of(self._plan).map(
            bound(_beside_parts if spreads else _beside, checked_function(class_func))
        )
        check_class(classed.element_spec[0])
        if initial_dist is None:
            chances, original = _estimated(classed, target), None
        else:
            known = known_chances(initial_dist, target)
            chances, original = Face.dataset_class.from_tensors(known).repeat(), known[1]
        if original == 1:
            return classed
        filtered = _kept(classed, chances, seed)
        if original == 0:
            return filtered
        return Face.dataset_class.sample_from_datasets(
            [classed, filtered], chances.map(weights), seed, stop_on_empty_dataset=True
        )


def _beside(class_func: Callable[..., Any], element: Any) -> Any:
    return class_func(element), element


def _beside_parts(class_func: Callable[..., Any], *parts: Any) -> Any:
    return class_func(*parts), parts


def _estimated(classed: "Dataset", target: Array) -> "Dataset":
    """Return the probabilities for each element, estimated from the classes of earlier elements."""
    classes = classed.map(_first).batch(ESTIMATED_AT_A_TIME)
    seen = initial_counts(len(target))
    return classes.scan(seen, estimated).unbatch().map(partial(chances, target=target))


def _kept(classed: "Dataset", chances: "Dataset", seed: int | None) -> "Dataset":
    """Return the elements that are randomly kept. As in TensorFlow, they are the same in each pass."""
    together = plan_of(Face.dataset_class.zip(chances.map(_first), classed))
    keyed = dataset_of(WithKeys(together, shuffle_seed(seed), counts_passes=False))
    return keyed.filter(is_kept).map(_last)


def _first(*parts: Any) -> Any:
    return parts[0]


def _last(*parts: Any) -> Any:
    return parts[-1]
