"""The line from this worker to the service, open for as long as the worker lives.

A worker that fails, or comes to its end, says so on it; the end of one that says nothing is noticed by the
line itself. The service tells the others.
"""

import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, final

from evenfeed.cluster import gloo
from evenfeed.cluster.handshake import MOST_BYTES, decode, encode
from evenfeed.cluster.jax_private import leave_runtime
from evenfeed.cluster.silence import said, watch
from evenfeed.core.background import background
from evenfeed.core.doors import socket
from evenfeed.core.peers import Peers

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
