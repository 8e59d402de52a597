"""Boxes are suppressed inside a map, after arithmetic."""

import numpy as np

import evenfeed as tf

BOXES = np.random.default_rng(5).random((6, 9, 4), np.float32)


def overlapping(boxes):
    table = tf.matmul(boxes, tf.transpose(boxes))
    return tf.image.non_max_suppression_overlaps(table, boxes[:, 0] * boxes[:, 2], 4, 1.2, 0.1)


def test_boxes_that_overlap_by_a_computed_table_are_dropped_on_whole_blocks():
    dataset = tf.data.Dataset.from_tensor_slices(BOXES).map(overlapping)
    assert dataset.element_spec == tf.TensorSpec([None], tf.int32)
    found = [one.tolist() for one in dataset]
    assert found == [overlapping(boxes).tolist() for boxes in BOXES]
    assert 0 < min(map(len, found)) < max(map(len, found)) <= 4
    assert "per element" not in str(dataset.explain())


def test_scores_may_be_the_same_for_all_elements():
    scores = np.linspace(1, 0, 9, dtype=np.float32)

    def kept(table):
        return tf.image.non_max_suppression_overlaps(table, scores, 3)

    tables = np.random.default_rng(6).random((4, 9, 9), np.float32)
    dataset = tf.data.Dataset.from_tensor_slices(tables).map(kept)
    assert [one.tolist() for one in dataset] == [kept(table).tolist() for table in tables]
