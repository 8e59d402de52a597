"""A MirroredStrategy in one of several workers says once that the workers are not connected."""

import json

import pytest

import evenfeed as tf
from evenfeed.strategy import mirrored
from evenfeed.strategy.lone_worker import LoneWorkerNotice


def config(workers: int, task: str = "worker") -> str:
    cluster = {"worker": [f"localhost:{2222 + n}" for n in range(workers)]}
    return json.dumps({"cluster": cluster, "task": {"type": task, "index": 0}})


@pytest.mark.parametrize(
    ("tf_config", "lines"),
    [
        (config(2), 1),
        (config(1), 0),
        (config(2, "evaluator"), 0),
        ("", 0),
        ("not JSON", 0),
        ('{"cluster": {"worker": ["a:1", "b:1"]}}', 0),
    ],
    ids=["two workers", "one worker", "an evaluator", "none", "damaged", "no task"],
)
def test_only_one_of_several_workers_is_told(monkeypatch, caplog, tf_config, lines):
    monkeypatch.setenv("TF_CONFIG", tf_config)
    monkeypatch.setattr(mirrored, "say_once_if_apart", LoneWorkerNotice())
    for _ in range(2):
        tf.distribute.MirroredStrategy(["CPU:0"])
    assert len(caplog.messages) == lines
    assert all("worker 0 of 2" in m and "MultiWorkerMirrored" in m for m in caplog.messages)
