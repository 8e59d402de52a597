import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import evenfeed as tf
from evenfeed.dataset import plan_of
from evenfeed.runtime.live_state import Meter, PassMeter


def test_a_rate_is_rows_over_seconds():
    meter = Meter()
    assert meter.rate is None
    meter.add(6, 2.0)
    meter.add(0, 1.0)
    assert (meter.rows, meter.seconds, meter.rate) == (6, 3.0, 2.0)


def test_some_calls_tell_how_long_all_waited():
    meter = Meter()
    assert meter.waited == 0.0
    meter.add(1, 2.0)
    assert meter.waited == 0.0
    meter.add(1, 4.0, waited=3.0)
    assert meter.waited == 4.5


def test_the_processor_time_of_many_calls_is_seldom_measured():
    meter = PassMeter(Meter(), splits=True)
    assert all(meter.begin()[1] is not None for _ in range(16))
    assert sum(meter.begin()[1] is not None for _ in range(800)) == 100
    assert PassMeter(Meter(), splits=False).begin()[1] is None


def test_threads_lose_no_count():
    meter = Meter()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: [meter.add(1, 0.5) for _ in range(2000)], range(8)))
    assert (meter.rows, meter.seconds) == (16_000, 8000.0)


def slow(x):
    time.sleep(0.002)
    return x


@pytest.mark.parametrize("calls", [None, 4])
def test_what_runs_per_element_is_measured(calls):
    dataset = tf.data.Dataset.range(20).map(slow, calls, vectorize=False)
    meter = plan_of(dataset).function.meter
    assert meter.rows == 0
    assert len(list(dataset)) == meter.rows == 20
    assert 100 < meter.rate < 500


def test_what_it_takes_to_compile_is_not_measured():
    dataset = tf.data.Dataset.range(1000).map(lambda x: tf.sin(tf.cast(x, tf.float32))).batch(100)
    function = plan_of(dataset).child.function
    meter = function.meter
    list(dataset)
    assert function.compilations > 0  # few integer functions are compiled
    compiled = meter.rows
    assert compiled < 1000
    list(dataset)
    assert meter.rows - compiled == 1000
    assert meter.rate > 10_000
