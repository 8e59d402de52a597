"""Another mixture of classes."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from evenfeed.core.conversion import Array
from evenfeed.dataset.face import Face, checked_function, dataset_of, plan_of, shuffle_seed
from evenfeed.plan import resampling
from evenfeed.plan.elementwise import WithKeys
from evenfeed.plan.ordering import Passes
from evenfeed.runtime.calls import bound

if TYPE_CHECKING:
    from evenfeed.dataset.whole import Dataset


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
        target = resampling.distribution(target_dist, "target_dist")
        spreads = type(self.element_spec) is tuple
        classed = dataset_of(self._plan).map(
            bound(_beside_parts if spreads else _beside, checked_function(class_func))
        )
        resampling.check_class(classed.element_spec[0])
        if initial_dist is None:
            chances, original = _estimated(classed, target), None
        else:
            known = resampling.known_chances(initial_dist, target)
            chances, original = Face.whole.from_tensors(known).repeat(), known[1]
        if original == 1:
            return classed
        filtered = _kept(classed, chances, seed)
        if original == 0:
            return filtered
        return Face.whole.sample_from_datasets(
            [classed, filtered], chances.map(resampling.weights), seed, stop_on_empty_dataset=True
        )


def _beside(class_func: Callable[..., Any], element: Any) -> Any:
    return class_func(element), element


def _beside_parts(class_func: Callable[..., Any], *parts: Any) -> Any:
    return class_func(*parts), parts


def _estimated(classed: "Dataset", target: Array) -> "Dataset":
    """Return, for each element, what `resampling.chances` makes of the classes that came up to it."""
    classes = classed.map(_first).batch(resampling.ESTIMATED_AT_A_TIME)
    seen = resampling.nothing_seen(len(target))
    return (
        classes.scan(seen, resampling.estimated)
        .unbatch()
        .map(partial(resampling.chances, target=target))
    )


def _kept(classed: "Dataset", chances: "Dataset", seed: int | None) -> "Dataset":
    """Return the elements that chance lets through, the same in each pass as in TensorFlow."""
    together = plan_of(Face.whole.zip(chances.map(_first), classed))
    keyed = dataset_of(WithKeys(together, shuffle_seed(seed), passes=Passes(counted=False)))
    return keyed.filter(resampling.is_kept).map(_last)


def _first(*parts: Any) -> Any:
    return parts[0]


def _last(*parts: Any) -> Any:
    return parts[-1]
