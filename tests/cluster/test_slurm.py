"""Slurm's environment variables. tests/oracle holds TensorFlow's answers."""

import os
import subprocess

import pytest
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.cluster.resolvers import slurm
from evenfeed.cluster.resolvers.slurm import counts_in, hosts_in

make = tf.distribute.cluster_resolver.SlurmClusterResolver


@pytest.fixture(autouse=True)
def step(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for name, value in {
        "PROCID": "3",
        "STEP_NUM_TASKS": "4",
        "STEP_NODELIST": "n[1-2]",
        "STEP_TASKS_PER_NODE": "2(x2)",
    }.items():
        monkeypatch.setenv(f"SLURM_{name}", value)


def test_nodes_without_a_driver_have_no_gpus():
    resolver = make()
    assert resolver.cluster_spec().num_tasks("worker") == 4
    assert resolver.num_accelerators() == {"GPU": 0}
    assert "CUDA_VISIBLE_DEVICES" not in os.environ


def test_gpus_are_counted_by_the_driver(monkeypatch):
    said = "GPU 0: a\n  MIG 1g\nGPU 1: b\n"
    monkeypatch.setattr(
        slurm.subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, 0, said)
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")  # so that monkeypatch restores it
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    resolver = make()
    resolver.cluster_spec()
    assert resolver.num_accelerators() == {"GPU": 1}
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"


def test_a_driver_that_fails_is_an_error(monkeypatch):
    def fails(*args, **kwargs):
        raise subprocess.CalledProcessError(9, "nvidia-smi")

    monkeypatch.setattr(slurm.subprocess, "run", fails)
    with error_saying(
        RuntimeError,
        "nvidia-smi failed to list the GPUs (…",
        fix="pass gpus_per_node; 0 if there are none.",
    ):
        make()


def test_no_visible_gpu_is_none(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert make().num_accelerators() == {"GPU": 0}


def test_other_numbers_of_tasks_are_said():
    with error_saying(
        RuntimeError,
        "The jobs {'worker': 3} have 3 tasks, but Slurm started 4.",
        fix="make the tasks of all jobs add up to 4, or change srun --ntasks.",
    ):
        make({"worker": 3}, gpus_per_node=0)


def test_a_program_that_srun_did_not_start_is_told(monkeypatch):
    monkeypatch.delenv("SLURM_PROCID")
    with error_saying(
        RuntimeError,
        "The environment has no SLURM_PROCID: this process is not part of a Slurm step.",
        fix="start the program with srun.",
    ):
        make()


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("n[1,3-4],m", ["n1", "n3", "n4", "m"]),
        ("a-b[1-1]", ["a-b1"]),
        ("[1-2]", ["1", "2"]),
    ],
)
def test_lists_of_hosts(text, hosts):
    assert hosts_in(text) == hosts


@pytest.mark.parametrize("text", ["", "a,", "a,,b", "n[1-2", "n1]", "n[]", "n[a]", "n[1-2]x"])
def test_what_is_no_list_of_hosts(text):
    with pytest.raises(ValueError, match="Not a Slurm host list"):
        hosts_in(text)


@pytest.mark.parametrize("text", ["", "2x2", "2(x2", "a", "1,,2"])
def test_what_is_no_list_of_numbers(text):
    with pytest.raises(ValueError, match="Not a Slurm count list"):
        counts_in(text)
