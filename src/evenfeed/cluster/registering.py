"""How a worker registers with the coordination service, and waits until all have."""

import time
from typing import Any, Final, NamedTuple

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
from evenfeed.cluster.meeting import CLUSTER, Claim
from evenfeed.cluster.membership import Membership
from evenfeed.core.doors import socket
from evenfeed.core.errors import (
    DeadlineExceededError,
    EvenfeedError,
    InvalidArgumentError,
    UnauthenticatedError,
    UnavailableError,
)

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
