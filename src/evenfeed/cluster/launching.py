"""`evenfeed run`: starts several workers on this machine, shows their output, and stops them all when one fails.

After that it can start them again, with new ports: the coordination service of the last start may still be ending.

Each worker leads its own process group. So a signal also reaches the processes it started, and Ctrl-C in the terminal
reaches only the launcher, which forwards it once.
"""

import codecs
import ctypes
import io
import json
import locale
import os
import re
import secrets
import select
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TextIO, final

from evenfeed.cluster.handshake import TOKEN
from evenfeed.cluster.jax_private import THREADS_PER_DEVICE
from evenfeed.core.concurrency.threads import background
from evenfeed.core.lazy import socket, subprocess
from evenfeed.live.watching import PORT
from evenfeed.live.worker_pages import LiveView

_LAST_LINES: Final = 10
# Gloo prints a line in each worker once all are connected, and has no setting for that.
_CONNECTED: Final = re.compile(r"\[Gloo\] Rank \d+ is connected to \d+ peer ranks\. Expected .*")
DEFAULT_GRACE_SECONDS: Final = 10.0  # for the other workers after one has failed
_PATIENCE_SECONDS: Final = 10.0  # between asking the workers to exit and killing them
_POLL_SECONDS: Final = 0.05
_BYTES: Final = 1 << 16
_PR_SET_PDEATHSIG: Final = 1


RESTARTS: Final = "EVENFEED_RESTART_COUNT"


def launch(  # noqa: PLR0913, PLR0917 - the options of the command
    command: Sequence[str],
    workers: int,
    replicas: int | None = None,
    grace: float = DEFAULT_GRACE_SECONDS,
    restarts: int = 0,
    min_workers: int | None = None,
    dashboard: int | None = None,
) -> int:
    """Run a program in several workers, and return a single exit code.

    The exit code is 0 if all workers exited with 0, else that of the first worker that failed; after a signal, 128 plus
    its number, as in a shell. With restarts, it is that of the last start.

    Args:
        command: The arguments for Python: a script and its arguments, or `-m` and a module.
        workers: The number of workers.
        replicas: The number of logical CPU devices of each worker; by default the program decides.
        grace: How many seconds the other workers have to exit by themselves when one fails.
        restarts: How often to start all workers again after one failed.
        min_workers: Restart without the workers that were lost, but with at least this many; None for all of them.
        dashboard: The port of a page that shows what the workers wait for; 0 for any port, None for no page.
    """
    signals, code = _Signals(), 0
    view = None if dashboard is None else LiveView(dashboard)
    with signals.passed_on(), nullcontext() if view is None else closing(view):
        for restart in range(restarts + 1):
            group = _Group(signals)
            if signals.number:  # it came between two starts
                return code
            try:
                shown = view_settings(workers, view)
                for environ, live in zip(environments(workers, replicas), shown, strict=True):
                    started = {**environ, **live, RESTARTS: str(restart)}
                    group.start([sys.executable, *command], started)
                group.show()
                if view is not None:
                    view.show()
                    group.say(f"live view at {view.url}")
                code = group.wait(grace)
            finally:
                group.end()
                if view is not None:
                    view.hide()  # the next start forks, which a process with threads must not
            if code == 0 or signals.number:
                return code
            left = workers if min_workers is None else max(min_workers, workers - len(group.lost))
            if restart < restarts:
                group.say(_restarting(restart + 1, restarts, workers, left))
            elif restarts:
                group.say(f"giving up after {_counted(restarts, 'restart')}.")
            workers = left
    return code


def view_settings(workers: int, view: LiveView | None) -> list[dict[str, str]]:
    """Return the environment variables that make workers show what they wait for."""
    if view is None:
        return [{}] * workers
    view.ports = _free_ports(workers)
    return [{PORT: str(port)} for port in view.ports]


def _restarting(number: int, of: int, before: int, now: int) -> str:
    change = "" if now == before else f" instead of {before}"
    return f"restart {number} of {of}, with {_counted(now, 'worker')}{change}."


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" + "s" * (count != 1)


def environments(workers: int, replicas: int | None = None) -> list[dict[str, str]]:
    """Return each worker's environment variables, with ports that are free now."""
    cluster = {"worker": [f"127.0.0.1:{port}" for port in _free_ports(workers)]}
    devices = (
        {}
        if replicas is None
        else {"JAX_NUM_CPU_DEVICES": str(replicas), "NPROC": str(THREADS_PER_DEVICE * replicas)}
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
    # Hold all until the last is found, or the system could return one twice.
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return ports


@final
@dataclass
class _Worker:
    """One worker's process, the threads that show its output, and its last lines."""

    index: int
    process: Any
    last: deque[str]
    threads: list[threading.Thread]

    def send(self, signal_number: int) -> None:
        """Send a signal to the worker's process group, if any of its processes is left."""
        try:
            os.killpg(self.process.pid, signal_number)
        except (ProcessLookupError, PermissionError):  # gone; macOS raises the second for zombies
            return


@final
class _Signals:
    """Forwards SIGINT (Ctrl-C) and SIGTERM to the workers of the current start.

    Attributes:
        number: The signal that the user sent; 0 before that.
        receive: Called with each signal.
    """

    def __init__(self) -> None:
        self.number = 0
        self.receive: Callable[[int], None] = lambda _: None

    @contextmanager
    def passed_on(self) -> Generator[None]:
        """Forward signals until the end of the block."""

        def pass_on(signal_number: int, frame: object) -> None:
            del frame
            if not self.number:
                name = signal.Signals(signal_number).name
                # Not sys.stderr: the signal may have interrupted a write to it.
                os.write(
                    2,
                    f"evenfeed run: forwarding {name}; press again to kill all workers.\n".encode(),
                )
            self.number = signal_number
            self.receive(signal_number)

        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, pass_on) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)


@final
class _Group:
    """The workers of one start.

    Attributes:
        lost: The workers that failed by themselves, not because another did.
    """

    def __init__(self, signals: _Signals) -> None:
        self.lost: list[_Worker] = []
        self._workers: list[_Worker] = []
        self._output = threading.Lock()
        self._signal = 0
        self._patience = float("inf")
        self._is_over = False
        signals.receive = self.ask_to_end

    def start(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        """Start another worker."""
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
        """Show the workers' output. Call it after the last `start`: a process with threads must not fork."""
        for worker in self._workers:
            pipes = ((worker.process.stdout, sys.stdout), (worker.process.stderr, sys.stderr))
            for pipe, out in pipes:
                copy = partial(self._copy, worker, pipe.fileno(), out)
                thread = background.thread(
                    copy, f"evenfeed-worker-{worker.index}", self._stop_listening
                )
                thread.start()
                worker.threads.append(thread)

    def _stop_listening(self) -> None:
        self._is_over = True

    def _copy(self, worker: _Worker, pipe: int, out: TextIO) -> None:
        for text in _lines(pipe, lambda: self._is_over):
            if _CONNECTED.fullmatch(text):
                continue
            worker.last.append(text)  # before writing: its other stream may print a line at once
            with self._output:
                out.write(f"[worker {worker.index}] {text}\n")
                out.flush()

    def wait(self, grace: float) -> int:
        """Wait until all workers have exited. When one fails, the others get `grace` seconds to save and exit."""
        end = float("inf")
        while any(worker.process.poll() is None for worker in self._workers):
            if not self.lost and self._note_lost():
                end = time.monotonic() + grace
            if time.monotonic() > end and not self._signal:
                self.ask_to_end(signal.SIGTERM)
            if time.monotonic() > self._patience:
                self._send_all(signal.SIGKILL)
            time.sleep(_POLL_SECONDS)
            self._note_killed()
        if not self.lost and not self._note_lost():
            return 0
        failed = self.lost[0]
        if self._signal in (0, signal.SIGTERM) or failed.process.returncode > 0:
            self._report(failed)
        return _exit_code(failed.process.returncode)

    def _note_lost(self) -> bool:
        """Note the first worker that failed. If several did, one that was killed: the others failed because of it."""
        failed = [worker for worker in self._workers if worker.process.poll()]
        self.lost += sorted(failed, key=lambda worker: worker.process.returncode > 0)[:1]
        return bool(failed)

    def _note_killed(self) -> None:
        """Note workers that were killed after the first one failed, but not from here."""
        if self.lost and not self._signal:
            self.lost += [
                worker
                for worker in self._workers
                if worker not in self.lost and (worker.process.poll() or 0) < 0
            ]

    def ask_to_end(self, signal_number: int) -> None:
        """Send the workers a signal. The second call, or a timeout, kills them."""
        self._send_all(signal.SIGKILL if self._signal else signal_number)
        self._signal = signal_number
        self._patience = time.monotonic() + _PATIENCE_SECONDS

    def _send_all(self, signal_number: int) -> None:
        for worker in self._workers:
            worker.send(signal_number)

    def _report(self, failed: _Worker) -> None:
        for thread in failed.threads:  # a child that inherited the output may keep it open
            thread.join(timeout=1.0)
        text = "".join(f"\n  {line}" for line in failed.last) or " nothing"
        code = failed.process.returncode
        how = f"exit code {code}" if code > 0 else f"signal {signal.Signals(-code).name}"
        self.say(f"worker {failed.index} ended with {how}; its last lines:{text}")

    def say(self, text: str) -> None:
        """Print a line about the run, between those of the workers."""
        with self._output:
            sys.stderr.write(f"evenfeed run: {text}\n")
            sys.stderr.flush()

    def end(self) -> None:
        """Leave no process behind, not even a worker's child."""
        self._send_all(signal.SIGKILL)
        for worker in self._workers:
            worker.process.wait()
            for thread in worker.threads:
                thread.join(timeout=1.0)
        self._stop_listening()
        for worker in self._workers:  # the next start forks, which a process with threads must not
            for thread in worker.threads:
                thread.join()
            worker.process.stdout.close()
            worker.process.stderr.close()


def _lines(pipe: int, is_over: Callable[[], bool]) -> Iterator[str]:
    """Yield the lines from a pipe, until it ends or `is_over()`: a process that outlives its worker may keep it open."""
    decode = codecs.getincrementaldecoder(locale.getpreferredencoding(False))("replace")
    decoder = io.IncrementalNewlineDecoder(decode, translate=True)
    ready = select.poll()
    ready.register(pipe, select.POLLIN | select.POLLHUP)
    rest = ""
    while not is_over():
        if ready.poll(1000 * _POLL_SECONDS):
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
    """Return a function for the child that makes Linux kill a worker whose launcher was killed."""
    if not sys.platform.startswith("linux"):
        return None
    prctl: Any = ctypes.CDLL(None).prctl

    def request() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    return request
