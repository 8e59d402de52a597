"""The lines of all workers, at the service: who is lost is told to the others."""

from asyncio import Event, StreamWriter
from typing import Any, Final, final

from evenfeed.cluster.handshake import decode, encode
from evenfeed.cluster.silence import said

_MOST_LETTERS: Final = 500
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
