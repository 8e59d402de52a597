"""Runs the job of many steps in one program, and writes README.md's table of it.

`--quick` only shows that it runs: one short round, without TensorFlow, nothing written.
"""

import argparse
import sys
from itertools import product
from statistics import median

from run import PEERS, machine, run, write

BEGIN, END = "<!-- made by many_steps.py -->\n", "<!-- end of many_steps.py -->\n"
RAW, SCAN, ALONE, LOOP, MANY = (
    "raw, one by one",
    "raw, scan of 32",
    "one by one",
    "tf.range",
    "run_steps",
)
THEIRS = "TensorFlow, tf.range"
COUNTS = 1, 2, 4

Figures = dict[str, float]


def main() -> int:
    """Run all variants; return 1 where a figure is worse than it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round without TensorFlow")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0)
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
        for count, variant in product(COUNTS, variants):
            for name, figure in run("many_steps", variant, seconds, str(count)).items():
                found.setdefault(name, []).append(figure)
    return {name: median(each) for name, each in found.items()}


def rows(figures: Figures) -> list[tuple[str, str]]:
    """Return each model with each number of replicas."""
    models = dict.fromkeys(name.split("|")[0] for name in figures)
    return [(model, str(count)) for model, count in product(models, COUNTS)]


def table(figures: Figures) -> str:
    """Return what was measured, as a table."""
    ways = (RAW, SCAN, ALONE, LOOP, MANY, THEIRS)
    lines = [
        f"| µs per step | replicas | {' | '.join(ways)} |",
        "|---|---|" + "---|" * len(ways),
    ]
    for model, count in rows(figures):
        each = (figures.get(f"{model}|{count}|{way}") for way in ways)
        shown = " | ".join("" if figure is None else f"{figure:.1f}" for figure in each)
        lines.append(f"| {model} | {count} | {shown} |")
    return "\n".join(lines) + "\n"


def report(figures: Figures) -> int:
    """Say which figures are worse than they must be."""
    missed = 0
    for model, count in rows(figures):
        of = {way: figures[f"{model}|{count}|{way}"] for way in (SCAN, ALONE, LOOP, MANY, THEIRS)}
        checks = {
            "run_steps takes at most 1.5 of the raw scan": of[MANY] <= 1.5 * of[SCAN],
            "the loop takes at most 1.5 of the raw scan": of[LOOP] <= 1.5 * of[SCAN],
            "the loop is not slower than single steps": of[LOOP] <= of[ALONE],
            "the loop is ahead of TensorFlow's": of[LOOP] < of[THEIRS],
        }
        for check, reached in checks.items():
            print(f"{'yes' if reached else 'NO '} {model}, {count} replicas: {check}")
            missed += not reached
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
