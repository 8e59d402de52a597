"""Tells two plans apart, so that a position in one is not taken up in another."""

import hashlib
from dataclasses import fields
from typing import Any

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.formats.reader import DataFile
from evenfeed.plan.node import Node

# A seed is part of the state itself; of what structure elements are, their spec says. A file may have
# another name on another machine.
_NOT_MEANING = {"origin", "passes", "seed", "structure", "filename", "folder", "effects"}


def fingerprint(plan: Node) -> str:
    """Return a short text that two plans have in common only if they read alike."""
    known: dict[int, str] = {}
    for node in plan.bottom_up():
        known[id(node)] = _digest(_parts_of(node, known))
    return known[id(plan)]


def _digest(value: Any) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=8).hexdigest()


def _parts_of(node: Node, known: dict[int, str]) -> Any:
    named = [(part.name, getattr(node, part.name)) for part in fields(node)]
    parts = [(n, _described(v, known)) for n, v in named if n not in _NOT_MEANING]
    return type(node).__name__, str(node.element_spec), parts


def check_state(state: dict[str, Any], version: int, plan: Node) -> None:
    """Raise unless `state` was taken of an iterator over this plan by this version."""
    if type(state) is not dict or "version" not in state:
        raise InvalidArgumentError(
            f"{shortened(state)} is no state of an iterator.",
            fix="pass what get_state() returned; if it was written as text, json.loads(text).",
        )
    if state["version"] != version:
        raise InvalidArgumentError(
            f"The state has version {state['version']}, but this evenfeed reads {version}.",
            fix="read it with the evenfeed that wrote it, or begin anew.",
        )
    if state["plan"] != fingerprint(plan):
        raise InvalidArgumentError(
            "The state was taken of an iterator over another dataset.",
            fix="make the dataset as it was made then: the same steps, sizes and shapes.",
        )


def _described(value: Any, known: dict[int, str]) -> Any:
    kind = type(value).__name__
    if isinstance(value, Node):
        return known[id(value)] if id(value) in known else fingerprint(value)
    if isinstance(value, DataFile):
        return value.fingerprint
    if kind in ("list", "tuple", "Share"):
        return [_described(part, known) for part in value]
    if kind == "ndarray":
        return f"{value.shape} {value.dtype}"
    return str(value) if kind in ("int", "float", "str", "bool", "NoneType") else kind
