"""The lines of all workers, at the service: who is lost is told to the others."""

import json
import selectors
from contextlib import suppress
from typing import Any, Final, final

from evenfeed.cluster.silence import said, watch

_BYTES: Final = 1 << 16


@final
class Lines:
    """The connections of the workers, each open for as long as its worker lives.

    Args:
        connections: By the places of the workers.
    """

    def __init__(self, connections: dict[int, Any]) -> None:
        self._open = dict(connections)
        self._heard = dict.fromkeys(connections, b"")  # of a line that has not ended yet
        self._ports: dict[int, int] = {}
        self._parted: set[int] = set()  # of whom the others know

    def tell_all(self, word: dict[str, Any], but: int | None = None) -> None:
        """Tell all workers something, or all but one."""
        text = json.dumps(word).encode() + b"\n"
        for place, one in self._open.items():
            if place != but:
                with suppress(OSError):  # it is lost too, and that is noticed by itself
                    one.sendall(text)

    def serve(self) -> None:
        """Pass on what the workers say, and who is lost, until all have left."""
        with selectors.DefaultSelector() as waiting:
            for place, one in self._open.items():
                watch(one)
                one.setblocking(False)
                waiting.register(one, selectors.EVENT_READ, place)
            while self._open:
                for key, _ in waiting.select():
                    if not self._listens(key.data):
                        waiting.unregister(key.fileobj)
                        self._open.pop(key.data).close()

    def _listens(self, place: int) -> bool:
        """Hear what a worker says; tell whether its line is still open."""
        ended: OSError | None = None
        try:
            data = self._open[place].recv(_BYTES)
        except BlockingIOError:
            return True
        except OSError as error:
            data, ended = b"", error
        if not data:
            self._part(place, {"lost": said(ended, "its process")})
            return False
        *lines, self._heard[place] = (self._heard[place] + data).split(b"\n")
        for line in lines:
            self._hear(place, json.loads(line))
        return True

    def _hear(self, place: int, word: dict[str, Any]) -> None:
        if "port" in word:
            self._ports[place] = word["port"]
            if len(self._ports) == len(self._heard):
                self.tell_all({"ports": sorted(self._ports.values())})
        else:
            self._part(place, word)

    def _part(self, place: int, word: dict[str, Any]) -> None:
        """Tell the others how a worker ended, once."""
        if place not in self._parted:
            self._parted.add(place)
            self.tell_all({"worker": place, **word}, but=place)
