"""Runs the training job with evenfeed, by hand and with TensorFlow, and writes README.md's table of it.

`--quick` only shows that it runs: one short round, without TensorFlow, nothing written.
"""

import argparse
import sys
from statistics import median

from run import PEERS, machine, run, write

BEGIN, END = "<!-- made by training.py -->\n", "<!-- end of training.py -->\n"
OURS = ("jax", "uneven", "empty")

Figures = dict[str, dict[str, float]]


def main() -> int:
    """Run all variants; return 1 where a figure is worse than it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round without TensorFlow")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    asked = parser.parse_args()
    if asked.quick:
        print(table(measured(1, 0.01, OURS)))
        return 0
    if not PEERS.exists():
        sys.exit("the peers are not installed: run `make bench`")
    figures = measured(asked.rounds, asked.seconds, (*OURS, "tensorflow"))
    text = "\n".join((machine("tensorflow-cpu"), table(figures)))
    print(text)
    write(text, BEGIN, END)
    return report(figures)


def measured(rounds: int, seconds: float, variants: tuple[str, ...]) -> Figures:
    """Run every variant, in turns, and return the medians of its figures."""
    found: dict[str, list[dict[str, float]]] = {variant: [] for variant in variants}
    for _ in range(rounds):
        for variant in variants:
            found[variant].append(run("training", variant, seconds))
            print(variant, found[variant][-1], file=sys.stderr)
    return {
        variant: {name: median(each[name] for each in runs) for name in runs[0]}
        for variant, runs in found.items()
    }


def table(figures: Figures) -> str:
    """Return what was measured, as a table."""
    lines = ["| training, 2 replicas, global batch 256 | steps/s |", "|---|---|"]
    for variant in ("jax", "tensorflow"):
        lines += [f"| {name} | {rate:.1f} |" for name, rate in figures.get(variant, {}).items()]
    lines += ["", "| variables, 4 replicas | steps/s |", "|---|---|"]
    lines += [f"| {name} | {rate:.1f} |" for name, rate in figures["uneven"].items()]
    lines += ["", "| a step that does nothing | µs |", "|---|---|"]
    lines += [f"| {name} | {time:.1f} |" for name, time in figures["empty"].items()]
    return "\n".join(lines) + "\n"


def report(figures: Figures) -> int:
    """Say which figures are worse than they must be."""
    trained, uneven, empty = (figures[variant] for variant in OURS)
    hand, theirs = trained["by hand"], figures["tensorflow"]["MirroredStrategy"]
    two = empty["evenfeed, 2 replicas"] / empty["raw, 2 replicas"]
    one = empty["evenfeed, 1 replica"] - empty["raw, 1 replica"]
    checks = {
        "variables reach 0.95 of the hand-written step": trained["variables"] >= 0.95 * hand,
        "a tree reaches 0.95 of the hand-written step": trained["tree"] >= 0.95 * hand,
        "variables are faster than MirroredStrategy": trained["variables"] > theirs,
        "uneven steps reach half of the rate": uneven["G=250"] >= 0.5 * uneven["G=256"],
        f"an empty step on 2 replicas takes {two:.2f} of the raw one, at most 1.3": two <= 1.3,
        f"an empty step on 1 replica takes {one:.1f} µs more, at most 10": one <= 10,
    }
    for check, reached in checks.items():
        print(f"{'yes' if reached else 'NO '} {check}")
    return int(not all(checks.values()))


if __name__ == "__main__":
    sys.exit(main())
