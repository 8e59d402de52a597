"""Functions that look at the parts of an element, or at their kinds, before they make a dataset of them."""

from typing import NamedTuple

import numpy as np
import pytest
from tests.runtime.test_opening import (
    MATRIX,
    NUMBERS,
    WAYS,
    Dataset,
    assert_same,
    at_once,
    is_template,
    one_by_one,
)

import evenfeed as tf


class Sample(NamedTuple):
    missing: object
    row: object
    number: object


STRUCTURES = {
    "None first": (None, MATRIX, NUMBERS),
    "None in the middle": (MATRIX, None, NUMBERS),
    "None last": (MATRIX, NUMBERS, None),
    "several None": (None, MATRIX, None, None, NUMBERS, None),
    "nested dicts": {"a": {"x": None, "y": NUMBERS}, "b": (None, MATRIX), "c": None},
    "a named tuple": Sample(None, MATRIX, NUMBERS),
    "empty tuples": ((), MATRIX, ((), None), NUMBERS, ()),
}
COMPOSITES = {
    "sparse": (tf.sparse.from_dense(np.eye(40)), 101),
    "ragged": (tf.ragged.constant([[[1], [2, n]][: n % 3] for n in range(40)]), 11),
}


def outline(*element):
    """Return how many parts of an element are None, ragged or sparse tensors: a decimal digit for each."""
    kinds = (type(None), tf.RaggedTensor, tf.SparseTensor)
    parts = tf.nest.flatten(element)
    return sum(10**n for part in parts for n, kind in enumerate(kinds) if isinstance(part, kind))


def of_structure(*element):
    """Return a dataset of the row, the number and the outline of an element."""
    tensors = [part for part in tf.nest.flatten(element) if part is not None]
    row, number = sorted(tensors, key=lambda part: -len(part.shape))
    seen = outline(*element)
    return Dataset.zip(
        (
            Dataset.from_tensor_slices(row),
            Dataset.from_tensors((number, seen)).repeat(9),
            Dataset.range(number).map(lambda n: (n - number, seen)),
        )
    )


@pytest.mark.parametrize("way", ["flat_map", "interleave"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_parts_that_are_none_keep_their_places(name, way, monkeypatch):
    source = Dataset.from_tensor_slices(STRUCTURES[name])
    one_by_one(monkeypatch)
    expected = list(WAYS[way](source, of_structure))
    at_once(monkeypatch)
    dataset = WAYS[way](source, of_structure)
    assert_same(dataset, expected)
    assert is_template(dataset)


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("kind", COMPOSITES)
def test_a_function_sees_of_which_kind_a_part_is(kind, place, monkeypatch):
    composite, seen = COMPOSITES[kind]
    parts = [NUMBERS, None]
    parts.insert(place, composite)

    def function(*element):
        return Dataset.from_tensors((element[place == 0], outline(*element))).repeat(2)

    at_once(monkeypatch)
    dataset = Dataset.from_tensor_slices(tuple(parts)).flat_map(function)
    found = [(int(number), int(outline)) for number, outline in dataset]
    assert found == [(n, seen) for n in range(40) for _ in range(2)]
    assert is_template(dataset) == (kind == "ragged")  # a trace has a stand-in for a ragged tensor


@pytest.mark.parametrize("way", ["flat_map", "interleave"])
def test_a_dataset_may_have_none_beside_a_part(way, monkeypatch):
    source = Dataset.from_tensor_slices((NUMBERS, None))
    at_once(monkeypatch)
    dataset = WAYS[way](source, lambda number, none: Dataset.from_tensors((none, number, none)))
    found = list(dataset)
    assert sorted(int(number) for _, number, _ in found) == NUMBERS.tolist()
    assert all(first is None and last is None for first, _, last in found)


def caught(x):
    try:
        return Dataset.range(int(x) + 1)
    except TypeError:
        return Dataset.range(1)


def windows():
    return Dataset.range(30).window(4, shift=3)


LOOKING = {
    "catches an error": (lambda: Dataset.range(9), caught),
    "asks for an attribute": (
        lambda: Dataset.from_tensor_slices(MATRIX),
        lambda row: Dataset.range(getattr(row, "ndim", 5)),
    ),
    "asks whether there is an attribute": (
        lambda: Dataset.from_tensor_slices(MATRIX),
        lambda row: Dataset.range(2 if hasattr(row, "numpy") else 5),
    ),
    "asks for the class": (
        lambda: Dataset.range(9),
        lambda x: Dataset.range(2 if isinstance(x, np.ndarray) else 5),
    ),
    "asks for the type, and makes more or less": (
        lambda: Dataset.range(9),
        lambda x: Dataset.from_tensors(x).repeat(3 if isinstance(x, np.ndarray) else 0),
    ),
    "makes an endless dataset": (
        lambda: Dataset.range(9),
        lambda x: Dataset.range(2).repeat(-1 if isinstance(x, np.ndarray) else 1),
    ),
    "keeps the size of a window": (windows, lambda w: Dataset.from_tensors(w.cardinality())),
    "chooses by the size of a window": (
        windows,
        lambda w: w.batch(2) if w.cardinality() == 4 else w.batch(3),
    ),
    "chooses by the size of a range": (
        lambda: Dataset.range(9),
        lambda x: Dataset.range(x).take(2 if Dataset.range(x).batch(2).cardinality() == 3 else 1),
    ),
}


@pytest.mark.parametrize("way", ["flat_map", "interleave"])
@pytest.mark.parametrize("name", LOOKING)
def test_a_function_that_looks_at_an_element_gets_each(name, way, monkeypatch):
    source, function = LOOKING[name]
    one_by_one(monkeypatch)
    expected = list(WAYS[way](source(), function).take(60))
    at_once(monkeypatch)
    dataset = WAYS[way](source(), function).take(60)
    assert_same(dataset, expected)
    assert_same(dataset, expected)
