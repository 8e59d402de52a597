"""Who has come before the workers begin, and whether they fit together.

This file holds no connections; `service.py` does. A claim may come from anyone, so every part of it is checked.
"""

from dataclasses import dataclass, replace
from typing import Any, Final, Self, cast, final

from evenfeed.cluster.handshake import is_proof, proof

# Facts that every version of evenfeed sends.
CLUSTER: Final = "cluster"
VERSION: Final = "version of evenfeed"

_MOST_FACTS: Final = 32
_MOST_LETTERS: Final = 1000
_MOST_VALUES: Final = 5  # of a fact that differs, in one message


@final
@dataclass(frozen=True)
class Claim:
    """What a worker says about itself.

    Attributes:
        place: Its index among all workers.
        facts: What must be the same on all workers, by name.
        nonce: The worker's random text, which the service's proof must contain.
        proof: Shows that the worker knows the token.
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
        """Return the claim as it is sent."""
        return {"place": self.place, "facts": self.facts, "nonce": self.nonce, "proof": self.proof}

    def proven(self, key: bytes, challenge: str) -> Self:
        """Return the claim with a proof that its sender knows the token."""
        return replace(self, proof=proof(key, *self._proven_texts(challenge)))

    def is_proven(self, key: bytes, challenge: str) -> bool:
        """Return True if its sender knows the token."""
        return is_proof(self.proof, key, *self._proven_texts(challenge))

    def _proven_texts(self, challenge: str) -> tuple[str, ...]:
        facts = [f"{name}={self.facts[name]!r}" for name in sorted(self.facts)]
        return ("worker", challenge, self.nonce, str(self.place), *facts)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _MOST_LETTERS


def _are_facts(value: object) -> bool:
    if not isinstance(value, dict) or len(cast("dict[Any, Any]", value)) > _MOST_FACTS:
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
    """The workers that have come.

    Args:
        count: How many are expected.

    Attributes:
        outcome: What all workers are told; None until that is known.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._facts: dict[int, dict[str, Any]] = {}
        self.outcome: dict[str, Any] | None = None

    @property
    def missing(self) -> list[int]:
        """The places of the workers that have not come."""
        return sorted(set(range(self._count)) - set(self._facts))

    def admit(self, claim: Claim) -> dict[str, Any] | None:
        """Admit a worker. Return None, or the reason why it is not admitted."""
        place = claim.place
        if not 0 <= place < self._count:
            return {"outside": self._count}
        if self.outcome is not None:
            return {"begun": place}
        if place in self._facts:
            return self._refuse_second(claim)
        self._facts[place] = claim.facts
        if len(self._facts) == self._count:
            self.outcome = differing(self._facts) or {"go": True}
        return None

    def _refuse_second(self, claim: Claim) -> dict[str, Any]:
        """End the meeting only if the second claim has the same facts: a stranger would have to know them all."""
        if self._facts[claim.place] != claim.facts:
            return {"taken": claim.place}
        self.outcome = {"twice": claim.place}
        return self.outcome

    def leave(self, place: int) -> None:
        """Note that a worker has left before all came. It may come back."""
        if self.outcome is None:
            self._facts.pop(place, None)


def differing(known: dict[int, dict[str, Any]]) -> dict[str, Any] | None:
    """Return the first fact that is not the same on all workers, with each value's places; None if all are the same.

    Args:
        known: The facts of each worker, by place.
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
            return {"differs": name, "values": values[:_MOST_VALUES]}
    return None
