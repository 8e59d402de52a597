"""Starts several workers on this machine, shows what they print, and ends them all when one fails.

Each worker is the leader of a process group of its own: a signal reaches what it has started too, and the
terminal's Ctrl-C reaches the launcher alone, which passes it on once.
"""

import codecs
import ctypes
import io
import json
import locale
import os
import secrets
import select
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TextIO, final

from evenfeed.cluster.handshake import TOKEN
from evenfeed.core.concurrency.threads import background
from evenfeed.core.lazy import socket, subprocess

_LAST_LINES: Final = 10
DEFAULT_GRACE_SECONDS: Final = 10.0  # for workers that hear of one that failed
_PATIENCE_SECONDS: Final = 10.0  # between asking the workers to end, and ending them
_LOOK_SECONDS: Final = 0.05
_BYTES: Final = 1 << 16
_PR_SET_PDEATHSIG: Final = 1


def launch(
    command: Sequence[str],
    workers: int,
    replicas: int | None = None,
    grace: float = DEFAULT_GRACE_SECONDS,
) -> int:
    """Run a program in several workers, and return the exit code of all.

    It is 0 if all of them ended with 0, else that of the first that failed; after a signal 128 and its
    number, as in a shell.

    Args:
        command: What Python is given: a script and its arguments, or `-m` and a module.
        workers: How many workers.
        replicas: How many logical CPU devices each has; by default the program decides.
        grace: How many seconds the others have to end by themselves when one fails.
    """
    group = _Group()
    with group.signals_passed_on():
        try:
            for environ in environments(workers, replicas):
                group.start([sys.executable, *command], environ)
            group.show()
            return group.wait(grace)
        finally:
            group.end()


def environments(workers: int, replicas: int | None = None) -> list[dict[str, str]]:
    """Return the variables that tell each worker who it is, on ports that are free now."""
    cluster = {"worker": [f"127.0.0.1:{port}" for port in _free_ports(workers)]}
    devices = (
        {}
        if replicas is None
        else {"JAX_NUM_CPU_DEVICES": str(replicas), "NPROC": str(4 * replicas)}
    )
    shared = {TOKEN: os.environ.get(TOKEN) or secrets.token_hex(16), **devices}
    return [
        {
            "TF_CONFIG": json.dumps(
                {"cluster": cluster, "task": {"type": "worker", "index": index}}
            ),
            "PYTHONUNBUFFERED": "1",
            **shared,
        }
        for index in range(workers)
    ]


def _free_ports(count: int) -> list[int]:
    # All are held until the last is found, or the system could name one twice.
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


@final
@dataclass
class _Worker:
    """One worker's process, the threads that show what it prints, and its last lines."""

    index: int
    process: Any
    last: deque[str]
    threads: list[threading.Thread]

    def tell(self, signal_number: int) -> None:
        """Send a signal to the worker and all that it started, if any of it is still there."""
        try:
            os.killpg(self.process.pid, signal_number)
        except (ProcessLookupError, PermissionError):  # gone; macOS says the second of zombies
            return


@final
class _Group:
    """The workers that were started."""

    def __init__(self) -> None:
        self._workers: list[_Worker] = []
        self._output = threading.Lock()
        self._signal = 0
        self._patience = float("inf")
        self._is_over = False

    def start(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        """Start one more worker."""
        process: Any = subprocess.Popen(
            command,
            env={**os.environ, **environ},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=_end_with_parent(),
        )
        last = deque[str](maxlen=_LAST_LINES)
        self._workers.append(_Worker(len(self._workers), process, last, []))

    def show(self) -> None:
        """Show what the workers print. A process that has threads must not start others by a fork."""
        for worker in self._workers:
            pipes = ((worker.process.stdout, sys.stdout), (worker.process.stderr, sys.stderr))
            for pipe, out in pipes:
                copy = partial(self._copy, worker, pipe.fileno(), out)
                shows = background.thread(
                    copy, f"evenfeed-worker-{worker.index}", self._listen_no_more
                )
                shows.start()
                worker.threads.append(shows)

    def _listen_no_more(self) -> None:
        self._is_over = True

    def _copy(self, worker: _Worker, pipe: int, out: TextIO) -> None:
        for text in _lines(pipe, lambda: self._is_over):
            worker.last.append(text)  # what it prints to its other stream may follow at once
            with self._output:
                out.write(f"[worker {worker.index}] {text}\n")
                out.flush()

    def wait(self, grace: float) -> int:
        """Wait until all have ended. When one fails the others may save what they have, then they must end."""
        failed: _Worker | None = None
        end = float("inf")
        while any(worker.process.poll() is None for worker in self._workers):
            if failed is None and (failed := self._failed()) is not None:
                end = time.monotonic() + grace
            if time.monotonic() > end and not self._signal:
                self.ask_to_end(signal.SIGTERM)
            if time.monotonic() > self._patience:
                self._tell_all(signal.SIGKILL)
            time.sleep(_LOOK_SECONDS)
        failed = failed or self._failed()
        if failed is None:
            return 0
        if self._signal in (0, signal.SIGTERM) or failed.process.returncode > 0:
            self._report(failed)
        return _exit_code(failed.process.returncode)

    def _failed(self) -> _Worker | None:
        return next((worker for worker in self._workers if worker.process.poll()), None)

    def ask_to_end(self, signal_number: int) -> None:
        """Send the workers a signal; a second time, or after some seconds, they are ended."""
        self._tell_all(signal.SIGKILL if self._signal else signal_number)
        self._signal = signal_number
        self._patience = time.monotonic() + _PATIENCE_SECONDS

    def _tell_all(self, signal_number: int) -> None:
        for worker in self._workers:
            worker.tell(signal_number)

    def _report(self, failed: _Worker) -> None:
        for thread in failed.threads:  # its last words; who inherited its output may keep it open
            thread.join(timeout=1.0)
        said = "".join(f"\n  {line}" for line in failed.last) or " nothing"
        code = failed.process.returncode
        how = f"exit code {code}" if code > 0 else f"signal {signal.Signals(-code).name}"
        with self._output:
            sys.stderr.write(
                f"evenfeed run: worker {failed.index} ended with {how}; its last lines:{said}\n"
            )
            sys.stderr.flush()

    def end(self) -> None:
        """Leave no process behind, not even one that a worker forgot."""
        self._tell_all(signal.SIGKILL)
        for worker in self._workers:
            worker.process.wait()
            for thread in worker.threads:
                thread.join(timeout=1.0)
        self._listen_no_more()

    @contextmanager
    def signals_passed_on(self) -> Generator[None]:
        """Pass Ctrl-C and a request to end on to the workers."""

        def passed(signal_number: int, frame: object) -> None:
            del frame
            if not self._signal:
                name = signal.Signals(signal_number).name
                # Not by sys.stderr, in the middle of whose writing the signal may have come.
                os.write(2, f"evenfeed run: passing {name} on; once more ends all.\n".encode())
            self.ask_to_end(signal_number)

        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, passed) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)


def _lines(pipe: int, is_over: Callable[[], bool]) -> Iterator[str]:
    """Return the lines that come through a pipe, until it ends. A process that outlives its worker may hold it open."""
    decode = codecs.getincrementaldecoder(locale.getpreferredencoding(False))("replace")
    decoder = io.IncrementalNewlineDecoder(decode, translate=True)
    ready = select.poll()
    ready.register(pipe, select.POLLIN | select.POLLHUP)
    rest = ""
    while not is_over():
        if ready.poll(1000 * _LOOK_SECONDS):
            data = os.read(pipe, _BYTES)
            *lines, rest = (rest + decoder.decode(data, final=not data)).split("\n")
            yield from lines
            if not data:
                break
    if rest:
        yield rest


def _exit_code(code: int) -> int:
    return code if code >= 0 else 128 - code


def _end_with_parent() -> Callable[[], None] | None:
    """Return what makes Linux end a worker whose launcher was killed and could not end it."""
    if not sys.platform.startswith("linux"):
        return None
    prctl: Any = ctypes.CDLL(None).prctl

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    return ask
