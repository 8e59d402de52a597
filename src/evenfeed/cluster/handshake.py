"""How workers and the coordination service prove to each other that they know the cluster's token.

The service opens every connection with a greeting that holds a random challenge. The other side answers with a claim
and a proof: an HMAC of the challenge under the token. The service answers with a proof of its own. The token itself
is never sent. Without a token the key is empty, and anyone who can reach the port can compute the proofs.

Messages are JSON objects, one per line. Anyone may send them, so parsing is bounded and raises only ValueError.
"""

import hmac
import json
import os
import secrets
import time
from typing import Any, Final, cast

TOKEN: Final = "EVENFEED_CLUSTER_TOKEN"

MAX_BYTES: Final = 1 << 19  # of one message: enough for the addresses of ten thousand workers

_GREETING: Final = "evenfeed 1"


def token() -> bytes:
    """Return the token from the environment; empty if there is none."""
    return os.fsencode(os.environ.get(TOKEN, ""))


def nonce() -> str:
    """Return a random text that nobody can guess."""
    return secrets.token_hex(32)


def proof(key: bytes, *texts: str) -> str:
    """Return the HMAC of some texts."""
    return hmac.new(key, "\n".join(texts).encode(), "sha256").hexdigest()


def is_proof(value: object, key: bytes, *texts: str) -> bool:
    """Return True if a value is the HMAC of some texts. Runs in constant time."""
    if not isinstance(value, str):
        return False
    return hmac.compare_digest(value.encode(errors="replace"), proof(key, *texts).encode())


def session_key(key: bytes, challenge: str, answer: str) -> bytes:
    """Return the key with which a worker proves that its later connections are its own.

    Args:
        key: The token.
        challenge: The service's nonce on the worker's first connection.
        answer: The worker's own nonce on it.
    """
    return proof(key, "session", challenge, answer).encode()


def greeting(challenge: str, *, needs_token: bool) -> bytes:
    """Return the service's first line."""
    return f"{_GREETING} {challenge} {'token' if needs_token else 'open'}\n".encode()


def parse_greeting(line: bytes) -> tuple[str, bool]:
    """Return the challenge, and whether the service requires a token.

    Raises:
        ValueError: The line is not a greeting: another program listens at the port.
    """
    words = line.decode("ascii").split(" ")
    if len(words) != 4 or " ".join(words[:2]) != _GREETING or words[3] not in ("token\n", "open\n"):
        raise ValueError("it does not answer like evenfeed")
    return words[2], words[3] == "token\n"


def encode(message: dict[str, Any]) -> bytes:
    """Return a message as a line."""
    return json.dumps(message).encode() + b"\n"


def decode(line: bytes) -> dict[str, Any]:
    """Return the message on a line.

    Raises:
        ValueError: The line is anything but a whole JSON object.
    """
    if not line.endswith(b"\n"):
        raise ValueError("the line does not end")
    try:
        message: object = json.loads(line.decode())
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(message, dict):
        raise ValueError("not a JSON object")
    return cast("dict[str, Any]", message)


def read_line(connection: Any, end: float) -> bytes:
    """Read one line from a socket, and nothing that follows it.

    Args:
        connection: The socket.
        end: The deadline, as a time of `time.monotonic`.

    Raises:
        OSError: The line did not arrive in time, is too long, or the connection was closed.
    """
    line = bytearray()
    while not line.endswith(b"\n"):
        connection.settimeout(max(0.01, end - time.monotonic()))
        piece = connection.recv(1)
        if not piece:
            raise ConnectionResetError("the connection was closed")
        line += piece
        if len(line) > MAX_BYTES:
            raise ConnectionResetError("the line is too long")
        if time.monotonic() > end:
            raise TimeoutError("timed out")
    return bytes(line)
