"""`evenfeed bench`: measures evenfeed against the input pipelines that are installed, in less than a minute."""

import argparse
import json
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any, Final

from evenfeed import __version__
from evenfeed.command.bench_jobs import JOBS, LIBRARIES
from evenfeed.core.concurrency.progress import LongWork
from evenfeed.core.lazy import subprocess

_PROGRAM: Final = "evenfeed.command.bench_jobs"
_PATIENCE: Final = (
    120.0  # seconds for the imports and the jobs of one library, beyond the measuring
)
_LIMIT: Final = "NumPy by hand"
_OWN: Final = "evenfeed"
_LONGEST: Final = 60.0
_NONE: Final = "-"


def add(commands: Any) -> None:
    """Add the command and its arguments."""
    bench = commands.add_parser(
        "bench",
        help="measure evenfeed against the input pipelines that are installed",
        description="Measures four small jobs with evenfeed, with tf.data, Grain and torch's DataLoader if they are "
        "installed, and with NumPy by hand. Each library runs in a process of its own. It takes less than a minute.",
    )
    bench.add_argument(
        "--seconds", type=_seconds, default=1.0, help="time to measure each job (default: 1)"
    )
    bench.add_argument("--json", action="store_true", help="print JSON")
    bench.set_defaults(act=act)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _LONGEST:
        raise argparse.ArgumentTypeError(
            f"must be more than 0 and at most {_LONGEST:.0f}, but got {text}"
        )
    return seconds


def act(given: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Measure what is installed, and print a table."""
    del parser
    names = list(filter(_is_installed, LIBRARIES))
    rates: dict[str, dict[str, float]] = {}
    with LongWork("Measuring", len(names), "libraries") as work:
        for name in names:
            rates[name] = _measured(name, given.seconds)
            work.add(1)
    measured = {name: found for name, found in rates.items() if found}
    print(
        json.dumps(_as_json(measured, given.seconds), indent=2) if given.json else _text(measured)
    )
    return int(len(measured) < len(names))


def _is_installed(name: str) -> bool:
    return find_spec(LIBRARIES[name][0]) is not None


def _measured(name: str, seconds: float) -> dict[str, float]:
    """Run the jobs of a library in a fresh process. Return nothing if it fails, and say why on stderr."""
    command = [sys.executable, "-m", _PROGRAM, name, str(seconds)]
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "JAX_PLATFORMS": "cpu"}
    limit = _PATIENCE + 2 * seconds * len(JOBS)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=quiet, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        why = f"it took longer than {limit:.0f} seconds"
    else:
        if done.returncode == 0:
            return json.loads(done.stdout.splitlines()[-1])
        last = done.stderr.strip().splitlines()[-1:]
        why = last[0] if last else f"exit code {done.returncode}"
    print(f"evenfeed bench: {name} failed: {why}", file=sys.stderr)
    return {}


def _as_json(rates: dict[str, dict[str, float]], seconds: float) -> dict[str, Any]:
    return {
        "evenfeed": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "seconds": seconds,
        "versions": {name: _version(name) for name in rates},
        "rows_per_second": {
            job: {name: found[job] for name, found in rates.items() if job in found} for job in JOBS
        },
    }


def _version(name: str) -> str | None:
    """Return the version of a library; None if its package has another name, as tensorflow-cpu."""
    try:
        return version(LIBRARIES[name][1])
    except PackageNotFoundError:
        return None


def _text(rates: dict[str, dict[str, float]]) -> str:
    cells = [["rows/s", *rates]]
    cells += [
        [job, *(_short(found[job]) if job in found else _NONE for found in rates.values())]
        for job in JOBS
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "  ".join(
            [first.ljust(widths[0]), *(c.rjust(w) for c, w in zip(rest, widths[1:], strict=True))]
        )
        for first, *rest in cells
    ]
    lines += [
        "",
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}. {_NONE}: no such reader.",
    ]
    missing = [name for name in LIBRARIES if not _is_installed(name)]
    if missing:
        lines.append(f"Not installed: {', '.join(missing)}.")
    behind = [job for job in JOBS if _best_peer(rates, job) > rates.get(_OWN, {}).get(job, 0.0)]
    lines += [f"evenfeed is not first: {job}." for job in behind]
    return "\n".join(lines)


def _best_peer(rates: dict[str, dict[str, float]], job: str) -> float:
    """Return the rate of the fastest library other than evenfeed. A loop by hand is no library."""
    peers = [found.get(job, 0.0) for name, found in rates.items() if name not in (_OWN, _LIMIT)]
    return max(peers, default=0.0)


def _short(rate: float) -> str:
    for size, prefix in ((1e6, " M"), (1e3, " k")):
        if rate >= size:
            return f"{rate / size:.3g}{prefix}"
    return f"{rate:.3g}"
