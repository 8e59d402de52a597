"""Functions that make datasets with an order of their own, and of rows of different lengths: read at once, too."""

import pytest
from tests.plans import through_json
from tests.runtime import test_opening
from tests.runtime.test_opening import WAYS, Dataset, assert_same, at_once, is_template, one_by_one

import evenfeed as tf
from evenfeed.runtime.functions import finding_templates as templates
from evenfeed.runtime.operators.inner.expanding import Expander

RAGGED = tf.ragged.constant([list(range(n % 5)) for n in range(40)], dtype=tf.int64)
WORDS = [b" ".join([b"ab"] * (n % 4)) + b"c" for n in range(40)]


def numbers():
    return Dataset.range(40)


def words():
    return Dataset.from_tensor_slices(WORDS)


FUNCTIONS = {
    "shuffled as a whole": (numbers, lambda n: Dataset.range(n, n + 9).shuffle(9, seed=3)),
    "shuffled in a small buffer": (numbers, lambda n: Dataset.range(n, n + 9).shuffle(4, seed=3)),
    "shuffled, of all lengths": (numbers, lambda n: Dataset.range(n % 7).shuffle(3, seed=5)),
    "shuffled in one order": (
        numbers,
        lambda n: Dataset.range(n, n + 6).shuffle(6, seed=1, reshuffle_each_iteration=False),
    ),
    "shuffled behind a filter": (
        numbers,
        lambda n: Dataset.range(n, n + 9).filter(lambda x: x % 3 > 0).shuffle(4, seed=2).batch(2),
    ),
    "shuffled twice": (
        numbers,
        lambda n: Dataset.range(n, n + 9).shuffle(4, seed=2).take(6).shuffle(9, seed=4),
    ),
    "shuffled windows": (lambda: numbers().window(6), lambda w: w.shuffle(6, seed=2)),
    "shuffled beside a shuffle": (
        numbers,
        lambda n: Dataset.zip(
            (Dataset.range(n, n + 5).shuffle(5, seed=2), Dataset.range(5).shuffle(2, seed=2))
        ),
    ),
    "shuffled deep inside": (
        numbers,
        lambda n: Dataset.range(3).flat_map(
            lambda m: Dataset.range(m, n + 4).shuffle(5, seed=7)
        ),
    ),
    "cached": (numbers, lambda n: Dataset.range(n, n + 4).cache().map(lambda x: x + 1)),
    "rows of a ragged tensor": (
        lambda: Dataset.from_tensor_slices(RAGGED),
        Dataset.from_tensor_slices,
    ),
    "words of a text": (words, lambda t: Dataset.from_tensor_slices(tf.strings.split(t))),
    "pairs of words": (
        words,
        lambda t: Dataset.from_tensor_slices(tf.strings.split(t)).window(2).flat_map(
            lambda w: w.batch(2)
        ),
    ),
    "numbers in a text": (
        lambda: Dataset.from_tensor_slices([b"1", b"22,3", b"4,5,6"] * 9),
        lambda t: Dataset.from_tensor_slices(
            tf.strings.to_number(tf.strings.split(t, ","), tf.int64)
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_datasets_in_an_order_of_their_own_have_the_elements_of_those_read_one_by_one(
    name, way, monkeypatch
):
    source, function = FUNCTIONS[name]
    one_by_one(monkeypatch)
    expected = list(WAYS[way](source(), function))
    at_once(monkeypatch)
    dataset = WAYS[way](source(), function)
    for _ in range(2):  # a second pass has the same orders
        assert_same(dataset, expected)
    assert is_template(dataset)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["shuffled, of all lengths", "shuffled deep inside", "cached"])
def test_a_position_inside_a_shuffled_dataset_is_restored(name, way, monkeypatch):
    source, function = FUNCTIONS[name]
    at_once(monkeypatch)
    dataset = WAYS[way](source(), function)
    expected = list(dataset)
    iterator = iter(dataset)
    for done in range(1, 12):
        next(iterator)
        state = through_json(iterator.get_state())
        for tried in (0, test_opening.NEVER):
            monkeypatch.setattr(templates, "TRIED_AFTER", tried)
            restored = iter(WAYS[way](source(), function))
            restored.set_state(state)
            assert_same([next(restored) for _ in range(6)], expected[done : done + 6])


OUTER = Dataset.range(9).shuffle(9, seed=5)


def read_twice(dataset):
    return Dataset.zip((dataset, dataset))


def read_inside(dataset):
    return Dataset.range(2).flat_map(lambda n: dataset)


@pytest.mark.parametrize(
    "function",
    [
        lambda n: Dataset.range(5).shuffle(5),
        lambda n: OUTER.take(n % 3 + 1),
        lambda n: Dataset.range(5).shuffle(5, seed=1).repeat(2),
        lambda n: read_twice(Dataset.range(5).shuffle(5, seed=1)),
        lambda n: read_inside(Dataset.range(5).shuffle(5, seed=1)),
    ],
    ids=["without a seed", "captured", "repeated", "read twice", "captured inside"],
)
def test_a_shuffle_that_differs_from_pass_to_pass_is_opened_for_each_element(function, monkeypatch):
    at_once(monkeypatch)
    dataset = Dataset.range(30).flat_map(function)
    list(dataset)
    assert not is_template(dataset)


def test_a_file_cache_is_written_for_each_element(tmp_path, monkeypatch):
    at_once(monkeypatch)
    dataset = Dataset.range(2).flat_map(lambda n: Dataset.range(3).cache(str(tmp_path / "kept")))
    assert [int(x) for x in dataset] == [0, 1, 2, 0, 1, 2]
    assert not is_template(dataset)
    assert any(tmp_path.iterdir())


def test_datasets_behind_elements_that_were_read_early_are_read_at_once(monkeypatch):
    at_once(monkeypatch)
    taken = []
    expanded = Expander.__call__
    monkeypatch.setattr(
        Expander,
        "__call__",
        lambda self, rows: (taken.append(rows.length), expanded(self, rows))[1],
    )
    source, function = FUNCTIONS["numbers in a text"]
    dataset = source().repeat(40).flat_map(function)  # an element shows the spec
    iterator = iter(dataset)
    found = [int(next(iterator)) for _ in range(100)]
    state = through_json(iterator.get_state())
    found += [int(x) for x in iterator]
    assert found == [1, 22, 3, 4, 5, 6] * 360
    assert max(taken) > 100
    again = iter(source().repeat(40).flat_map(function))
    again.set_state(state)
    assert [int(x) for x in again] == found[100:]
