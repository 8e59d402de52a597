"""The line from this worker to the service, open for as long as the worker lives.

A worker that fails, or comes to its end, says so on it; the end of one that says nothing is noticed by the
line itself. The service tells the others.
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
from evenfeed.cluster.handshake import MOST_BYTES, decode, encode
from evenfeed.cluster.jax_private import leave_runtime
from evenfeed.cluster.survival.keepalive import said, watch
from evenfeed.core.concurrency.peers import Peers
from evenfeed.core.concurrency.threads import background
from evenfeed.core.lazy import socket

_MOST_LETTERS: Final = 500

_WORDS: Final = {
    "lost": "is lost: {}.",
    "failed": "failed: {}",
    "left": "has come to the end of its program.",
}


@final
class Line:
    """Says how this worker ends, and hears how others did.

    Args:
        connection: To the service.
        peers: Who gets the news.
    """

    def __init__(self, connection: Any, peers: Peers) -> None:
        self._connection = connection
        self._peers = peers
        self._ports: Sequence[int] = ()
        self._is_leaving = False
        self._sending = threading.Lock()

    def open(self) -> None:
        """Begin to listen, and promise to say how this process ends."""
        self._connection.settimeout(None)
        watch(self._connection)
        background.thread(self._listen, "evenfeed-line", self._stop_listening).start()
        background.afterwards(self._leave)
        sys.excepthook = self._telling(sys.excepthook)
        # A child that outlives this process would hold the line open.
        os.register_at_fork(after_in_child=self._connection.close)

    def _stop_listening(self) -> None:
        self._is_leaving = True
        with suppress(OSError):  # the service may be gone
            self._connection.shutdown(socket.SHUT_RD)

    def _leave(self) -> None:
        self.say(left="")
        leave_runtime()

    def say(self, **word: object) -> None:
        """Tell the service something. Nobody minds where it is gone."""
        with suppress(OSError), self._sending:
            self._connection.sendall(encode(word))

    def _telling(self, before: Callable[..., Any]) -> Callable[..., Any]:
        def hook(
            kind: type[BaseException], error: BaseException, trace: TracebackType | None
        ) -> None:
            self.say(failed=f"{kind.__name__}: {error}".partition("\n")[0][:_MOST_LETTERS])
            before(kind, error, trace)

        return hook

    def _listen(self) -> None:
        ended: OSError | None = None
        try:
            lines = self._connection.makefile("rb")
            while text := lines.readline(MOST_BYTES):
                with suppress(ValueError):  # the service says no such thing
                    self._hear(decode(text))
        except OSError as error:
            ended = error
        if not self._is_leaving:
            self._break(0, f"is lost: {said(ended, 'the coordination service beside it')}.")

    def _hear(self, word: dict[str, Any]) -> None:
        if isinstance(word.get("ports"), list):
            self._ports = word["ports"]
            return
        how = next((name for name in _WORDS if name in word), None)
        place = word.get("worker")
        if how is None or type(place) is not int:
            return
        text = _WORDS[how].format(word[how])
        if how == "left":
            self._peers.hear(place, text, breaks=False)
        else:
            self._break(place, text)

    def _break(self, place: int, how: str) -> None:
        self._peers.hear(place, how)
        gloo.cut(self._ports)


_PORTS: Final = range(1, 1 << 16)


@final
class Lines:
    """The connections of the workers, each open for as long as its worker lives.

    Args:
        writers: By the places of the workers.

    Attributes:
        all_joined: Set when every worker is a member of JAX's service, or has ended.
        all_left: Set when no line is open any more.
    """

    def __init__(self, writers: dict[int, StreamWriter]) -> None:
        self._open = dict(writers)
        self._count = len(writers)
        self._ports: dict[int, int] = {}
        self._joined: set[int] = set()
        self._parted: set[int] = set()  # whose end the others know of
        self.all_joined = Event()
        self.all_left = Event()

    def tell_all(self, message: dict[str, Any], but: int | None = None) -> None:
        """Tell all workers something, or all but one."""
        line = encode(message)
        for place, writer in self._open.items():
            if place != but:
                writer.write(line)

    def hear(self, place: int, line: bytes) -> None:
        """Pass on what a worker says, and ignore what no worker says."""
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
                self._part(place, {"failed": str(text)[:_MOST_LETTERS]})
            case {"left": _}:
                self._part(place, {"left": ""})
            case _:
                return

    def end(self, place: int, error: OSError | None) -> None:
        """Note that a line has ended, and tell the others if the worker has not said why."""
        self._part(place, {"lost": said(error, "its process")})
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

    def _part(self, place: int, message: dict[str, Any]) -> None:
        """Tell the others how a worker ended, once."""
        self._note_joined(place)  # or it never will
        if place not in self._parted:
            self._parted.add(place)
            self.tell_all({"worker": place, **message}, but=place)
