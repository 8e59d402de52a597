"""A state saved on any number of workers and replicas continues on any other, with the same global batches."""

import json
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from tests.feeding.distribution import with_policy
from tests.feeding.workers import Cluster
from tests.plans import KINDS, PLANS, fresh, not_addressed, ways
from tests.plans.batched import ABOVE, batches_of
from tests.plans.steps import finite, tensors
from tests.plans.user_functions import has_ranks

import evenfeed as tf
from evenfeed.core.errors import EvenfeedError
from evenfeed.dataset import plan_of
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node
from evenfeed.plan.own_rows import OwnBatches, OwnRows
from evenfeed.runtime.explain import explained_plan

sizes: Final = st.integers(1, 4)
clusters: Final = st.tuples(sizes, sizes)


@st.composite
def batches(draw: st.DrawFn, kind: type[Node]) -> Node:
    """Return the batches of a random plan, which workers share by row."""
    rows = tf.data.Dataset(finite(tensors(draw(PLANS[kind]))))
    batched = rows.batch(draw(st.integers(1, 7)), drop_remainder=draw(st.booleans()))
    try:
        plan = plan_of(with_policy(draw(st.sampled_from(ABOVE))(batched), "DATA"))
        spec = plan.element_spec
    except (ValueError, EvenfeedError):  # what stands above looked at a batch that fails
        reject()
    assume(has_ranks(spec))
    return plan


def continued(plan: Node, state: Any, cluster: tuple[int, int], **how: Any) -> list[Any]:
    """Return the global batches after a state."""
    other = Cluster(lambda: fresh(plan), *cluster, **how)
    try:
        other.restore(state)
        return other.read()
    finally:
        other.close()


BATCHING: Final = frozenset[type[Node]]({Batch, OwnRows, OwnBatches})


def for_any_worker(way: frozenset[type[Node]]) -> frozenset[type[Node]]:
    """Return a way to read in which batches have positions on every worker or on none, as they have outside of tests."""
    return way | BATCHING if way & BATCHING else way


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=4)
@given(data=st.data(), way=ways.map(for_any_worker), on=st.tuples(clusters, clusters, clusters))
def test_workers_that_share_rows(kind, data, way, on):
    plan, (before, after, then) = data.draw(batches(kind)), on
    with not_addressed(way):
        whole = batches_of(fresh(plan))
        taken = data.draw(st.integers(0, len(whole)))
        first = Cluster(lambda: fresh(plan), *before)
        assert first.read(taken) == whole[:taken]
        state = first.state()
        first.close()
        assert continued(plan, state, after) == whole[taken:]
        second = Cluster(lambda: fresh(plan), *after)
        second.restore(state)
        more = data.draw(st.integers(0, len(whole) - taken))
        assert second.read(more) == whole[taken : taken + more]
        again = second.state()
        second.close()
        assert continued(plan, again, then) == whole[taken + more :]


@pytest.mark.parametrize("rows", [0, 5])
def test_a_position_in_rows_that_have_none_is_not_taken_for_a_count_of_batches(rows):
    plan = plan_of(with_policy(tf.data.Dataset.range(rows).batch(1), "DATA"))
    with not_addressed(BATCHING):
        first = Cluster(lambda: fresh(plan), 1, 1)
        state = first.state()
        first.close()
        assert continued(plan, state, (2, 1)) == [[(row,)] for row in range(rows)]


def doubled(x: Any) -> Any:
    return np.int64(int(x) * 2)


@pytest.mark.parametrize("source", ["rows with positions", "lines of text"])
def test_where_a_state_is_a_position_its_size_and_the_cost_of_set_state_do_not_grow(
    source, tmp_path
):
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{number}\n" for number in range(4000)))
    calls: list[int] = []

    def counted(x: Any) -> Any:
        calls.append(int(x))
        return doubled(x)

    def made() -> Node:
        lines = tf.data.TextLineDataset(str(path)).map(tf.strings.to_number)
        rows = tf.data.Dataset.range(4000) if source == "rows with positions" else lines
        return plan_of(with_policy(rows.map(counted, vectorize=False).batch(8), "DATA"))

    costs, sizes = [], []
    for taken in (10, 400):
        first = Cluster(made, 2, 1)
        first.read(taken)
        state = first.state()
        first.close()
        second = Cluster(made, 4, 1)
        assert "resume: by position" in explained_plan(second.readings[0].sharded.plan, 0)
        calls.clear()
        second.restore(state)
        (batch,) = second.read(1)
        assert batch == [(2 * (8 * taken + row),) for row in range(8)]
        costs.append(len(calls))
        sizes.append(len(json.dumps(state)))
        second.close()
    assert costs == [8, 8]
    assert sizes[1] < sizes[0] + 20
