"""`evenfeed run`: the environment and output of workers, and that no process is left behind."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest
from tests.processes import alive, wait_until

import evenfeed as tf
from evenfeed.cluster.launching import environments
from evenfeed.command.main import main

RUN = [sys.executable, "-m", "evenfeed", "run"]


@pytest.fixture
def script(tmp_path):
    """Write a program whose workers know their `index`, and can `say` their process ids to the test."""

    def written(body):
        path = tmp_path / "script.py"
        path.write_text(
            "import json, os, signal, subprocess, sys, time\n"
            'index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]\n'
            f"folder = {str(tmp_path)!r}\n"
            "def say(pid):\n"
            '    open(f"{folder}/{pid}.part", "w").close()\n'
            '    os.rename(f"{folder}/{pid}.part", f"{folder}/{pid}.pid")\n' + textwrap.dedent(body)
        )
        return str(path)

    return written


def said(tmp_path):
    return [int(path.stem) for path in tmp_path.glob("*.pid")]


def run(*arguments):
    command = [*RUN, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_each_worker_is_told_who_it_is():
    told = environments(3, replicas=2)
    configs = [json.loads(one["TF_CONFIG"]) for one in told]
    addresses = configs[0]["cluster"]["worker"]
    assert len(set(addresses)) == 3
    assert all(config["cluster"] == configs[0]["cluster"] for config in configs)
    assert [c["task"] for c in configs] == [{"type": "worker", "index": i} for i in range(3)]
    assert {(one["JAX_NUM_CPU_DEVICES"], one["NPROC"]) for one in told} == {("2", "6")}
    tokens = {one["EVENFEED_CLUSTER_TOKEN"] for one in told}
    assert [len(token) for token in tokens] == [32]
    assert not tokens & {environments(1)[0]["EVENFEED_CLUSTER_TOKEN"]}
    assert "JAX_NUM_CPU_DEVICES" not in environments(1)[0]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["run"], "missing program"),
        (["run", "--workers", "0", "x.py"], "must be at least 1, but got 0"),
        (["run", "--replicas", "-1", "x.py"], "must be at least 1, but got -1"),
        ([], "required"),
        (["run", "--min-workers", "1", "x.py"], "--min-workers needs --restarts"),
        (["run", "--restarts", "1", "--min-workers", "2", "x.py"], "must be at most --workers"),
        (["run", "--restarts", "0", "x.py"], "must be at least 1, but got 0"),
    ],
)
def test_a_wrong_command_line_says_how_it_is_used(capsys, arguments, what):
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert what in capsys.readouterr().err


@pytest.mark.slow
def test_the_line_that_gloo_prints_when_workers_connect_is_left_out(script):
    body = """\
        import evenfeed as tf
        print("replicas:", tf.distribute.MultiWorkerMirroredStrategy().num_replicas_in_sync)
        print("[Gloo] is a word", flush=True)
    """
    done = run("--workers", "2", script(body))
    lines = ["replicas: 2", "[Gloo] is a word"]
    expected = [f"[worker {index}] {line}" for index in (0, 1) for line in lines]
    assert sorted(done.stdout.splitlines()) == sorted(expected)


@pytest.mark.slow
def test_lines_come_with_the_number_of_the_worker(script):
    path = script('print("out", index, sys.argv[1:]); print("err", index, file=sys.stderr)')
    done = run("--workers", "2", path, "--lr", "0.1")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        f"[worker {index}] out {index} ['--lr', '0.1']" for index in range(2)
    ]
    assert sorted(done.stderr.splitlines()) == ["[worker 0] err 0", "[worker 1] err 1"]


@pytest.mark.slow
def test_one_that_fails_ends_all_and_is_reported(script, tmp_path):
    path = script("""
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        say(os.getpid()), say(child.pid)
        if index == 1:
            while len([x for x in os.listdir(folder) if x.endswith(".pid")]) < 4:
                time.sleep(0.01)
            for line in range(30):
                print("line", line)
            sys.exit(7)
        time.sleep(60)
    """)
    done = run("--workers", "2", "--grace", "0", path)
    assert done.returncode == 7
    assert (
        "evenfeed run: worker 1 ended with exit code 7; its last lines:\n  line 20\n" in done.stderr
    )
    assert done.stderr.endswith("  line 29\n")
    assert len(said(tmp_path)) == 4
    wait_until(lambda: not alive(said(tmp_path)))


@pytest.mark.slow
def test_when_one_fails_the_others_have_time_to_save(script):
    path = script("""
        if index == 1:
            sys.exit(7)
        time.sleep(0.5)
        print("saved")
    """)
    done = run("--workers", "2", path)
    assert done.returncode == 7
    assert "[worker 0] saved\n" in done.stdout


@pytest.mark.slow
def test_a_worker_that_is_killed_is_named_by_its_signal(script):
    done = run(
        "--workers",
        "2",
        "--grace",
        "0",
        script("os.kill(os.getpid(), signal.SIGKILL) if index else time.sleep(60)"),
    )
    assert done.returncode == 128 + signal.SIGKILL
    assert "worker 1 ended with signal SIGKILL; its last lines: nothing" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_passed_on_once(script, tmp_path, number):
    path = script(f"""
        def handle(number, frame):
            print("saved", number)
            sys.exit(0)
        signal.signal({int(number)}, handle)
        say(os.getpid())
        time.sleep(60)
    """)
    launcher = subprocess.Popen([*RUN, "--workers", "2", path], stdout=subprocess.PIPE, text=True)
    wait_until(lambda: len(said(tmp_path)) == 2, 30)
    launcher.send_signal(number)
    out, _ = launcher.communicate(timeout=30)
    assert launcher.returncode == 0
    assert sorted(out.splitlines()) == [f"[worker {i}] saved {int(number)}" for i in range(2)]


@pytest.mark.slow
def test_a_second_ctrl_c_ends_workers_that_do_not_listen(script, tmp_path):
    path = script("signal.signal(signal.SIGINT, signal.SIG_IGN); say(os.getpid()); time.sleep(60)")
    launcher = subprocess.Popen([*RUN, "--workers", "2", path], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: len(said(tmp_path)) == 2, 30)
    launcher.send_signal(signal.SIGINT)
    assert (
        launcher.stderr.readline()
        == "evenfeed run: forwarding SIGINT; press again to kill all workers.\n"
    )
    launcher.send_signal(signal.SIGINT)
    launcher.communicate(timeout=30)
    assert launcher.returncode == 128 + signal.SIGKILL
    assert not alive(said(tmp_path))


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux ends them by itself")
def test_workers_end_with_a_launcher_that_is_killed(script, tmp_path):
    launcher = subprocess.Popen(
        [*RUN, "--workers", "2", script("say(os.getpid()); time.sleep(60)")]
    )
    wait_until(lambda: len(said(tmp_path)) == 2, 30)
    os.kill(launcher.pid, signal.SIGKILL)
    launcher.wait(timeout=30)
    wait_until(lambda: not alive(said(tmp_path)))


COUNTS = """
    config = json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"]
    restart = int(os.environ["EVENFEED_RESTART_COUNT"])
    print("start", restart, "of", len(config), flush=True)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    say(os.getpid()), say(child.pid)
"""


@pytest.mark.slow
def test_a_job_is_started_again_with_the_workers_that_are_left(script, tmp_path):
    path = script(f"""
    {COUNTS}
    print(config[index], flush=True)
    if restart == 2:
        sys.exit(0)
    if index == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(1)
    sys.exit(1)  # it lost its neighbour
    """)
    done = run("--workers", "4", "--restarts", "3", "--min-workers", "3", path)
    assert done.returncode == 0, done.stderr
    lines = [line.partition("] ")[2] for line in done.stdout.splitlines()]
    starts = [line for line in lines if line.startswith("start")]
    assert sorted(starts) == ["start 0 of 4"] * 4 + ["start 1 of 3"] * 3 + ["start 2 of 3"] * 3
    assert len(set(lines) - set(starts)) == 10  # ports are not used again
    reports = [line for line in done.stderr.splitlines() if line.startswith("evenfeed run: ")]
    lost = "evenfeed run: worker 1 ended with signal SIGKILL; its last lines:"
    assert reports == [
        lost,
        "evenfeed run: restart 1 of 3, with 3 workers instead of 4.",
        lost,
        "evenfeed run: restart 2 of 3, with 3 workers.",
    ]
    assert len(said(tmp_path)) == 20
    wait_until(lambda: not alive(said(tmp_path)))


@pytest.mark.slow
def test_a_job_that_keeps_failing_ends_with_the_code_of_its_last_start(script):
    done = run("--workers", "2", "--restarts", "1", script("sys.exit(7 if index else 0)"))
    assert done.returncode == 7
    assert "evenfeed run: restart 1 of 1, with 2 workers.\n" in done.stderr
    assert done.stderr.endswith("evenfeed run: giving up after 1 restart.\n")


@pytest.mark.slow
def test_ctrl_c_ends_a_job_without_a_restart(script, tmp_path):
    path = script(COUNTS + "    time.sleep(60)\n")
    launcher = subprocess.Popen(
        [*RUN, "--workers", "2", "--restarts", "5", path], stdout=subprocess.PIPE, text=True
    )
    wait_until(lambda: len(said(tmp_path)) == 4, 30)
    launcher.send_signal(signal.SIGINT)
    out, _ = launcher.communicate(timeout=30)
    assert launcher.returncode == 128 + signal.SIGINT
    assert "start 1" not in out
    wait_until(lambda: not alive(said(tmp_path)))


def test_the_command_says_its_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"evenfeed {tf.__version__}\n")
