"""Which workers train together: positions in the cluster, and clusters that are rejected."""

import pytest
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.cluster.membership import Membership, Worker, membership_of

CHIEF = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"], "evaluator": ["e:1"]}
SAY = 'set "task" in TF_CONFIG, …'


def resolver(cluster, job=None, index=None):
    simple = tf.distribute.cluster_resolver.SimpleClusterResolver
    return simple(tf.train.ClusterSpec(cluster), task_type=job, task_id=index)


def member(*args):
    return membership_of(resolver(*args))


def test_without_a_cluster_a_process_is_alone_and_chief():
    assert member({}) == Membership()
    assert (member({}).worker_count, member({}).is_chief) == (1, True)


@pytest.mark.parametrize(
    ("job", "index", "place"), [("chief", 0, 0), ("worker", 0, 1), ("worker", 1, 2)]
)
def test_the_chief_comes_first_and_other_jobs_do_not_count(job, index, place):
    found = member(CHIEF, job, index)
    assert (found.place, found.worker_count, found.is_chief) == (place, 3, place == 0)
    assert list(map(str, found.workers)) == ["chief 0 (a:1)", "worker 0 (b:1)", "worker 1 (c:1)"]
    assert (found.own.job, found.own.index) == (job, index)


def test_without_a_chief_worker_0_is_it():
    cluster = {"worker": ["a:1", "b:1"]}
    assert [member(cluster, "worker", index).is_chief for index in (0, 1)] == [True, False]


@pytest.mark.parametrize("cluster", [CHIEF, {"worker": ["a:1", "b:1"]}])
def test_an_evaluator_is_alone_named_in_the_cluster_or_not(cluster):
    address = cluster.get("evaluator", [""])[0]
    found = member(cluster, "evaluator", 0)
    assert found == Membership((Worker("evaluator", 0, address),))
    assert found.is_chief


@pytest.mark.parametrize("task", [(None, None), ("worker", None), (None, 0)])
def test_a_cluster_needs_a_task(task):
    with error_saying(ValueError, "There is a cluster, ClusterSpec(…", fix=SAY):
        membership_of(resolver(CHIEF, *task))


@pytest.mark.parametrize("task", [("worker", 2), ("worker", -1)])
def test_a_task_must_be_of_the_cluster(task):
    with error_saying(
        ValueError,
        f"This process is {task[0]} {task[1]}, but the cluster has chief 0 and worker 0 to 1.",
        fix=SAY,
    ):
        membership_of(resolver(CHIEF, *task))


@pytest.mark.parametrize(
    ("cluster", "job", "what"),
    [
        (CHIEF, "ps", "This process is a parameter server, which…"),
        (CHIEF, "cook", "The job must be one of chief, worker, evaluator, ps, but got 'cook'."),
        (CHIEF | {"cook": ["f:1"]}, "chief", "The job must be one of…"),
        (
            {"chief": ["a:1", "b:1"]},
            "chief",
            "The cluster can have only one task of the job 'chief', but has 2.",
        ),
        (
            {"worker": ["a:1"], "evaluator": ["b:1", "c:1"]},
            "worker",
            "The cluster can have only one task of the job 'evaluator', but has 2.",
        ),
        (
            {"chief": ["a:1"], "worker": ["b:1", "a:1"]},
            "worker",
            "Several workers have the address a:1: chief 0, worker 1.",
        ),
        ({"worker": {0: "a:1", 2: "c:1"}}, "worker", "The tasks of the job 'worker' have the…"),
        ({"worker": ["a:1", "b"]}, "worker", "The address of worker 1 is 'b'."),
        ({"worker": ["a:1", ":1"]}, "worker", "The address of worker 1 is ':1'."),
    ],
)
def test_clusters_that_cannot_train(cluster, job, what):
    with error_saying(ValueError, what, fix="…"):
        membership_of(resolver(cluster, job, 0))


def test_parameter_servers_beside_the_workers_are_a_line_of_information(caplog):
    with caplog.at_level("INFO", logger="evenfeed"):
        assert member(CHIEF, "worker", 0).place == 1
    (record,) = caplog.records
    assert (record.levelname, "does not use them" in record.message) == ("INFO", True)
