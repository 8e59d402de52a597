import numpy as np
import pytest
from tests.formats.test_example_lists import example, floats, numbers, outcome, shown

import evenfeed as tf
from evenfeed.formats.example import dependent_features
from evenfeed.formats.example.dependent_features import ragged_at_once

Ragged = tf.io.RaggedFeature
PARTITIONS = {
    "lengths": lambda rows: [len(row) for row in rows],
    "limits": lambda rows: np.cumsum([len(row) for row in rows]).tolist(),
    "starts": lambda rows: np.cumsum([0, *(len(row) for row in rows)]).tolist()[:-1],
    "splits": lambda rows: np.cumsum([0, *(len(row) for row in rows)]).tolist(),
    "ids": lambda rows: [number for number, row in enumerate(rows) for _ in row],
}
KINDS = {
    "lengths": Ragged.RowLengths("lengths"),
    "limits": Ragged.RowLimits("limits"),
    "starts": Ragged.RowStarts("starts"),
    "splits": Ragged.RowSplits("splits"),
    "ids": Ragged.ValueRowIds("ids"),
}
SPARSE = {
    "one": tf.io.SparseFeature("i", "x", tf.float32, 100),
    "two": tf.io.SparseFeature(["j", "i"], "x", tf.float32, [9, 100]),
    "as written": tf.io.SparseFeature("i", "x", tf.float32, 100, already_sorted=True),
}


def record(rows, outer=None, **changed):
    """Return an example of rows of numbers, with what each partition says of them."""
    held = {name: numbers(*of(rows)) for name, of in PARTITIONS.items()}
    count = sum(map(len, rows))
    values = floats(*(value for row in rows for value in row))
    places = {
        "i": numbers(*[7 * n % 10 for n in range(count)]),
        "j": numbers(*[n % 3 for n in range(count)]),
    }
    outer = numbers(*([len(rows)] if outer is None else outer))
    return example(**{"x": values, "outer": outer, **held, **places, **changed})


def records(seed=0):
    chance = np.random.default_rng(seed)
    found = []
    for _ in range(300):
        rows = [chance.random(2 * chance.integers(4)).tolist() for _ in range(chance.integers(5))]
        found.append(record([*rows, [0.5, 1.5]] if rows else []))  # row numbers end with a value
    return found


def outcome_one_by_one(serialized, wanted):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dependent_features, "is_worth_it", lambda rows: False)
        return outcome(serialized, wanted)


def features(*partitions):
    return {"v": Ragged(tf.float32, value_key="x", partitions=partitions)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "around", [(), (Ragged.RowLengths("outer"),)], ids=["one axis", "two axes"]
)
@pytest.mark.parametrize("inner", [(), (Ragged.UniformRowLength(1),)], ids=["", "dense inside"])
def test_rows_of_many_records_are_those_one_by_one(kind, around, inner, monkeypatch):
    wanted, serialized = features(*around, KINDS[kind], *inner), records()
    expected = outcome_one_by_one(serialized, wanted)
    answers = []

    def remembered(*given):
        answers.append(ragged_at_once(*given))
        return answers[-1]

    monkeypatch.setattr(dependent_features, "ragged_at_once", remembered)
    assert outcome(serialized, wanted) == expected
    assert [answer is None for answer in answers] == [False]


@pytest.mark.parametrize("wanted", SPARSE.values(), ids=SPARSE)
def test_places_of_many_records_are_those_one_by_one(wanted):
    assert outcome(records(), {"s": wanted}) == outcome_one_by_one(records(), {"s": wanted})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "said", [[], [0], [1], [-1, 4], [3, 1], [0, 3], [2**62] * 4, [0, 0, 0], [0, 2, 1, 3], [0, 9, 9]]
)
def test_what_partitions_may_not_say_is_found_one_by_one(kind, said):
    serialized = [*records(), record([[1.0, 2.0], [3.0]], **{kind: numbers(*said)}), *records(1)]
    wanted = features(KINDS[kind])
    assert _outcome(outcome, serialized, wanted) == _outcome(outcome_one_by_one, serialized, wanted)


def _outcome(call, serialized, wanted):
    try:
        return call(serialized, wanted)
    except (ValueError, OverflowError) as error:
        return str(error)


@pytest.mark.parametrize("wanted", SPARSE.values(), ids=SPARSE)
def test_the_record_without_a_place_for_each_value_is_named(wanted):
    serialized = [*records(), record([[1.0, 2.0]], i=numbers(4)), *records(1)]
    assert "record 300 has 1 places for the 2 values" in outcome(serialized, {"s": wanted})


@pytest.mark.parametrize("wanted", SPARSE.values(), ids=SPARSE)
@pytest.mark.parametrize("size", [0, 1, 7])
def test_places_in_a_map_are_those_parsed_alone(wanted, size):
    dataset = tf.data.Dataset.from_tensor_slices(records())
    if size:
        batches, parse = list(dataset.batch(size)), tf.io.parse_example
        found = dataset.batch(size).map(lambda batch: parse(batch, {"s": wanted})["s"])
    else:
        batches, parse = records(), tf.io.parse_single_example
        found = dataset.map(lambda one: parse(one, {"s": wanted})["s"])
    assert list(map(shown, found)) == [shown(parse(one, {"s": wanted})["s"]) for one in batches]


@pytest.mark.parametrize("size", [0, 1, 7])
@pytest.mark.parametrize(
    "partitions",
    [
        (KINDS["lengths"],),
        (Ragged.RowLengths("outer"), KINDS["splits"]),
        (KINDS["limits"], Ragged.UniformRowLength(1)),
        (Ragged.UniformRowLength(1),),
        (Ragged.UniformRowLength(1), Ragged.UniformRowLength(1)),
        (Ragged.UniformRowLength(1), KINDS["ids"]),
    ],
)
def test_rows_in_a_map_are_those_parsed_alone(partitions, size):
    dataset, wanted = tf.data.Dataset.from_tensor_slices(records()), features(*partitions)
    calls = []

    def parsed(serialized):
        calls.append(serialized)
        parse = tf.io.parse_example if size else tf.io.parse_single_example
        return parse(serialized, wanted)["v"]

    given = dataset.batch(size) if size else dataset
    found = given.map(parsed)
    assert list(map(shown, found)) == [shown(parsed(one)) for one in given]
    assert len(calls) < 2 * len(list(given))
    parts = list(map(tf.type_spec_from_value, map(parsed, given)))
    assert all(found.element_spec.is_compatible_with(part) for part in parts)
