"""Two workers of one replica: what a step costs with evenfeed, by hand, and with input whose size is not known.

Run by `evenfeed run --workers 2`; worker 0 prints. All workers must take the same steps, so that rounds are counted
and not timed.
"""

import json
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from timing import Step
from training import by_hand, distributed, with_tree, with_variables

ROUNDS, STEPS = 3, 20  # rounds for each second that is asked for, steps in each
ROWS = 256
WAIT = 0.005  # what a step takes below which the agreement is to be hidden


def main(seconds: float) -> None:
    """Print what was measured."""
    import jax

    import evenfeed as tf

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    parts = distributed(strategy, ROWS)
    steps = {
        "variables": with_variables(strategy, parts),
        "tree": with_tree(strategy, parts),
        "by hand": by_hand(strategy, parts),
    }
    rounds = max(1, int(ROUNDS * seconds))
    found = medians(steps, rounds, jax.block_until_ready)
    waits = {name: waiting(strategy, data) for name, data in inputs(tf, rounds).items()}
    found |= medians(waits, rounds, lambda _: None)
    if strategy.cluster_resolver.task_id == 0:
        print(json.dumps(found))


def inputs(tf: Any, rounds: int) -> dict[str, Any]:
    """Return a dataset whose size is known, and one of which workers must tell each other what they have."""
    rows = 64 * STEPS * (rounds + 2)
    known = tf.data.Dataset.range(rows)
    return {
        "size known": known.batch(64),
        "size agreed on": known.filter(lambda x: x >= 0).batch(64),
    }


def waiting(strategy: Any, data: Any) -> Step:
    """Return a step that reads, and waits as for an accelerator."""
    steps = iter(strategy.experimental_distribute_dataset(data))

    def step() -> Any:
        value = next(steps)
        time.sleep(WAIT)
        return value

    return step


def medians(steps: dict[str, Step], rounds: int, block: Callable[[Any], Any]) -> dict[str, float]:
    """Let steps take turns; return the median of the milliseconds that each takes."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds + 1):
        for name, step in steps.items():
            start = time.perf_counter()
            for _ in range(STEPS):
                result = step()
            block(result)
            times[name].append(1000 * (time.perf_counter() - start) / STEPS)
    return {name: median(taken[1:]) for name, taken in times.items()}


if __name__ == "__main__":
    main(float(sys.argv[1]))
