"""Joins the workers of a cluster: they become one system of JAX's, in which each sees all devices."""

import json
import os
import sys
import time
from typing import Any, Final

from evenfeed.cluster import gloo
from evenfeed.cluster.jax_private import (
    backend_started,
    explain_errors,
    join_runtime,
    joined_runtime,
)
from evenfeed.cluster.line import Line
from evenfeed.cluster.membership import Membership
from evenfeed.core.doors import socket, subprocess
from evenfeed.core.errors import (
    DeadlineExceededError,
    InvalidArgumentError,
    UnavailableError,
    described,
)
from evenfeed.core.jax_door import backend, jax
from evenfeed.core.peers import peers

_jax: Any = jax  # whose settings have no types

START_SECONDS: Final = "EVENFEED_START_SECONDS"
_DEFAULT_SECONDS: Final = 300.0
_RETRY_SECONDS: Final = 0.1


def join(membership: Membership) -> None:
    """Meet the other workers, and let JAX see the devices of all. A second time it does nothing.

    Raises:
        RuntimeError: JAX has started its backend without the others, or for another cluster.
        DeadlineExceededError: Workers did not come in time; it names them.
        InvalidArgumentError: Workers know different clusters.
    """
    asked = (membership.place, membership.worker_count)
    if joined_runtime() == asked:
        return
    _check_in_time(membership)
    seconds = _seconds()
    if membership.place == 0:
        _start_service(membership, seconds)
    line = Line(_answer(membership, seconds), peers)
    peers.expect(list(map(str, membership.workers)))
    line.open()
    _jax.config.update("jax_enable_recoverability", True)
    join_runtime(_shielded(membership.workers[0].address), *asked)
    gloo.arrange(_host(membership.own.address), lambda port: line.say(port=port))
    explain_errors(peers.reraise)


def _check_in_time(membership: Membership) -> None:
    joined = joined_runtime()
    if joined is not None:
        place, count = joined
        raise RuntimeError(
            described(
                f"This process is the worker in place {membership.place} of {membership.worker_count}, but JAX "
                f"has joined a cluster already, in place {place} of {count}.",
                fix="leave jax.distributed.initialize out: the MultiWorkerMirroredStrategy joins the workers.",
            )
        )
    if backend_started():
        line = backend.started_by
        by = "by a line that ran before evenfeed was used" if line is None else f"by {line}"
        raise RuntimeError(
            described(
                f"JAX's backend was started before this strategy, {by}: it sees the devices of this process alone.",
                fix="make the MultiWorkerMirroredStrategy first of all, before jax.devices(), tensors, "
                "variables and other strategies.",
            )
        )


def _shielded(address: str) -> str:
    """Return an address of this machine behind which the service is, and does not end."""
    host, port = _host(address), address.rpartition(":")[2]
    file = os.path.join(os.path.dirname(__file__), "shield.py")
    process: Any = subprocess.Popen(
        [sys.executable, "-I", "-S", file, host, port],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with process.stdout:
        own = process.stdout.readline().strip()
    process.returncode = 0  # it ends after this process: nobody waits for it
    return f"127.0.0.1:{own}"


def _host(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")


def _seconds() -> float:
    text = os.environ.get(START_SECONDS, str(_DEFAULT_SECONDS))
    try:
        return float(text)
    except ValueError:
        raise InvalidArgumentError(
            f"{START_SECONDS} is no number: {text!r}.", fix=f"export {START_SECONDS}=60."
        ) from None


def _start_service(membership: Membership, seconds: float) -> None:
    port = membership.own.address.rpartition(":")[2]
    command = [sys.executable, "-m", "evenfeed.cluster.service"]
    process: Any = subprocess.Popen(
        [*command, port, str(membership.worker_count), str(seconds)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    with process.stdout:
        ready = process.stdout.readline() == "ready\n"
    if ready:
        process.stderr.close()
        process.returncode = 0  # it outlives this process: nobody waits for it
        return
    with process.stderr:
        said = process.stderr.read().strip().rpartition("\n")[2]
    process.wait()
    raise UnavailableError(
        f"The coordination service could not start at {membership.own.address}: {said}",
        fix="choose a port that is free, in TF_CONFIG or the resolver.",
    )


def _answer(membership: Membership, seconds: float) -> Any:
    """Say who this is where all workers are called up, wait until all have come, and return the connection."""
    end = time.monotonic() + seconds + 5.0  # so that who is missing is heard from the service
    connection = _connected(membership, end)
    try:
        said = json.dumps({"place": membership.place, "facts": _facts(membership)})
        connection.sendall(said.encode() + b"\n")
        connection.settimeout(max(1.0, end - time.monotonic()))
        _check(membership, _told(membership, connection), seconds)
    except BaseException:
        connection.close()
        raise
    return connection


def _facts(membership: Membership) -> dict[str, Any]:
    """Return what must be the same on all workers, or their programs would not fit together."""
    return {
        "cluster": [str(worker) for worker in membership.workers],
        "version of evenfeed": sys.modules["evenfeed"].__version__,
        "version of jax": _jax.__version__,
        "version of jaxlib": _jax.lib.__version__,
        "setting jax_enable_x64": bool(_jax.config.jax_enable_x64),
    }


def _told(membership: Membership, connection: Any) -> dict[str, Any]:
    try:
        return json.loads(connection.makefile("rb", buffering=0).readline())
    except (OSError, ValueError) as error:
        raise UnavailableError(
            f"{membership.workers[0]} was there, and is gone ({error}).",
            fix="look at what it printed last.",
        ) from None


def _connected(membership: Membership, end: float) -> Any:
    address = membership.workers[0].address
    where = (_host(address), int(address.rpartition(":")[2]))
    while True:
        try:
            return socket.create_connection(where, timeout=5)
        except OSError as error:
            if time.monotonic() > end - 5.0:
                raise DeadlineExceededError(
                    f"{membership.workers[0]}, where the workers meet, cannot be reached ({error}).",
                    fix=f"start it, check its address, or wait longer with {START_SECONDS}=600.",
                ) from None
        time.sleep(_RETRY_SECONDS)


def _check(membership: Membership, told: dict[str, Any], seconds: float) -> None:
    if "gone" in told:
        raise UnavailableError(
            f"{membership.workers[told['gone']]} was there, and is gone.",
            fix="look at what it printed last.",
        )
    if "missing" in told:
        missing: list[int] = told["missing"]
        raise DeadlineExceededError(
            f"Workers did not come within {seconds:g} seconds: {_names(membership, missing)}.",
            fix=f"start them, or wait longer with {START_SECONDS}=600.",
        )
    if "twice" in told:
        raise InvalidArgumentError(
            f"Two processes say that they are {membership.workers[told['twice']]}.",
            fix='give each process an "index" of its own.',
        )
    if "differs" in told:
        raise _differing(membership, told["differs"], told["known"])


def _differing(membership: Membership, what: str, known: list[Any]) -> InvalidArgumentError:
    if what == "cluster":
        names = ", ".join(str(place) for place, one in enumerate(known) if one != known[0])
        return InvalidArgumentError(
            f"The workers know different clusters: {', '.join(known[0])} is what "
            f"{membership.workers[0]} knows, and not what those in the places {names} know.",
            fix="start all workers with the same cluster.",
        )
    return InvalidArgumentError(
        f"The workers have not the same {what}: {_by_value(membership, known)}.",
        fix="let all workers have the same.",
    )


def _by_value(membership: Membership, known: list[Any]) -> str:
    """Say which workers know what, those that know the same together."""
    places: dict[str, list[int]] = {}
    for place, value in enumerate(known):
        places.setdefault(str(value), []).append(place)
    return "; ".join(f"{text} on {_names(membership, who)}" for text, who in places.items())


def _names(membership: Membership, places: list[int]) -> str:
    return ", ".join(str(membership.workers[p]) for p in places)
