"""The state of a distributed iterator: one position of all workers, the same on each, as JSON."""

import json
from dataclasses import dataclass
from typing import Any, Final, cast, final

from evenfeed.core.batch_split import Share
from evenfeed.core.concurrency.peers import peers
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import FailedPreconditionError, InvalidArgumentError
from evenfeed.feeding.conversation import Topic
from evenfeed.plan.options import AutoShardPolicy
from evenfeed.runtime.file_digests import with_digests

_VERSION: Final = 2
_OLDEST: Final = 1
FROM_FUNCTION: Final = "distribute_datasets_from_function"

_ELASTIC: Final = AutoShardPolicy.DATA.name
_LANES: Final = AutoShardPolicy.LANES.name


@final
@dataclass(frozen=True)
class ClusterState:
    """Makes one state of the positions of all workers, and finds a worker's position in it.

    Attributes:
        policy: The name of the sharding policy, or `FROM_FUNCTION`.
        share: The worker.
        topic: Exchanges states with the other workers; None for a single worker.
        is_known: Whether a worker knows the position of all without asking.
        lanes: The lanes that each worker reads, with `AutoShardPolicy.LANES`. A state then has the position of each lane.
    """

    policy: str
    share: Share
    topic: Topic | None = None
    is_known: bool = False
    lanes: tuple[tuple[int, ...], ...] = ()

    def joined(self, own: Any) -> dict[str, Any]:
        """Return one state of all workers. Unless it is known, all workers must call this after the same step.

        Raises:
            FailedPreconditionError: The workers are at different steps.
            DeadlineExceededError: A worker did not call it in time. The error names it.
        """
        state = {"version": _VERSION, "policy": self.policy}
        own = with_digests(own)
        if self.topic is None or (self.policy == _ELASTIC and self.is_known):
            return state | self._workers(1) | own
        every = [json.loads(text) for text in self.topic.ask(json.dumps(own))]
        _check_same_step(every)
        if self.policy == _ELASTIC:
            return state | every[0]
        if self.policy == _LANES:
            return state | own | {"at": self._every_lane(every)}
        return state | self._workers(self.share.workers) | {"each": every}

    def _workers(self, count: int) -> dict[str, Any]:
        if self.policy in (_ELASTIC, _LANES):
            return {}
        return {"workers": count} | ({"replicas": self.share.replicas} if count > 1 else {})

    def part_of(self, state: Any) -> dict[str, Any]:
        """Return this worker's position in a state.

        Raises:
            InvalidArgumentError: The state is invalid, or does not suit these workers.
        """
        given: Any = state
        if not isinstance(state, dict) or "version" not in given:
            raise invalid_state(given)
        version = given["version"]
        if version not in range(_OLDEST, _VERSION + 1):
            raise InvalidArgumentError(
                f"The state has version {version}, but this evenfeed reads {_OLDEST} to {_VERSION}.",
                fix="read it with the evenfeed version that wrote it, or start over.",
            )
        self.check(given)
        part: Any = given["each"][self.share.worker] if "each" in given else given
        if not isinstance(part, dict) or not {"at", "rows"} <= cast("Any", part).keys():
            raise invalid_state(given)
        own = cast("dict[str, Any]", part)
        return {**own, "at": self._own_lanes(own["at"])} if self.lanes else own

    @property
    def _lane_count(self) -> int:
        return len({number for own in self.lanes for number in own})

    def _every_lane(self, every: list[Any]) -> list[Any]:
        """Return the position of each lane, given those that each worker reads."""
        at: dict[int, Any] = {}
        for own, worker in zip(self.lanes, every, strict=True):
            at |= dict(zip(own, worker["at"], strict=True))
        return [at[number] for number in range(self._lane_count)]

    def _own_lanes(self, every: list[Any]) -> list[Any]:
        return [every[number] for number in self.lanes[self.share.worker]]

    def check(self, given: dict[str, Any]) -> None:
        """Raise if a state was saved by another number of workers, and does not suit this one."""
        policy, then = given.get("policy"), given.get("workers")
        if _LANES in (policy, self.policy):
            self._check_lanes(given)
            return
        if policy == _ELASTIC:
            if self.policy != _ELASTIC and self.share.workers > 1:
                raise self._unlike(given)
            return
        same = then in (None, self.share.workers)
        if "each" in given:
            same = same and given.get("replicas") == self.share.replicas and policy == self.policy
        # A single worker saves its position in the whole dataset, unless a replica has used a part of a batch.
        whole = then == 1 and not given.get("rows") and not given.get("turn")
        if not same and not (whole and self.policy == _ELASTIC and policy != FROM_FUNCTION):
            raise self._unlike(given)

    def _check_lanes(self, given: dict[str, Any]) -> None:
        then, now = given.get("policy"), self.policy
        if then != now:
            before = "an earlier version" if then is None else _policy(then)
            raise InvalidArgumentError(
                f"The state was saved with {before}, but the dataset is sharded with {_policy(now)}.",
                fix="restore it with the same auto_shard_policy, or start over.",
            )
        at: Any = given.get("at")
        if not isinstance(at, list) or len(cast("list[Any]", at)) != self._lane_count:
            count = len(cast("list[Any]", at)) if isinstance(at, list) else "no"
            raise InvalidArgumentError(
                f"The state has positions of {count} lanes, but the dataset has {self._lane_count}.",
                fix="set the num_lanes with which the state was saved; only the number of workers may change.",
            )

    def _unlike(self, given: dict[str, Any]) -> InvalidArgumentError:
        policy = given.get("policy")
        how = "" if policy is None else f" with {_policy(policy)}"
        then, now = given.get("workers"), self.share
        before = "several workers" if then is None else _counted(then, given.get("replicas"))
        after = _counted(now.workers, now.replicas if "replicas" in given else None)
        again = "" if then is None else f"restore it on {before}; "
        return InvalidArgumentError(
            f"The state was saved on {before}{how}, but the cluster has {after} with {_policy(self.policy)}.",
            fix=f"{again}to resume on any number of workers, save states of experimental_distribute_dataset with "
            "AutoShardPolicy.DATA or AutoShardPolicy.LANES.",
        )


def invalid_state(given: Any) -> InvalidArgumentError:
    """Return the error for something that is not a state."""
    return InvalidArgumentError(
        f"{shortened(given)} is not a state of a distributed iterator.",
        fix="pass the result of get_state(); if it was saved as JSON, json.loads(text).",
    )


def _policy(policy: str) -> str:
    return policy if policy == FROM_FUNCTION else f"AutoShardPolicy.{policy}"


def _counted(workers: int, replicas: int | None) -> str:
    text = "1 worker" if workers == 1 else f"{workers} workers"
    return (
        text if replicas is None else f"{text} of {replicas} replica{'' if replicas == 1 else 's'}"
    )


def _check_same_step(every: list[Any]) -> None:
    steps = [own["step"] for own in every]
    if len(set(steps)) > 1:
        where = ", ".join(f"{step} on {peers.name(worker)}" for worker, step in enumerate(steps))
        raise FailedPreconditionError(
            f"get_state was called after different steps: {where}.",
            fix="call it on all workers, after the same step.",
        )
