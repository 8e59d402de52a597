"""Kills training at random moments, starts it again on another number of workers, and compares it with an unkilled run.

Usage: python -m tests.reliability.kills KILLS [SEED] [--minutes MINUTES] [--ways data lanes]

After each job it prints what has been compared so far. When the time is over, the last job ends without kills, so every
kill that was counted is compared.
"""

import argparse
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.processes import wait_until

PROGRAM = Path(__file__).with_name("programs") / "killed_training.py"
MARK = "EVENFEED_KILLED_IN"  # in the environment of every process of a job
KINDS = ("worker", "all", "service", "launcher", "saving")
WORKERS = (1, 2, 3)
WAYS = ("data", "lanes")  # jobs alternate between them
ROWS, BATCH, EPOCHS, LANES, SAVE_EVERY = 96, 12, 12, 6, 5
STEPS = ROWS // BATCH * EPOCHS
SECONDS = 240.0  # a busy machine is slow; a job that takes longer hangs


@dataclass
class Counts:
    """What happened so far."""

    kills: Counter[str] = field(default_factory=Counter[str])
    jobs: int = 0
    resized: int = 0
    steps: int = 0
    repeated: int = 0
    shared: int = 0

    def __str__(self) -> str:
        kinds = ", ".join(f"{kind} {self.kills[kind]}" for kind in KINDS)
        return (
            f"{self.kills.total()} kills ({kinds}) in {self.jobs} jobs; {self.resized} restarts on another number of "
            f"workers; {self.steps} steps, {self.repeated} of them taken again after a kill; {self.shared} pieces of "
            "shared memory"
        )


@dataclass
class Job:
    """One training run, which is killed and started again until it ends."""

    folder: Path
    way: str
    starts: int = 0
    sizes: list[int] = field(default_factory=list[int])
    shared: set[str] = field(
        default_factory=set[str]
    )  # the memory that its processes had when they were killed

    def start(self, workers: int) -> "subprocess.Popen[bytes]":
        """Start the workers with `evenfeed run`."""
        self.sizes.append(workers)
        command = [sys.executable, "-m", "evenfeed", "run", "--grace", "2"]
        options = ["--workers", str(workers), "--replicas", "1"]
        arguments = [str(PROGRAM), str(self.folder), str(self.starts), self.way]
        self.starts += 1
        with (self.folder / "output").open("ab") as output:
            return subprocess.Popen(
                [*command, *options, *arguments],
                env={**os.environ, MARK: str(self.folder)},
                stdout=output,
                stderr=output,
            )

    def processes(self) -> dict[int, list[str]]:
        """Return the command line of every process of the job, by process id."""
        found: dict[int, list[str]] = {}
        mark = f"{MARK}={self.folder}".encode()
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (path / "environ").read_bytes().split(b"\0"):
                    words = (path / "cmdline").read_bytes().decode(errors="replace").split("\0")
                    found[int(path.name)] = words
            except OSError:
                continue
        return found

    def remember_memory(self) -> None:
        """Remember the shared memory of its processes."""
        for pid in self.processes():
            self.shared |= shared_memory(pid)

    def steps_logged(self) -> int:
        """Return how many steps worker 0 has logged since the last start."""
        logs = list(self.folder.glob(f"log-{self.starts - 1}-*-0"))
        return logs[0].read_bytes().count(b"\n") if logs else 0

    @property
    def is_done(self) -> bool:
        """True if every worker of the last start has reached the end."""
        done = {path.name for path in self.folder.glob("done-*")}
        return done >= {f"done-{place}" for place in range(self.sizes[-1])}


def shared_memory(pid: int | str) -> set[str]:
    """Return the device and inode of each piece of shared memory that a process has mapped."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    except OSError:
        return set()
    found = [line.split(maxsplit=5) for line in lines]
    return {
        f"{words[3]} {words[4]}"
        for words in found
        if len(words) > 5 and words[5].startswith(("/memfd:", "/dev/shm/"))
    }


def assert_freed(memory: set[str]) -> None:
    """Check that shared memory of processes that have ended is not mapped elsewhere and has no name."""
    for path in Path("/proc").glob("[0-9]*"):
        assert not memory & shared_memory(path.name), f"process {path.name} has the memory"
    named = {str(path.stat().st_ino) for path in Path("/dev/shm").iterdir()}
    assert not named & {piece.split()[1] for piece in memory}, "the memory has a name"


def victims(kind: str, known: dict[int, list[str]], chance: random.Random) -> list[int]:
    """Return the processes to kill; none if the job does not have such a process at the moment."""
    workers = [pid for pid, words in known.items() if str(PROGRAM) in words and "run" not in words]
    service = [pid for pid, words in known.items() if "evenfeed.cluster.service" in words]
    launcher = [pid for pid, words in known.items() if "run" in words and "evenfeed" in words]
    return {
        "worker": chance.sample(workers, 1) if workers else [],
        "all": workers,
        "service": service[:1],
        "launcher": launcher,
    }[kind]


def kill(job: Job, launcher: Any, kind: str, chance: random.Random) -> bool:
    """Kill a part of a running job at a random moment. Return False if the job ended before."""
    early = chance.random() < 0.2 and kind != "saving"
    moment, steps = time.monotonic() + chance.uniform(0.0, 4.0), chance.randrange(1, 20)
    end = time.monotonic() + SECONDS
    while launcher.poll() is None:
        is_moment = time.monotonic() > moment if early else job.steps_logged() >= steps
        if is_moment and kind != "saving":
            found = victims(kind, job.processes(), chance)
            job.remember_memory()
            for pid in found:
                os.kill(pid, signal.SIGKILL)
            if found:
                return True
        assert time.monotonic() < end, f"the job hangs: {job.folder}"
        time.sleep(chance.uniform(0.001, 0.02))
    return kind == "saving" and not job.is_done


def play(  # noqa: PLR0913 - a script
    kills: int,
    seed: int,
    root: Path,
    ways: Sequence[str] = WAYS,
    say: Callable[[str], Any] | None = None,
    *,
    seconds: float = math.inf,
) -> Counts:
    """Kill training so many times, unless the time is over before, and compare every job with one that was not killed."""
    counts, chance = Counts(), random.Random(seed)
    end = time.monotonic() + seconds

    def is_enough() -> bool:
        return counts.kills.total() >= kills or time.monotonic() > end

    write_lines(root)
    references = {way: unkilled(root / f"reference-{way}", way) for way in ways}
    while not is_enough():
        way = ways[counts.jobs % len(ways)]
        job = Job(root / f"job-{counts.jobs}", way)
        job.folder.mkdir()
        counts.jobs += 1
        while True:
            # Each kind in turn, so that a short run has all of them.
            kind = "none" if is_enough() else KINDS[counts.kills.total() % len(KINDS)]
            workers = chance.choice(WORKERS[1:] if kind in ("service", "worker") else WORKERS)
            counts.resized += bool(job.sizes) and workers != job.sizes[-1]
            if kind == "saving":
                (job.folder / f"die-{job.starts}").touch()
            launcher = job.start(workers)
            try:
                was_killed = kind != "none" and kill(job, launcher, kind, chance)
                launcher.wait(SECONDS)
                wait_until(lambda job=job: not job.processes(), 30)
                assert_freed(job.shared)
            finally:
                for pid in job.processes():
                    os.kill(pid, signal.SIGKILL)
                launcher.wait()
            counts.kills[kind] += was_killed
            if job.is_done:
                break
            output = (job.folder / "output").read_text(errors="replace")
            assert was_killed, f"it failed without a kill: {job.folder}\n{output[-3000:]}"
        steps, repeated = compared(job, references[way])
        counts.steps += steps
        counts.repeated += repeated
        counts.shared += len(job.shared)
        if say:
            say(str(counts))
    return counts


def write_lines(root: Path) -> None:
    """Write a file of rows for each lane. Lines between them, below zero, are dropped by a filter."""
    for lane in range(LANES):
        rows = range(lane * ROWS // LANES, (lane + 1) * ROWS // LANES)
        text = "".join(f"{row}\n{-1 - row}\n" for row in rows)
        (root / f"lines-{lane}.txt").write_text(text)


def unkilled(folder: Path, way: str) -> list[dict[str, Any]]:
    """Return the steps of a run on one worker that nobody kills; check that each epoch has each row once."""
    folder.mkdir()
    job = Job(folder, way)
    assert job.start(1).wait(SECONDS) == 0, (folder / "output").read_text()
    ((_, _, (steps,)),) = logs(folder)
    assert [step["step"] for step in steps] == list(range(STEPS))
    for epoch in range(EPOCHS):
        batches = steps[epoch * STEPS // EPOCHS : (epoch + 1) * STEPS // EPOCHS]
        assert sorted(row for step in batches for row in step["ids"]) == list(range(ROWS))
    return steps


def logs(folder: Path) -> list[tuple[int, int, Sequence[list[dict[str, Any]]]]]:
    """Return the number and size of each start, and the steps that each of its workers logged."""
    found: dict[tuple[int, int], dict[int, list[dict[str, Any]]]] = {}
    for path in folder.glob("log-*"):
        start, workers, place = map(int, path.name.split("-")[1:])
        # A kill may cut off the last line.
        lines = path.read_text().split("\n")[:-1]
        found.setdefault((start, workers), {})[place] = [json.loads(line) for line in lines]
    return [
        (start, workers, [places.get(place, []) for place in range(workers)])
        for (start, workers), places in sorted(found.items())
    ]


def compared(job: Job, reference: list[dict[str, Any]]) -> tuple[int, int]:
    """Check every step of every start; return how many steps were taken, and how many of them again."""
    taken: Counter[int] = Counter()
    for start, workers, places in logs(job.folder):
        by_step: dict[int, dict[int, dict[str, Any]]] = {}
        for place, steps in enumerate(places):
            numbers = [step["step"] for step in steps]
            assert all(b == a + 1 for a, b in pairwise(numbers)), (job.folder, start, place)
            assert not numbers or numbers[0] % SAVE_EVERY == 0, (job.folder, start, place)
            for step in steps:
                by_step.setdefault(step["step"], {})[place] = step
        for number, parts in by_step.items():
            where = f"{job.folder}, start {start} on {workers} workers, step {number}"
            expected = reference[number]
            for place, part in parts.items():
                rows = BATCH // workers
                assert part["ids"] == expected["ids"][place * rows : (place + 1) * rows], where
                assert math.isclose(part["loss"], expected["loss"], rel_tol=1e-5), where
            taken[number] += len(parts) == workers
    assert all(taken[number] for number in range(STEPS)), job.folder
    return taken.total(), taken.total() - STEPS


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kills", type=int)
    parser.add_argument("seed", type=int, nargs="?", default=0)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    asked = parser.parse_args()
    begin = time.monotonic()

    def say(text: str) -> None:
        sys.stderr.write(f"{text}\n")

    with tempfile.TemporaryDirectory() as folder:
        counts = play(
            asked.kills, asked.seed, Path(folder), asked.ways, say, seconds=60 * asked.minutes
        )
    seconds = time.monotonic() - begin
    sys.stdout.write(
        f"{counts}.\nEvery step had the rows and the loss of the run that was not killed; no process and no shared memory was "
        f"left behind. {' and '.join(asked.ways)}, seed {asked.seed}, {seconds:.0f} s\n"
    )


if __name__ == "__main__":
    main()
