"""Joins this worker to the cluster: starts the coordination service, registers with it, and connects JAX.

`join` does it all. On worker 0 it starts the service (`service.py`). `register` proves to the service that this worker
belongs to the cluster, and waits until all workers have registered. Then JAX joins its own coordination service through
a proxy (`survival/coordination_proxy.py`) and sees the devices of all workers.
"""

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple

from evenfeed.cluster import gloo
from evenfeed.cluster.handshake import (
    TOKEN,
    decode,
    encode,
    is_proof,
    nonce,
    parse_greeting,
    read_line,
    session_key,
    token,
)
from evenfeed.cluster.jax_private import (
    backend_started,
    explain_errors,
    join_runtime,
    joined_runtime,
)
from evenfeed.cluster.listening import EVERYWHERE, private_folder
from evenfeed.cluster.meeting import CLUSTER, VERSION, Claim
from evenfeed.cluster.membership import Membership
from evenfeed.cluster.survival.failure_watch import Line
from evenfeed.cluster.survival.guarded_waits import guarded
from evenfeed.core.concurrency.peers import peers
from evenfeed.core.concurrency.progress import silence
from evenfeed.core.errors import (
    DeadlineExceededError,
    EvenfeedError,
    InvalidArgumentError,
    UnauthenticatedError,
    UnavailableError,
    described,
)
from evenfeed.core.lazy import logging, socket, subprocess
from evenfeed.core.lazy_jax import backend, jax

START_SECONDS: Final = "EVENFEED_START_SECONDS"
_RETRY_SECONDS: Final = 0.1
_ANSWER_SECONDS: Final = 10.0
_MARGIN_SECONDS: Final = 5.0  # the service must time out first: it knows which workers are missing

_NEW_TOKEN: Final = (
    f"run openssl rand -hex 16 once, and export {TOKEN} with its output on all workers."
)


class Registration(NamedTuple):
    """The result of registering this worker.

    Attributes:
        connection: The connection to the service. It stays open as long as the worker lives.
        key: Proves that later connections come from this worker.
    """

    connection: Any
    key: bytes


def register(
    membership: Membership, facts: dict[str, Any], seconds: float, service: int | None = None
) -> Registration:
    """Register with the service, and wait until all workers have registered.

    Args:
        membership: The workers, and which one this process is.
        facts: Facts that must be the same on all workers.
        seconds: How long the service waits for all workers.
        service: The process of the service, if this worker started it.

    Raises:
        DeadlineExceededError: Some workers did not connect in time. The message names them.
        InvalidArgumentError: The workers do not match each other.
        UnauthenticatedError: This process and worker 0 have different tokens.
        UnavailableError: The connection to worker 0 was lost.
    """
    end = time.monotonic() + seconds + _MARGIN_SECONDS
    registration = _connect_and_claim(membership, facts, end, service)
    try:
        _raise_if_refused(
            membership, _read_outcome(membership, registration.connection, end), seconds
        )
    except BaseException:
        registration.connection.close()
        raise
    return registration


def host_of(address: str) -> str:
    """Return the host part of `host:port`."""
    return address.rpartition(":")[0].strip("[]")


def _connect_and_claim(
    membership: Membership, facts: dict[str, Any], end: float, service: int | None = None
) -> Registration:
    """Connect to the service and claim this worker's place. Retry while the service is not up or too busy."""
    address = membership.workers[0].address
    where = (host_of(address), int(address.rpartition(":")[2]))
    while True:
        connection: Any = None
        try:
            connection = socket.create_connection(where, timeout=_ANSWER_SECONDS)
            return _claim_place(membership, facts, connection)
        except (OSError, ValueError) as error:
            if connection is not None:
                connection.close()
            if isinstance(error, EvenfeedError):
                raise
            _check_deadline(membership, error, end)
            _check_service(membership, service)
        time.sleep(_RETRY_SECONDS)


def _check_deadline(membership: Membership, error: Exception, end: float) -> None:
    if time.monotonic() > end - _MARGIN_SECONDS:
        raise DeadlineExceededError(
            f"Cannot connect to {membership.workers[0]}, which coordinates the workers ({error}).",
            fix=f"start it, check its address, or wait longer with {START_SECONDS}=600.",
        ) from None


def _check_service(membership: Membership, service: int | None) -> None:
    """Raise if the service, a child of this process, has ended: waiting for it would take until the deadline."""
    if service is not None and os.waitpid(service, os.WNOHANG)[0]:
        raise UnavailableError(
            f"The coordination service at {membership.own.address} was lost during startup: its process exited "
            "unexpectedly.",
            fix="restart all workers.",
        )


def _claim_place(membership: Membership, facts: dict[str, Any], connection: Any) -> Registration:
    """Prove to the service that this worker has the token, and check that the service has it too."""
    end, key = time.monotonic() + _ANSWER_SECONDS, token()
    challenge, needs_token = parse_greeting(read_line(connection, end))
    _check_token(membership, bool(key), needs_token)
    claim = Claim(membership.place, facts, nonce()).proven(key, challenge)
    connection.sendall(encode(claim.message()))
    answer = decode(read_line(connection, end))
    if not is_proof(answer.get("proof"), key, "service", challenge, claim.nonce):
        raise UnauthenticatedError(
            f"This process has a different {TOKEN} than {membership.workers[0]}.", fix=_NEW_TOKEN
        )
    _raise_if_refused(membership, answer, 0)
    return Registration(connection, session_key(key, challenge, claim.nonce))


def _check_token(membership: Membership, has_token: bool, needs_token: bool) -> None:
    if has_token != needs_token:
        chief = membership.workers[0]
        where = f"on {chief}, but not here" if needs_token else f"here, but not on {chief}"
        raise UnauthenticatedError(f"{TOKEN} is set {where}.", fix=_NEW_TOKEN)


def _read_outcome(membership: Membership, connection: Any, end: float) -> dict[str, Any]:
    """Read the outcome, which the service sends to all workers."""
    try:
        return decode(read_line(connection, end))
    except (OSError, ValueError) as error:
        raise UnavailableError(
            f"Lost the connection to {membership.workers[0]} during startup ({error}).",
            fix="look at the last lines that it printed.",
        ) from None


def _raise_if_refused(membership: Membership, answer: dict[str, Any], seconds: float) -> None:
    """Raise the error that the service's answer describes, if any."""
    match answer:
        case {"gone": _}:
            raise UnavailableError(
                f"{membership.workers[0]} exited during startup.",
                fix="look at the last lines that it printed.",
            )
        case {"missing": places}:
            raise _missing_error(membership, places, answer.get("refused", []), seconds)
        case {"twice": place}:
            raise InvalidArgumentError(
                f"Two processes claim to be {_worker_names(membership, [place])}.",
                fix='give each process its own "index".',
            )
        case {"taken": _} | {"begun": _}:
            when = ", and all workers have started" if "begun" in answer else ""
            raise InvalidArgumentError(
                f"Another process is already registered as {membership.own}{when}.",
                fix='give each process its own "index", and restart all workers.',
            )
        case {"outside": count}:
            raise InvalidArgumentError(
                f"This process is worker {membership.place} of {membership.worker_count}, but "
                f"{membership.workers[0]} expects {count} workers.",
                fix="give all workers the same cluster spec.",
            )
        case {"differs": fact, "values": values}:
            raise _mismatch_error(membership, fact, values)
        case _:
            return


def _missing_error(
    membership: Membership, places: list[int], refused: list[str], seconds: float
) -> DeadlineExceededError:
    also = (
        f" Processes with a different {TOKEN} connected from {', '.join(refused)}."
        if refused
        else ""
    )
    return DeadlineExceededError(
        f"Some workers did not connect within {seconds:g} seconds: {_worker_names(membership, places)}.{also}",
        fix=f"start them, or wait longer with {START_SECONDS}=600.",
    )


def _mismatch_error(membership: Membership, fact: str, values: list[Any]) -> InvalidArgumentError:
    if fact == CLUSTER:
        others = sorted(place for _, places in values[1:] for place in places)
        return InvalidArgumentError(
            f"Workers must have the same cluster spec. It is {', '.join(values[0][0])} on "
            f"{membership.workers[0]}, but different on the workers at positions {', '.join(map(str, others))}.",
            fix="give all workers the same cluster spec.",
        )
    known = "; ".join(f"{value} on {_worker_names(membership, places)}" for value, places in values)
    return InvalidArgumentError(
        f"Workers must have the same {fact}, but it differs: {known}.",
        fix="make it the same on all workers.",
    )


def _worker_names(membership: Membership, places: list[int]) -> str:
    return ", ".join(str(membership.workers[p]) for p in places if p < membership.worker_count)


_jax: Any = jax  # jax.config has no types

_DEFAULT_SECONDS: Final = 300.0


def join(membership: Membership) -> None:
    """Connect this process to the other workers, so that JAX sees the devices of all. Does nothing if already joined.

    Raises:
        RuntimeError: JAX has already started its backend for this process alone, or has joined another cluster.
        DeadlineExceededError: Some workers did not connect in time. The message names them.
        InvalidArgumentError: The workers have different cluster specs.
        UnauthenticatedError: This process and worker 0 have different tokens.
        UnavailableError: A worker was lost after all had registered.
    """
    position = (membership.place, membership.worker_count)
    if joined_runtime() == position:
        return
    _check_not_started(membership)
    seconds = _start_seconds()
    if membership.place:  # all workers index the same files: worker 0 shows it
        silence()
    service = _start_service(membership, seconds) if membership.place == 0 else None
    connection, key = register(membership, _facts(membership), seconds, service)
    line = Line(connection, peers)
    peers.expect(list(map(str, membership.workers)))
    line.open()
    _jax.config.update("jax_enable_recoverability", True)
    with _coordination_proxy(membership, key) as address:
        guarded(partial(join_runtime, address, *position))
    line.send(joined=True)
    gloo.arrange(host_of(membership.own.address), lambda port: line.send(port=port))
    explain_errors(peers.reraise)


def _check_not_started(membership: Membership) -> None:
    joined = joined_runtime()
    if joined is not None:
        place, count = joined
        raise RuntimeError(
            described(
                f"This process is worker {membership.place} of {membership.worker_count}, but JAX has already "
                f"joined a cluster as process {place} of {count}.",
                fix="remove jax.distributed.initialize: MultiWorkerMirroredStrategy connects the workers.",
            )
        )
    if backend_started():
        line = backend.started_by
        by = "by code that ran before evenfeed was used" if line is None else f"by {line}"
        raise RuntimeError(
            described(
                f"JAX's backend was started before this strategy, {by}: it sees only this process's devices.",
                fix="create the MultiWorkerMirroredStrategy first, before jax.devices(), tensors, "
                "variables and other strategies.",
            )
        )


@contextmanager
def _coordination_proxy(membership: Membership, key: bytes) -> Generator[str]:
    """Start the coordination proxy, and yield the address at which JAX reaches the service through it.

    The address outlives the service, and only this user can connect to it.
    """
    chief = membership.workers[0].address
    file = os.path.join(os.path.dirname(__file__), "survival", "coordination_proxy.py")
    with private_folder() as folder:
        path = os.path.join(folder, "proxy")
        where = [path, host_of(chief), chief.rpartition(":")[2]]
        process: Any = subprocess.Popen(
            [sys.executable, "-I", "-S", file, *where, str(membership.place), str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        with process.stdin, process.stdout:
            # Not as an argument: all users of a machine can read those.
            process.stdin.write(key + b"\n")
            process.stdin.flush()
            process.stdout.readline()
        process.returncode = 0  # it ends after this process: do not wait for it
        yield f"unix:{path}"


def _start_seconds() -> float:
    text = os.environ.get(START_SECONDS, str(_DEFAULT_SECONDS))
    try:
        return float(text)
    except ValueError:
        raise InvalidArgumentError(
            f"{START_SECONDS} must be a number, but got {text!r}.",
            fix=f"export {START_SECONDS}=60.",
        ) from None


def _start_service(membership: Membership, seconds: float) -> int:
    """Start the service, wait until it listens, and return its process id."""
    address = membership.own.address
    hosts = {host_of(worker.address) for worker in membership.workers}
    where = [
        host_of(address),
        address.rpartition(":")[2],
        "one" if len(hosts) == 1 else "several",
    ]
    command = [sys.executable, "-m", "evenfeed.cluster.service"]
    process: Any = subprocess.Popen(
        [*command, *where, str(membership.worker_count), str(seconds), str(os.getpid())],
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
        process.returncode = 0  # it outlives this process: do not wait for it
        if ready == EVERYWHERE:
            _warn_of_all_interfaces(address)
        return process.pid
    with process.stderr:
        message = process.stderr.read().strip().rpartition("\n")[2]
    code = process.wait()
    message = message or f"it ended with exit code {code} before it listened."
    raise UnavailableError(
        f"The coordination service could not start at {address}: {message}",
        fix="choose a free port in TF_CONFIG or the resolver.",
    )


def _warn_of_all_interfaces(address: str) -> None:
    logging.getLogger("evenfeed").warning(
        "The coordination service listens on all network interfaces, because %s is not an address of this machine "
        "that other machines can reach. %s (docs/security.md)",
        address,
        "Only workers that have the token can connect."
        if token()
        else f"Set {TOKEN} on all workers to keep others out.",
    )


def _facts(membership: Membership) -> dict[str, Any]:
    """Return the facts that must be the same on all workers; their programs would not match otherwise."""
    return {
        CLUSTER: [str(worker) for worker in membership.workers],
        VERSION: sys.modules["evenfeed"].__version__,
        "version of jax": _jax.__version__,
        "version of jaxlib": _jax.lib.__version__,
        "setting jax_enable_x64": bool(_jax.config.jax_enable_x64),
    }
