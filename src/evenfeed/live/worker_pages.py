"""The live view of several workers: `evenfeed run --dashboard` gets the figures of each, and shows them side by side."""

import http.client
import json
from collections.abc import Sequence
from time import perf_counter
from typing import Any, Final, final

from evenfeed.live.page_server import PageServer
from evenfeed.live.trace_file import trace_file

_LOOPBACK: Final = "127.0.0.1"
_SECONDS: Final = 1.0  # for an answer of a worker
_FRESH_SECONDS: Final = 0.5  # figures that are asked for sooner are the same
# A worker is slow if it waits for data for this part of its time, and so many times longer than the others.
_WAITS: Final = 0.05
_TIMES: Final = 1.5


@final
class WorkerFigures:
    """The figures of workers, each of which shows its own on a port.

    Attributes:
        ports: The ports of the workers.
    """

    def __init__(self, ports: Sequence[int] = ()) -> None:
        self.ports = ports
        self._asked = 0.0
        self._report: dict[str, Any] = {}

    def look(self) -> None:
        """The workers look by themselves."""

    def report(self) -> dict[str, Any]:
        """Return the figures of all workers."""
        if perf_counter() - self._asked > _FRESH_SECONDS:
            self._report = joined([_asked(port) for port in self.ports])
            self._asked = perf_counter()
        return self._report

    def trace(self) -> str:
        """Return the latest reads of all workers."""
        events: list[dict[str, Any]] = []
        for number, port in enumerate(self.ports):
            found = _get(port, "/trace.json") or {"traceEvents": []}
            for event in found["traceEvents"]:
                event["pid"] = number
                if event["name"] == "process_name":
                    event["args"]["name"] = f"worker {number}"
                events.append(event)
        return trace_file(events)


def joined(reports: Sequence[dict[str, Any] | None]) -> dict[str, Any]:
    """Return the report of all workers, given that of each; None for a worker that does not answer."""
    workers: list[dict[str, Any]] = []
    for number, report in enumerate(reports):
        if report is None:
            workers.append({"worker": number, "state": "no answer", "cores": 0, "iterators": []})
        else:
            workers.append({**report["workers"][0], "worker": number})
    slowest, sentence = slowest_of([_waits(worker) for worker in workers])
    return {"workers": workers, "slowest": slowest, "sentence": sentence}


def _waits(worker: dict[str, Any]) -> float | None:
    """Return for which part of the time a worker waited for data lately; None if it takes no steps."""
    recent = [one["recent"] for one in worker["iterators"] if one["is_alive"]]
    seconds = sum(one["seconds"] for one in recent)
    return sum(one["waited_seconds"] for one in recent) / seconds if seconds else None


def slowest_of(waits: Sequence[float | None]) -> tuple[int | None, str]:
    """Return the worker that the others wait for, and a sentence about it.

    Workers that train together take their steps together. The one whose steps wait for data holds up the others.
    """
    known = [(wait, number) for number, wait in enumerate(waits) if wait is not None]
    if len(known) < 2:
        return None, ""
    most, slowest = max(known)
    others = max(wait for wait, number in known if number != slowest)
    if most < _WAITS or most < _TIMES * others:
        return None, ""
    return slowest, (
        f"Worker {slowest} waits for data {most:.0%} of the time, the others at most {others:.0%}. Workers that train "
        "together wait for it at every step."
    )


def _asked(port: int) -> dict[str, Any] | None:
    return _get(port, "/stats.json")


def _get(port: int, path: str) -> dict[str, Any] | None:
    """Return what a worker answers; None if it does not, because it is starting, busy or gone."""
    connection = http.client.HTTPConnection(_LOOPBACK, port, timeout=_SECONDS)
    try:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()


@final
class LiveView:
    """The page of `evenfeed run --dashboard`.

    Attributes:
        url: Its address.

    Args:
        port: The port; 0 for any that is free.
    """

    def __init__(self, port: int) -> None:
        self._figures = WorkerFigures()
        self._server = PageServer(self._figures, port)
        self.url = self._server.url

    @property
    def ports(self) -> Sequence[int]:
        """The ports at which the workers of this start show their figures."""
        return self._figures.ports

    @ports.setter
    def ports(self, ports: Sequence[int]) -> None:
        self._figures.ports = ports

    def show(self) -> None:
        """Start to answer."""
        self._server.start()

    def hide(self) -> None:
        """Stop to answer. The port stays."""
        self._server.stop()

    def close(self) -> None:
        """End the page."""
        self._server.server_close()
