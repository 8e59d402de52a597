"""The process between a worker's client of JAX's and the coordination service.

JAX aborts a worker at once, without a word to Python, when its connection to the service ends: when the machine
of worker 0 is taken away, all others would go before they could save. Here the end of that connection is not
passed on. The worker is told of it by its line.

It is a process because JAX may wait for the service while it holds Python's lock, and it is started as a file: it needs
nothing of evenfeed's, and so it starts in some 20 ms.
"""

import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from typing import Final

_BYTES: Final = 1 << 16
_LOOK_SECONDS: Final = 1.0


def main(host: str, port: int) -> None:
    """Pass on what comes to and from a service, until the process that started this is gone."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # a worker that saves its state still needs it
    parent = os.getppid()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.close()
        listener.settimeout(_LOOK_SECONDS)
        kept: list[socket.socket] = []
        while os.getppid() == parent:
            with suppress(OSError):  # nobody came; or the service is not there
                inner, _ = listener.accept()
                kept.append(inner)
                outer = socket.create_connection((host, port))
                kept.append(outer)
                _join(inner, outer)
    os._exit(0)  # and wait for no thread


def _join(inner: socket.socket, outer: socket.socket) -> None:
    for source, target in ((inner, outer), (outer, inner)):
        target.settimeout(None)
        target.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_copy, args=(source, target), daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Pass on all that comes, and not that nothing comes any more."""
    with suppress(OSError):
        while data := source.recv(_BYTES):
            target.sendall(data)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
