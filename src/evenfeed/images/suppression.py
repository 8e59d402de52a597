"""Keeps the best of boxes that overlap: `non_max_suppression` and its kin, computed on the host.

How many boxes are kept depends on their values, so compiled code cannot hold the results.
"""

# ruff: noqa: PLR0913, PLR0917 - TensorFlow's arguments

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.dtypes import as_floats
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.gradients.followed_values import check_not_followed
from evenfeed.core.specs import TensorSpec
from evenfeed.core.tensor_types import host_tensor
from evenfeed.core.traced.kernel_stages import RowKernel
from evenfeed.images.bound_kernels import applied_beside_constants
from evenfeed.images.overlapping_boxes import Boxes, best_first, chosen, lowered


class Detections(NamedTuple):
    """The boxes that `combined_non_max_suppression` keeps, with zeros behind the last one."""

    nmsed_boxes: Any
    nmsed_scores: Any
    nmsed_classes: Any
    valid_detections: Any


def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = -math.inf,
    name: str | None = None,
) -> Any:
    """Return the indices of the boxes with the highest scores, without those that overlap a better one.

    Args:
        boxes: The boxes, as [boxes, 4]: two opposite corners, each a row and a column.
        scores: One score for each box.
        max_output_size: The most boxes to keep.
        iou_threshold: Boxes that overlap more are dropped: the intersection divided by the union.
        score_threshold: Boxes with a score that is not above are dropped.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import evenfeed as tf
        >>> boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, 2.0, 1.0, 3.0]]
        >>> tf.image.non_max_suppression(boxes, [0.8, 0.9, 0.7], max_output_size=3).tolist()
        [1, 2]
    """
    del name
    return _of_boxes(boxes, scores, max_output_size, iou_threshold, score_threshold)[0]


def non_max_suppression_with_scores(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = -math.inf,
    soft_nms_sigma: Any = 0.0,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Return the indices of the best boxes, and their scores.

    Args:
        boxes: As for `non_max_suppression`.
        scores: As for `non_max_suppression`.
        max_output_size: As for `non_max_suppression`.
        iou_threshold: As for `non_max_suppression`.
        score_threshold: As for `non_max_suppression`.
        soft_nms_sigma: If it is above 0, a box that overlaps a better one gets a lower score instead of being dropped.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import evenfeed as tf
        >>> boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1]]
        >>> indices, scores = tf.image.non_max_suppression_with_scores(boxes, [0.8, 0.9], 2, soft_nms_sigma=0.5)
        >>> indices.tolist(), [f"{score:.3f}" for score in scores]
        ([1, 0], ['0.900', '0.410'])
    """
    del name
    check_not_followed(boxes, scores)
    return _of_boxes(boxes, scores, max_output_size, iou_threshold, score_threshold, soft_nms_sigma)


def non_max_suppression_overlaps(
    overlaps: Any,
    scores: Any,
    max_output_size: Any,
    overlap_threshold: Any = 0.5,
    score_threshold: Any = -math.inf,
    name: str | None = None,
) -> Any:
    """Return the indices of the best boxes, given how much they overlap each other.

    Args:
        overlaps: How much each box overlaps each other one, as [boxes, boxes].
        scores: One score for each box.
        max_output_size: The most boxes to keep.
        overlap_threshold: Boxes that overlap a better one more than this are dropped.
        score_threshold: Boxes with a score that is not above are dropped.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import evenfeed as tf
        >>> tf.image.non_max_suppression_overlaps([[1.0, 0.9], [0.9, 1.0]], [0.8, 0.9], 2).tolist()
        [1]
    """
    del name
    return applied_beside_constants(
        KeepByOverlaps(
            _most(max_output_size), _number(overlap_threshold), _number(score_threshold)
        ),
        overlaps,
        as_floats(scores),
    )


@final
@dataclass(frozen=True)
class KeepByOverlaps(RowKernel):
    """Chooses the best boxes of an element, given how much they overlap each other."""

    most: int
    overlap: float
    score: float

    def spec(self, *given: TensorSpec) -> TensorSpec:  # noqa: ARG002 - the same for all
        return TensorSpec([None], dtypes.int32)

    def one(self, *parts: Array) -> Array:
        table, marks = parts[0], _scores(parts[1])
        if table.ndim != 2 or table.shape[0] != table.shape[1]:
            raise InvalidArgumentError(
                f"overlaps must have the shape [boxes, boxes], but got {table.shape}.",
                fix="pass how much each box overlaps each other one.",
            )
        _check_counts(len(table), marks)
        kept = chosen(
            lambda ones, others: table[ones[:, None], others],
            best_first(marks, self.score),
            self.most,
            self.overlap,
        )
        return kept.astype(np.int32)


def non_max_suppression_padded(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = -math.inf,
    pad_to_max_output_size: bool = False,
    name: str | None = None,
    sorted_input: bool = False,
    canonicalized_coordinates: bool = False,
    tile_size: int = 512,
) -> tuple[Any, Any]:
    """Return the indices of the best boxes of one image or of each image of a batch, and how many they are.

    Args:
        boxes: As for `non_max_suppression`, or with batch axes in front.
        scores: One score for each box.
        max_output_size: The most boxes to keep for each image.
        iou_threshold: As for `non_max_suppression`.
        score_threshold: As for `non_max_suppression`.
        pad_to_max_output_size: Write zeros behind the last index, so that there are `max_output_size`. It must be
            True for a batch.
        name: Accepted for compatibility; ignored.
        sorted_input: Accepted for compatibility; ignored: sorted scores give the same result.
        canonicalized_coordinates: Accepted for compatibility; ignored: corners may come in any order.
        tile_size: Accepted for compatibility; ignored.

    Examples:
        >>> import evenfeed as tf
        >>> boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1]]
        >>> found, count = tf.image.non_max_suppression_padded(boxes, [0.8, 0.9], 2, pad_to_max_output_size=True)
        >>> found.tolist(), int(count)
        ([1, 0], 1)
    """
    del name, sorted_input, canonicalized_coordinates, tile_size
    corners, marks, most = to_array(as_floats(boxes)), _scores(scores, None), _most(max_output_size)
    if corners.ndim > 2 and not pad_to_max_output_size:
        raise ValueError("'pad_to_max_output_size' must be True for a batch of images.")
    if corners.shape[:-1] != marks.shape:
        raise InvalidArgumentError(
            f"scores must have one score for each box, but got {marks.shape} for boxes of shape {corners.shape}.",
            fix="pass a score for each box.",
        )
    images = marks.shape[:-1]
    indices, counts = np.zeros((*images, most), np.int32), np.zeros(images, np.int32)
    for image in np.ndindex(images):
        found = non_max_suppression(
            corners[image], marks[image], most, iou_threshold, score_threshold
        )
        counts[image] = len(found)
        indices[image][: len(found)] = found
    if not pad_to_max_output_size:
        indices = indices[: int(counts)]
    return host_tensor(indices), host_tensor(counts)


def combined_non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = -math.inf,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> Detections:
    """Keep the best boxes of each class and each image of a batch, and of these the best over all classes.

    Args:
        boxes: The boxes, as [batch, boxes, classes, 4], or with a single class if all classes share the boxes.
        scores: The scores, as [batch, boxes, classes].
        max_output_size_per_class: The most boxes to keep of each class.
        max_total_size: The most boxes to keep of each image.
        iou_threshold: As for `non_max_suppression`.
        score_threshold: As for `non_max_suppression`.
        pad_per_class: Return no more boxes than all classes together may keep, instead of `max_total_size`.
        clip_boxes: Limit the corners of the results to the range from 0 to 1.
        name: Accepted for compatibility; ignored.

    Examples:
        >>> import evenfeed as tf
        >>> boxes = [[[[0.0, 0.0, 0.5, 0.5]], [[0.5, 0.5, 1.0, 1.0]]]]
        >>> found = tf.image.combined_non_max_suppression(boxes, [[[0.1, 0.9], [0.8, 0.2]]], 1, 3)
        >>> found.nmsed_classes.tolist(), found.valid_detections.tolist()
        ([[1.0, 0.0, 0.0]], [2])
    """
    del name
    check_not_followed(boxes, scores)
    corners, marks = to_array(boxes).astype(np.float32), _scores(scores, 3)
    if corners.ndim != 4 or corners.shape[:2] != marks.shape[:2] or corners.shape[3] != 4:
        raise InvalidArgumentError(
            "combined_non_max_suppression needs boxes [batch, boxes, classes, 4] and scores [batch, boxes, classes], "
            f"but got {corners.shape} and {marks.shape}.",
            fix="add an axis for the class to boxes that all classes share: boxes[:, :, None].",
        )
    if corners.shape[2] not in (1, marks.shape[2]):
        raise InvalidArgumentError(
            f"boxes must have 1 or {marks.shape[2]} classes, as the scores have, but got {corners.shape[2]}.",
            fix="pass boxes for each class, or for all classes together.",
        )
    each = _most(max_output_size_per_class, "max_output_size_per_class")
    most = _most(max_total_size, "max_total_size")
    length = min(most, each * marks.shape[2]) if pad_per_class else most
    threshold, least = _fraction(iou_threshold, "iou_threshold"), _number(score_threshold)
    corners, marks = (np.ascontiguousarray(np.moveaxis(given, 2, 1)) for given in (corners, marks))
    kept, counts = Boxes.of(corners).kept_of_each(marks, each, threshold, least)
    found = _best_of_all(corners, marks, kept, counts, length)
    if clip_boxes:
        found.nmsed_boxes.clip(0, 1, out=found.nmsed_boxes)
    return Detections(*map(host_tensor, found))


def _best_of_all(
    corners: Array, scores: Array, kept: Array, counts: Array, length: int
) -> Detections:
    """Return the kept boxes with the highest scores over all classes, with zeros behind the last one.

    Args:
        corners: The boxes, as [batch, classes, boxes, 4]; a single class stands for all.
        scores: The scores, as [batch, classes, boxes].
        kept: The kept boxes of each class.
        counts: How many these are.
        length: How many boxes the result has.
    """
    batch, classes, each = kept.shape
    # The place of each kept box among all scores.
    first = np.arange(batch * classes, dtype=np.int64).reshape(batch, classes, 1)
    places: Array = kept + first * scores.shape[2]
    marks: Array = scores.reshape(-1).take(places)
    marks[np.arange(each) >= counts[..., None]] = -np.inf
    marks, places = marks.reshape(batch, -1), places.reshape(batch, -1)
    if classes > 1:
        best = (-marks).argsort(axis=1, kind="stable")
        marks, places = np.take_along_axis(marks, best, 1), np.take_along_axis(places, best, 1)
    marks, places = marks[:, :length], places[:, :length]
    valid = marks > -np.inf
    image_and_class, box = np.divmod(places, max(scores.shape[2], 1))
    kinds = (image_and_class % classes).astype(np.float32)
    if corners.shape[1] == 1:
        places = image_and_class // classes * scores.shape[2] + box
    boxes = corners.reshape(-1, 4).take(places, axis=0)
    return Detections(
        _padded(boxes, valid[..., None], length),
        _padded(marks, valid, length),
        _padded(kinds, valid, length),
        valid.sum(axis=1, dtype=np.int32),
    )


def _padded(part: Array, valid: Array, length: int) -> Array:
    """Return what is valid, and zeros elsewhere and behind it."""
    whole = np.zeros((len(part), length, *part.shape[2:]), np.float32)
    np.copyto(whole[:, : part.shape[1]], part, where=valid)
    return whole


def _of_boxes(
    boxes: Any, scores: Any, most: Any, overlap: Any, least: Any, sigma: Any = 0.0
) -> tuple[Any, Any]:
    """Return the indices and the scores of the best boxes, as tensors."""
    corners, marks = _boxes(boxes), _scores(scores)
    _check_counts(len(corners), marks)
    size, threshold = _most(most), _fraction(overlap, "iou_threshold")
    lowest, spread = float(marks.dtype.type(_number(least))), _number(sigma)
    found = Boxes.of(corners)
    if spread > 0:
        kept, lower = lowered(found.overlaps, marks, size, spread, lowest)
        return host_tensor(np.array(kept, np.int32)), host_tensor(np.array(lower, marks.dtype))
    kept = found.kept(marks, size, threshold, lowest)
    return host_tensor(kept.astype(np.int32)), host_tensor(marks[kept])


def _boxes(boxes: Any) -> Array:
    corners = to_array(as_floats(boxes))
    if corners.ndim != 2 or corners.shape[1] != 4:
        raise InvalidArgumentError(
            f"boxes must have the shape [boxes, 4], but got {corners.shape}.",
            fix="pass two opposite corners of each box.",
        )
    return _floats(corners, "boxes")


def _scores(scores: Any, rank: int | None = 1) -> Array:
    marks = to_array(as_floats(scores))
    if rank is not None and marks.ndim != rank:
        raise InvalidArgumentError(
            f"scores must have {rank} axes, but got shape {marks.shape}.",
            fix="pass one score for each box.",
        )
    return _floats(marks, "scores")


def _floats(values: Array, what: str) -> Array:
    if values.dtype not in (dtypes.float32, dtypes.float16):
        raise InvalidArgumentError(
            f"{what} must be float32, but got {values.dtype.name}.",
            fix=f"convert them first: evenfeed.cast({what}, evenfeed.float32).",
        )
    return values


def _check_counts(count: int, scores: Array) -> None:
    if len(scores) != count:
        raise InvalidArgumentError(
            f"scores must have one score for each of {count} boxes, but got {len(scores)}.",
            fix="pass a score for each box.",
        )


def _most(number: Any, what: str = "max_output_size") -> int:
    most = number if type(number) is int else int(to_array(number))
    if most < 0:
        raise InvalidArgumentError(
            f"{what} must be non-negative, got {most}.", fix="pass the most boxes to keep."
        )
    return most


def _fraction(number: Any, what: str) -> float:
    found = _number(number)
    if not 0 <= found <= 1:
        raise InvalidArgumentError(
            f"{what} must be in [0, 1], but got {found}.", fix=f"pass for example {what}=0.5."
        )
    return found


def _number(number: Any) -> float:
    return float(number if isinstance(number, (int, float)) else to_array(number))
