import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plans import PLANS, SOURCES, fresh

import evenfeed as tf
from evenfeed.dataset import Dataset
from evenfeed.runtime.build import build
from evenfeed.runtime.positions.rows import Walk
from evenfeed.runtime.read_size import ReadWide
from evenfeed.runtime.run import Run

ARRAYS = (np.zeros((600, 4), np.float32), np.arange(600, dtype=np.int32))


def scaled(x, y):
    return x * 2 - 1, y


def slow(x, y):
    time.sleep(0.001)
    return (x, y) if y >= 0 else None


def steps(dataset, **how):
    """Return the lines of an explanation, without the source lines of steps."""
    lines = str(dataset.explain(**how)).splitlines()
    return [
        " ".join(word for word in line.split() if "test_explain.py:" not in word) for line in lines
    ]


def test_a_pipeline_is_told_from_source_to_end():
    dataset = (
        Dataset.from_tensor_slices(ARRAYS)
        .shuffle(600, seed=1)
        .map(scaled)
        .map(
            slow,
            num_parallel_calls=4,
            output_signature=Dataset.from_tensor_slices(ARRAYS).element_spec,
        )
        .repeat()
        .batch(32)
    )
    assert steps(dataset) == [
        "1 from_tensor_slices() 600 elements ((4,) float32, () int32)",
        "2 shuffle(600) 600 elements",
        "3 map(scaled) 600 elements",
        "vectorised: it traces; not run yet",
        "4 map(slow) 600 elements",
        "per element in 4 threads: it needs the values of its arguments while it runs; not run yet",
        "read sequentially from here on: slow runs per element",
        "5 repeat() endless",
        "6 batch(32) endless ((?, 4) float32, (?,) int32)",
        "resume: by position",
    ]


def test_every_step_names_the_line_that_made_it():
    dataset = Dataset.range(5)
    dataset = dataset.batch(2)
    first, second = str(dataset.explain()).splitlines()[:2]
    line = int(first.split("test_explain.py:")[1].split()[0])
    assert int(second.split("test_explain.py:")[1].split()[0]) == line + 1


def test_columns_stand_below_each_other():
    lines = str(Dataset.range(5).repeat().batch(100, drop_remainder=True).explain()).splitlines()
    assert len({line.index("tests") for line in lines[:3]}) == 1
    assert lines[0].index("5 elements") == lines[1].index("endless")


def test_branches_are_named_by_their_steps():
    one = Dataset.range(5)
    dataset = Dataset.zip(one.batch(2), one.map(lambda x: x * 2)).concatenate(
        Dataset.zip(one.batch(2), one)
    )
    assert [line for line in steps(dataset) if line[0].isdigit()] == [
        "1 range(0, 5) 5 elements () int64",
        "2 batch(2) 3 elements (?,) int64",
        "3 map(step 1, <lambda>) 5 elements () int64",
        "4 zip(step 2, step 3) 3 elements ((?,) int64, () int64)",
        "5 batch(step 1, 2) 3 elements (?,) int64",
        "6 zip(step 5, step 1) 3 elements ((?,) int64, () int64)",
        "7 concatenate(step 4, step 6) 6 elements ((?,) int64, () int64)",
    ]


def test_explaining_reads_and_calls_nothing():
    def never():
        raise AssertionError("it was read")
        yield

    def untraceable(x):
        if x > 1:
            raise AssertionError("it was called")
        return x

    spec = tf.TensorSpec([], tf.int32)
    dataset = Dataset.from_generator(never, output_signature=spec).map(untraceable).batch(2)
    said = steps(dataset)
    assert "3 batch(2) length unknown" in said
    assert "2 map(untraceable) length unknown known after the first element" in said


def test_explaining_calls_no_function_that_makes_datasets():
    def made(x):
        return Dataset.from_tensors(tf.numpy_function(int, [x], tf.int64))

    dataset = Dataset.from_generator(
        lambda: 1 / 0, output_signature=tf.TensorSpec([], tf.int64)
    ).flat_map(made)
    assert "2 flat_map(made) length unknown known after the first element" in steps(dataset)


def test_what_is_learnt_later_is_told_later():
    dataset = Dataset.range(3).map(lambda x: x if x >= 0 else None)
    assert steps(dataset)[1] == "2 map(<lambda>) 3 elements known after the first element"
    list(dataset)
    assert steps(dataset)[1] == "2 map(<lambda>) 3 elements"
    assert "over 4 rows" in steps(dataset)[2]  # once to learn what it returns


def test_what_ran_has_a_rate():
    dataset = Dataset.from_tensor_slices(ARRAYS).map(slow, num_parallel_calls=4)
    list(dataset.take(40))
    note = next(line for line in steps(dataset) if line.startswith("per element"))
    rate, rows = note.split("runs; ")[1].split(" rows/s in each, over ")
    assert 100 < float(rate) < 1000
    assert int(rows.split()[0]) >= 40


def test_rows_that_no_program_takes_are_told():
    def ragged():
        yield from ([1] * length for length in range(1, 30))

    spec = tf.TensorSpec([None], tf.int32)
    dataset = Dataset.from_generator(ragged, output_signature=spec).map(lambda row: row * 2)
    list(dataset)
    note = steps(dataset)[3]
    assert note.startswith("vectorised: it traces; ")
    assert "of them one by one because shapes differ" in note


def test_measuring_reads_for_as_long_as_asked():
    dataset = Dataset.from_tensor_slices(ARRAYS).map(slow).repeat()
    began = time.perf_counter()
    last = steps(dataset, measure=0.2)[-1]
    assert time.perf_counter() - began > 0.2
    assert last.startswith("measured: ")
    assert float(last.split()[1]) > 0


def test_measuring_counts_as_no_pass():
    def orders(measured):
        dataset = Dataset.range(50).shuffle(50, seed=3)
        if measured:
            dataset.explain(measure=0.01)
        return [[int(x) for x in dataset] for _ in range(2)]

    assert orders(measured=True) == orders(measured=False)


@pytest.mark.parametrize(("count", "said"), [(0, "no element"), (1, "only one element")])
def test_too_little_to_measure_is_said(count, said):
    assert (
        steps(Dataset.range(count), measure=0.1)[-1]
        == f"measured: nothing, because there is {said}"
    )


def test_measuring_ends_with_the_data_and_lets_errors_through():
    assert "4 in " in steps(Dataset.range(5), measure=5)[-1]
    failing = Dataset.range(5).map(
        lambda x: [][int(x)], output_signature=tf.TensorSpec([], tf.int64)
    )
    with pytest.raises(IndexError):
        failing.explain(measure=0.1)


@pytest.mark.parametrize("measure", [-1, "1", None, float("nan"), float("inf"), True])
def test_measure_is_a_time(measure):
    with pytest.raises(ValueError, match="measure must be a number of seconds"):
        Dataset.range(3).explain(measure=measure)


def test_an_explanation_shows_itself():
    said = Dataset.range(3).explain()
    assert repr(said) == str(said)
    assert isinstance(said, str)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda d: d.padded_batch(2), "each element is made of several"),
        (lambda d: d.batch(2).batch(2), "batches begin elsewhere after an element that fails"),
        (
            lambda d: d.filter(lambda x: x > 1),
            "which elements remain is known only after they are read",
        ),
        (lambda d: d.map(lambda x: x, vectorize=False), "<lambda> runs per element"),
        (
            lambda d: d.flat_map(Dataset.range),
            "the number of elements is known only after they are read",
        ),
        (
            lambda d: d.scan(np.int64(0), lambda s, x: (s, x)),
            "each element needs the state that the previous one left",
        ),
        (lambda d: d.prefetch(1), "elements are held in the order in which they arrive"),
        (
            lambda d: Dataset.sample_from_datasets([d, d]),
            "the next dataset is chosen while reading",
        ),
        (lambda d: Dataset.counter(), "it can only count forward"),
    ],
)
def test_the_end_of_positions_has_its_reason(make, why):
    assert f"read sequentially from here on: {why}" in steps(make(Dataset.range(5)))


def restored_pulls(make, count=8):
    """Return how many elements `set_state` pulls from the source again."""
    pulled = []

    def source():
        for number in range(50):
            pulled.append(number)
            yield number

    dataset = make(Dataset.from_generator(source, output_signature=tf.TensorSpec([], tf.int64)))
    iterator = iter(dataset)
    for _ in range(count):
        next(iterator)
    state = iterator.get_state()
    again = iter(dataset)
    pulled.clear()
    again.set_state(state)
    return len(pulled), dataset


def test_a_generator_is_said_to_be_read_again_and_is():
    pulls, dataset = restored_pulls(lambda d: d.map(lambda x: x))
    assert pulls >= 7
    said = "resume: by re-reading earlier elements, because of step 1 from_generator"
    assert steps(dataset)[-1] == said


def test_steps_that_are_read_again_are_named():
    dataset = Dataset.range(40).filter(lambda x: x >= 0).shuffle(5).unique().cache()
    assert steps(dataset)[-1] == (
        "resume: by re-reading earlier elements, because of step 4 unique, 5 cache"
    )
    buffered = Dataset.range(4000).filter(lambda x: x >= 0)
    assert steps(buffered.shuffle(2000))[-1] == (
        "resume: by position; step 3 shuffle reads elements again to fill its buffer of 2,000"
    )
    assert steps(buffered.shuffle(tf.data.UNKNOWN_CARDINALITY))[-1] == (
        "resume: by re-reading earlier elements, because of step 3 shuffle"
    )
    assert steps(Dataset.range(40).shuffle(5))[-1] == "resume: by position, at once"


class Counted:
    """A function that counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return x


@pytest.mark.parametrize(
    ("behind", "again"),
    [
        (lambda d: d.batch(2), False),
        (lambda d: d.filter(lambda x: x >= 0), False),
        (lambda d: d.window(2).flat_map(lambda w: w), False),
        (lambda d: d.window(3, 2).flat_map(lambda w: w.batch(3)), False),
        (lambda d: d.scan(np.int64(0), lambda s, x: (s + x, s)), False),
        (lambda d: d.scan(np.int64(0), lambda s, x: (s + x, s)).batch(2).prefetch(2), False),
        (lambda d: d.take_while(lambda x: x >= 0), False),
        (lambda d: d.batch(3).rebatch(2).unbatch(), False),
        (lambda d: d.interleave(Dataset.from_tensors, cycle_length=3), False),
        (lambda d: d.flat_map(Dataset.from_tensors), False),
        (lambda d: Dataset.zip(d, Dataset.range(400)).enumerate().skip(3), False),
        (lambda d: d.map(int, 3, output_signature=tf.TensorSpec([], tf.int64)), False),
        (lambda d: d.prefetch(2), False),
        (lambda d: d.shuffle(tf.data.UNKNOWN_CARDINALITY), True),
        (lambda d: d.unique(), True),
        (lambda d: d.cache(), True),
        (lambda d: d.group_by_window(lambda x: x % 2, lambda k, g: g, window_size=2), True),
    ],
)
def test_what_is_said_of_resuming_is_what_happens(behind, again):
    dataset, calls = resumed_behind(behind, 100)
    assert ("by re-reading" in steps(dataset)[-1]) == again
    assert calls >= 100 if again else calls < 20


def resumed_behind(behind, taken):
    """Return a dataset, and how often its function was called to resume after some elements."""
    function = Counted()
    dataset = behind(Dataset.range(400).map(function, vectorize=False))
    iterator = iter(dataset)
    for _ in range(taken):
        next(iterator)
    state = iterator.get_state()
    restored = iter(dataset)
    function.calls = 0
    restored.set_state(state)
    next(restored)
    restored._operator.close()
    return dataset, function.calls


def test_a_shuffle_reads_only_as_far_back_as_its_buffer_reaches():
    dataset, calls = resumed_behind(lambda d: d.shuffle(4, seed=1), 350)
    assert "step 3 shuffle reads elements again to fill its buffer of 4" in steps(dataset)[-1]
    assert calls < 60


@settings(max_examples=60)
@given(data=st.data())
def test_positions_are_said_to_end_where_they_do(data):
    plan = fresh(data.draw(PLANS[data.draw(st.sampled_from([*PLANS]))]))
    said = steps(Dataset(plan))
    built = build(plan, Run(plan))
    walked = isinstance(built.children()[0] if isinstance(built, ReadWide) else built, Walk)
    assert (said[-1] == "resume: by position, at once") == walked
    assert any("read sequentially from here on" in line for line in said) == (not walked)
    assert not walked or type(plan) in SOURCES or len(said) > 2


def test_a_shuffle_below_a_cache_is_explained():
    said = steps(Dataset.range(5).shuffle(5).cache())
    assert any("shuffle(5)" in line for line in said)
