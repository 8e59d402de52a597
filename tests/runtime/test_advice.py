import pytest

from evenfeed.runtime.measuring import advice
from evenfeed.runtime.measuring.advice import advised
from evenfeed.runtime.measuring.stage_stats import StageStats


@pytest.fixture(autouse=True)
def _two_cores(monkeypatch):
    monkeypatch.setattr(advice, "available_cores", lambda: 2)


def stage(  # noqa: PLR0913 - the figures that matter
    number, method, busy, *, cpu=None, workers=1, kind="thread", way="", is_tuned=False
):
    return StageStats(
        number=number,
        name=f"{method}(decode)" if way else f"{method}()",
        line=f"train.py:{10 + number}",
        inputs=(number - 1,) if number > 1 else (),
        elements=100,
        elements_per_second=10.0,
        bytes=800,
        busy_seconds=busy,
        cpu_seconds=busy if cpu is None and way == "per element" else cpu,
        input_wait_seconds=0.0,
        room_wait_seconds=0.0,
        buffered=None,
        buffer_size=None,
        workers=workers,
        kind=kind,
        method=method,
        way=way,
        is_tuned=is_tuned,
    )


SOURCE = stage(1, "range", 0.1)
PREFETCH = stage(3, "prefetch", 0.0)


def test_a_slow_function_gets_threads():
    found = advised([SOURCE, stage(2, "map", 9.9, way="per element"), PREFETCH], 10, 9.8)
    assert found.stage == 2
    assert found.text == (
        "map(decode) at train.py:12 keeps 1 of 2 cores busy and everything waits for it: num_parallel_calls=2."
    )


@pytest.mark.parametrize(
    ("slow", "change"),
    [
        (stage(2, "map", 9.9, way="per element", is_tuned=True), "processes=True, because threads"),
        (stage(2, "map", 19, way="per element", workers=2, kind="threads"), "processes=True, if"),
        (stage(2, "map", 5, way="per element", workers=2, kind="threads"), ".cache() after it"),
        (stage(2, "map", 19, way="per element", workers=2, kind="processes"), ".cache() after it"),
        (stage(2, "map", 9, way="vectorised"), "it is compiled already"),
        (stage(2, "filter", 9, way="per element"), "filter before the costly stages"),
        (stage(2, "shuffle", 9), "a smaller buffer_size"),
        (stage(2, "enumerate", 9), ".prefetch(tf.data.AUTOTUNE)"),
        (stage(1, "from_generator", 9), "make keys in the generator"),
        (stage(1, "t_f_record_dataset", 9), "interleave over several files"),
    ],
)
def test_each_kind_of_stage_has_a_change(slow, change):
    found = advised([SOURCE, slow, PREFETCH], 10, 9)
    assert found.stage == slow.number
    assert change in found.text


@pytest.mark.parametrize(
    ("slow", "change"),
    [
        ({}, "num_parallel_calls=tf.data.AUTOTUNE."),
        ({"workers": 2, "kind": "threads"}, "num_parallel_calls=4."),
        ({"workers": 6, "kind": "threads"}, "num_parallel_calls=12."),
        (
            {"workers": 2, "kind": "processes"},
            "num_parallel_calls=tf.data.AUTOTUNE without processes=True.",
        ),
        ({"is_tuned": True}, ".cache() after it, if its results fit in memory."),
    ],
)
def test_a_function_that_waits_is_called_for_more_elements_at_once(slow, change):
    busy = 10 * slow.get("workers", 1)
    waiting = stage(2, "map", busy, cpu=0.04 * busy, way="per element", **slow)
    assert advised([SOURCE, waiting, PREFETCH], 10, 9.8).text == (
        f"map(decode) at train.py:12 waits 96% of its time instead of computing and everything waits for it: {change}"
    )


def test_a_condition_that_waits_moves_to_a_map():
    waiting = stage(2, "filter", 9, cpu=0.1, way="per element")
    text = advised([SOURCE, waiting, PREFETCH], 10, 9).text
    assert "in .map(..., num_parallel_calls=tf.data.AUTOTUNE), and filter by the result" in text


@pytest.mark.parametrize("workers", [2, 8])
def test_threads_that_wait_for_the_interpreter_get_processes(workers):
    taking_turns = stage(
        2, "map", 10 * workers, cpu=9, way="per element", workers=workers, kind="threads"
    )
    text = advised([SOURCE, taking_turns, PREFETCH], 10, 9.8).text
    assert "keeps 0.9 of 2 cores busy" in text
    assert "processes=True, if its Python code holds the interpreter" in text


def test_processes_that_wait_for_a_core_compute():
    taking_turns = stage(2, "map", 80, cpu=20, way="per element", workers=8, kind="processes")
    text = advised([SOURCE, taking_turns, PREFETCH], 10, 9.8).text
    assert "keeps 2 of 2 cores busy" in text


def test_a_source_is_not_said_to_compute():
    found = advised([stage(1, "from_generator", 9), PREFETCH], 10, 9)
    assert "from_generator() at train.py:11 is busy 90% of the time and" in found.text


def test_the_share_of_the_wait_is_said_if_the_program_also_computes():
    found = advised([SOURCE, stage(2, "map", 9.9, way="per element"), PREFETCH], 10, 4)
    assert "and the program waits 40% of the time: num_parallel_calls=2" in found.text


def test_input_that_keeps_up_needs_no_change():
    found = advised([SOURCE, stage(2, "map", 9.9, way="per element"), PREFETCH], 10, 0.4)
    assert found == (None, "Input keeps up: the program waited for data 4% of the time.")


def test_a_program_that_reads_and_computes_in_turn_gets_a_prefetch():
    found = advised([SOURCE, stage(2, "map", 3, way="per element")], 10, 3)
    assert found.text == (
        "Nothing is read while the program computes, so it waits 30% of the time, mostly for "
        "map(decode) at train.py:12: .prefetch(tf.data.AUTOTUNE) at the end."
    )
    # A thread that copies steps to the devices reads ahead already.
    assert "num_parallel" in advised([stage(2, "map", 3, way="per element")], 10, 3, copying=0).text


def test_copying_to_the_devices_may_take_longest():
    found = advised([SOURCE], 10, 8, copying=8)
    assert found.stage is None
    assert found.text.startswith("Copying steps to the devices takes 80% of the time")


def test_nothing_is_said_before_the_first_element():
    assert advised([SOURCE], 0, 0) == (None, "Nothing has been read yet.")


def test_a_single_core_is_named_as_one(monkeypatch):
    monkeypatch.setattr(advice, "available_cores", lambda: 1)
    found = advised([stage(2, "map", 9.9, way="per element"), PREFETCH], 10, 9.8)
    assert "keeps the core 99% busy" in found.text
    assert found.text.endswith(f"or {advice._CACHE}.")
