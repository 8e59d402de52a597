import json
import socket
import urllib.request

import pytest

import evenfeed as tf
from evenfeed.live.page_server import open_page
from evenfeed.live.watching import watching
from evenfeed.live.worker_pages import LiveView, slowest_of


@pytest.mark.parametrize(
    ("waits", "slowest"),
    [
        ([0.02, 0.6], 1),
        ([0.6, 0.1, 0.02], 0),
        ([0.6, 0.5], None),  # both wait
        ([0.04, 0.0], None),  # nobody waits
        ([None, 0.9], None),  # there is nobody to compare with
        ([0.9], None),
    ],
)
def test_the_worker_that_waits_for_data_holds_up_the_others(waits, slowest):
    found, sentence = slowest_of(waits)
    assert found == slowest
    assert sentence.startswith(f"Worker {slowest} waits for data") == (slowest is not None)


def asked(view, path):
    with urllib.request.urlopen(view.url + path, timeout=20) as answer:
        return json.load(answer)


def test_all_workers_are_on_one_page_also_those_that_do_not_answer():
    with socket.create_server(("127.0.0.1", 0)) as free:
        silent = free.getsockname()[1]
    with tf.experimental.dashboard() as page:
        iterator = iter(tf.data.Dataset.range(8).batch(2))
        list(iterator)
        view = LiveView(0)
        view.ports = [int(page.url.rstrip("/").rpartition(":")[2]), silent]
        view.show()
        try:
            report = asked(view, "stats.json")
            trace = asked(view, "trace.json")["traceEvents"]
        finally:
            view.hide()
            view.close()
    first, second = report["workers"]
    assert (first["worker"], first["state"]) == (0, "running")
    assert first["iterators"][-1]["total"]["elements"] == 4
    assert (second["worker"], second["state"], second["iterators"]) == (1, "no answer", [])
    assert {event["pid"] for event in trace} == {0}
    assert {"worker 0"} == {e["args"]["name"] for e in trace if e["name"] == "process_name"}


def test_a_worker_opens_its_page_with_its_first_iterator(monkeypatch):
    opened = []
    monkeypatch.setattr(watching, "_port", "1234")
    monkeypatch.setattr("evenfeed.live.page_server.open_page", opened.append)
    monkeypatch.setattr(watching, "is_on", True)
    for _ in range(2):
        iter(tf.data.Dataset.range(8))
    assert opened == ["1234"]


def test_a_worker_whose_port_is_taken_trains_without_a_page(caplog):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        open_page(str(taken.getsockname()[1]))
    assert "does not show this worker" in caplog.text
