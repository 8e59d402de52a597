"""Notices when a worker fails, finishes or is lost, and tells the others.

Each worker keeps one connection to the service open as long as it lives. `Line` is the worker's end of it, `Lines`
holds the service's ends of all workers. A worker that fails or finishes reports it on its connection. If a worker
dies without a report, its connection ends. Either way the service tells the others.

TCP keepalive ends a connection if the other machine is silent. The operating systems probe each other, not the
programs. So a program that computes, or is stopped in a debugger, does not count as silent.
"""

import os
import sys
import threading
from asyncio import Event, StreamWriter
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, final

from evenfeed.cluster import gloo
from evenfeed.cluster.handshake import MAX_BYTES, decode, encode
from evenfeed.cluster.jax_private import leave_runtime
from evenfeed.core.concurrency.peers import Peers
from evenfeed.core.concurrency.threads import background
from evenfeed.core.lazy import socket

SILENCE_SECONDS: Final = 4  # survivors are told within five seconds

# By name, because not every system has all of them.
_KEEPALIVE: Final = {
    "TCP_KEEPIDLE": 1,
    "TCP_KEEPALIVE": 1,  # the name of TCP_KEEPIDLE on macOS
    "TCP_KEEPINTVL": 1,
    "TCP_KEEPCNT": SILENCE_SECONDS - 1,
    "TCP_USER_TIMEOUT": 1000 * SILENCE_SECONDS,
}

_MAX_CHARACTERS: Final = 500

_MESSAGES: Final = {
    "lost": "is lost: {}.",
    "failed": "failed: {}",
    "left": "has finished its program.",
}


def watch(connection: Any) -> None:
    """Make a connection fail when the machine at its other end is silent."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        number = getattr(socket, name, None)
        if number is not None:
            connection.setsockopt(socket.IPPROTO_TCP, number, value)


def describe_end(error: OSError | None, process: str) -> str:
    """Describe how the connection to a process ended."""
    if isinstance(error, TimeoutError):
        return f"its machine did not answer for {SILENCE_SECONDS} seconds"
    if error is None or isinstance(error, ConnectionError):
        return f"{process} exited unexpectedly"
    return f"its machine cannot be reached ({error.strerror})"


@final
class Line:
    """Reports how this worker ends, and receives how others did.

    Args:
        connection: The connection to the service.
        peers: Receives the news.
    """

    def __init__(self, connection: Any, peers: Peers) -> None:
        self._connection = connection
        self._peers = peers
        self._ports: Sequence[int] = ()
        self._is_leaving = False
        self._sending = threading.Lock()

    def open(self) -> None:
        """Start listening, and arrange to report how this process ends."""
        self._connection.settimeout(None)
        watch(self._connection)
        background.thread(self._listen, "evenfeed-line", self._stop_listening).start()
        background.afterwards(self._leave)
        sys.excepthook = self._reporting(sys.excepthook)
        # A child process that outlives this one would keep the connection open.
        os.register_at_fork(after_in_child=self._connection.close)

    def _stop_listening(self) -> None:
        self._is_leaving = True
        with suppress(OSError):  # the service may be gone
            self._connection.shutdown(socket.SHUT_RD)

    def _leave(self) -> None:
        self.send(left="")
        leave_runtime()

    def send(self, **message: object) -> None:
        """Send a message to the service. Does nothing if the service is gone."""
        with suppress(OSError), self._sending:
            self._connection.sendall(encode(message))

    def _reporting(self, previous: Callable[..., Any]) -> Callable[..., Any]:
        def hook(
            kind: type[BaseException], error: BaseException, trace: TracebackType | None
        ) -> None:
            self.send(failed=f"{kind.__name__}: {error}".partition("\n")[0][:_MAX_CHARACTERS])
            previous(kind, error, trace)

        return hook

    def _listen(self) -> None:
        ended: OSError | None = None
        try:
            lines = self._connection.makefile("rb")
            while text := lines.readline(MAX_BYTES):
                with suppress(ValueError):  # the service never sends an invalid message
                    self._handle(decode(text))
        except OSError as error:
            ended = error
        if not self._is_leaving:
            self._break_off(0, f"is lost: {describe_end(ended, 'its coordination service')}.")

    def _handle(self, message: dict[str, Any]) -> None:
        if isinstance(message.get("ports"), list):
            self._ports = message["ports"]
            return
        how = next((name for name in _MESSAGES if name in message), None)
        place = message.get("worker")
        if how is None or type(place) is not int:
            return
        text = _MESSAGES[how].format(message[how])
        if how == "left":
            self._peers.hear(place, text, breaks=False)
        else:
            self._break_off(place, text)

    def _break_off(self, place: int, how: str) -> None:
        self._peers.hear(place, how)
        gloo.cut(self._ports)


_PORTS: Final = range(1, 1 << 16)


@final
class Lines:
    """The service's connections to the workers, each open as long as its worker lives.

    Args:
        writers: The connections, by worker position.

    Attributes:
        all_joined: Set when every worker has joined JAX's service, or has ended.
        all_left: Set when no connection is open any more.
    """

    def __init__(self, writers: dict[int, StreamWriter]) -> None:
        self._open = dict(writers)
        self._count = len(writers)
        self._ports: dict[int, int] = {}
        self._joined: set[int] = set()
        self._announced: set[int] = set()  # workers whose end the others were told of
        self.all_joined = Event()
        self.all_left = Event()

    def tell_all(self, message: dict[str, Any], but: int | None = None) -> None:
        """Send a message to all workers, or to all but one."""
        line = encode(message)
        for place, writer in self._open.items():
            if place != but:
                writer.write(line)

    def hear(self, place: int, line: bytes) -> None:
        """Handle a worker's message. Ignores anything that is not a valid message."""
        try:
            message = decode(line)
        except ValueError:
            return
        match message:
            case {"port": int(port)} if port in _PORTS:
                self._note_port(place, port)
            case {"joined": _}:
                self._note_joined(place)
            case {"failed": text}:
                self._announce_end(place, {"failed": str(text)[:_MAX_CHARACTERS]})
            case {"left": _}:
                self._announce_end(place, {"left": ""})
            case _:
                return

    def end(self, place: int, error: OSError | None) -> None:
        """Close a worker's connection, and tell the others if the worker has not reported its end."""
        self._announce_end(place, {"lost": describe_end(error, "its process")})
        self._open.pop(place).close()
        if not self._open:
            self.all_left.set()

    def _note_port(self, place: int, port: int) -> None:
        self._ports[place] = port
        if len(self._ports) == self._count:
            self.tell_all({"ports": sorted(self._ports.values())})

    def _note_joined(self, place: int) -> None:
        self._joined.add(place)
        if len(self._joined) == self._count:
            self.all_joined.set()

    def _announce_end(self, place: int, message: dict[str, Any]) -> None:
        """Tell the others, once, how a worker ended."""
        self._note_joined(place)  # it never will
        if place not in self._announced:
            self._announced.add(place)
            self.tell_all({"worker": place, **message}, but=place)
