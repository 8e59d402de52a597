"""Draws how rates change along one axis each, with evenfeed, the peers and a limit, into docs/benchmarks.md.

`curves.py` measures all curves, `curves.py rows depth` these, and `curves.py --draw` only draws again what was
measured. Each point runs in a fresh process with a time limit, and each curve has a time limit of its own: all
curves together end within 15 minutes. A point that takes longer or fails is left out, and the page says which.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from picture import picture, short
from run import PACKAGES, PEERS, machine

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
PAGE = DOCS / "benchmarks.md"
DRAWN = DOCS / "curves"
BEGIN, END = "<!-- made by benchmarks/curves.py -->\n", "<!-- end -->\n"

POINT_SECONDS = 30  # the time limit of a point, its process included
CLEARLY = 1.05  # how many times as fast a peer must be to be called faster: less is noise
ALL_PEERS = ("tf.data", "tf.data by hand", "Grain", "Grain by hand", "torch", "torch by hand")


@dataclass(frozen=True)
class Curve:
    """What is measured along an axis.

    Attributes:
        title: What is done.
        axis: What the axis counts.
        unit: What the rates count.
        places: The places on the axis.
        limit: The name of the variant without any library for input, which is not a peer.
        seconds: The time limit of the whole curve.
        peers: The variants of other libraries.
        most: The last place of variants that would need more memory or time than there is beyond it, and why.
    """

    title: str
    axis: str
    unit: str
    places: tuple[int, ...]
    limit: str
    seconds: int
    peers: tuple[str, ...] = ALL_PEERS
    most: dict[str, tuple[int, str]] = field(default_factory=dict)

    @property
    def variants(self) -> tuple[str, ...]:
        """All variants, ours first."""
        return "evenfeed", self.limit, *self.peers


_STORED = "a permutation of all rows is stored"

CURVES = {
    "rows": Curve(
        "The numbers of a range: shuffle (tf.data: at most 10⁶ of them), map, batch 1024, repeat",
        "rows",
        "rows/s",
        tuple(10**power for power in range(3, 10)),
        "NumPy",
        170,
        most={
            "NumPy": (10**7, _STORED),
            "torch": (10**7, _STORED),
            "torch by hand": (10**7, _STORED),
        },
    ),
    "width": Curve(
        "64 MB of rows (at most 10⁶): shuffle, map, batch 64, repeat",
        "floats in a row",
        "bytes/s",
        (1, 10, 100, 1000, 10_000, 100_000),
        "NumPy",
        150,
    ),
    "batch": Curve(
        "200,000 rows of 32 floats: shuffle, map, batch, repeat",
        "rows in a batch",
        "rows/s",
        (1, 16, 256, 4096, 65_536),
        "NumPy",
        130,
    ),
    "columns": Curve(
        "Rows that are dicts of numbers: batch 1024, repeat",
        "columns",
        "numbers/s",
        (1, 10, 100, 1000),
        "NumPy",
        110,
    ),
    "depth": Curve(
        "A range with one map after the other: batch 1024",
        "maps",
        "rows/s",
        (1, 3, 10, 30, 100),
        "NumPy",
        90,
        ALL_PEERS[:4],
    ),
    "files": Curve(
        "100,000 records in TFRecord files: a whole pass in batches of 1024",
        "files",
        "records/s",
        (1, 10, 100, 1000, 10_000),
        "plain Python",
        110,
        ALL_PEERS[:2],
    ),
    "replicas": Curve(
        "200,000 rows of 32 floats: shuffle, map, batches of 1024 that reach the replicas",
        "replicas",
        "rows/s",
        (1, 2, 4, 8),
        "NumPy and JAX",
        60,
        ALL_PEERS[:2],
    ),
    "threads": Curve(
        "A Python function that waits 2 ms for each row, so many at a time",
        "num_parallel_calls",
        "rows/s",
        (1, 4, 16, 64),
        "a thread pool",
        60,
        ("tf.data", "Grain", "torch"),
        most={"torch": (16, "each is a process")},
    ),
}

_SLICES = "the code by hand slices each column once; evenfeed slices it, folds it into batches and makes it a tensor"
_WAITS = "all wait for the function most of the time, and the difference is that of the clocks and threads"

# Why a peer is ahead of evenfeed somewhere on a curve.
REASONS: dict[tuple[str, str], str] = {
    (
        "rows",
        "torch by hand",
    ): "a new round costs evenfeed 0.2 ms, which shows if it has few batches",
    ("columns", "Grain by hand"): _SLICES,
    ("columns", "tf.data by hand"): _SLICES,
    ("columns", "torch by hand"): _SLICES,
    ("threads", "Grain"): _WAITS,
    ("threads", "tf.data"): _WAITS,
    ("threads", "torch"): _WAITS,
}

# By variant, the rate at each place; and the points that are left out, with the reason.
Measured = dict[str, Any]


def main() -> None:
    """Measure the curves that the arguments name, and draw all that were ever measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("curves", nargs="*", metavar="curve", help=", ".join(CURVES))
    parser.add_argument("--draw", action="store_true", help="measure nothing")
    parser.add_argument("--seconds", type=float, default=0.6, help="how long to measure a point")
    parser.add_argument("--limit", type=float, help="the time limit of a curve, in seconds")
    asked = parser.parse_args()
    if unknown := set(asked.curves) - set(CURVES):
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(CURVES)}")
    DRAWN.mkdir(exist_ok=True)
    for name in () if asked.draw else asked.curves or CURVES:
        found = measured(name, asked.seconds, asked.limit or CURVES[name].seconds)
        (DRAWN / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
    for name in CURVES:
        if (DRAWN / f"{name}.json").exists():
            (DRAWN / f"{name}.svg").write_text(drawn(name))
    PAGE.write_text(page())


def measured(name: str, seconds: float, limit: float) -> Measured:
    """Measure a curve: first evenfeed and the limit, then at each place all peers that there is time for."""
    curve, end = CURVES[name], time.monotonic() + limit
    rates: dict[str, dict[str, float]] = {variant: {} for variant in curve.variants}
    missing: list[tuple[str, str, int]] = []
    for variants in (curve.variants[:2], curve.peers):
        for place, variant in product(curve.places, variants):
            most, why = curve.most.get(variant, (place, ""))
            found: float | str = why
            if place <= most:
                found = point(name, variant, place, seconds, end - time.monotonic())
            print(name, variant, place, found, file=sys.stderr, flush=True)
            if isinstance(found, str):
                missing.append((found, variant, place))
            else:
                rates[variant][str(place)] = found
    peers = PACKAGES if PEERS.exists() else ()
    return {"machine": machine(*peers).strip(), "rates": rates, "missing": missing}


def point(name: str, variant: str, place: int, seconds: float, left: float) -> float | str:
    """Measure one point in a fresh process; return why there is none if it fails."""
    python = sys.executable
    if variant in ALL_PEERS:
        if not PEERS.exists():
            return "not installed"
        python = str(PEERS)
    most = min(POINT_SECONDS, left)
    if most < 1:
        return "no time left"
    command = [python, str(HERE / "points" / f"{name}.py"), variant, str(place), str(seconds)]
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, env=quiet, timeout=most, check=False
        )
    except subprocess.TimeoutExpired:
        return f"more than {most:.0f} s"
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1][:100]
    return json.loads(done.stdout.splitlines()[-1])["rate"]


def stored(name: str) -> Measured | None:
    """Return what was measured of a curve last."""
    path = DRAWN / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def drawn(name: str) -> str:
    """Return the picture of a curve that was measured."""
    found = stored(name)
    assert found is not None
    curve = CURVES[name]
    lines = {
        variant: [(float(place), rate) for place, rate in rates.items()]
        for variant, rates in found["rates"].items()
        if rates
    }
    return picture(lines, axis=curve.axis, unit=curve.unit, places=curve.places)


def page() -> str:
    """Return docs/benchmarks.md with the curves that were measured last."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    sections = [_section(name, found) for name in CURVES if (found := stored(name))]
    ahead = [line for name in CURVES if (found := stored(name)) for line in not_first(name, found)]
    behind = "\n".join(f"- {line}" for line in ahead) or "No peer is ahead at any point."
    text = "\n".join([*sections, f"## Where evenfeed is not first\n\n{behind}\n"])
    return f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}"


def _section(name: str, found: Measured) -> str:
    curve = CURVES[name]
    lines = [
        f"## {name.capitalize()}",
        "",
        f"{curve.title}.",
        "",
        f"![{name}](curves/{name}.svg)",
        "",
    ]
    lines += [f"`benchmarks/curves.py {name}`, {found['machine']}", ""]
    if found["missing"]:
        lines += [f"Left out: {left_out(found['missing'])}.", ""]
    return "\n".join(lines)


def left_out(missing: list[tuple[str, str, int]]) -> str:
    """Say which points are left out, for each reason."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for why, variant, place in missing:
        reasons.setdefault(why, {}).setdefault(variant, []).append(short(place))
    parts: list[str] = []
    for why, lines in reasons.items():
        points = ", ".join(f"{name} at {' and '.join(places)}" for name, places in lines.items())
        parts.append(f"{points} ({why})")
    return "; ".join(parts)


def not_first(name: str, found: Measured) -> list[str]:
    """Say where a peer is ahead of evenfeed on a curve, and why."""
    rates, lines = found["rates"], []
    for peer in CURVES[name].peers:
        ahead = [
            (place, theirs / rates["evenfeed"][place])
            for place, theirs in rates[peer].items()
            if place in rates["evenfeed"] and theirs > CLEARLY * rates["evenfeed"][place]
        ]
        if ahead:
            factor = max(ratio for _, ratio in ahead)
            places = ", ".join(short(float(place)) for place, _ in ahead)
            why = REASONS.get((name, peer), "the reason is not known yet")
            lines.append(f"{name}, at {places}: {peer} is up to {factor:.2f} x as fast: {why}.")
    return lines


if __name__ == "__main__":
    main()
