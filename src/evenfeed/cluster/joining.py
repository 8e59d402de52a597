"""Joins the workers of a cluster: they become one system of JAX's, in which each sees all devices."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from evenfeed.cluster import gloo
from evenfeed.cluster.handshake import TOKEN, token
from evenfeed.cluster.jax_private import (
    backend_started,
    explain_errors,
    join_runtime,
    joined_runtime,
)
from evenfeed.cluster.line import Line
from evenfeed.cluster.listening import EVERYWHERE
from evenfeed.cluster.meeting import CLUSTER, VERSION
from evenfeed.cluster.membership import Membership
from evenfeed.cluster.private_folder import private_folder
from evenfeed.cluster.registering import START_SECONDS, host_of, register
from evenfeed.core.doors import logging, subprocess
from evenfeed.core.errors import InvalidArgumentError, UnavailableError, described
from evenfeed.core.jax_door import backend, jax
from evenfeed.core.peers import peers

_jax: Any = jax  # whose settings have no types

_DEFAULT_SECONDS: Final = 300.0


def join(membership: Membership) -> None:
    """Meet the other workers, and let JAX see the devices of all. A second time it does nothing.

    Raises:
        RuntimeError: JAX has started its backend without the others, or for another cluster.
        DeadlineExceededError: Workers did not come in time; it names them.
        InvalidArgumentError: Workers know different clusters.
        UnauthenticatedError: This process and worker 0 do not have the same token.
    """
    asked = (membership.place, membership.worker_count)
    if joined_runtime() == asked:
        return
    _check_in_time(membership)
    seconds = _seconds()
    if membership.place == 0:
        _start_service(membership, seconds)
    connection, key = register(membership, _facts(membership), seconds)
    line = Line(connection, peers)
    peers.expect(list(map(str, membership.workers)))
    line.open()
    _jax.config.update("jax_enable_recoverability", True)
    with _shielded(membership, key) as address:
        join_runtime(address, *asked)
    line.say(joined=True)
    gloo.arrange(host_of(membership.own.address), lambda port: line.say(port=port))
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


@contextmanager
def _shielded(membership: Membership, key: bytes) -> Generator[str]:
    """Give an address of the service for JAX: one that does not end with it, and that only this user can reach."""
    chief = membership.workers[0].address
    file = os.path.join(os.path.dirname(__file__), "shield.py")
    with private_folder() as folder:
        path = os.path.join(folder, "shield")
        where = [path, host_of(chief), chief.rpartition(":")[2], str(membership.place)]
        process: Any = subprocess.Popen(
            [sys.executable, "-I", "-S", file, *where],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        with process.stdin, process.stdout:
            process.stdin.write(key + b"\n")  # arguments can be read by all users of a machine
            process.stdin.flush()
            process.stdout.readline()
        process.returncode = 0  # it ends after this process: nobody waits for it
        yield f"unix:{path}"


def _seconds() -> float:
    text = os.environ.get(START_SECONDS, str(_DEFAULT_SECONDS))
    try:
        return float(text)
    except ValueError:
        raise InvalidArgumentError(
            f"{START_SECONDS} is no number: {text!r}.", fix=f"export {START_SECONDS}=60."
        ) from None


def _start_service(membership: Membership, seconds: float) -> None:
    address = membership.own.address
    hosts = {host_of(worker.address) for worker in membership.workers}
    where = [
        host_of(address),
        address.rpartition(":")[2],
        "one" if len(hosts) == 1 else "several",
    ]
    command = [sys.executable, "-m", "evenfeed.cluster.service"]
    process: Any = subprocess.Popen(
        [*command, *where, str(membership.worker_count), str(seconds)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    with process.stdout:
        ready = process.stdout.readline().strip()
    if ready:
        process.stderr.close()
        process.returncode = 0  # it outlives this process: nobody waits for it
        if ready == EVERYWHERE:
            _warn_of_all_interfaces(address)
        return
    with process.stderr:
        said = process.stderr.read().strip().rpartition("\n")[2]
    process.wait()
    raise UnavailableError(
        f"The coordination service could not start at {address}: {said}",
        fix="choose a port that is free, in TF_CONFIG or the resolver.",
    )


def _warn_of_all_interfaces(address: str) -> None:
    logging.getLogger("evenfeed").warning(
        "The coordination service listens on all network interfaces, because %s is not an address of this machine "
        "that other machines can reach. %s (docs/security.md)",
        address,
        "Only workers that have the token are let in."
        if token()
        else f"Set {TOKEN} on all workers to let nobody else in.",
    )


def _facts(membership: Membership) -> dict[str, Any]:
    """Return what must be the same on all workers, or their programs would not fit together."""
    return {
        CLUSTER: [str(worker) for worker in membership.workers],
        VERSION: sys.modules["evenfeed"].__version__,
        "version of jax": _jax.__version__,
        "version of jaxlib": _jax.lib.__version__,
        "setting jax_enable_x64": bool(_jax.config.jax_enable_x64),
    }
