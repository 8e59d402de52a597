"""How a worker registers with the coordination service, and waits until all have."""

import os
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
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
from evenfeed.core.concurrency.peers import peers
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
_EXTRA_SECONDS: Final = 5.0  # so that the service is first to give up: it knows who is missing

_NEW_TOKEN: Final = (
    f"run openssl rand -hex 16 once, and export {TOKEN} with what it prints on all workers."
)


class Registration(NamedTuple):
    """A worker's place among all workers.

    Attributes:
        connection: To the service, for as long as the worker lives.
        key: Shows on later connections that they are this worker's.
    """

    connection: Any
    key: bytes


def register(membership: Membership, facts: dict[str, Any], seconds: float) -> Registration:
    """Register with the service, and wait until all workers have.

    Args:
        membership: Who this worker is.
        facts: What must be the same on all workers.
        seconds: How long the service waits for all.

    Raises:
        DeadlineExceededError: Workers did not come in time; it names them.
        InvalidArgumentError: Workers do not fit together.
        UnauthenticatedError: This process and worker 0 do not have the same token.
        UnavailableError: Worker 0 is gone.
    """
    end = time.monotonic() + seconds + _EXTRA_SECONDS
    registration = _admitted(membership, facts, end)
    try:
        _check(membership, _outcome(membership, registration.connection, end), seconds)
    except BaseException:
        registration.connection.close()
        raise
    return registration


def host_of(address: str) -> str:
    """Return the host of an address with a port."""
    return address.rpartition(":")[0].strip("[]")


def _admitted(membership: Membership, facts: dict[str, Any], end: float) -> Registration:
    """Connect and claim a place; again if the service is not there yet, or too busy with others."""
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
            _check_time(membership, error, end)
        time.sleep(_RETRY_SECONDS)


def _check_time(membership: Membership, error: Exception, end: float) -> None:
    if time.monotonic() > end - _EXTRA_SECONDS:
        raise DeadlineExceededError(
            f"{membership.workers[0]}, where the workers meet, cannot be reached ({error}).",
            fix=f"start it, check its address, or wait longer with {START_SECONDS}=600.",
        ) from None


def _claim_place(membership: Membership, facts: dict[str, Any], connection: Any) -> Registration:
    """Prove to the service that this worker knows the token, and check that the service does."""
    end, key = time.monotonic() + _ANSWER_SECONDS, token()
    challenge, asks_for_token = parse_greeting(read_line(connection, end))
    _check_token(membership, bool(key), asks_for_token)
    claim = Claim(membership.place, facts, nonce()).proven(key, challenge)
    connection.sendall(encode(claim.message()))
    answer = decode(read_line(connection, end))
    if not is_proof(answer.get("proof"), key, "service", challenge, claim.nonce):
        raise UnauthenticatedError(
            f"{TOKEN} of this process is not that of {membership.workers[0]}.", fix=_NEW_TOKEN
        )
    _check(membership, answer, 0)
    return Registration(connection, session_key(key, challenge, claim.nonce))


def _check_token(membership: Membership, has_token: bool, asks_for_token: bool) -> None:
    if has_token != asks_for_token:
        chief = membership.workers[0]
        where = f"on {chief}, but not here" if asks_for_token else f"here, but not on {chief}"
        raise UnauthenticatedError(f"{TOKEN} is set {where}.", fix=_NEW_TOKEN)


def _outcome(membership: Membership, connection: Any, end: float) -> dict[str, Any]:
    """Return what the service tells all workers."""
    try:
        return decode(read_line(connection, end))
    except (OSError, ValueError) as error:
        raise UnavailableError(
            f"{membership.workers[0]} was there, and is gone ({error}).",
            fix="look at what it printed last.",
        ) from None


def _check(membership: Membership, answer: dict[str, Any], seconds: float) -> None:
    """Raise the error that the service's answer stands for, if it does for one."""
    match answer:
        case {"gone": _}:
            raise UnavailableError(
                f"{membership.workers[0]} was there, and is gone.",
                fix="look at what it printed last.",
            )
        case {"missing": places}:
            raise _missing(membership, places, answer.get("refused", []), seconds)
        case {"twice": place}:
            raise InvalidArgumentError(
                f"Two processes say that they are {_names(membership, [place])}.",
                fix='give each process an "index" of its own.',
            )
        case {"taken": _} | {"begun": _}:
            when = ", and all workers have begun" if "begun" in answer else ""
            raise InvalidArgumentError(
                f"Another process that says it is {membership.own} is there already{when}.",
                fix='give each process an "index" of its own, and start all workers again.',
            )
        case {"outside": count}:
            raise InvalidArgumentError(
                f"This process is worker {membership.place} of {membership.worker_count}, but "
                f"{membership.workers[0]} knows a cluster of {count}.",
                fix="start all workers with the same cluster.",
            )
        case {"differs": fact, "values": values}:
            raise _differing(membership, fact, values)
        case _:
            return


def _missing(
    membership: Membership, places: list[int], refused: list[str], seconds: float
) -> DeadlineExceededError:
    also = f" Processes with another {TOKEN} came from {', '.join(refused)}." if refused else ""
    return DeadlineExceededError(
        f"Workers did not come within {seconds:g} seconds: {_names(membership, places)}.{also}",
        fix=f"start them, or wait longer with {START_SECONDS}=600.",
    )


def _differing(membership: Membership, fact: str, values: list[Any]) -> InvalidArgumentError:
    if fact == CLUSTER:
        others = sorted(place for _, places in values[1:] for place in places)
        return InvalidArgumentError(
            f"The workers know different clusters: {', '.join(values[0][0])} is what "
            f"{membership.workers[0]} knows, and not what those in the places {', '.join(map(str, others))} know.",
            fix="start all workers with the same cluster.",
        )
    known = "; ".join(f"{value} on {_names(membership, places)}" for value, places in values)
    return InvalidArgumentError(
        f"The workers have not the same {fact}: {known}.",
        fix="let all workers have the same.",
    )


def _names(membership: Membership, places: list[int]) -> str:
    return ", ".join(str(membership.workers[p]) for p in places if p < membership.worker_count)


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
