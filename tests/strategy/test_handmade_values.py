"""Hand-made per-replica values on workers, in real processes: the parts of all workers are joined."""

import pytest
from tests.strategy.starting import seen_by_workers

pytestmark = pytest.mark.slow

REPLICAS = (1, 2)
EVEN = ("even", "of the host", "pickled", "regrouped", "a tree")
WAYS = ("eager", "compiled", "captured")


def seen(replicas, what):
    found = seen_by_workers("handmade_workers.py", 2, replicas)
    return [found[worker][what] for worker in (0, 1)]


def everybody(way, result):
    """Return the results of both workers. A compiled function is called twice."""
    return [[result, result] if way == "compiled" else result] * 2


def uneven_rows(replicas):
    return [float(x) for r in range(2 * replicas) for x in range(r + 1)]


def even_rows(replicas):
    return [r + 1.0 for r in range(2 * replicas)]


@pytest.mark.parametrize("replicas", REPLICAS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", [*EVEN, "uneven"])
def test_sums_means_and_joins_are_over_the_parts_of_all_workers(what, way, replicas):
    rows = uneven_rows(replicas) if what == "uneven" else even_rows(replicas)
    assert seen(replicas, f"sum of {what}, {way}") == everybody(way, sum(rows))
    mean = pytest.approx(sum(rows) / len(rows))
    assert seen(replicas, f"mean of {what}, {way}") == everybody(way, mean)
    assert seen(replicas, f"gather of {what}, {way}") == everybody(way, rows)


@pytest.mark.parametrize("replicas", REPLICAS)
@pytest.mark.parametrize("way", ["eager", "compiled", "of a function"])
@pytest.mark.parametrize("what", [*EVEN, "uneven"])
def test_each_replica_gets_its_part_and_meets_those_of_other_workers(what, way, replicas):
    rows = uneven_rows(replicas) if what == "uneven" else even_rows(replicas)
    assert seen(replicas, f"run on {what}, {way}") == [[sum(rows)] * replicas] * 2


@pytest.mark.parametrize("replicas", REPLICAS)
@pytest.mark.parametrize("way", WAYS)
def test_scalars_and_nests_are_joined_too(way, replicas):
    total, numbers = sum(even_rows(replicas)), float(sum(range(2 * replicas)))
    assert seen(replicas, f"sum over replicas, {way}") == everybody(way, [total])
    assert seen(replicas, f"sum of numbers, {way}") == everybody(way, numbers)
    assert seen(replicas, f"sum of a nest, {way}") == everybody(way, {"a": [total], "b": [numbers]})


@pytest.mark.parametrize("replicas", REPLICAS)
def test_text_is_joined_too(replicas):
    assert seen(replicas, "gather of text") == [[f"text {r}" for r in range(2 * replicas)]] * 2


@pytest.mark.parametrize("replicas", REPLICAS)
def test_valid_rows_of_all_workers_count(replicas):
    rows = even_rows(replicas)[1:]
    assert seen(replicas, "valid") == [sum(rows) / len(rows)] * 2


@pytest.mark.parametrize("replicas", REPLICAS)
def test_each_copy_of_a_variable_gets_its_part(replicas):
    own = [[[worker * replicas + r + 1.0] for r in range(replicas)] for worker in (0, 1)]
    assert seen(replicas, "assigned") == own
    doubled = [[[2 * x[0]] for x in copies] for copies in own]
    assert seen(replicas, "assigned, compiled") == doubled
    assert seen(replicas, "sum of what assign returns") == [[sum(even_rows(replicas))]] * 2


@pytest.mark.parametrize("replicas", REPLICAS)
@pytest.mark.parametrize("way", ["eager", "compiled", "of a function"])
def test_merge_call_gives_each_replica_its_part(way, replicas):
    own = [[[worker * replicas + r + 1.0] for r in range(replicas)] for worker in (0, 1)]
    assert seen(replicas, f"merge_call, {way}") == own


@pytest.mark.parametrize("replicas", REPLICAS)
@pytest.mark.parametrize("what", ["too many parts", "run on too many parts"])
def test_parts_for_other_than_this_workers_replicas_are_refused(what, replicas):
    expected = (
        "InvalidArgumentError: A per-replica value must have one part for each replica of this worker: "
        f"expected {replicas}, but got {replicas + 1}."
    )
    assert seen(replicas, what) == [expected] * 2


def test_a_strategy_of_one_worker_keeps_to_its_own_parts():
    assert seen(2, "own strategy") == [[1.0, 2.0], [3.0, 4.0]]
