"""The live view: a small web server on loopback that shows the figures of measured iterators.

It only reads, and answers GET. It listens at 127.0.0.1, and refuses requests that name another host, so that no web page can
read the figures through a name of its own.
"""

import json
import os
import socket
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import Any, Final, Protocol, Self, final

from evenfeed.core.concurrency.threads import background
from evenfeed.core.errors import UnavailableError
from evenfeed.core.lazy import logging
from evenfeed.live.sampling import Sampler
from evenfeed.live.trace_file import trace_file, trace_of
from evenfeed.live.watching import enable_stats, watching

_LOOPBACK: Final = "127.0.0.1"
_POLL_SECONDS: Final = 0.2
_REQUEST_SECONDS: Final = 5.0  # for a browser that opens a connection and says nothing
_PAGE: Final = Path(__file__).with_name("page.html")
_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Shown(Protocol):
    """What a page shows."""

    def look(self) -> None:
        """Look at the figures, once in a while."""
        ...

    def report(self) -> dict[str, Any]:
        """Return the figures of all workers, as JSON data."""
        ...

    def trace(self) -> str:
        """Return the content of a trace file."""
        ...


@final
class OwnFigures:
    """The figures of this process."""

    def __init__(self) -> None:
        self._sampler = Sampler(watching)

    def look(self) -> None:
        """Look at the iterators."""
        self._sampler.look()

    def report(self) -> dict[str, Any]:
        """Return the figures of this process, as those of the only worker."""
        return {"workers": [self._own()], "slowest": None, "sentence": ""}

    def _own(self) -> dict[str, Any]:
        cores = len(os.sched_getaffinity(0))
        return {"worker": 0, "state": "running", "cores": cores, **self._sampler.report()}

    def trace(self) -> str:
        """Return the latest reads of this process."""
        return trace_file(trace_of(watching.events(), os.getpid(), "evenfeed"))


@final
class PageServer(HTTPServer):
    """Serves a page on loopback. Each request has a thread, because browsers open connections that they do not use.

    Args:
        shown: What it shows.
        port: The port; 0 for any that is free.
    """

    allow_reuse_address = True
    timeout = _POLL_SECONDS

    def __init__(self, shown: Shown, port: int) -> None:
        self.shown = shown
        self._is_stopped = True
        self._thread: Thread | None = None
        try:
            super().__init__((_LOOPBACK, port), _Handler)
        except (OSError, OverflowError) as error:  # the latter for a number that is no port
            raise UnavailableError(
                f"The live view cannot listen at {_LOOPBACK}:{port}: {str(error).rstrip('.')}.",
                fix="choose another port, or 0 for any that is free.",
            ) from error

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{_LOOPBACK}:{self.server_address[1]}/"

    def start(self) -> None:
        """Start to answer."""
        self._is_stopped = False
        self._thread = background.thread(self._serve, "evenfeed-live", self._stop)
        self._thread.start()

    def stop(self) -> None:
        """Stop to answer. The port stays."""
        self._stop()
        if self._thread is not None:
            self._thread.join()

    def _stop(self) -> None:
        self._is_stopped = True

    def _serve(self) -> None:
        while not self._is_stopped:
            self.handle_request()
            self.shown.look()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread that ends at exit."""
        answer = partial(self._answer, request, client_address)
        background.thread(answer, "evenfeed-live-request", partial(_hang_up, request)).start()

    def _answer(self, request: socket.socket, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except OSError:  # the browser has gone
            return
        finally:
            self.shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a connection that ends early is no fault of the program."""


def _hang_up(request: socket.socket) -> None:
    request.shutdown(socket.SHUT_RDWR)


@final
class _Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    timeout = _REQUEST_SECONDS
    server_version = "evenfeed"
    sys_version = ""

    def do_GET(self) -> None:
        """Send the page, the figures or the trace."""
        server: Any = self.server
        shown: Shown = server.shown
        answers: dict[str, tuple[str, Callable[[], str]]] = {
            "/": ("text/html", lambda: _PAGE.read_text("utf-8")),
            "/stats.json": ("application/json", lambda: json.dumps(shown.report())),
            "/trace.json": ("application/json", shown.trace),
        }
        found = answers.get(self.path.partition("?")[0])
        if not self._names_this_machine():
            self.send_error(HTTPStatus.FORBIDDEN, "Ask for 127.0.0.1.")
        elif found is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self._send(found[0], found[1]().encode())

    def _names_this_machine(self) -> bool:
        name, _, port = self.headers.get("Host", "").rpartition(":")
        server: Any = self.server
        return name in {_LOOPBACK, "localhost"} and port == str(server.server_address[1])

    def _send(self, kind: str, content: bytes) -> None:
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of http.server
        """Print nothing: it would come between the lines of the program."""


@final
class Dashboard:
    """A page that shows what measured iterators do. `dashboard()` returns it.

    Attributes:
        url: Its address, on this machine.
    """

    def __init__(self, server: PageServer, *, was_on: bool) -> None:
        self.url = server.url
        self._server = server
        self._was_on = was_on

    def close(self) -> None:
        """End the page, and measure no more new iterators, unless that was on before."""
        self._server.stop()
        self._server.server_close()
        enable_stats(self._was_on)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<evenfeed live view at {self.url}>"


def dashboard(port: int = 0) -> Dashboard:
    """Show a page with what the pipelines of this program do, while it runs, and measure new iterators.

    Call it before the iterators are created. The page is on this machine only, at `url`, and ends with the program.
    `evenfeed run --dashboard` shows all workers on one page.

    Args:
        port: The port on 127.0.0.1; 0 for any that is free.

    Examples:
        >>> import evenfeed as tf
        >>> with tf.experimental.dashboard() as page:
        ...     print(page.url)  # doctest: +ELLIPSIS
        ...     batches = list(tf.data.Dataset.range(8).batch(2))
        http://127.0.0.1:.../

    Raises:
        UnavailableError: The port is in use.
    """
    server, was_on = PageServer(OwnFigures(), port), watching.is_on
    enable_stats()
    server.start()
    return Dashboard(server, was_on=was_on)


def open_page(port: str) -> None:
    """Show the figures of this worker. A worker whose port is taken trains without."""
    try:
        PageServer(OwnFigures(), int(port)).start()  # it ends with the program
    except (UnavailableError, ValueError) as error:
        logging.getLogger("evenfeed").warning("The live view does not show this worker: %s", error)
