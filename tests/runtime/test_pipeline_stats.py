import threading
import time

import numpy as np
import pytest

import evenfeed as tf


@pytest.fixture(autouse=True)
def _measuring():
    tf.experimental.enable_stats()
    yield
    tf.experimental.enable_stats(False)


def stats_of(dataset):
    iterator = iter(dataset)
    list(iterator)
    return iterator.stats()


def elements(stats):
    return {stage.name: stage.elements for stage in stats.stages}


def python(x):
    return np.float32(float(x))


def test_stages_that_are_read_by_position_are_counted():
    stats = stats_of(tf.data.Dataset.range(20).shuffle(20, seed=1).map(lambda x: x + 1).take(12))
    assert elements(stats) == {
        "range(0, 20)": 12,
        "shuffle(20)": 12,
        "map(<lambda>)": 12,
        "take(12)": 12,
    }
    assert [stage.bytes for stage in stats.stages] == [96] * 4
    assert stats.elements == 12


def test_stages_that_are_read_one_after_another_are_counted():
    dataset = tf.data.Dataset.range(20).map(python).filter(lambda x: x < 10).batch(4).repeat(2)
    stats = stats_of(dataset)
    assert elements(stats) == {
        "range(0, 20)": 40,
        "map(python)": 40,
        "filter(<lambda>)": 20,
        "batch(4)": 6,
        "repeat(2)": 6,
    }
    assert [stage.inputs for stage in stats.stages] == [(), (1,), (2,), (3,), (4,)]


def test_every_stage_names_its_line_and_how_it_runs():
    line = test_every_stage_names_its_line_and_how_it_runs.__code__.co_firstlineno
    dataset = tf.data.Dataset.range(20)
    dataset = dataset.map(python, num_parallel_calls=3)
    stats = stats_of(dataset)
    assert [stage.line.rpartition(":")[2] for stage in stats.stages] == [
        str(line + 2),
        str(line + 3),
    ]
    mapped = stats.stages[1]
    assert (mapped.kind, mapped.workers, mapped.way, mapped.method) == (
        "threads",
        3,
        "per element",
        "map",
    )
    assert mapped.buffer_size is not None


def test_time_is_busy_or_waiting():
    stats = stats_of(tf.data.Dataset.range(50).map(python).batch(5))
    source, mapped, batched = stats.stages
    assert source.busy_seconds > 0
    assert source.input_wait_seconds == 0
    # What a stage waits for is what the stages below take, in one thread.
    below = mapped.busy_seconds + mapped.input_wait_seconds
    assert batched.input_wait_seconds == pytest.approx(below)
    whole = batched.busy_seconds + batched.input_wait_seconds
    assert stats.seconds >= stats.waited_seconds >= whole


@pytest.mark.parametrize("num_parallel_calls", [None, 2])
def test_code_that_waits_is_busy_but_does_not_compute(num_parallel_calls):
    def slow(x):
        time.sleep(0.05)
        return python(x)

    iterator = iter(tf.data.Dataset.range(4).map(slow, num_parallel_calls).prefetch(1))
    list(iterator)
    source, mapped, _ = iterator.stats().stages
    assert (
        mapped.busy_seconds - mapped.cpu_seconds > 0.14
    )  # three naps: the first element is called before, for its spec
    assert source.cpu_seconds is None
    assert " (computing " in iterator.explain()


def test_code_that_computes_is_not_said_to_wait():
    computed = []

    def slow(x):
        start = time.thread_time()
        while time.thread_time() < start + 0.05:
            pass
        computed.append(time.thread_time() - start)
        return python(x)

    _, mapped = stats_of(tf.data.Dataset.range(4).map(slow)).stages
    assert (
        mapped.busy_seconds >= mapped.cpu_seconds >= sum(computed[1:])
    )  # without the call for the spec


def test_compiled_code_computes_in_threads_of_its_own():
    stats = stats_of(tf.data.Dataset.range(20).map(lambda x: x * 2))
    assert [stage.cpu_seconds for stage in stats.stages] == [None, None]


def test_a_prefetch_waits_for_input_and_for_room():
    taken = threading.Event()

    def rows():
        yield from range(10)
        taken.wait(10)  # until the consumer has seen the buffer full

    dataset = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((), tf.int64))
    iterator = iter(dataset.prefetch(3))
    while iterator.stats().stages[0].elements < 4:
        next(iterator)
    taken.set()
    list(iterator)
    source, prefetched = iterator.stats().stages
    assert (source.elements, prefetched.elements) == (10, 10)
    assert prefetched.busy_seconds == 0
    assert prefetched.input_wait_seconds > 0
    assert prefetched.room_wait_seconds > 0
    assert prefetched.buffer_size == 3
    assert 0 <= prefetched.buffered <= 4


def test_datasets_that_are_made_while_reading_count_together():
    inner = tf.data.Dataset.range(4).flat_map(
        lambda x: tf.data.Dataset.from_tensors(x).map(python).repeat(3)
    )
    stats = stats_of(inner)
    made = [stage for stage in stats.stages if stage.inside == 2]
    assert {stage.method: stage.elements for stage in made}["repeat"] == 12
    assert len(made) == 3


def test_the_figures_of_an_iterator_are_its_own():
    dataset = tf.data.Dataset.range(30).map(python, num_parallel_calls=2)
    first = iter(dataset)
    list(first)
    before = first.stats().stages[1].busy_seconds
    list(dataset)
    assert first.stats().stages[1].busy_seconds == before


def test_figures_since_earlier_ones_are_differences():
    iterator = iter(tf.data.Dataset.range(10).map(python).batch(2))
    next(iterator)
    before = iterator.stats()
    list(iterator)
    after = iterator.stats()
    between = after.since(before)
    assert elements(between)["batch(2)"] == 4
    assert between.stages[1].busy_seconds == pytest.approx(
        after.stages[1].busy_seconds - before.stages[1].busy_seconds
    )


def test_a_dataset_that_was_looked_at_before_it_is_measured_is_counted():
    tf.experimental.enable_stats(False)
    dataset = tf.data.Dataset.range(9).map(python)
    assert dataset.element_spec.shape == ()  # reads the first element
    tf.experimental.enable_stats()
    assert elements(stats_of(dataset))["map(python)"] == 9


def test_explain_shows_the_same_figures():
    iterator = iter(tf.data.Dataset.range(6).map(python).batch(2).prefetch(1))
    list(iterator)
    lines = iterator.explain().splitlines()
    assert lines[1].strip().startswith("measured: 6 elements, ")
    assert any("3 elements, " in line and "; buffer " in line for line in lines)
    assert lines[-2].startswith("measured: 3 elements in ")
    assert lines[-1] == f"advice: {iterator.stats().advice}"


def test_explain_of_a_dataset_measures_each_stage():
    lines = tf.data.Dataset.range(10**6).batch(2).explain(0.01).splitlines()
    assert sum(line.strip().startswith("measured: ") for line in lines) == 3


READ = {
    "rows by position": lambda: tf.data.Dataset.range(5000).map(lambda x: x + 1),
    "a shuffle": lambda: tf.data.Dataset.range(5000).shuffle(5000, seed=1),
    "a filter": lambda: tf.data.Dataset.range(5000).filter(lambda x: x % 2 == 0),
    "batches": lambda: tf.data.Dataset.range(5000).batch(2),
    "a prefetch": lambda: tf.data.Dataset.range(5000).batch(2).prefetch(2),
}


@pytest.mark.parametrize("make", READ.values(), ids=READ.keys())
def test_elements_that_were_read_but_not_delivered_do_not_count(make):
    iterator = iter(make())
    for count in range(1, 40):
        next(iterator)
        stats = iterator.stats()
        assert (stats.elements, stats.stages[-1].elements) == (count, count)
    assert "measured: 39 elements in " in str(iterator.explain())
    state = iterator.get_state()
    next(iterator)
    iterator.set_state(state)
    next(iterator)
    assert iterator.stats().elements == 41
    rest = sum(1 for _ in iterator)
    assert iterator.stats().elements == 41 + rest


def test_elements_that_are_read_again_because_a_variable_changed_count_once():
    variable = tf.Variable(1)
    dataset = tf.data.Dataset.range(100).map(lambda x: x + tf.cast(variable, tf.int64))
    iterator = iter(dataset)
    for count in range(1, 30):
        next(iterator)
        variable.assign_add(1)
        assert iterator.stats().elements == count
