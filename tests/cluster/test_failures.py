"""Lost workers: the others get an error, survive, and leave no processes behind."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.network import machines
from tests.processes import wait_until

from evenfeed.cluster.launching import environments

PROGRAMS = Path(__file__).parent / "programs"

ENDED = "is lost: its process exited unexpectedly."
SERVICE_ENDED = "is lost: its coordination service exited unexpectedly."
SILENT = "is lost: its machine did not answer for 4 seconds."

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="no signals")]


def started(name, arguments, environs, prefixes=None):
    """Start a program on all workers."""
    command = [sys.executable, str(PROGRAMS / name), *map(str, arguments)]
    return [
        subprocess.Popen(
            [*(prefixes[i] if prefixes else []), *command],
            env={**os.environ, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for i, environ in enumerate(environs)
    ]


def ended(processes):
    """Return the output of each process, and wait until no process is left."""
    try:
        said = [process.communicate(timeout=80) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return said


def addresses(environs):
    return json.loads(environs[0]["TF_CONFIG"])["cluster"]["worker"]


def services(port):
    """Return the coordination service processes at a port."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"evenfeed.cluster.service" in words and str(port).encode() in words:
            found.append(path)
    return found


def check_survivors(environs, processes, said, told):
    """Check that the survivors got the error, saved the same values and exited; and that the service exited too.

    `told` maps each survivor to the worker that it was told of, and the message.
    """
    for worker, (victim, what) in told.items():
        out, err = said[worker]
        name = f"worker {victim} ({addresses(environs)[victim]})"
        lines = [x for x in out.splitlines() if x != "steps" and not x.startswith("[Gloo]")]
        assert processes[worker].returncode == 0, err
        assert lines[0] == f"told {name} {what}", (out, err)
        assert re.fullmatch(r"saved \[(\d+\.0), \1\]", lines[1])
        assert lines[2:] == ["ended"]
    port = addresses(environs)[0].rpartition(":")[2]
    wait_until(lambda: not services(port), 20)


@pytest.mark.parametrize(
    ("workers", "victim", "how", "way", "told"),
    [
        (3, 1, "kill", "compiled", ENDED),
        (2, 0, "kill", "input", ENDED),
        (2, 1, "kill", "uneven", ENDED),
        (2, 0, "exit", "eager", ENDED),
        (2, 1, "kill", "loop", ENDED),
        (2, 1, "kill", "fit", ENDED),
        (2, 0, "all", "compiled", SERVICE_ENDED),
    ],
)
def test_the_others_are_told_who_is_gone_and_can_save_and_end(workers, victim, how, way, told):
    environs = environments(workers, replicas=1)
    for environ in environs:
        environ["WORKS_ON"] = "5" if how == "exit" else "0"
    processes = started("training.py", [victim, how, way], environs)
    others = {worker: (victim, told) for worker in range(workers) if worker != victim}
    check_survivors(environs, processes, ended(processes), others)


@pytest.mark.parametrize(
    ("workers", "victim", "where"),
    [
        (2, 1, "before joining"),
        (3, 0, "before the exchange"),
        # Seconds after Gloo begins to connect, which would wait half a minute for a worker that dies just then.
        (3, 1, "0.002"),
        (3, 0, "0"),
    ],
)
def test_a_worker_that_dies_while_the_workers_start_is_named_within_seconds(workers, victim, where):
    environs = environments(workers, replicas=1)
    processes = started("dying_early.py", [victim, where], environs)
    said = ended(processes)
    died = float(said[victim][0].partition("died ")[2].split()[0])
    for worker in {*range(workers)} - {victim}:
        out, err = said[worker]
        _, _, told = out.rpartition("told ")
        when, _, what = told.partition(" ")
        assert processes[worker].returncode == 0, err
        assert what == f"worker {victim} ({addresses(environs)[victim]}) {ENDED}\n", (out, err)
        assert float(when) - died < 5
    port = addresses(environs)[0].rpartition(":")[2]
    wait_until(lambda: not services(port), 20)


def wait_for_steps(process):
    """Wait until a worker has taken some steps. `ended` reads the rest of its output."""
    for line in process.stdout:
        if line == "steps\n":
            return
    pytest.fail(process.stderr.read())


@pytest.mark.filterwarnings("default")
def test_both_ends_of_a_link_that_is_cut_are_told():
    with machines(2) as hosts:
        is_cut = hosts[0].can_be_cut  # else a warning was printed, and a worker is killed instead
        environs = environments(2, replicas=1)
        if is_cut:
            for environ, _ in zip(environs, hosts, strict=True):
                config = json.loads(environ["TF_CONFIG"])
                config["cluster"]["worker"] = [f"{host.address}:2222" for host in hosts]
                environ["TF_CONFIG"] = json.dumps(config)
        arguments = [1, "cut" if is_cut else "kill", "compiled"]
        processes = started("training.py", arguments, environs, [host.prefix for host in hosts])
        for process in processes:
            wait_for_steps(process)
        if is_cut:
            hosts[0].cut()
        said = ended(processes)
        told = {0: (1, SILENT), 1: (0, SILENT)} if is_cut else {0: (1, ENDED)}
        check_survivors(environs, processes, said, told)


def test_workers_that_do_not_do_the_same_are_told_what_differs():
    environs = environments(2, replicas=1)
    processes = started("unlike.py", [], environs)
    names = [f"worker {i} ({address})" for i, address in enumerate(addresses(environs))]
    said = ended(processes)
    seen = [json.loads(out.partition("seen ")[2].partition("\n")[0]) for out, _ in said]
    unlike = "InvalidArgumentError: The workers do not distribute the same dataset. Its"
    for each in seen:
        assert each["cardinality"] == f"{unlike} cardinality is 4 on {names[0]}; 5 on {names[1]}."
        assert each["dtype"].startswith(f"{unlike} elements is ")
        assert each["steps"] == [301, 301]
        assert each["keys"] < 10, each
        assert each["together"] == 2.0
    assert seen[0]["silent"] == (
        f"DeadlineExceededError: {names[1]} is running, but did not reach the point where all workers exchange "
        "information within 4 seconds."
    )
    assert seen[0]["collective"].startswith(
        "DeadlineExceededError: All workers are alive, but one did not reach a collective in time: "
    )
    assert said[0][0].endswith(f"UnavailableError: {names[1]} failed: KeyError: 'model'\n"), said
    assert [process.returncode for process in processes] == [0, 1]
