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
_NOT_MEANING = {"origin", "passes", "seed", "structure", "filename", "effects"}


def fingerprint(plan: Node) -> str:
    """Return a short text that two plans have in common only if they read alike."""
    return hashlib.blake2b(repr(_described(plan)).encode(), digest_size=8).hexdigest()


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


def _described(value: Any) -> Any:
    kind = type(value).__name__
    if isinstance(value, Node):
        named = [(part.name, getattr(value, part.name)) for part in fields(value)]
        parts = [(n, _described(v)) for n, v in named if n not in _NOT_MEANING]
        return kind, str(value.element_spec), parts
    if isinstance(value, DataFile):
        return value.fingerprint
    if kind in ("list", "tuple", "Share"):
        return list(map(_described, value))
    if kind == "ndarray":
        return f"{value.shape} {value.dtype}"
    return str(value) if kind in ("int", "float", "str", "bool", "NoneType") else kind
