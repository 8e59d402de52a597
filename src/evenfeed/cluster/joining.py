"""Joins the workers of a cluster: they become one system of JAX's, in which each sees all devices."""

import json
import os
import sys
import time
from typing import Any, Final

from evenfeed.cluster.jax_private import backend_started, join_runtime, joined_runtime
from evenfeed.cluster.membership import Membership
from evenfeed.core.doors import socket, subprocess
from evenfeed.core.errors import (
    DeadlineExceededError,
    InvalidArgumentError,
    UnavailableError,
    described,
)
from evenfeed.core.jax_door import jax

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
    if backend_started() or joined_runtime() is not None:
        raise RuntimeError(
            described(
                "JAX has started its backend before this strategy: it sees the devices of this process alone.",
                fix="make the MultiWorkerMirroredStrategy first of all, before jax.devices(), tensors, "
                "variables and other strategies.",
            )
        )
    seconds = _seconds()
    if membership.place == 0:
        _start_service(membership, seconds)
    _answer(membership, seconds)
    _jax.config.update("jax_cpu_collectives_implementation", "gloo")
    _jax.config.update("jax_enable_recoverability", True)
    join_runtime(membership.workers[0].address, *asked)


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


def _answer(membership: Membership, seconds: float) -> None:
    """Say who this is where all workers are called up, and wait until all have come."""
    end = time.monotonic() + seconds + 5.0  # so that who is missing is heard from the service
    cluster = [str(worker) for worker in membership.workers]
    with _connected(membership, end) as connection:
        said = json.dumps({"place": membership.place, "cluster": cluster})
        connection.sendall(said.encode() + b"\n")
        connection.settimeout(max(1.0, end - time.monotonic()))
        try:
            told: dict[str, Any] = json.loads(connection.makefile("rb").readline())
        except (OSError, ValueError) as error:
            raise UnavailableError(
                f"{membership.workers[0]} was there, and is gone ({error}).",
                fix="look at what it printed last.",
            ) from None
    _check(membership, told, seconds)


def _connected(membership: Membership, end: float) -> Any:
    host, _, port = membership.workers[0].address.rpartition(":")
    while True:
        try:
            return socket.create_connection((host.strip("[]"), int(port)), timeout=5)
        except OSError as error:
            if time.monotonic() > end - 5.0:
                raise DeadlineExceededError(
                    f"{membership.workers[0]}, where the workers meet, cannot be reached ({error}).",
                    fix=f"start it, check its address, or wait longer with {START_SECONDS}=600.",
                ) from None
        time.sleep(_RETRY_SECONDS)


def _check(membership: Membership, told: dict[str, Any], seconds: float) -> None:
    if "missing" in told:
        missing: list[int] = told["missing"]
        names = ", ".join(str(membership.workers[place]) for place in missing)
        raise DeadlineExceededError(
            f"Workers did not come within {seconds:g} seconds: {names}.",
            fix=f"start them, or wait longer with {START_SECONDS}=600.",
        )
    if "twice" in told:
        raise InvalidArgumentError(
            f"Two processes say that they are {membership.workers[told['twice']]}.",
            fix='give each process an "index" of its own.',
        )
    if "differs" in told:
        others: list[int] = told["differs"]
        names = ", ".join(map(str, others))
        raise InvalidArgumentError(
            f"The workers know different clusters: {', '.join(told['cluster'])} is what "
            f"{membership.workers[0]} knows, and not what those in the places {names} know.",
            fix="start all workers with the same cluster.",
        )
