"""The process that JAX's coordination service lives in, started by worker 0.

Inside worker 0 the service would take every other worker with it when worker 0 ends, be it cleanly. Here it
lives until the last worker has left.

JAX kills a process whose peers do not come in time, without saying who they are. So the workers are called
up first, at the address where the service will be: each says who it is and what it knows. Their connections stay
open, and tell when a worker is lost: JAX would say it late, and to nobody by name.
"""

import json
import os
import signal
import sys
import time
from contextlib import suppress
from typing import Any, Final

from evenfeed.cluster.jax_private import runtime_service
from evenfeed.cluster.lines import Lines
from evenfeed.core.doors import socket

_LINE_BYTES: Final = 1 << 16
_READ_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.5


def main(port: int, count: int, seconds: float) -> None:
    """Call the workers up, serve them, and end when all have left.

    Args:
        port: Where they come.
        count: How many.
        seconds: How long to wait for them.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(
            number, signal.SIG_IGN
        )  # workers that save their state still need the service
    listener = _listening(port)
    _say("ready")
    present, answer = _called_up(listener, count, time.monotonic() + seconds)
    listener.close()
    service = runtime_service(f"[::]:{port}", count) if answer == {"go": True} else None
    lines = Lines(present)
    lines.tell_all(answer)
    if service is not None:
        lines.serve()
        os._exit(0)  # to shut it down would be to wait for those that are lost


def _listening(port: int) -> Any:
    # JAX's own server shares a port that is in use, silently; this one does not.
    try:
        return socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    except (OSError, ValueError):
        return socket.create_server(("", port))  # a machine without IPv6


def _called_up(listener: Any, count: int, end: float) -> tuple[dict[int, Any], dict[str, Any]]:
    """Wait for the workers; return their connections, and what all of them are told."""
    present: dict[int, Any] = {}
    known: dict[int, dict[str, Any]] = {}
    parent = os.getppid()
    listener.settimeout(_LOOK_SECONDS)
    while len(present) < count or not _are_there(present):
        if os.getppid() != parent:  # worker 0, who started this
            return present, {"gone": 0}
        if time.monotonic() > end:
            return present, {"missing": sorted(set(range(count)) - set(present))}
        with suppress(OSError, ValueError, KeyError):  # the time is over, or a stranger came
            one, _ = listener.accept()
            said = _said_by(one)
            place = int(said["place"])
            facts: dict[str, Any] = dict(said["facts"])
            if place in present and known[place] == facts and not _is_gone(present[place]):
                return {**present, count: one}, {"twice": place}
            present[place], known[place] = one, facts
    return present, _differing(known) or {"go": True}


def _differing(known: dict[int, dict[str, Any]]) -> dict[str, Any] | None:
    """Return what the workers do not know alike, and what each knows; None where they do."""
    for name in dict.fromkeys(name for facts in known.values() for name in facts):
        each = [known[place].get(name) for place in sorted(known)]
        if any(fact != each[0] for fact in each):
            return {"differs": name, "known": each}
    return None


def _said_by(connection: Any) -> dict[str, Any]:
    connection.settimeout(_READ_SECONDS)
    return json.loads(connection.makefile("rb").readline(_LINE_BYTES))


def _are_there(present: dict[int, Any]) -> bool:
    """Tell whether nobody has left while the others came; who has may still come again."""
    gone = [place for place, one in present.items() if _is_gone(one)]
    for place in gone:
        present.pop(place).close()
    return not gone


def _is_gone(connection: Any) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
    sys.stdout.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
