"""Which workers have registered during startup, and whether they match each other.

This module holds no connections; `service.py` does. Anyone may send a claim, so every part of it is checked.
"""

from dataclasses import dataclass, replace
from typing import Any, Final, Self, cast, final

from evenfeed.cluster.handshake import is_proof, proof

# Facts that every version of evenfeed sends.
CLUSTER: Final = "cluster"
VERSION: Final = "version of evenfeed"

_MAX_FACTS: Final = 32
_MAX_CHARACTERS: Final = 1000
_MAX_VALUES: Final = 5  # values of a differing fact in one message


@final
@dataclass(frozen=True)
class Claim:
    """What a worker sends to register.

    Attributes:
        place: Its position among all workers.
        facts: Facts that must be the same on all workers, by name.
        nonce: The worker's random text, which the service's proof must contain.
        proof: Proves that the worker has the token.
    """

    place: int
    facts: dict[str, Any]
    nonce: str
    proof: str = ""

    @classmethod
    def parse(cls, message: dict[str, Any]) -> Self:
        """Return the claim in a message.

        Raises:
            ValueError: The message is not a claim.
        """
        place, facts, nonce = message.get("place"), message.get("facts"), message.get("nonce")
        if type(place) is not int or not _is_text(nonce) or not _are_facts(facts):
            raise ValueError("not a worker's claim")
        return cls(
            place, cast("dict[str, Any]", facts), cast("str", nonce), str(message.get("proof"))
        )

    def message(self) -> dict[str, Any]:
        """Return the claim as a message."""
        return {"place": self.place, "facts": self.facts, "nonce": self.nonce, "proof": self.proof}

    def proven(self, key: bytes, challenge: str) -> Self:
        """Return the claim with a proof that its sender has the token."""
        return replace(self, proof=proof(key, *self._proven_texts(challenge)))

    def is_proven(self, key: bytes, challenge: str) -> bool:
        """Return True if the sender has the token."""
        return is_proof(self.proof, key, *self._proven_texts(challenge))

    def _proven_texts(self, challenge: str) -> tuple[str, ...]:
        facts = [f"{name}={self.facts[name]!r}" for name in sorted(self.facts)]
        return ("worker", challenge, self.nonce, str(self.place), *facts)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_CHARACTERS


def _are_facts(value: object) -> bool:
    if not isinstance(value, dict) or len(cast("dict[Any, Any]", value)) > _MAX_FACTS:
        return False
    facts = cast("dict[str, Any]", value)
    return (
        _is_cluster(facts.get(CLUSTER))
        and _is_text(facts.get(VERSION))
        and all(map(_is_text, facts))
        and all(
            isinstance(fact, bool | int | float) or _is_text(fact)
            for name, fact in facts.items()
            if name != CLUSTER
        )
    )


def _is_cluster(value: object) -> bool:
    if not isinstance(value, list):
        return False
    workers = cast("list[Any]", value)
    return len(workers) > 0 and all(map(_is_text, workers))


@final
class Meeting:
    """The workers that have registered so far.

    Args:
        count: How many workers are expected.

    Attributes:
        outcome: The message for all workers; None until it is known.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._facts: dict[int, dict[str, Any]] = {}
        self.outcome: dict[str, Any] | None = None

    @property
    def missing(self) -> list[int]:
        """The positions of the workers that have not registered."""
        return sorted(set(range(self._count)) - set(self._facts))

    def admit(self, claim: Claim) -> dict[str, Any] | None:
        """Admit a worker. Return None, or the reason why it is not admitted."""
        place = claim.place
        if not 0 <= place < self._count:
            return {"outside": self._count}
        if self.outcome is not None:
            if "go" in self.outcome:
                return {"begun": place}
            self._facts.setdefault(place, claim.facts)  # it is not missing any more
            return self.outcome
        if place in self._facts:
            return self._refuse_second(claim)
        self._facts[place] = claim.facts
        if len(self._facts) == self._count:
            self.outcome = differing(self._facts) or {"go": True}
        return None

    def _refuse_second(self, claim: Claim) -> dict[str, Any]:
        """End the meeting only if the second claim has the same facts, all of which a stranger would have to know."""
        if self._facts[claim.place] != claim.facts:
            return {"taken": claim.place}
        self.outcome = {"twice": claim.place}
        return self.outcome

    def leave(self, place: int) -> None:
        """Note that a worker disconnected before all had registered. It may reconnect."""
        if self.outcome is None:
            self._facts.pop(place, None)


def differing(known: dict[int, dict[str, Any]]) -> dict[str, Any] | None:
    """Return the first fact that differs between workers, and the positions that have each value; None if none does.

    Args:
        known: The facts of each worker, by position.
    """
    for name in dict.fromkeys(name for facts in known.values() for name in facts):
        values: list[tuple[Any, list[int]]] = []
        for place in sorted(known):
            value = known[place].get(name)
            places = next((places for seen, places in values if seen == value), None)
            if places is None:
                values.append((value, [place]))
            else:
                places.append(place)
        if len(values) > 1:
            return {"differs": name, "values": values[:_MAX_VALUES]}
    return None
