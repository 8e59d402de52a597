"""Measures how fast steps reach the replicas: evenfeed, the same by hand, and TensorFlow; writes README.md's table of it.

`--quick` only shows that it runs: one short round, without TensorFlow, nothing written.
"""

import argparse
import sys
from statistics import median

from run import PEERS, machine, number, run, write

BEGIN, END = "<!-- made by feeding.py -->\n", "<!-- end of feeding.py -->\n"
JOBS = ("tabular", "range", "hidden", "computed")
# What each job must reach: the other way, and how many times its rate.
MARKS = (
    ("tabular", "by hand", 0.6),
    ("range", "by hand", 1 / 1.5),
    ("range", "tensorflow", 5.0),
    ("hidden", "by hand", 0.97),
    ("computed", "by hand", 0.97),
)

Figures = dict[str, float]


def main() -> int:
    """Run all variants; return 1 where a figure is lower than it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round without TensorFlow")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5)
    asked = parser.parse_args()
    if asked.quick:
        print(table(measured(1, 0.01, ("jax",))))
        return 0
    if not PEERS.exists():
        sys.exit("the peers are not installed: run `make bench`")
    figures = measured(asked.rounds, asked.seconds, ("jax", "tensorflow"))
    text = "\n".join((machine("tensorflow-cpu"), table(figures)))
    print(text)
    write(text, BEGIN, END)
    return report(figures)


def measured(rounds: int, seconds: float, variants: tuple[str, ...]) -> Figures:
    """Run every variant, in turns, and return the medians of its figures."""
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for variant in variants:
            figures = run("feeding", variant, seconds)
            print(variant, figures, file=sys.stderr)
            for name, rate in figures.items():
                found.setdefault(name, []).append(rate)
    return {name: median(rates) for name, rates in found.items()}


def table(figures: Figures) -> str:
    """Return what was measured, as a table."""
    lines = ["| steps/s | evenfeed | by hand | of that | tensorflow |", "|---" * 5 + "|"]
    for job in JOBS:
        mine, hand = (figures[f"{job}, {way}"] for way in ("evenfeed", "by hand"))
        theirs = figures.get(f"{job}, tensorflow")
        told = "-" if theirs is None else f"{number(theirs)} ({number(mine / theirs)} x)"
        lines.append(f"| {job} | {number(mine)} | {number(hand)} | {mine / hand:.2f} | {told} |")
    return "\n".join(lines) + "\n"


def report(figures: Figures) -> int:
    """Say which figures are lower than they must be."""
    missed = 0
    for job, other, least in MARKS:
        reached = figures[f"{job}, evenfeed"] / figures[f"{job}, {other}"]
        missed |= reached < least
        print(
            f"{'yes' if reached >= least else 'NO '} {job}: {reached:.2f} of {other}, at least {least:.2f}"
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
