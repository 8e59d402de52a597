"""One state of all workers: who may continue from it, and what the errors say."""

import json
import time

import jax.numpy as jnp
import pytest
from tests.feeding.distribution import distributed, with_policy
from tests.feeding.workers import Cluster, InMemory, on_all, worker_of
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core.batch_split import Share
from evenfeed.core.errors import FailedPreconditionError, InvalidArgumentError
from evenfeed.dataset import plan_of
from evenfeed.feeding.cluster_state import ClusterState
from evenfeed.feeding.reading import ElementReading
from evenfeed.runtime.operators.own_rows import StackOwnRows

Dataset = tf.data.Dataset


def made(policy):
    return lambda: plan_of(with_policy(Dataset.range(40).batch(8), policy))


def lines(tmp_path, count=4):
    paths = [str(tmp_path / f"{number}.txt") for number in range(count)]
    for number in range(count):
        (tmp_path / f"{number}.txt").write_text("".join(f"{number}-{row}\n" for row in range(9)))
    return lambda: plan_of(with_policy(tf.data.TextLineDataset(paths).batch(4), "FILE"))


def state_of(make, workers, replicas=1, taken=1):
    cluster = Cluster(make, workers, replicas)
    cluster.read(taken)
    state = cluster.state()
    cluster.close()
    return state


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_with_files_of_their_own_save_one_state_for_as_many_workers(workers, tmp_path):
    make = lines(tmp_path)
    whole = Cluster(make, workers, 2).read()
    for taken in (0, 1, 3):
        other = Cluster(make, workers, 2)
        other.restore(state_of(make, workers, 2, taken))
        assert other.read() == whole[taken:]


@pytest.mark.parametrize("policy", ["OFF", "FILE"])
def test_a_state_of_another_number_of_workers_is_refused_before_data_is_read(policy, tmp_path):
    make = made(policy) if policy == "OFF" else lines(tmp_path)
    state = state_of(make, 2)
    for workers, text in ((1, "1 worker of 1 replica"), (3, "3 workers of 1 replica")):
        with error_saying(
            InvalidArgumentError,
            f"The state was saved on 2 workers of 1 replica with AutoShardPolicy.{policy}, but the cluster has "
            f"{text} with AutoShardPolicy.{policy}.",
            fix="restore it on 2 workers of 1 replica; to resume on any number of workers, save states of "
            "experimental_distribute_dataset with AutoShardPolicy.DATA or "
            "AutoShardPolicy.LANES.",
        ):
            ClusterState(policy, Share(0, workers)).part_of(state)


def test_a_state_of_other_replicas_is_refused_where_each_worker_has_its_own_position():
    state = state_of(made("OFF"), 2, 2)
    with pytest.raises(
        InvalidArgumentError, match=r"2 workers of 2 replicas .* 2 workers of 1 rep"
    ):
        ClusterState("OFF", Share(0, 2)).part_of(state)


def test_a_state_of_one_worker_is_taken_up_by_workers_that_share_rows():
    state = state_of(made("OFF"), 1)
    other = Cluster(made("DATA"), 3, 1)
    other.restore(state)
    assert other.read(1) == [[(row,) for row in range(8, 16)]]
    with pytest.raises(InvalidArgumentError, match=r"saved on 1 worker with AutoShardPolicy.OFF"):
        ClusterState("OFF", Share(0, 2)).part_of(state)


def test_a_state_of_shared_rows_is_refused_by_workers_that_do_not_share_them():
    with pytest.raises(
        InvalidArgumentError, match=r"saved on several workers with AutoShardPolicy.DATA"
    ):
        ClusterState("OFF", Share(0, 2)).part_of(state_of(made("DATA"), 2))


def test_datasets_of_a_function_need_as_many_workers():
    memory = InMemory(2)

    def saved(worker):
        reading = ElementReading(
            [plan_of(Dataset.range(6).batch(2))], worker_of(Share(worker, 2), memory)
        )
        steps = reading.steps()
        steps.read()
        return reading.saving.joined(steps.state())

    first, second = on_all(2, saved)
    assert first == second
    with pytest.raises(InvalidArgumentError, match="with distribute_datasets_from_function, but"):
        ClusterState("DATA", Share(0, 3)).part_of(json.loads(json.dumps(first)))


def test_workers_that_save_after_different_steps_are_told():
    cluster = Cluster(
        lambda: plan_of(with_policy(Dataset.range(9).filter(odd).batch(2), "DATA")), 2, 1
    )
    first, second = cluster.readings
    steps = [reading.saving for reading in (first, second)]
    with pytest.raises(
        FailedPreconditionError, match=r"after different steps: 1 on .*0.* 2 on .*1"
    ):
        on_all(2, lambda w: steps[w].joined({"at": [], "rows": 0, "step": w + 1}))


def odd(x):
    return x % 2 == 1


def test_a_position_that_is_a_number_takes_no_message():
    cluster = Cluster(made("DATA"), 2, 1)
    cluster.read(2)
    own = cluster.readings[0].saving.joined({"at": [], "rows": 0})  # worker 1 does not answer
    assert own == {"version": 2, "policy": "DATA", "at": [], "rows": 0}


def test_unordered_maps_keep_their_order_where_workers_share_rows():
    def make():
        rows = Dataset.range(60).map(slow_sometimes, num_parallel_calls=4, deterministic=False)
        return plan_of(with_policy(rows.filter(odd).batch(6), "DATA"))

    assert Cluster(make, 2, 1).read() == [
        [(2 * row + 1,) for row in range(start, start + 6)] for start in range(0, 30, 6)
    ]


def slow_sometimes(x):
    if x % 5 == 0:
        time.sleep(0.01)
    return x


def outcomes(iterator, most=1000):
    """Return the rows of steps, the class of an error in its place."""
    found = []
    while len(found) < most:
        try:
            found.append(next(iterator).tolist())
        except StopIteration:
            return found
        except Exception as error:  # noqa: BLE001 - whatever it is, it has its place
            found.append(type(error))
    return found


def test_batches_that_one_worker_reads_together_are_those_that_it_reads_one_by_one(monkeypatch):
    table = jnp.arange(1003)
    rows = Dataset.range(1003).filter(lambda x: x % 5 != 0)
    rows = rows.map(lambda x: table[jnp.where(x == 433, 5000, x)])
    steps = distributed(with_policy(rows.batch(4), "DATA"), 1, experimental_fetch_to_device=False)
    alone = "evenfeed.runtime.operators.own_rows._reads_several"
    with monkeypatch.context() as patched:
        patched.setattr(alone, lambda node, operator: False)
        expected = outcomes(iter(steps))
        singly = iter(steps)
        outcomes(singly, 77)
        one_by_one = singly.get_state()
    sizes = []
    several = StackOwnRows._several
    with monkeypatch.context() as patched:
        patched.setattr(
            StackOwnRows,
            "_several",
            lambda self, count: sizes.append(count) or several(self, count),
        )
        assert outcomes(iter(steps)) == expected
    assert max(sizes) > 8
    assert len(expected) == 201
    assert sum(isinstance(one, type) for one in expected) == 1
    for taken in (50, 77, 86, 87, 130):
        iterator, again = iter(steps), iter(steps)
        assert outcomes(iterator, taken) == expected[:taken]
        again.set_state(json.loads(json.dumps(iterator.get_state())))
        assert outcomes(again) == expected[taken:]
    again.set_state(one_by_one)
    assert outcomes(again) == expected[77:]
