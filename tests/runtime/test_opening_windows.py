"""Windows whose elements have different shapes: read at once by a template, as others are."""

import numpy as np
import pytest
from tests.failing import failing, outcome
from tests.plans import through_json
from tests.runtime.test_opening import NEVER, WAYS, assert_same, at_once, is_template, one_by_one

import evenfeed as tf
from evenfeed.runtime.functions import finding_templates as templates
from evenfeed.runtime.functions.inner_datasets import InnerDatasets

Dataset = tf.data.Dataset


def lengths():
    return Dataset.range(40).map(lambda n: tf.fill([n % 4], n), vectorize=False)


def texts():
    return Dataset.range(40).map(lambda n: tf.fill([n % 3], tf.strings.as_string(n)))


FUNCTIONS = {
    "padded": (lambda: lengths().window(3), lambda w: w.padded_batch(3)),
    "padded in parts": (lambda: lengths().window(5, shift=2), lambda w: w.padded_batch(2)),
    "padded to one shape": (
        lambda: lengths().window(3, drop_remainder=True),
        lambda w: w.padded_batch(3, padded_shapes=[6], padding_values=np.int64(-1)),
    ),
    "padded without the rest": (
        lambda: lengths().window(7),
        lambda w: w.padded_batch(3, drop_remainder=True),
    ),
    "with gaps": (lambda: lengths().window(4, shift=6, stride=2), lambda w: w.skip(1)),
    "filtered": (
        lambda: lengths().window(4, shift=3),
        lambda w: w.filter(lambda row: tf.size(row) > 1).padded_batch(4, [5]),
    ),
    "of two columns": (
        lambda: Dataset.zip((lengths(), Dataset.range(40))).window(3, shift=1),
        lambda a, b: Dataset.zip((a.padded_batch(3), b.batch(3))),
    ),
    "numbered": (
        lambda: lengths().window(3).enumerate(),
        lambda n, w: w.padded_batch(2).map(lambda rows: rows + n),
    ),
    "of texts": (lambda: texts().window(4), lambda w: w.padded_batch(3, padding_values="-")),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_windows_of_rows_of_all_lengths_have_the_elements_of_those_read_one_by_one(
    name, way, monkeypatch
):
    source, function = FUNCTIONS[name]
    one_by_one(monkeypatch)
    expected = list(WAYS[way](source(), function))
    at_once(monkeypatch)
    dataset = WAYS[way](source(), function)
    assert_same(dataset, expected)
    assert is_template(dataset)


def test_windows_of_rows_of_all_lengths_are_read_at_once(monkeypatch):
    at_once(monkeypatch)
    dataset = lengths().window(3).flat_map(lambda window: window.padded_batch(3))
    made, make = [], InnerDatasets.make

    def counted(self, *args):
        made.append(self)
        return make(self, *args)

    monkeypatch.setattr(InnerDatasets, "make", counted)
    assert len(list(dataset)) == 14
    assert len(made) < 4


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["padded in parts", "with gaps", "numbered"])
def test_a_position_inside_a_window_of_such_rows_is_restored(name, way, monkeypatch):
    source, function = FUNCTIONS[name]
    at_once(monkeypatch)
    dataset = WAYS[way](source(), function)
    expected = list(dataset)
    iterator = iter(dataset)
    for done in range(1, 12):
        next(iterator)
        state = through_json(iterator.get_state())
        for tried in (0, NEVER):
            monkeypatch.setattr(templates, "TRIED_AFTER", tried)
            restored = iter(WAYS[way](source(), function))
            restored.set_state(state)
            assert_same([next(restored) for _ in range(6)], expected[done : done + 6])


def test_windows_with_an_element_that_fails_keep_their_places(monkeypatch):
    def read():
        return outcome(failing(12, 4).window(3, shift=2).flat_map(lambda w: w.batch(2)))

    one_by_one(monkeypatch)
    expected = read()
    at_once(monkeypatch)
    assert read() == expected
