"""The errors that `ignore_errors` has ignored, over all workers."""

import json
from collections.abc import Sequence

from evenfeed.feeding.conversation import Topic
from evenfeed.plan.node import Node
from evenfeed.runtime.live_state import Ignored, Skipped, ignored_in


def all_ignored(plans: Sequence[Node], topic: Topic | None, *, shared: bool = False) -> Ignored:
    """Return the errors that the last `ignore_errors` of each plan has ignored, over all workers.

    Args:
        plans: This worker's plans.
        topic: Exchanges them with the other workers; None for a single worker.
        shared: Whether all workers read the same rows, and so ignore the same errors.
    """
    own = _joined([ignored_in(plan) for plan in plans])
    if topic is None:
        return own
    every = [json.loads(text) for text in topic.ask(json.dumps([own.count, list(own.skipped)]))]
    found = [Ignored(count, [Skipped(*one) for one in skipped]) for count, skipped in every]
    return found[0] if shared else _joined(found)


def _joined(parts: Sequence[Ignored]) -> Ignored:
    return Ignored(
        sum(part.count for part in parts), [one for part in parts for one in part.skipped]
    )
