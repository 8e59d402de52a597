"""The arithmetic of rejection_resample: which elements to reject, so that classes come in given parts.

An element comes either from the dataset as it is, or from one that keeps an element of class i with
probability a_i. With r_i = target_i / initial_i, drawing from the first with probability m = min r and
keeping a_i = (r_i - m) / (max r - m) in the second rejects the least.

All functions work on NumPy's arrays and on those of a trace.
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
from evenfeed.plan.ordering import Passes
from evenfeed.runtime.functions.calls import bound

if TYPE_CHECKING:
    from evenfeed.dataset.dataset import Dataset

# TensorFlow's: how many elements make a new estimate, and how many of each class are taken as seen.
ESTIMATED_AT_A_TIME: Final = 32
_SEEN_BEFORE: Final = 10


def distribution(value: Any, name: str) -> Array:
    """Return the weights of classes as a vector of floats."""
    array = to_array(value)
    if array.ndim != 1 or not array.size or array.dtype.kind not in "iufb":
        raise InvalidArgumentError(
            f"{name} must be a vector of numbers, but got {shortened(value)}.",
            fix=f"pass one number for each class: {name}=[0.5, 0.5].",
        )
    return array.astype(np.float32)


def check_class(spec: Any) -> None:
    """Raise unless a class function returns a scalar whole number."""
    is_number = isinstance(spec, TensorSpec) and spec.dtype.kind in "iu"
    if not is_number:
        raise TypeError(
            described(
                f"A class must be a whole number, but class_func returns {spec}.",
                fix="return the number of the class: tf.cast(label, tf.int32).",
            )
        )
    if spec.shape.rank not in (0, None):
        raise ValueError(
            described(
                f"A class must be a scalar, but class_func returns {spec}.",
                fix="call rejection_resample before batch, or unbatch first.",
            )
        )


def chances(initial: Any, target: Array) -> tuple[Any, Any]:
    """Return how likely an element of each class is kept, and how likely one comes from the original."""
    with np.errstate(divide="ignore", invalid="ignore"):  # all alike: nothing is ever rejected
        ratio = target / (initial + np.finfo(np.float32).tiny)
        least = ratio.min()
        return (ratio - least) / (ratio.max() - least), least


def known_chances(initial_dist: Any, target: Array) -> tuple[Array, Array]:
    """Return the chances where it is known how many elements of each class there are."""
    initial = distribution(initial_dist, "initial_dist")
    if target.shape != initial.shape:
        raise InvalidArgumentError(
            f"target_dist has {len(target)} classes, but initial_dist has {len(initial)}.",
            fix="pass one number for each class in both.",
        )
    return chances(initial, target)


def nothing_seen(classes: int) -> Array:
    """Return what an estimate begins with."""
    return np.full(classes, _SEEN_BEFORE, np.int64)


def estimated(seen: Any, classes: Any) -> tuple[Any, Any]:
    """Count classes; return the counts and, for each of the next elements, the parts they make up."""
    counts = seen + (classes[:, None] == np.arange(len(seen))).sum(0)
    parts = (counts / counts.sum()).astype(dtypes.float32)
    return counts, parts + np.zeros((ESTIMATED_AT_A_TIME, 1), np.float32)


def weights(_: Any, original: Any) -> Any:
    """Return how likely an element comes from the original, and from what was kept."""
    return original * np.array([1, -1], np.float32) + np.array([0, 1], np.float32)


def is_kept(words: Any, kept: Any, classed: tuple[Any, Any]) -> Any:
    """Decide on an element by 24 of its random bits."""
    number = classed[0]
    # Below 0 is no class; as an index it would count from the end.
    place = (number >= 0) * number + (number < 0) * len(kept)
    return (words[0] >> np.uint32(8)) * np.float32(2.0**-24) < kept[place]


class Resampling(Face):
    """Another mixture of classes."""

    __slots__ = ()

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> "Dataset":
        """Leave out and repeat elements, so that their classes come in given parts.

        The dataset is read in several passes side by side.

        Args:
            class_func: Returns the class of an element: a whole number from 0 on.
            target_dist: How many of each class are to come: as many numbers as classes.
            initial_dist: How many of each there are; estimated on the way by default.
            seed: Makes the draws the same in every run of the program, together with the global one.
            name: Taken for compatibility.

        Returns:
            A dataset of pairs: the class, and the element.

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
            chances, original = Face.whole.from_tensors(known).repeat(), known[1]
        if original == 1:
            return classed
        filtered = _kept(classed, chances, seed)
        if original == 0:
            return filtered
        return Face.whole.sample_from_datasets(
            [classed, filtered], chances.map(weights), seed, stop_on_empty_dataset=True
        )


def _beside(class_func: Callable[..., Any], element: Any) -> Any:
    return class_func(element), element


def _beside_parts(class_func: Callable[..., Any], *parts: Any) -> Any:
    return class_func(*parts), parts


def _estimated(classed: "Dataset", target: Array) -> "Dataset":
    """Return, for each element, what `chances` makes of the classes that came up to it."""
    classes = classed.map(_first).batch(ESTIMATED_AT_A_TIME)
    seen = nothing_seen(len(target))
    return classes.scan(seen, estimated).unbatch().map(partial(chances, target=target))


def _kept(classed: "Dataset", chances: "Dataset", seed: int | None) -> "Dataset":
    """Return the elements that chance lets through, the same in each pass as in TensorFlow."""
    together = plan_of(Face.whole.zip(chances.map(_first), classed))
    keyed = dataset_of(WithKeys(together, shuffle_seed(seed), passes=Passes(counted=False)))
    return keyed.filter(is_kept).map(_last)


def _first(*parts: Any) -> Any:
    return parts[0]


def _last(*parts: Any) -> Any:
    return parts[-1]
