"""Workers that are lost: what the others are told, and that they live on and leave nothing behind."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import wait_until

from evenfeed.cluster.launching import environments

PROGRAMS = Path(__file__).parent / "programs"

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
        )
        for i, environ in enumerate(environs)
    ]


def ended(processes):
    """Return what each said, and wait until nothing is left."""
    try:
        said = [process.communicate(timeout=80) for process in processes]
    finally:
        for process in processes:
            process.kill()
    return said


def addresses(environs):
    return json.loads(environs[0]["TF_CONFIG"])["cluster"]["worker"]


def services(port):
    """Return the processes of coordination services at a port."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if b"evenfeed.cluster.service" in words and str(port).encode() in words:
            found.append(path)
    return found


def check_survivors(environs, processes, said, victim, told):
    """The others were told, saved what all had, and ended by themselves; so did the service."""
    name = f"worker {victim} ({addresses(environs)[victim]})"
    for worker, (out, err) in enumerate(said):
        if worker == victim:
            continue
        lines = [x for x in out.splitlines() if x != "steps" and not x.startswith("[Gloo]")]
        assert processes[worker].returncode == 0, err
        assert lines[0] == f"told {name} {told}", (out, err)
        assert re.fullmatch(r"saved \[(\d+\.0), \1\]", lines[1])
        assert lines[2:] == ["ended"]
    port = addresses(environs)[0].rpartition(":")[2]
    wait_until(lambda: not services(port), 20)


@pytest.mark.parametrize(
    ("workers", "victim", "how", "way", "told"),
    [
        (3, 1, "kill", "compiled", "is lost: its process ended without a word."),
        (2, 0, "kill", "input", "is lost: its process ended without a word."),
        (2, 0, "exit", "eager", "is lost: its process ended without a word."),
        (2, 1, "raise", "compiled", "failed: ValueError: row 17 is bad"),
    ],
)
def test_the_others_are_told_who_is_gone_and_can_save_and_end(workers, victim, how, way, told):
    environs = environments(workers, replicas=1)
    for environ in environs:
        environ["WORKS_ON"] = "5" if how == "exit" else "0"
    processes = started("training.py", [victim, how, way], environs)
    check_survivors(environs, processes, ended(processes), victim, told)
