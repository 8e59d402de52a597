"""Greetings, messages and proofs, and what strangers send instead."""

import threading
import time

import pytest
from tests.sockets import connected

from evenfeed.cluster import handshake
from evenfeed.cluster.handshake import (
    TOKEN,
    decode,
    greeting,
    is_proof,
    parse_greeting,
    proof,
    read_line,
    token,
)


def test_a_greeting_says_the_challenge_and_whether_a_token_is_asked_for():
    assert parse_greeting(greeting("abc", needs_token=True)) == ("abc", True)
    assert parse_greeting(greeting("abc", needs_token=False)) == ("abc", False)


@pytest.mark.parametrize(
    "line",
    [b"\n", b"evenfeed 1\n", b"evenfeed 2 x open\n", b"HTTP/1.1 400 Bad Request\n", b"\xff\n"],
)
def test_another_program_does_not_greet_as_evenfeed_does(line):
    with pytest.raises(ValueError, match=r"does not answer|ascii"):
        parse_greeting(line)


@pytest.mark.parametrize(
    "line",
    [
        *(b"5\n", b"[]\n", b"null\n", b'"x"\n', b"{\n", b"\n", b"", b'{"place": 1}'),
        b"[" * 60_000 + b"\n",
        b'{"a":' * 60_000 + b"\n",
        b"9" * 60_000 + b"\n",
        b'{"\xff": 1}\n',
        '{"a": 1}\n'.encode("utf-16"),
    ],
    ids=range(13),
)
def test_anything_but_a_json_object_on_a_line_raises_value_error(line):
    with pytest.raises(ValueError):  # noqa: PT011 - whatever the parser says
        decode(line)


def test_only_the_right_key_gives_the_right_proof():
    assert is_proof(proof(b"key", "a", "b"), b"key", "a", "b")
    for wrong in (
        proof(b"other", "a", "b"),
        proof(b"key", "a\nc", "b"),
        "",
        "ü",
        "\ud800",
        None,
        5,
    ):
        assert not is_proof(wrong, b"key", "a", "b")


def test_the_token_may_be_any_bytes(monkeypatch):
    monkeypatch.setenv(TOKEN, "\udcff")
    assert token() == b"\xff"
    monkeypatch.delenv(TOKEN)
    assert token() == b""


def test_a_line_is_read_and_nothing_that_follows_it():
    ((worker, service),) = connected(1)
    with worker, service:
        service.sendall(b"first\nsecond\n")
        end = time.monotonic() + 10
        assert read_line(worker, end) == b"first\n"
        assert read_line(worker, end) == b"second\n"
        service.close()
        with pytest.raises(ConnectionResetError, match="closed"):
            read_line(worker, end)


def test_a_line_that_comes_byte_by_byte_does_not_take_longer_than_it_may():
    ((worker, service),) = connected(1)
    stop = threading.Event()

    def dribble():
        while not stop.wait(0.02):
            service.sendall(b"x")

    thread = threading.Thread(target=dribble)
    thread.start()
    with worker, service:
        with pytest.raises(TimeoutError):
            read_line(worker, time.monotonic() + 0.3)
        stop.set()
        thread.join()


def test_a_line_without_an_end_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(handshake, "MAX_BYTES", 100)
    ((worker, service),) = connected(1)
    with worker, service:
        service.sendall(b"x" * 1000)
        with pytest.raises(ConnectionResetError, match="too long"):
            read_line(worker, time.monotonic() + 10)
