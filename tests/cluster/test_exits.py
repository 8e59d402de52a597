"""How workers exit: with their own exit codes, and with all their output written.

EVENFEED_ENDS is how many times two workers exit normally, over all policies together. `make reliability` has them do it
1,000 times; here each policy has two pairs, which run at the same time.
"""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import evenfeed as tf
from evenfeed.cluster.launching import environments

PROGRAM = Path(__file__).parent / "programs" / "ending.py"

POLICIES = ["AUTO", "FILE", "DATA", "HINT", "OFF", "OFF, generator"]
TIMES = -(-int(os.environ.get("EVENFEED_ENDS", "12")) // len(POLICIES))

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600 + 20 * TIMES)]


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    for number in range(4):
        with tf.io.TFRecordWriter(str(folder / f"{number}.tfrecord")) as writer:
            for row in range(10):
                writer.write(b"%d" % row)
    return folder


def ends_of_two(folder, records, policy, how="end"):
    """Run two workers until they exit; return the exit code, the last line in the file, and the output of each."""
    folder.mkdir()
    for file in records.iterdir():
        (folder / file.name).symlink_to(file)
    workers = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), policy, str(folder), how],
            env={**os.environ, "JAX_PLATFORMS": "cpu", **environ},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for environ in environments(2, replicas=1)
    ]
    said = [worker.communicate(timeout=200)[1] for worker in workers]
    files = [folder / f"worker-{number}" for number in range(2)]
    lines = [file.read_text().splitlines()[-1:] if file.exists() else None for file in files]
    return [
        (one.returncode, line, text) for one, line, text in zip(workers, lines, said, strict=True)
    ]


@pytest.mark.parametrize("policy", POLICIES)
def test_two_workers_end_normally_every_time(tmp_path, records, policy):
    with ThreadPoolExecutor(2) as pool:
        ends = pool.map(lambda n: ends_of_two(tmp_path / str(n), records, policy), range(TIMES))
    wrong = [end for pair in ends for end in pair if end[:2] != (0, ["all"])]
    assert not wrong, wrong[0]


@pytest.mark.parametrize(
    ("policy", "how", "code"),
    [
        ("AUTO", "exit", 3),
        ("AUTO", "interrupt", -signal.SIGINT),
        ("OFF, generator", "error", 1),
        ("OFF, generator", "interrupt", -signal.SIGINT),
    ],
)
def test_workers_that_end_early_keep_their_exit_codes(tmp_path, records, policy, how, code):
    ends = ends_of_two(tmp_path / "one", records, policy, how)
    assert [end[:2] for end in ends] == [(code, ["all"])] * 2, ends
