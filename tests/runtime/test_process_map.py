"""Maps functions in real processes, and checks that every process ends."""

import functools
import gc
import os
import threading
import time
from itertools import islice

import numpy as np
import pytest
from tests import chores
from tests.processes import alive, children_of, wait_until
from tests.resuming import assert_resumes, plain, rows_of

import evenfeed as tf
from evenfeed.core.callsite import Origin
from evenfeed.errors import CancelledError, FailedPreconditionError, UnavailableError
from evenfeed.plan.sources import Range
from evenfeed.runtime.functions.row_function import trace
from evenfeed.runtime.operators.sources import Numbers
from evenfeed.runtime.positions.orders import Forward
from evenfeed.runtime.positions.rows import Walk
from evenfeed.runtime.processes.process_map import MapInProcesses, Processes

pytestmark = pytest.mark.slow

Dataset = tf.data.Dataset
HERE = Origin("train.py", 12)
NUMBER = tf.TensorSpec([], tf.int64)


@pytest.fixture(autouse=True)
def nothing_stays():
    """Check that a test leaves no process, thread or named memory behind."""
    memory = set(os.listdir("/dev/shm"))
    before = set(children_of(os.getpid()))
    yield
    gc.collect()
    wait_until(lambda: set(children_of(os.getpid())) <= before)
    wait_until(lambda: not own_threads())
    assert set(os.listdir("/dev/shm")) <= memory


def own_threads():
    return [t for t in threading.enumerate() if t.name.startswith("evenfeed-")]


def numbers(count):
    return Walk(Numbers(Range(0, count)), Forward(count))


def function(call, signature=NUMBER):
    return trace(call, NUMBER, HERE, vectorize=False, output_signature=signature)


@pytest.fixture
def picky():
    pool = Processes(function(chores.picky), 2)
    yield pool
    pool.close()


def outcomes(dataset):
    """Return the numbers, and the errors between them."""
    found, iterator = [], iter(dataset)
    while True:
        try:
            found.append(int(next(iterator)))
        except StopIteration:
            return found
        except Exception as error:  # noqa: BLE001 - the tests look at it
            found.append(error)


def names(found):
    return [type(x).__name__ if isinstance(x, Exception) else x for x in found]


def test_elements_keep_their_order():
    dataset = Dataset.range(200).map(chores.slow_at_first, 2, processes=True)
    assert [int(x) for x in dataset] == list(range(200))


@pytest.mark.parametrize("count", [0, 1])
def test_a_short_dataset_is_mapped_too(count):
    dataset = Dataset.range(count).map(chores.tenfold, 2, processes=True)
    assert [int(x) for x in dataset] == [0] * count
    assert (dataset.element_spec, int(dataset.cardinality())) == (NUMBER, count)


def test_an_endless_dataset_is_mapped_as_far_as_it_is_read():
    dataset = Dataset.counter().map(chores.tenfold, 2, processes=True)
    assert [int(x) for x in dataset.take(5)] == [0, 10, 20, 30, 40]


def test_results_of_every_kind_arrive_as_in_one_process():
    source = Dataset.range(5)
    here = source.map(chores.of_many_kinds, vectorize=False)
    there = source.map(chores.of_many_kinds, 2, processes=True)
    assert there.element_spec == here.element_spec
    for one, two in zip(here, there, strict=True):
        assert tf.nest.map_structure(plain, two) == tf.nest.map_structure(plain, one)


def test_processes_show_no_progress_of_their_own(monkeypatch):
    monkeypatch.setenv("EVENFEED_PROGRESS", "1")  # also in the main process, which learns the spec
    source = Dataset.range(2).map(chores.progress_setting, 1, processes=True)
    assert [int(x) for x in source] == [0, 1]


def test_text_and_none_and_big_arrays_arrive_there():
    big = np.arange(3 * 50_000, dtype=np.float32).reshape(3, -1)
    source = Dataset.from_tensor_slices(({"a": ["x", "y", "z"], "b": big}, None))
    for one, two in zip(source, source.map(same, 2, processes=True), strict=True):
        assert tf.nest.map_structure(plain, two) == tf.nest.map_structure(plain, one)


def test_vectors_of_different_lengths_arrive_there():
    spec = tf.TensorSpec([None], tf.int64)
    rows = Dataset.range(200).map(counted, 2, processes=True, output_signature=spec)
    expected = [np.arange(n % 7) for n in range(200)]
    assert [row.tolist() for row in rows] == [row.tolist() for row in expected]
    tokens = next(iter(rows.unbatch().batch(1000)))
    assert tokens.tolist() == np.concatenate(expected).tolist()


def counted(x):
    return np.arange(int(x) % 7)


def same(element, nothing):
    assert nothing is None
    return element, nothing


def test_who_may_not_write_into_an_element_here_may_not_there():
    source = Dataset.from_tensor_slices(np.zeros((2, 3)))
    spec = tf.TensorSpec([3], tf.float64)
    dataset = source.map(chores.writes_into, 1, processes=True, output_signature=spec)
    assert names(outcomes(dataset)) == ["ValueError", "ValueError"]


def test_random_draws_do_not_depend_on_processes():
    source = Dataset.range(20)
    drawn = [
        [float(x) for x in source.random_map(chores.noisy, seed=7, generator="numpy", **how)]
        for how in ({}, {"num_parallel_calls": 2, "processes": True})
    ]
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0])) == 20


def test_how_fast_it_was_is_measured(picky):
    assert rows_of(MapInProcesses(numbers(9), picky), 3)
    assert picky.function.meter.rows == 9
    assert picky.function.meter.rate > 0


def test_explain_says_how_many_processes_there_are(monkeypatch):
    dataset = Dataset.range(6).map(chores.tenfold, 2, processes=True)
    assert "per element in 2 processes: processes=True; not run yet" in dataset.explain()
    said = Dataset.range(6).map(chores.tenfold, 1, processes=True).explain(measure=0.1)
    assert "per element in another process: processes=True; " in said
    assert "rows/s, over 6 rows" in said
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 5})
    said = Dataset.range(6).map(chores.tenfold, tf.data.AUTOTUNE, processes=True).explain()
    assert "per element in 3 processes" in said


def test_resume_is_exact_behind_every_read(picky):
    rows = assert_resumes(lambda: MapInProcesses(numbers(9), picky), 1, 4)
    assert [row if row is KeyError else row[0][2] for row in rows] == [
        0, 10, KeyError, 30, 40, KeyError, KeyError, 70, 80,
    ]  # fmt: skip


def test_without_order_nothing_is_lost_and_resume_repeats_nothing():
    pool = Processes(function(chores.slow_now_and_then), 2)
    everything = sorted(map(str, rows_of(MapInProcesses(numbers(12), pool), 3)))
    for reads in (0, 1, 3, 6):
        reader, before = MapInProcesses(numbers(12), pool, in_order=False), []
        for _ in range(reads):
            try:
                block = reader.read(2)
            except KeyError:
                before.append(KeyError)
            else:
                before += [list(map(plain, block.row(row))) for row in range(block.length)]
        again = MapInProcesses(numbers(12), pool, in_order=False)
        again.restore(reader.state())
        reader.close()
        assert sorted(map(str, before + rows_of(again, 3))) == everything


def test_an_error_keeps_its_type_and_says_where_it_was():
    dataset = Dataset.range(4).map(chores.picky, 1, processes=True, output_signature=NUMBER)
    found = outcomes(dataset)
    assert names(found) == [0, 10, "KeyError", 30]
    where, traceback = found[2].__notes__
    assert where.startswith("while mapping element 2 with picky, asked for at ")
    assert "test_process_map.py" in where
    assert traceback.startswith("in process 0 of map (pid ")
    assert "chores.py" in traceback


def test_an_error_that_cannot_be_sent_is_sent_as_a_builtin():
    dataset = Dataset.range(1).map(chores.crosses, 1, processes=True, output_signature=NUMBER)
    with pytest.raises(ValueError, match="Crossing: 0 meets the road"):
        next(iter(dataset))


def test_a_process_that_dies_is_an_error_for_one_element():
    dataset = Dataset.range(30).map(chores.fatal, 2, processes=True, output_signature=NUMBER)
    found = outcomes(dataset)
    died = [7, 20, 21]
    assert names(found) == ["UnavailableError" if n in died else n for n in range(30)]
    for number, how in zip(
        died,
        ["was killed by SIGSEGV", "ended with exit code 3", "ended with exit code 4"],
        strict=True,
    ):
        text = str(found[number])
        assert f"{how} while it mapped element {number} with fatal." in text
        assert text.startswith("Process ")
        assert "(pid " in text
        assert "at:  " in text
        assert "test_process_map.py" in text


def test_what_a_process_takes_with_it_is_mapped_again(tmp_path):
    call = functools.partial(chores.killed_once, str(tmp_path / "mark"))
    pool = Processes(function(call), 1)
    pool._shared.together = 8  # one process has all elements when it is killed
    found = rows_of(MapInProcesses(numbers(8), pool), 8)
    assert [row if row is UnavailableError else row[0][2] for row in found] == [
        0, 1, 2, UnavailableError, 4, 5, 6, 7,
    ]  # fmt: skip


def test_a_process_that_closes_its_connection_is_blamed_on_the_element_that_closed_it():
    pool = Processes(function(chores.closes_everything), 1)
    pool._shared.together = 8  # the process has more elements to map when it closes its files
    found = rows_of(MapInProcesses(numbers(8), pool), 8)
    assert [row if row is UnavailableError else row[0][2] for row in found] == [
        0, 1, 2, UnavailableError, 4, 5, 6, 7,
    ]  # fmt: skip
    dataset = Dataset.range(3, 4).map(
        chores.closes_everything, 1, processes=True, output_signature=NUMBER
    )
    with pytest.raises(
        UnavailableError, match="closed its connection to this program while it mapped element 0"
    ):
        list(dataset)


def test_a_death_can_be_ignored():
    dataset = Dataset.range(10).map(chores.fatal, 2, processes=True, output_signature=NUMBER)
    assert [int(x) for x in dataset.ignore_errors()] == [0, 1, 2, 3, 4, 5, 6, 8, 9]


def test_small_elements_travel_together_and_slow_ones_alone():
    small = Processes(function(chores.tenfold), 1)
    assert rows_of(MapInProcesses(numbers(500), small), 50, 500)
    assert small.together > 16
    slow = Processes(function(naps), 1)
    assert rows_of(MapInProcesses(numbers(6), slow), 1)
    assert slow.together == 1
    assert slow.function.meter.waited > 6 * 0.029  # the process tells that it computed nothing


def naps(x):
    time.sleep(0.03)
    return x


def test_big_elements_do_not_pile_up():
    rows = np.zeros((40, 300_000), np.uint8)
    iterator = iter(Dataset.from_tensor_slices(rows).map(same_array, 1, processes=True))
    assert len(list(islice(iterator, 39))) == 39
    assert iterator._operator._pool.together == 1
    assert len(list(iterator)) == 1  # the processes end with the iterator


def same_array(x):
    return x


def test_the_processes_last_for_all_rounds_and_two_iterators_share_none():
    dataset = Dataset.range(6).map(chores.process, 2, processes=True, output_signature=NUMBER)
    first = [int(x) for x in dataset.repeat(5)]
    assert len(set(first)) <= 2
    one, two = iter(dataset), iter(dataset)
    assert not {int(x) for x in one} & {int(x) for x in two}


def test_each_branch_of_one_dataset_has_its_elements():
    mapped = Dataset.range(20).map(chores.tenfold, 2, processes=True)
    pairs = list(Dataset.zip(mapped, mapped.skip(1)))
    assert [(int(a), int(b)) for a, b in pairs] == [(10 * n, 10 * n + 10) for n in range(19)]


def test_processes_that_have_nothing_to_do_end_and_start_again(monkeypatch):
    monkeypatch.setattr("evenfeed.runtime.processes.process_map._IDLE_SECONDS", 0.1)
    before = set(children_of(os.getpid()))
    iterator = iter(Dataset.range(100).map(chores.slow_at_first, 1, processes=True))
    found = [int(next(iterator))]
    wait_until(lambda: set(children_of(os.getpid())) == before)
    assert found + [int(x) for x in iterator] == list(range(100))


@pytest.mark.parametrize("prefetched", [0, 2])
def test_a_forgotten_iterator_ends_its_processes_in_the_middle_of_a_function(prefetched):
    before = set(children_of(os.getpid()))
    signed = {"processes": True, "output_signature": NUMBER}
    iterator = iter(Dataset.range(9).map(chores.endless_from_1, 2, **signed).prefetch(prefetched))
    assert next(iterator) == 0
    assert set(children_of(os.getpid())) - before
    del iterator
    wait_until(lambda: set(children_of(os.getpid())) <= before, 3)
    wait_until(lambda: not own_threads(), 3)


def test_closed_processes_take_no_more():
    pool = Processes(function(chores.tenfold), 1)
    pool.close()
    with pytest.raises(CancelledError):
        MapInProcesses(numbers(3), pool).read(1)


def test_a_fork_does_not_end_the_processes_of_another(picky):
    assert rows_of(MapInProcesses(numbers(2), picky), 1)
    shared = picky._shared
    mine, shared._owner = shared._owner, -1
    shared.close()
    shared._owner = mine
    assert alive([child._process.pid for child in shared._children])
    assert rows_of(MapInProcesses(numbers(2), picky), 1)


def test_a_module_that_is_not_there_is_told_once_for_all(monkeypatch, tmp_path):
    module = tmp_path / "vanishing.py"
    module.write_text("def decode(x):\n    return x\n")
    monkeypatch.syspath_prepend(tmp_path)
    import vanishing

    dataset = Dataset.range(5).map(vanishing.decode, 2, processes=True)
    module.unlink()
    iterator = iter(dataset)
    with pytest.raises(FailedPreconditionError, match="cannot load decode: ModuleNotFoundError"):
        next(iterator)
    with pytest.raises(FailedPreconditionError, match="cannot load decode"):
        list(dataset.ignore_errors())
    module.write_text("def decode(x):\n    return x\n")
    assert [int(x) for x in iterator] == [0, 1, 2, 3, 4]


def test_a_child_has_neither_jax_nor_the_datasets():
    text = tf.TensorSpec([], tf.string)
    dataset = Dataset.range(1).map(chores.loaded, 1, processes=True, output_signature=text)
    modules = next(iter(dataset)).item().decode().split()
    assert "evenfeed.runtime.functions.row_function" in modules
    assert not {"jax", "jaxlib", "evenfeed.dataset", "evenfeed.strategy"} & set(modules)
