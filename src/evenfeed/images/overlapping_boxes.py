"""Chooses the best of boxes that overlap, for `suppression.py`."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.lazy import LazyModule
from evenfeed.images.hot_loops import are_worth_it

if TYPE_CHECKING:
    from evenfeed.images.loops import box_loops
else:
    box_loops = LazyModule("evenfeed.images.loops.box_loops")

# Returns how much each box of the first indices overlaps each of the second.
Overlaps: TypeAlias = Callable[[Array, Array], Array]

# How many boxes are compared with each other at a time.
_TOGETHER: Final = 64


@final
@dataclass(frozen=True)
class Boxes:
    """Boxes along the last axis.

    Attributes:
        sides: Their first rows, first columns, last rows, last columns and areas, along the first axis.
    """

    sides: Array

    @classmethod
    def of(cls, corners: Array) -> "Boxes":
        """Return boxes that two opposite corners along the last axis give, in any order."""
        numbers = np.ascontiguousarray(corners.transpose(-1, *range(corners.ndim - 1)))
        sides = np.empty((5, *numbers.shape[1:]), numbers.dtype)
        np.minimum(numbers[:2], numbers[2:], out=sides[:2])
        np.maximum(numbers[:2], numbers[2:], out=sides[2:4])
        np.multiply(sides[2] - sides[0], sides[3] - sides[1], out=sides[4])
        return cls(sides)

    def overlaps(self, ones: Array, others: Array) -> Array:
        """Divide the intersection of each of `ones` with each of `others` by their union."""
        mine, theirs = self.sides[:, ones, None], self.sides[:, None, others]
        inner = np.minimum(mine[2:4], theirs[2:4])
        inner -= np.maximum(mine[:2], theirs[:2])
        height, width = np.maximum(inner, 0, out=inner)
        shared = height * width
        flat = (mine[4] <= 0) | (theirs[4] <= 0)
        union = mine[4] + theirs[4] - shared
        return np.divide(shared, union, out=np.zeros_like(shared), where=~flat)

    def kept(self, scores: Array, most: int, threshold: float, least: float) -> Array:
        """Return the indices of boxes that do not overlap a better one by more than the threshold, the best first."""
        order = best_first(scores, least)
        if self.sides.dtype != dtypes.float32 or not are_worth_it(len(order) * most):
            return chosen(self.overlaps, order, most, threshold)
        out = np.empty(min(most, len(order)), np.int64)
        return out[: box_loops.keep(self.sides, order, np.float32(threshold), out)]

    def kept_of_each(
        self, scores: Array, most: int, threshold: float, least: float
    ) -> tuple[Array, Array]:
        """Return the kept boxes of each class of each image, the best first, and how many they are.

        Args:
            scores: The scores, as [batch, classes, boxes]. The boxes may have a single class for all.
            most: The most boxes to keep of a class.
            threshold: The largest overlap of two kept boxes.
            least: Boxes with a score that is not above are dropped.
        """
        batch, classes, boxes = scores.shape
        out = np.zeros((batch, classes, min(most, boxes)), np.int64)
        counts = np.zeros((batch, classes), np.int64)
        if are_worth_it(out.size * boxes):
            # Only what is above `least` may be kept; the rest is sorted to the end.
            above = scores > least
            orders = np.where(above, -scores, np.inf).argsort(axis=-1, kind="stable")
            limits = above.sum(axis=-1), np.float32(threshold)
            box_loops.keep_each(self.sides, orders, *limits, out, counts)
            return out, counts
        for image, number in np.ndindex(counts.shape):
            own = Boxes(self.sides[:, image, number if self.sides.shape[2] > 1 else 0])
            kept = chosen(own.overlaps, best_first(scores[image, number], least), most, threshold)
            out[image, number, : len(kept)] = kept
            counts[image, number] = len(kept)
        return out, counts


def best_first(scores: Array, least: float) -> Array:
    """Return the indices of the scores above `least`, the highest first; equal ones keep their order."""
    order = (-scores).argsort(kind="stable")
    above = scores[order] > least
    return order if above.all() else order[above]


def chosen(overlaps: Overlaps, order: Array, most: int, threshold: float) -> Array:
    """Return the first boxes of an order that overlap no earlier one of the result by more than the threshold."""
    kept: list[int] = []
    for start in range(0, len(order), _TOGETHER):
        some = order[start : start + _TOGETHER]
        if kept:
            some = some[~(overlaps(some, np.array(kept)) > threshold).any(axis=1)]
        apart = ~(overlaps(some, some) > threshold)
        free = np.ones(len(some), bool)
        for place, index in enumerate(some.tolist()):
            if len(kept) == most:
                return np.array(kept, np.int64)
            if free[place]:
                kept.append(index)
                free &= apart[:, place]
    return np.array(kept, np.int64)


def lowered(
    overlaps: Overlaps, scores: Array, most: int, sigma: float, least: float
) -> tuple[list[int], list[float]]:
    """Return the indices and the scores of the best boxes; a box that overlaps a better one gets a lower score.

    A box that was compared with all kept ones is compared only with later ones when its turn comes again.
    """
    kept: list[int] = []
    marks: list[float] = []
    waiting = [
        (-float(score), index, 0) for index, score in enumerate(scores) if float(score) > least
    ]
    heapq.heapify(waiting)
    while waiting and len(kept) < most:
        lost, index, seen = heapq.heappop(waiting)
        shared = overlaps(np.array([index]), np.array(kept[seen:][::-1], np.int64))[0]
        score = _lowered(scores.dtype.type(-lost), shared, sigma, least)
        if score == -lost:
            kept.append(index)
            marks.append(-lost)
        elif score > least:
            heapq.heappush(waiting, (-score, index, len(kept)))
    return kept, marks


def _lowered(score: Any, shared: Array, sigma: float, least: float) -> float:
    for weight in np.exp(np.asarray(-0.5 / sigma, shared.dtype) * shared * shared):
        score *= weight
        if score <= least:
            break
    return float(score)
