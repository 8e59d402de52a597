import json
import socket
import threading
import urllib.error
import urllib.request

import pytest

import evenfeed as tf
from evenfeed.core.errors import UnavailableError
from evenfeed.live.watching import watching


@pytest.fixture
def page():
    with tf.experimental.dashboard() as found:
        yield found


def get(url, path="", **headers):
    request = urllib.request.Request(url + path, headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.headers, answer.read().decode()


def status(url, path="", method="GET", **headers):
    request = urllib.request.Request(url + path, headers=headers, method=method)
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=10)
    refused.value.close()
    return refused.value.code


def test_the_figures_of_new_iterators_are_shown(page):
    iterator = iter(tf.data.Dataset.range(8).batch(2))
    list(iterator)
    report = json.loads(get(page.url, "stats.json")[1])
    (worker,) = report["workers"]
    found = [one for one in worker["iterators"] if one["is_alive"]]
    assert found[-1]["name"].startswith("batch(2) at ")
    assert found[-1]["total"]["stages"][1]["elements"] == 4
    assert found[-1]["recent"]["advice"]


def test_the_page_needs_nothing_from_elsewhere(page):
    headers, text = get(page.url)
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "stats.json" in text
    assert not any(word in text for word in ("http://", "https://", "src="))


def test_the_trace_is_in_the_format_of_chrome(page):
    iterator = iter(tf.data.Dataset.range(20).map(lambda x: x + 1).batch(5))
    list(iterator)
    events = json.loads(get(page.url, "trace.json")[1])["traceEvents"]
    reads = [event for event in events if event["name"] == "batch(5)"]
    assert {event["ph"] for event in reads} == {"X"}
    assert sum(event["args"]["elements"] for event in reads) == 4
    assert all(event["dur"] >= 0 and event["args"]["line"] for event in reads)
    assert "process_name" in {event["name"] for event in events if event["ph"] == "M"}
    threads = {event["tid"] for event in events if event["name"] == "thread_name"}
    assert {event["tid"] for event in reads} <= threads


def test_it_only_listens_on_this_machine_and_only_answers_get(page):
    assert page.url.startswith("http://127.0.0.1:")
    assert status(page.url, "stats.json", method="POST") == 501
    assert status(page.url, "other") == 404


def test_a_web_page_cannot_ask_under_a_name_of_its_own(page):
    assert status(page.url, "stats.json", Host="evil.example:80") == 403
    assert status(page.url, "stats.json", Host="127.0.0.1") == 403
    port = page.url.rstrip("/").rpartition(":")[2]
    assert get(page.url, "stats.json", Host=f"localhost:{port}")


def test_a_connection_that_says_nothing_holds_nobody_up(page):
    port = int(page.url.rstrip("/").rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)):
        assert get(page.url, "stats.json")


def test_it_ends_with_its_thread_and_measures_no_more():
    page = tf.experimental.dashboard()
    assert watching.is_on
    assert page.url in repr(page)
    page.close()
    assert not watching.is_on
    assert not any(thread.name == "evenfeed-live" for thread in threading.enumerate())
    with pytest.raises(urllib.error.URLError):
        get(page.url)


def test_a_port_in_use_says_so(page):
    port = int(page.url.rstrip("/").rpartition(":")[2])
    with pytest.raises(UnavailableError, match=rf"cannot listen at 127.0.0.1:{port}(.|\n)*or 0"):
        tf.experimental.dashboard(port)
    with pytest.raises(UnavailableError, match=":99999: "):
        tf.experimental.dashboard(99999)
    assert watching.is_on  # for the page that is open
