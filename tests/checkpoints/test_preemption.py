"""Workers that will be ended save at the same step, exit, and go on there when they are started again."""

import gc
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.processes import wait_until

import evenfeed as tf
from evenfeed.cluster.launching import environments

PROGRAM = Path(__file__).parent / "programs" / "preempted.py"
Handler = tf.distribute.experimental.PreemptionCheckpointHandler
Config = tf.distribute.experimental.TerminationConfig


def trained(folder, at=None, notice=None, **config):
    """Train ten steps in one worker, with a notice at one of them. Return the step, the calls of exit and the handler."""
    step, exits = tf.Variable(0), []

    def leave():
        exits.append(int(step))
        raise SystemExit(3)

    config = Config(exit_fn=leave, **config)
    handler = Handler(None, tf.train.Checkpoint(step=step), folder, config)
    with suppress(SystemExit):
        while handler.total_run_calls < 10:
            handler.run(step.assign_add, 1)
            if int(step) == at:
                notice()
    assert int(step) == handler.total_run_calls
    return int(step), exits, handler


def sigterm():
    os.kill(os.getpid(), signal.SIGTERM)


@pytest.fixture(autouse=True)
def handled():
    """Drop the handlers of a test, so that SIGTERM ends the test run again."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    gc.collect()
    signal.signal(signal.SIGTERM, before)


def test_one_worker_saves_at_sigterm_and_goes_on_at_that_step(tmp_path):
    assert trained(tmp_path, 4, sigterm)[:2] == (4, [4])
    assert tf.train.load_variable(tmp_path, "step/.ATTRIBUTES/VARIABLE_VALUE") == 4
    step, exits, handler = trained(tmp_path)
    assert (step, exits, handler.total_run_calls) == (10, [], 10)
    assert tf.train.load_variable(tmp_path, "checkpointed_runs/.ATTRIBUTES/VARIABLE_VALUE") == 4


def test_a_watcher_can_give_the_notice(tmp_path):
    given, asked = [], []

    def watcher():
        asked.append(1)
        return bool(given)

    def notice():
        given.append(1)
        count = len(asked)
        wait_until(lambda: len(asked) > count)
        time.sleep(0.1)

    assert trained(tmp_path, 2, notice, termination_watcher_fn=watcher)[:2] == (2, [2])


def test_an_error_in_a_watcher_is_raised(tmp_path):
    def watcher():
        raise KeyError("no metadata server")

    with pytest.raises(KeyError, match="no metadata server"):
        trained(tmp_path, 2, lambda: time.sleep(1.5), termination_watcher_fn=watcher)


def test_training_goes_on_in_the_grace_period_and_is_saved_at_its_end(tmp_path):
    saved, step, exits = [], tf.Variable(0), []
    config = Config(
        exit_fn=lambda: exits.append(int(step)),
        grace_period=2,
        save_fn=lambda: saved.append((int(step), time.monotonic())),
    )
    handler = Handler(None, tf.train.Checkpoint(step=step), tmp_path, config)

    def train():
        step.assign_add(1)
        if int(step) == 2:
            sigterm()
        time.sleep(0.02)

    while not exits:
        handler.run(train)
    handler.run(train)  # exit_fn chose to go on
    (first, start), (last, end) = saved
    assert (first, len(exits)) == (2, 1)
    assert last > first + 1, "it did not use the period"
    assert end - start < 3, "it was too late"


def test_a_program_can_ask_by_itself(tmp_path):
    step = tf.Variable(0)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(step=step), tmp_path, max_to_keep=3)
    handler = Handler(None, manager)

    def train():
        for number in range(9):
            step.assign_add(1)
            if number == 3:
                sigterm()
            handler.save_checkpoint_if_preempted(checkpoint_number=77)

    with handler.watch_preemption_scope(), pytest.raises(SystemExit, match="42"):
        train()
    assert Path(tf.train.latest_checkpoint(tmp_path)).name == "ckpt-77"
    assert tf.train.load_variable(tmp_path, "step/.ATTRIBUTES/VARIABLE_VALUE") == 4


def test_wrong_arguments_are_rejected(tmp_path):
    with pytest.raises(tf.errors.InvalidArgumentError, match="pass checkpoint_dir"):
        Handler(None, tf.train.Checkpoint())
    with pytest.raises(TypeError, match="must be a Checkpoint or a CheckpointManager, but got 3"):
        Handler(None, 3, tmp_path)


@pytest.mark.slow
def test_sigterm_ends_a_program_that_has_dropped_its_handler():
    program = """if True:
        import os, signal, sys
        import evenfeed as tf
        watcher = tf.distribute.experimental.PreemptionWatcher()
        os.kill(os.getpid(), signal.SIGTERM)
        sys.stdout.write(f"{watcher.preemption_message}")
        sys.stdout.flush()
        del watcher
        os.kill(os.getpid(), signal.SIGTERM)
        sys.stdout.write("still here")
    """
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "SIGTERM"), done.stderr


def run_workers(folder, steps, seconds, preempt=None):
    """Run the program on two workers. Return for each its exit code and its lines."""
    outputs = [folder / f"output-{worker}" for worker in range(2)]
    workers = []
    for environ, output in zip(environments(2), outputs, strict=True):
        with output.open("w") as file, (folder / "errors").open("a") as errors:
            command = [sys.executable, PROGRAM, folder / "saved", str(steps), str(seconds)]
            process = subprocess.Popen(
                command, env={**os.environ, **environ}, stdout=file, stderr=errors
            )
        workers.append(process)
    try:
        if preempt is not None:
            wait_until(lambda: len(steps_in(outputs[preempt])) > 3, 60)
            workers[preempt].terminate()
        codes = [worker.wait(60) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
    return codes, list(map(steps_in, outputs))


def steps_in(output):
    lines = [line for line in output.read_text().splitlines() if line.startswith("step ")]
    return [json.loads(line.removeprefix("step ")) for line in lines]


@pytest.mark.slow
def test_two_workers_save_at_one_step_and_lose_no_row(tmp_path):
    codes, before = run_workers(tmp_path, 100, 0.05, preempt=1)
    assert codes == [42, 42], (tmp_path / "errors").read_text()
    assert len(before[0]) == len(before[1]) < 100
    codes, after = run_workers(tmp_path, 100, 0.0)
    assert codes == [0, 0], (tmp_path / "errors").read_text()
    for worker in range(2):
        lines = before[worker] + after[worker]
        assert [step for step, _, _ in lines] == list(range(100)), "a step was lost or repeated"
    rows = [row for lines in (*before, *after) for _, found, _ in lines for row in found]
    assert sorted(rows) == list(range(400))
    assert after[0][-1][2] == after[1][-1][2] == sum(range(400))
