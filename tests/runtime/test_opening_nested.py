"""Datasets of datasets: functions inside of functions that make datasets, read at once by nested templates."""

import numpy as np
import pytest
from tests.plans import through_json
from tests.runtime.test_opening import (
    NEVER,
    WAYS,
    assert_same,
    at_once,
    is_template,
    named,
    numbers,
    one_by_one,
    pairs,
    rows,
)

import evenfeed as tf
from evenfeed.runtime.functions import finding_templates as templates

Dataset = tf.data.Dataset

FUNCTIONS = {
    "flat_map of rows": (
        lambda: numbers().batch(12, drop_remainder=True).map(lambda x: tf.reshape(x, [3, 4])),
        lambda m: Dataset.from_tensor_slices(m).flat_map(Dataset.from_tensor_slices),
    ),
    "flat_map that captures": (
        pairs,
        lambda row, n: Dataset.range(3).flat_map(lambda j: Dataset.from_tensors((row, j, n))),
    ),
    "some without elements": (
        lambda: Dataset.range(12),  # the elements are as many as the cube of it
        lambda n: Dataset.range(n).flat_map(lambda j: Dataset.range(j).map(lambda k: k * n + j)),
    ),
    "three levels": (
        numbers,
        lambda i: Dataset.range(3).flat_map(
            lambda j: Dataset.range(2).flat_map(lambda k: Dataset.from_tensors((i, j, k)))
        ),
    ),
    "interleave": (
        numbers,
        lambda i: Dataset.range(6).interleave(
            lambda j: Dataset.range(j).map(lambda k: (i, j, k)), cycle_length=3, block_length=2
        ),
    ),
    "interleave of few": (
        numbers,
        lambda i: Dataset.range(i).interleave(
            lambda j: Dataset.from_tensors(j).repeat(2), cycle_length=5
        ),
    ),
    "windows": (
        rows,
        lambda row: (
            Dataset.from_tensor_slices(row).window(4, shift=3).flat_map(lambda w: w.batch(4))
        ),
    ),
    "full windows with gaps": (
        rows,
        lambda row: (
            Dataset.from_tensor_slices(row)
            .window(3, shift=2, stride=2, drop_remainder=True)
            .skip(1)
            .flat_map(lambda w: w.batch(3, drop_remainder=True))
        ),
    ),
    "windows of windows": (
        lambda: numbers().window(6, shift=3),
        lambda w: w.window(3, shift=1).flat_map(lambda v: v.batch(3)),
    ),
    "windows of windows of a dict": (
        lambda: named().window(5, shift=2),
        lambda d: (
            Dataset.zip((d["a"], d["b"]))
            .window(2)
            .interleave(lambda a, b: Dataset.zip((a, b.batch(2))), cycle_length=2)
        ),
    ),
    "windows of the same for all": (
        numbers,
        lambda _: Dataset.range(9).window(4, shift=2).flat_map(lambda w: w),
    ),
    "take_while that captures": (
        numbers,
        lambda n: Dataset.range(9).take_while(lambda x: x < n % 5),
    ),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_datasets_of_datasets_read_at_once_have_the_same_elements(name, way, monkeypatch):
    source, function = FUNCTIONS[name]
    one_by_one(monkeypatch)
    expected = list(WAYS[way](source(), function))
    at_once(monkeypatch)
    dataset = WAYS[way](source(), function)
    assert_same(dataset, expected)
    assert is_template(dataset)
    assert_same(dataset.shuffle(1).take(9), expected[:9])


@pytest.mark.parametrize("name", ["some without elements", "interleave", "windows of windows"])
def test_a_position_inside_an_inner_dataset_is_restored(name, monkeypatch):
    source, function = FUNCTIONS[name]
    at_once(monkeypatch)
    expected = list(source().flat_map(function))
    iterator = iter(source().flat_map(function))
    for done in range(1, 9):
        next(iterator)
        state = through_json(iterator.get_state())
        for tried in (0, NEVER):
            monkeypatch.setattr(templates, "TRIED_AFTER", tried)
            restored = iter(source().flat_map(function))
            restored.set_state(state)
            assert_same([next(restored) for _ in range(6)], expected[done : done + 6])


def ranges_of(held):
    return Dataset.range(3).flat_map(lambda _: Dataset.range(held[0]))


OF_THE_OUTER_ELEMENT = {
    "a window": (
        lambda: numbers().window(6, shift=3),
        lambda w: Dataset.range(2).flat_map(lambda _: w),
    ),
    "a default": (
        numbers,
        lambda i: Dataset.range(3).flat_map(lambda j, i=i: Dataset.from_tensors((i, j))),
    ),
    "a list": (
        numbers,
        lambda i: ranges_of([i]),
    ),
}


@pytest.mark.parametrize("name", OF_THE_OUTER_ELEMENT)
def test_parts_of_the_outer_element_are_not_taken_for_those_of_the_inner(name, monkeypatch):
    source, function = OF_THE_OUTER_ELEMENT[name]
    one_by_one(monkeypatch)
    expected = list(source().flat_map(function))
    at_once(monkeypatch)
    assert_same(source().flat_map(function), expected)


def test_inner_values_that_change_between_calls_are_not_kept():
    class Counter:
        n = 0

    counter = Counter()

    def counted(_):
        counter.n += 1
        return Dataset.from_tensors(counter.n)

    dataset = Dataset.range(10).flat_map(lambda _: Dataset.range(2).flat_map(counted))
    found = [int(x) for x in dataset]
    assert len(set(found)) == 20
    assert not is_template(dataset)


def test_inner_datasets_with_a_random_order_of_their_own_are_opened_one_by_one():
    def shuffled(n):
        return Dataset.range(3).flat_map(lambda _: Dataset.range(5).shuffle(5))

    dataset = Dataset.range(9).flat_map(shuffled)
    assert np.bincount([int(x) for x in dataset]).tolist() == [27] * 5
    assert not is_template(dataset)
