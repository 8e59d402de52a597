"""What the service reports to workers about each other."""

import asyncio
import json
import struct
import threading

import pytest
from tests.sockets import connected

from evenfeed.cluster.survival.failure_watch import (
    SILENCE_SECONDS,
    Lines,
    describe_end,
    watch,
)
from evenfeed.core.lazy import socket


async def serve(connections):
    """Serve some connections until all workers have left."""
    streams = [await asyncio.open_connection(sock=one) for one in connections]
    lines = Lines(dict(enumerate(writer for _, writer in streams)))

    async def listen(place, reader):
        ended = None
        try:
            while line := await reader.readline():
                lines.hear(place, line)
        except OSError as error:
            ended = error
        lines.end(place, ended)

    await asyncio.gather(*(listen(place, reader) for place, (reader, _) in enumerate(streams)))
    assert lines.all_left.is_set()
    return lines.all_joined.is_set()


@pytest.fixture
def workers():
    """Return the workers' ends of three connections, served until all workers have left."""
    pairs = connected(3)
    served = []
    serving = threading.Thread(
        target=lambda: served.append(asyncio.run(serve([service for _, service in pairs])))
    )
    serving.start()
    yield [worker for worker, _ in pairs]
    for worker, _ in pairs:
        worker.close()
    serving.join(20)
    assert len(served) == 1


def word(worker):
    worker.settimeout(20)
    return json.loads(worker.makefile("rb", buffering=0).readline())


def test_the_others_hear_that_one_is_lost(workers):
    workers[1].close()
    for place in (0, 2):
        assert word(workers[place]) == {"worker": 1, "lost": "its process exited unexpectedly"}


def test_a_connection_that_is_reset_is_an_end_too(workers):
    workers[2].setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    workers[2].close()
    assert word(workers[0]) == {"worker": 2, "lost": "its process exited unexpectedly"}


def test_the_others_hear_once_how_one_failed(workers):
    workers[0].sendall(b'{"failed": "Value')
    workers[0].sendall(b'Error: 17"}\n{"left": ""}\n')
    workers[0].close()
    assert word(workers[1]) == {"worker": 0, "failed": "ValueError: 17"}
    workers[2].close()
    assert word(workers[1]) == {"worker": 2, "lost": "its process exited unexpectedly"}


def test_all_hear_the_ports_of_all(workers):
    for place, port in enumerate((7, 9, 8)):
        workers[place].sendall(b'{"port": %d}\n' % port)
    assert [word(worker) for worker in workers] == [{"ports": [7, 8, 9]}] * 3


STRANGE = [
    *(b"5", b"[]", b"{", b"", b"[" * 60_000, b'{"\xff": 1}', b'{"nothing": "known"}'),
    *(b'{"port": "7"}', b'{"port": -1}', b'{"port": [7]}', b'{"port": 1.5}', b'{"port": {}}'),
]


@pytest.mark.parametrize("line", STRANGE, ids=range(len(STRANGE)))
def test_what_no_worker_says_is_passed_over(workers, line):
    workers[0].sendall(line + b'\n{"failed": "ValueError: 17"}\n')
    assert word(workers[1]) == {"worker": 0, "failed": "ValueError: 17"}


def test_nobody_speaks_for_another(workers):
    workers[0].sendall(b'{"failed": "x", "worker": 2, "ports": [1]}\n')
    assert word(workers[1]) == {"worker": 0, "failed": "x"}


def test_a_long_story_is_cut(workers):
    workers[0].sendall(json.dumps({"failed": "x" * 5000}).encode() + b"\n")
    assert word(workers[1]) == {"worker": 0, "failed": "x" * 500}


def test_a_machine_that_is_silent_is_noticed_by_the_system():
    ((worker, service),) = connected(1)
    with worker, service:
        watch(worker)
        assert worker.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    silent = f"its machine did not answer for {SILENCE_SECONDS} seconds"
    assert describe_end(TimeoutError(), "it") == silent
    unreachable = OSError(113, "No route to host")
    assert describe_end(unreachable, "it") == "its machine cannot be reached (No route to host)"
