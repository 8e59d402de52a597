"""Checkpoints on disk: whole or not there, replaced safely, written in the background."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from tests.processes import wait_until

import evenfeed as tf

PROGRAMS = Path(__file__).parent / "programs"


def value_in(path):
    return float(tf.train.load_variable(path, "v/.ATTRIBUTES/VARIABLE_VALUE"))


def test_writing_again_replaces_a_checkpoint(tmp_path):
    v = tf.Variable(1.0)
    checkpoint = tf.train.Checkpoint(v=v)
    for number in (1.0, 2.0):
        v.assign(number)
        checkpoint.write(tmp_path / "model")
    assert value_in(tmp_path / "model") == 2
    assert os.listdir(tmp_path) == ["model"]


def test_an_interrupted_replacement_is_completed(tmp_path):
    v = tf.Variable(1.0)
    checkpoint = tf.train.Checkpoint(v=v)
    path = checkpoint.write(tmp_path / "model")
    os.rename(path, f"{path}.replacement")  # killed between two renames
    assert value_in(path) == 1
    os.rename(path, f"{path}.replacement")
    v.assign(2.0)
    checkpoint.write(path)
    assert value_in(path) == 2
    assert os.listdir(tmp_path) == ["model"]


def test_a_damaged_checkpoint_is_reported(tmp_path):
    path = tf.train.Checkpoint(v=tf.Variable(np.arange(1000.0))).write(tmp_path / "model")
    for file in Path(path, "arrays").rglob("*"):
        if file.is_file() and file.parent.name == "d":
            file.write_bytes(b"damaged")
    with pytest.raises(
        tf.errors.DataLossError, match=r"model cannot be read[\s\S]*restore an earlier one"
    ):
        tf.train.Checkpoint(v=tf.Variable(np.arange(1000.0))).read(path)


def test_a_damaged_state_file_is_reported(tmp_path):
    (tmp_path / "checkpoint").write_text("model_check")
    with pytest.raises(tf.errors.DataLossError, match="is damaged: 'model_check'"):
        tf.train.latest_checkpoint(tmp_path)


def test_values_are_those_of_the_call_when_they_are_written_in_the_background(tmp_path):
    heard = []
    options = tf.train.CheckpointOptions(
        experimental_enable_async_checkpoint=True,
        experimental_write_callbacks=[heard.append, lambda: heard.append("called")],
    )
    v, mine = tf.Variable(jnp.ones(1_000_000)), np.ones(1_000_000)
    iterator = iter(tf.data.Dataset.range(9))
    checkpoint = tf.train.Checkpoint(v=v, mine=mine, data=iterator)
    manager = tf.train.CheckpointManager(checkpoint, tmp_path, max_to_keep=1)
    for _ in range(2):
        path = manager.save(options=options)
    v.assign(jnp.zeros(1_000_000))
    mine[:] = 0
    next(iterator)
    manager.sync()
    assert heard == [manager._prefix + "-1", "called", path, "called"]
    assert sorted(os.listdir(tmp_path)) == ["checkpoint", "ckpt-2"]
    assert tf.train.latest_checkpoint(tmp_path) == path
    checkpoint.restore(path).assert_consumed()
    assert float(v.value().sum()) == checkpoint.mine.sum() == 1_000_000
    assert int(next(iterator)) == 0


def test_a_program_that_ends_completes_the_checkpoint_in_the_background(tmp_path):
    program = f"""
import evenfeed as tf
options = tf.train.CheckpointOptions(experimental_enable_async_checkpoint=True)
tf.train.Checkpoint(v=tf.Variable(3.0)).write({str(tmp_path / "model")!r}, options)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    assert value_in(tmp_path / "model") == 3


def test_a_manager_keeps_one_checkpoint_for_every_so_many_hours(tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    for _ in range(2):  # a second manager goes on with the first one's times
        manager = tf.train.CheckpointManager(
            checkpoint, tmp_path, max_to_keep=1, keep_checkpoint_every_n_hours=2
        )
        for _ in range(3):
            now[0] += 3600
            manager.save()
    found = sorted(path.name for path in tmp_path.glob("ckpt-*"))
    assert found == ["ckpt-2", "ckpt-4", "ckpt-6"]
    assert manager.checkpoints == [str(tmp_path / "ckpt-6")]


def test_new_checkpoints_are_yielded_until_the_time_is_over(tmp_path):
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    found = tf.train.checkpoints_iterator(tmp_path, timeout=0)
    paths = []
    for _ in range(2):
        checkpoint.save(tmp_path / "ckpt")
        paths.append(Path(next(found)).name)
    assert paths == ["ckpt-1", "ckpt-2"]
    assert next(found, None) is None
    answers = iter([False, True])
    waiting = tf.train.checkpoints_iterator(
        tmp_path / "none", timeout=0, timeout_fn=lambda: next(answers)
    )
    assert list(waiting) == []
    assert list(answers) == []


@pytest.mark.slow
@pytest.mark.timeout(
    400
)  # two programs start one after the other, which takes minutes on a busy machine
def test_a_kill_while_saving_leaves_the_last_checkpoint_whole(tmp_path):
    """Kill a program that saves all the time, at several moments, and go on from what it left."""
    last = 0
    for part in range(2):
        program = subprocess.Popen(
            [sys.executable, PROGRAMS / "saving.py", tmp_path], stdout=subprocess.PIPE, text=True
        )
        restored = json.loads(program.stdout.readline())
        assert restored >= last, "a complete checkpoint was lost"
        assert restored % 10 == 0, "an incomplete checkpoint was restored"
        before = restored
        wait_until(lambda before=before: _latest(tmp_path) >= before + 10, 150)
        wait_until(lambda: list(tmp_path.glob("*.orbax-checkpoint-tmp*")), 150)
        program.send_signal(signal.SIGKILL)
        program.wait()
        program.stdout.close()
        last = _latest(tmp_path)
        assert last >= 10 * (part + 1)
    v, iterator = tf.Variable(np.zeros(300_000)), iter(tf.data.Dataset.range(10**6))
    checkpoint = tf.train.Checkpoint(v=v, data=iterator)
    checkpoint.restore(tf.train.latest_checkpoint(tmp_path)).assert_consumed()
    assert int(next(iterator)) == int(v[0]) == int(v[-1]) == last


def _latest(folder):
    path = tf.train.latest_checkpoint(folder)
    return 0 if path is None else int(path.rpartition("-")[2]) * 10


@pytest.mark.slow
def test_a_full_disk_leaves_the_last_checkpoint_whole(tmp_path):
    done = subprocess.run(
        [sys.executable, PROGRAMS / "full_disk.py", tmp_path],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kind, text, latest, value, again = json.loads(done.stdout.splitlines()[-1])
    assert kind == "ResourceExhaustedError"
    assert "ckpt-2 cannot be written" in text
    assert Path(latest).name == "ckpt-1"
    assert value == 1
    assert Path(again).name == "ckpt-3"
    assert sorted(path.name for path in tmp_path.glob("ckpt-?")) == ["ckpt-1", "ckpt-3"]


def test_a_folder_that_may_not_be_created_is_named(tmp_path, monkeypatch):
    def refuse(path, mode=0o777):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "mkdir", refuse)
    with pytest.raises(tf.errors.PermissionDeniedError, match="new cannot be opened: permission"):
        tf.train.Checkpoint(v=tf.Variable(1.0)).write(tmp_path / "new" / "model")
    with pytest.raises(tf.errors.PermissionDeniedError, match="new cannot be opened: permission"):
        tf.data.Dataset.range(3).save(str(tmp_path / "new"))
