"""Traces for Perfetto and chrome://tracing: every read of a stage as a stretch of time in its thread."""

import json
import os
import threading
from collections.abc import Iterable
from typing import Any

from evenfeed.live.watching import TraceEvent, watching

_MICROSECONDS = 1e6


def trace_of(events: Iterable[TraceEvent], process: int, name: str) -> list[dict[str, Any]]:
    """Return the events of a process in the Trace Event Format."""
    found = [_event(event, process) for event in events]
    known = {thread.ident: thread.name for thread in threading.enumerate()}
    threads: list[int] = sorted({event["tid"] for event in found})
    names = [(thread, known.get(thread, "ended thread")) for thread in threads]
    told = [_name("thread_name", text, process, thread) for thread, text in names]
    return [_name("process_name", name, process, 0), *told, *found]


def _event(event: TraceEvent, process: int) -> dict[str, Any]:
    return {
        "name": event.name,
        "cat": "input",
        "ph": "X",
        "ts": event.began * _MICROSECONDS,
        "dur": event.seconds * _MICROSECONDS,
        "pid": process,
        "tid": event.thread,
        "args": {"line": event.line, "elements": event.elements},
    }


def _name(kind: str, name: str, process: int, thread: int) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def trace_file(events: list[dict[str, Any]]) -> str:
    """Return the content of a trace file."""
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})


def save_trace(path: str | os.PathLike[str]) -> None:
    """Write the latest reads of all measured iterators to a file that https://ui.perfetto.dev and chrome://tracing open.

    Each thread is a row, and each read of a stage a bar in it, with the reads of the stages below it inside. It has the
    latest 20,000 reads of each iterator that still exists.

    Args:
        path: The file, which should end with `.json`.

    Examples:
        >>> import json, tempfile
        >>> import evenfeed as tf
        >>> tf.experimental.enable_stats()
        >>> iterator = iter(tf.data.Dataset.range(4).batch(2))
        >>> tf.experimental.enable_stats(False)
        >>> batches = list(iterator)
        >>> with tempfile.NamedTemporaryFile(suffix=".json") as file:
        ...     tf.experimental.save_trace(file.name)
        ...     events = json.load(file)["traceEvents"]
        >>> {event["name"] for event in events} >= {"range(0, 4)", "batch(2)"}
        True
    """
    events = trace_of(watching.events(), os.getpid(), "evenfeed")
    with open(path, "w", encoding="utf-8") as file:
        file.write(trace_file(events))
