"""`ClusterSpec`: what it rejects, and that it is immutable. tests/oracle holds TensorFlow's answers."""

import pickle

import pytest
from tests.saying import error_saying

import evenfeed as tf

SPEC = tf.train.ClusterSpec({"worker": ["a:1", "b:1"], "ps": {2: "c:1"}})


def test_a_message_goes_there_and_back():
    message = SPEC.as_cluster_def()
    read = tf.train.ClusterDef.FromString(message.SerializeToString())
    assert [(job.name, dict(job.tasks)) for job in read.job] == [
        ("ps", {2: "c:1"}),
        ("worker", {0: "a:1", 1: "b:1"}),
    ]
    assert tf.train.ClusterSpec(read) == SPEC


def test_it_can_be_pickled():
    assert pickle.loads(pickle.dumps(SPEC)) == SPEC


def test_what_is_given_may_change_afterwards():
    given = {"worker": ["a:1"]}
    spec, copy = tf.train.ClusterSpec(given), tf.train.ClusterSpec(tf.train.ClusterSpec(given))
    given["worker"].append("b:1")
    spec.as_dict()["worker"].append("c:1")
    assert spec.num_tasks("worker") == copy.num_tasks("worker") == 1


def test_bytes_are_text():
    assert tf.train.ClusterSpec({b"worker": [b"a:1"]}).as_dict() == {"worker": ["a:1"]}


def test_a_job_without_tasks_has_none():
    spec = tf.train.ClusterSpec({"worker": []})
    assert (spec.job_tasks("worker"), spec.task_indices("worker")) == ([], [])


@pytest.mark.parametrize("ask", [SPEC.num_tasks, SPEC.task_indices, SPEC.job_tasks])
def test_an_unknown_job_is_named(ask):
    with error_saying(ValueError, "The cluster has no job 'chief'.", fix="it has 'worker', 'ps'."):
        ask("chief")


def test_an_unknown_task_is_named():
    with error_saying(ValueError, "The job 'ps' has no task 0.", fix="its tasks are [2]."):
        SPEC.task_address("ps", 0)


def test_one_address_must_stand_in_a_list():
    with error_saying(
        TypeError,
        "The tasks of the job 'worker' must be a list of addresses, or a dict from task indices to "
        "addresses, but got 'a:1'.",
        fix="write {'worker': ['a:1']}.",
    ):
        tf.train.ClusterSpec({"worker": "a:1"})
