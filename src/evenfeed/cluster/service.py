"""The coordination service: the process in which JAX's own service runs. Worker 0 starts it as a program.

If it ran inside worker 0, all other workers would die when worker 0 exits, even if it exits cleanly. Here it lives
until the last worker has left.

JAX kills a process whose peers do not connect in time, without naming them. So the workers register here first. Their
connections stay open and show when a worker is lost; JAX reports that late and does not name the worker.

JAX's service does not authenticate its clients, so it is not reachable over the network: it listens on a Unix socket
in a folder that only this user can enter, and this process forwards the connections of registered workers to it.
"""

import asyncio
import os
import resource
import signal
import sys
from asyncio import StreamReader, StreamWriter
from contextlib import suppress
from typing import Any, Final, final

from evenfeed.cluster.handshake import (
    MAX_BYTES,
    decode,
    encode,
    greeting,
    is_proof,
    nonce,
    proof,
    session_key,
    token,
)
from evenfeed.cluster.jax_private import load_runtime, runtime_service
from evenfeed.cluster.listening import BACKLOG, EVERYWHERE, listeners, private_folder
from evenfeed.cluster.meeting import Claim, Meeting
from evenfeed.cluster.survival.failure_watch import Lines, watch
from evenfeed.core.lazy import socket

_CLAIM_SECONDS: Final = 10.0
_MAX_UNKNOWN: Final = 256
_MAX_REFUSED: Final = 5
_LATE_SECONDS: Final = 5.0  # for workers that start later than one that ended the meeting
_POLL_SECONDS: Final = 0.5
_BYTES: Final = 1 << 16


def main(host: str, port: int, service: "Service", seconds: float, *, is_one_machine: bool) -> None:
    """Register the workers, serve them, and exit when all have left.

    Args:
        host: The host of worker 0: a name or an address.
        port: The port of worker 0.
        service: Serves the workers.
        seconds: How long to wait for them.
        is_one_machine: Whether all workers run on this machine.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # workers that are saving still need the service
    sockets, is_everywhere = listeners(host, port, is_one_machine=is_one_machine)
    _print(EVERYWHERE if is_everywhere else "ready")
    _allow_many_files()
    load_runtime()
    asyncio.run(service.run(sockets, seconds))
    os._exit(0)  # a clean shutdown of JAX's service would wait for lost workers


@final
class Service:
    """Registers the workers, keeps their connections, and forwards JAX's connections to JAX's service.

    Args:
        count: The number of workers.
        parent: The pid of worker 0, which started this process and may have ended since.
    """

    def __init__(self, count: int, parent: int) -> None:
        self._count = count
        self._parent = parent
        self._token = token()
        self._meeting = Meeting(count)
        self._is_decided = asyncio.Event()  # the meeting has an outcome
        self._has_started = asyncio.Event()
        self._writers: dict[int, StreamWriter] = {}
        self._keys: dict[int, bytes] = {}
        # Connections that have not sent a claim yet, oldest first.
        self._unknown: dict[StreamWriter, None] = {}
        self._refused: dict[str, None] = {}  # addresses of processes without the token
        self._lines: Lines | None = None
        self._jax_path = ""
        self._jax: Any = None  # JAX's service ends when its last reference is dropped

    async def run(self, sockets: list[Any], seconds: float) -> None:
        """Serve the workers that connect to these sockets, until all have left."""
        servers = [
            await asyncio.start_server(self._serve, sock=one, limit=MAX_BYTES, backlog=BACKLOG)
            for one in sockets
        ]
        outcome = await self._outcome(seconds)
        lines = Lines(self._writers)
        if outcome != {"go": True}:
            lines.tell_all(outcome)
            if outcome is self._meeting.outcome:
                await self._tell_late()
            for server in servers:
                server.close()
            await asyncio.gather(*map(_close, self._writers.values()))
            return
        with private_folder() as folder:
            self._jax_path = os.path.join(folder, "service")
            self._jax = runtime_service(f"unix:{self._jax_path}", self._count)
            self._lines = lines
            self._has_started.set()
            lines.tell_all(outcome)
            await lines.all_joined.wait()
        self._keys.clear()  # all workers have joined JAX's service: forward no more connections
        await lines.all_left.wait()

    async def _outcome(self, seconds: float) -> dict[str, Any]:
        """Wait for the workers; return the message for all that registered."""
        end = asyncio.get_running_loop().time() + seconds
        while not self._is_decided.is_set():
            if os.getppid() != self._parent:
                return {"gone": 0}
            if asyncio.get_running_loop().time() > end:
                return {"missing": self._meeting.missing, "refused": list(self._refused)}
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_decided.wait(), _POLL_SECONDS)
        return self._meeting.outcome or {}

    async def _tell_late(self) -> None:
        """Stay a little longer for workers that are still starting: the meeting tells them why it ended."""
        end = asyncio.get_running_loop().time() + _LATE_SECONDS
        while self._meeting.missing and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(_POLL_SECONDS)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Serve one connection, from a worker or a stranger."""
        try:
            # asyncio sets it only for sockets that name their protocol. Without it, answers arrive 40 ms late.
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            challenge, message = await self._first_message(reader, writer)
            if "proxy" in message:
                await self._forward(message, challenge, reader, writer)
            else:
                await self._register(Claim.parse(message), challenge, reader, writer)
        except (OSError, ValueError):
            pass  # not a worker, or it has disconnected
        finally:
            writer.close()

    async def _first_message(
        self, reader: StreamReader, writer: StreamWriter
    ) -> tuple[str, dict[str, Any]]:
        """Return the challenge sent to a connection, and the connection's answer. Bounded in time and memory.

        When too many connections have sent nothing yet, the oldest is closed: a worker answers at once.
        """
        self._unknown[writer] = None
        if len(self._unknown) > max(_MAX_UNKNOWN, 2 * self._count):
            oldest = next(iter(self._unknown))
            del self._unknown[oldest]
            oldest.close()
        challenge = nonce()
        try:
            async with asyncio.timeout(_CLAIM_SECONDS):
                writer.write(greeting(challenge, needs_token=bool(self._token)))
                return challenge, decode(await reader.readline())
        finally:
            self._unknown.pop(writer, None)

    async def _register(
        self, claim: Claim, challenge: str, reader: StreamReader, writer: StreamWriter
    ) -> None:
        """Admit a worker, and keep its connection until it leaves."""
        if not claim.is_proven(self._token, challenge):
            self._note_refused(writer)
            writer.write(encode({"refused": True}))
            return
        own_proof = proof(self._token, "service", challenge, claim.nonce)
        refusal = self._meeting.admit(claim)
        writer.write(encode({**(refusal or {}), "proof": own_proof}))
        if refusal is None:
            self._writers[claim.place] = writer
            self._keys[claim.place] = session_key(self._token, challenge, claim.nonce)
            watch(writer.get_extra_info("socket"))
        if self._meeting.outcome is not None:
            self._is_decided.set()
        if refusal is None:
            await self._keep_line(claim.place, reader)

    def _note_refused(self, writer: StreamWriter) -> None:
        address = writer.get_extra_info("peername")  # None if it has disconnected already
        if address and len(self._refused) < _MAX_REFUSED:
            self._refused[str(address[0])] = None

    async def _keep_line(self, place: int, reader: StreamReader) -> None:
        """Read a worker's messages until its connection ends. Workers send none before all have registered."""
        ended: OSError | None = None
        try:
            while line := await reader.readline():
                if self._lines is None:
                    break
                self._lines.hear(place, line)
        except OSError as error:
            ended = error
        except ValueError:  # the line is too long
            pass
        if self._meeting.outcome is None:
            self._meeting.leave(place)
            del self._writers[place]
            return
        await self._has_started.wait()
        assert self._lines is not None
        self._lines.end(place, ended)

    async def _forward(
        self, message: dict[str, Any], challenge: str, reader: StreamReader, writer: StreamWriter
    ) -> None:
        """Forward a registered worker's connection to JAX's service."""
        place = message["proxy"]
        key = self._keys.get(place) if type(place) is int else None
        if key is None or not is_proof(message.get("proof"), key, "proxy", challenge):
            return
        jax_reader, jax_writer = await asyncio.open_unix_connection(self._jax_path)
        try:
            await asyncio.gather(_copy(reader, jax_writer), _copy(jax_reader, writer))
        finally:
            jax_writer.close()


async def _copy(source: StreamReader, target: StreamWriter) -> None:
    while data := await source.read(_BYTES):
        target.write(data)
        await target.drain()
    target.close()


async def _close(writer: StreamWriter) -> None:
    """Close a connection once all data is sent, but do not wait for a worker that does not read."""
    writer.close()
    with suppress(OSError):
        await asyncio.wait_for(writer.wait_closed(), _POLL_SECONDS)


def _allow_many_files() -> None:
    """Allow as many connections as the system does: the default limit is below a thousand workers."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS refuses "no limit"
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
    sys.stdout.close()


if __name__ == "__main__":
    own_host, own_port, machines, worker_count, wait_seconds, starter = sys.argv[1:]
    main(
        own_host,
        int(own_port),
        Service(int(worker_count), int(starter)),
        float(wait_seconds),
        is_one_machine=machines == "one",
    )
