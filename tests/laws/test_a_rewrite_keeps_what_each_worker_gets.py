"""A rewrite keeps what each worker gets: its plan delivers what the global plan does, sharded by TensorFlow's rule.

The rules are plain Python, in `tests/feeding/model.py`. By row, all workers split the same batches. By file, a worker
reads the dataset of every n-th file. Without sharding, each reads everything.
"""

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from tests.feeding import model
from tests.feeding.distribution import with_policy
from tests.feeding.workers import InMemory, on_all, worker_of
from tests.plans import KINDS, PLANS, fresh, not_addressed, ways
from tests.plans.batched import ABOVE, Datasets, Rows, batches_of, pieces_of, rows_of
from tests.plans.steps import finite, tensors
from tests.plans.user_functions import has_ranks

import evenfeed as tf
from evenfeed.core.batch_split import Share
from evenfeed.core.errors import EvenfeedError
from evenfeed.dataset import plan_of
from evenfeed.feeding.global_batch import global_batch_size
from evenfeed.feeding.reading import BatchReading
from evenfeed.plan.node import Node
from evenfeed.plan.options import AutoShardPolicy
from evenfeed.rewrite.worker_plan import sharded

clusters: Final = st.tuples(st.sampled_from([2, 3]), st.sampled_from([1, 2]))
batch_sizes: Final = st.integers(1, 7)


@st.composite
def batches(draw: st.DrawFn, kind: type[Node]) -> Node:
    """Return the batches of a random plan, and what may stand above them."""
    rows = tf.data.Dataset(finite(tensors(draw(PLANS[kind]))))
    batched = rows.batch(draw(batch_sizes), drop_remainder=draw(st.booleans()))
    above, policy = draw(st.sampled_from(ABOVE)), draw(st.sampled_from(["DATA", "AUTO", "OFF"]))
    try:
        plan = plan_of(with_policy(above(batched), policy))
        spec = plan.element_spec
    except (ValueError, EvenfeedError):  # what stands above looked at a batch that fails
        reject()
    assume(
        has_ranks(spec)
    )  # without a rank, a replica without rows gets a scalar, as in TensorFlow
    return plan


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=4)
@given(data=st.data(), way=ways, cluster=clusters)
def test_the_rows_of_any_plan(kind, data, way, cluster):
    plan = data.draw(batches(kind))
    by = sharded(plan, Share(0, *cluster)).policy
    assume(by is not AutoShardPolicy.FILE)
    with not_addressed(way):
        whole = batches_of(fresh(plan))
        assert delivered(plan, cluster) == naive([whole] * cluster[0], plan, by, cluster)


def lines_of(paths: list[str]) -> Any:
    return tf.data.TextLineDataset(paths)


def lines_of_names(paths: list[str]) -> Any:
    names = tf.data.Dataset.from_tensor_slices(np.array([path.encode() for path in paths], object))
    return names.shuffle(4, seed=2).flat_map(tf.data.TextLineDataset)


def lines_in_turn(paths: list[str]) -> Any:
    names = tf.data.Dataset.from_tensor_slices(np.array([path.encode() for path in paths], object))
    return names.interleave(tf.data.TextLineDataset, cycle_length=2)


# What may stand between the lines of files and their batches.
OVER_FILES: Final[list[Datasets]] = [
    lambda lines: lines.filter(is_not_first),
    lambda lines: lines.shuffle(3, seed=3),
    lambda lines: lines.map(lambda *parts: (parts, parts[0])),
    lambda lines: lines.take(5),
    lambda lines: lines.skip(1),
    lambda lines: lines.repeat(2),
    lambda lines: lines.cache().repeat(2),
    lambda lines: lines.prefetch(2),
    lambda lines: lines.shard(2, 0),
    lambda lines: lines.batch(2).unbatch(),
    lambda lines: lines.concatenate(lines),
    lambda lines: tf.data.Dataset.zip(lines, lines),
]


def is_not_first(*parts: Any) -> Any:
    return tf.nest.flatten(parts)[0] != b"1-3-0"


@st.composite
def makers(draw: st.DrawFn) -> Callable[[list[str]], Node]:
    """Return a function that makes a plan from the paths of its files."""
    source = draw(st.sampled_from([lines_of, lines_of_names, lines_in_turn]))
    over = draw(st.lists(st.sampled_from(OVER_FILES), max_size=3))
    size, above = draw(batch_sizes), draw(st.sampled_from(ABOVE[:5]))

    def made(paths: list[str]) -> Node:
        lines = source(paths)
        for step in over:
            lines = step(lines)
        return plan_of(above(lines.batch(size)))

    return made


@settings(max_examples=60)
@given(st.lists(st.sampled_from([0, 1, 3, 5]), min_size=3, max_size=5), makers(), clusters)
def test_the_files_of_any_plan(counts, made, cluster):
    paths = [written(number, count) for number, count in enumerate(counts)]
    plan, workers = made(paths), cluster[0]
    by = sharded(plan, Share(0, *cluster)).policy
    assert by is AutoShardPolicy.FILE
    own = [batches_of(made(paths[worker::workers])) for worker in range(workers)]
    assert delivered(plan, cluster) == naive(own, plan, by, cluster)


_folder: Final = tempfile.TemporaryDirectory(prefix="evenfeed-shards-")


@cache
def written(number: int, count: int) -> str:
    """Return the path of a file with some lines, which no other file has."""
    path = Path(_folder.name) / f"{number}-{count}.txt"
    path.write_text("".join(f"{number}-{count}-{line}\n" for line in range(count)))
    return str(path)


def naive(own: list[list[Rows]], plan: Node, by: AutoShardPolicy, cluster: tuple[int, int]) -> Any:
    """Return the steps of every worker by TensorFlow's rules, from the batches that each reads."""
    workers, replicas = cluster
    if by is AutoShardPolicy.DATA:
        return [model.by_data(own[w], workers, replicas, w) for w in range(workers)]
    size = global_batch_size(plan)
    if size is not None:
        return model.each_flowing(own, size, replicas)
    cut = [model.pieces_of(batches, workers * replicas) for batches in own]
    return model.as_long([model.in_steps(pieces, replicas) for pieces in cut], replicas)


def delivered(plan: Node, cluster: tuple[int, int]) -> list[list[list[Rows]]]:
    """Return the steps of every worker, each a list of the rows of its replicas."""
    workers, replicas = cluster
    memory = InMemory(workers)

    def run(worker: int) -> list[list[Rows]]:
        reading = BatchReading(fresh(plan), worker_of(Share(worker, workers, replicas), memory))
        steps, found = reading.steps(), []
        while True:
            try:
                columns = steps.read()
            except StopIteration:
                steps.close()
                return found
            pieces = zip(*[pieces_of(c, replicas) for c in columns if c is not None], strict=True)
            found.append([rows_of(list(parts)) for parts in pieces])

    return on_all(workers, run)
