"""The process that JAX's coordination service lives in, started by worker 0.

Inside worker 0 the service would take every other worker with it when worker 0 ends, be it cleanly. Here it
lives until the last worker has left.

JAX kills a process whose peers do not come in time, without saying who they are. So the workers register here first. Their
connections stay open, and tell when a worker is lost: JAX would say it late, and to nobody by name.

JAX's service asks nobody who they are, so no network reaches it: it listens at a socket in a folder that only this user can
enter, and this process forwards the connections of registered workers to it.
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
    MOST_BYTES,
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
from evenfeed.cluster.survival.failure_watch import Lines
from evenfeed.cluster.survival.keepalive import watch
from evenfeed.core.lazy import socket

_CLAIM_SECONDS: Final = 10.0
_MOST_UNKNOWN: Final = 256
_MOST_REFUSED: Final = 5
_LOOK_SECONDS: Final = 0.5
_BYTES: Final = 1 << 16


def main(host: str, port: int, count: int, seconds: float, *, is_one_machine: bool) -> None:
    """Let the workers register, serve them, and end when all have left.

    Args:
        host: The host of worker 0: a name or an address.
        port: Its port.
        count: How many workers there are.
        seconds: How long to wait for them.
        is_one_machine: Whether all of them run on this machine.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(
            number, signal.SIG_IGN
        )  # workers that save their state still need the service
    sockets, is_everywhere = listeners(host, port, is_one_machine=is_one_machine)
    _print(EVERYWHERE if is_everywhere else "ready")
    _allow_many_files()
    load_runtime()
    service = Service(count)
    asyncio.run(service.run(sockets, seconds))
    os._exit(0)  # to shut JAX's service down would be to wait for workers that are lost


@final
class Service:
    """Registers the workers, then keeps their lines and forwards their connections to JAX's service.

    Args:
        count: How many workers there are.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._token = token()
        self._meeting = Meeting(count)
        self._is_decided = asyncio.Event()  # the meeting has an outcome
        self._has_begun = asyncio.Event()
        self._writers: dict[int, StreamWriter] = {}
        self._keys: dict[int, bytes] = {}
        self._unknown: dict[
            StreamWriter, None
        ] = {}  # connections without a claim yet, oldest first
        self._refused: dict[str, None] = {}  # addresses from which processes without the token came
        self._lines: Lines | None = None
        self._jax_path = ""
        self._jax: Any = None  # JAX's service ends with the last reference to it

    async def run(self, sockets: list[Any], seconds: float) -> None:
        """Serve the workers that connect to some sockets, until all have left."""
        servers = [
            await asyncio.start_server(self._serve, sock=one, limit=MOST_BYTES, backlog=BACKLOG)
            for one in sockets
        ]
        outcome = await self._outcome(seconds)
        lines = Lines(self._writers)
        if outcome != {"go": True}:
            for server in servers:
                server.close()
            lines.tell_all(outcome)
            await asyncio.gather(*map(_close, self._writers.values()))
            return
        with private_folder() as folder:
            self._jax_path = os.path.join(folder, "service")
            self._jax = runtime_service(f"unix:{self._jax_path}", self._count)
            self._lines = lines
            self._has_begun.set()
            lines.tell_all(outcome)
            await lines.all_joined.wait()
        self._keys.clear()  # JAX's service has all its members: forward no other connection
        await lines.all_left.wait()

    async def _outcome(self, seconds: float) -> dict[str, Any]:
        """Wait for the workers; return what all that came are told."""
        parent = os.getppid()
        end = asyncio.get_running_loop().time() + seconds
        while not self._is_decided.is_set():
            if os.getppid() != parent:  # worker 0, which started this process
                return {"gone": 0}
            if asyncio.get_running_loop().time() > end:
                return {"missing": self._meeting.missing, "refused": list(self._refused)}
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_decided.wait(), _LOOK_SECONDS)
        return self._meeting.outcome or {}

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Serve a connection, whoever it comes from."""
        try:
            # asyncio does this only for sockets that name their protocol. Without it, answers come 40 ms late.
            writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            challenge, message = await self._first_message(reader, writer)
            if "shield" in message:
                await self._forward(message, challenge, reader, writer)
            else:
                await self._register(Claim.parse(message), challenge, reader, writer)
        except (OSError, ValueError):
            pass  # it was not a worker, or it is gone
        finally:
            writer.close()

    async def _first_message(
        self, reader: StreamReader, writer: StreamWriter
    ) -> tuple[str, dict[str, Any]]:
        """Return the challenge that a connection was given, and its answer, in bounded time and memory.

        When too many connections are open that have said nothing, the oldest is closed: a worker answers at once.
        """
        self._unknown[writer] = None
        if len(self._unknown) > max(_MOST_UNKNOWN, 2 * self._count):
            oldest = next(iter(self._unknown))
            del self._unknown[oldest]
            oldest.close()
        challenge = nonce()
        try:
            async with asyncio.timeout(_CLAIM_SECONDS):
                writer.write(greeting(challenge, asks_for_token=bool(self._token)))
                return challenge, decode(await reader.readline())
        finally:
            self._unknown.pop(writer, None)

    async def _register(
        self, claim: Claim, challenge: str, reader: StreamReader, writer: StreamWriter
    ) -> None:
        """Give a worker its place, and keep its line until it leaves."""
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
        address = writer.get_extra_info("peername")  # None if it is gone already
        if address and len(self._refused) < _MOST_REFUSED:
            self._refused[str(address[0])] = None

    async def _keep_line(self, place: int, reader: StreamReader) -> None:
        """Listen to a worker until its line ends. Before all have come, workers say nothing."""
        ended: OSError | None = None
        try:
            while line := await reader.readline():
                if self._lines is None:
                    break
                self._lines.hear(place, line)
        except OSError as error:
            ended = error
        except ValueError:  # a line that is too long
            pass
        if self._meeting.outcome is None:
            self._meeting.leave(place)
            del self._writers[place]
            return
        await self._has_begun.wait()
        assert self._lines is not None
        self._lines.end(place, ended)

    async def _forward(
        self, message: dict[str, Any], challenge: str, reader: StreamReader, writer: StreamWriter
    ) -> None:
        """Forward the connection of a registered worker to JAX's service."""
        place = message["shield"]
        key = self._keys.get(place) if type(place) is int else None
        if key is None or not is_proof(message.get("proof"), key, "shield", challenge):
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
    """Close a connection once all is sent, but do not wait for a worker that does not read."""
    writer.close()
    with suppress(OSError):
        await asyncio.wait_for(writer.wait_closed(), _LOOK_SECONDS)


def _allow_many_files() -> None:
    """Allow as many connections as the system does: the usual limit is below a thousand workers."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS refuses "no limit"
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
    sys.stdout.close()


if __name__ == "__main__":
    own_host, own_port, machines, worker_count, wait_seconds = sys.argv[1:]
    main(
        own_host,
        int(own_port),
        int(worker_count),
        float(wait_seconds),
        is_one_machine=machines == "one",
    )
