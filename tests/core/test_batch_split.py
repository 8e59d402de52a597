"""The rows of each worker: exhaustive for small numbers, by arithmetic and samples for large clusters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.feeding import model

from evenfeed.core.batch_split import Flow, Share

workers = st.integers(1, 5)
replicas = st.integers(1, 4)


@given(st.integers(0, 60), workers, replicas)
def test_each_row_of_a_batch_goes_to_one_worker(rows, many, each):
    found = np.concatenate([Share(w, many, each).offsets(rows) for w in range(many)])
    assert sorted(found.tolist()) == list(range(rows))


@given(st.integers(0, 60), workers, replicas)
def test_counts_are_those_of_all_workers_in_their_order(rows, many, each):
    pieces = [p for w in range(many) for p in Share(w, many, each).pieces(rows)]
    assert Share(0, many, each).counts(rows) == tuple(stop - start for start, stop in pieces)
    assert Share(0, many, each).divides(rows) == (
        rows > 0 and len(set(Share(0, many, each).counts(rows))) == 1
    )


@given(st.integers(1, 60), workers, replicas)
def test_each_worker_starts_at_a_different_place_of_the_sizes(batch, many, each):
    for worker in range(many):
        found = Share(worker, many, each).sizes(batch)
        assert list(found) == model.sizes(batch, many * each, worker * each)


@given(st.integers(1, 20), st.lists(st.integers(0, 40), min_size=1, max_size=4), replicas)
def test_a_flow_gives_each_step_what_the_rules_give(batch, totals, each):
    flow = Flow(batch, Share(0, len(totals), each), tuple(totals))
    step, found = 0, []
    while not flow.is_over(step):
        found.append(flow.counts(step).tolist())
        step += 1
    rows = [model.batched(total, batch) for total in totals]
    steps = model.each_flowing(rows, batch, each)
    expected = [[len(p) for own in steps for p in own[number]] for number in range(len(steps[0]))]
    assert [counts for counts in found if any(counts)] == expected
    assert all(sum(counts) == batch for counts in found[: flow.full_steps])
    assert len(found) >= flow.full_steps


WORKERS, REPLICAS, ROWS = 4096, 8, 10**12
LARGE = [4096 * 8, 4096 * 8 * 16, 1_000_000, 4096 * 8 + 1]


@pytest.mark.parametrize("batch", LARGE)
def test_a_large_cluster_gets_every_row_once_and_no_worker_more_than_the_ceiling(batch):
    everyone = WORKERS * REPLICAS
    size = -(-batch // everyone)
    own = [Share(worker, WORKERS, REPLICAS).pieces(batch) for worker in range(WORKERS)]
    pieces = sorted(piece for pieces in own for piece in pieces if piece[0] < piece[1])
    # Each piece starts where the previous one ends, so each row is in exactly one piece.
    assert [start for start, _ in pieces] == [0, *(stop for _, stop in pieces[:-1])]
    assert pieces[-1][1] == batch
    assert max(stop - start for start, stop in pieces) == size
    sizes = Share(0, WORKERS, REPLICAS).sizes(batch)
    assert sum(sizes) == batch
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("batch", LARGE)
def test_samples_of_a_large_dataset_belong_to_one_worker(batch):
    draw = np.random.default_rng(7)
    for row in draw.integers(0, ROWS, 200).tolist():
        number, within = divmod(row, batch)
        length = min(batch, ROWS - number * batch)
        piece = within // -(-length // (WORKERS * REPLICAS))
        for worker in {piece % WORKERS, (piece + 1) % WORKERS, int(draw.integers(WORKERS))}:
            owns = any(a <= within < b for a, b in Share(worker, WORKERS, REPLICAS).pieces(length))
            assert owns == (worker == piece % WORKERS)


def test_a_large_flow_gives_whole_batches_to_the_end():
    batch, share = 1_000_003, Share(0, WORKERS, REPLICAS)
    totals = tuple(ROWS // WORKERS + (worker < ROWS % WORKERS) for worker in range(WORKERS))
    flow = Flow(batch, share, totals)
    whole = min(totals) * WORKERS // batch
    for step in (0, 1, 4095, 4096, whole // 2, whole - WORKERS):
        counts = flow.counts(step)
        assert counts.sum() == batch
        assert counts.max() - counts.min() <= 1
    assert not flow.is_over(whole - WORKERS)
    assert flow.is_over(whole + 2 * WORKERS)
