"""Measures every function of tf.image with evenfeed and with TensorFlow, and writes README.md's table of it.

`--quick` only shows that it runs: one short round of some functions, without TensorFlow, nothing written. Words select
rows by their names, and nothing is written then either.
"""

import argparse
import sys

from run import PEERS, machine, number, run, write

BEGIN, END = "<!-- made by images.py -->\n", "<!-- end of images.py -->\n"
# How many times TensorFlow's rate every row must reach.
LEAST = 1.2

Figures = dict[str, float]


def main() -> int:
    """Run all rows; return 1 where one is slower than it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round without TensorFlow")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("rows", nargs="*", help="words in the names of rows")
    asked = parser.parse_args()
    if asked.quick:
        print(table(measured(1, 0.01, ("evenfeed",), asked.rows or ["adjust_", "decode_"])))
        return 0
    if not PEERS.exists():
        sys.exit("the peers are not installed: run `make bench`")
    figures = measured(asked.rounds, asked.seconds, ("evenfeed", "tf.data"), asked.rows)
    text = "\n".join((machine("tensorflow-cpu"), table(figures)))
    print(text)
    if not asked.rows:
        write(text, BEGIN, END)
    return report(figures)


def measured(
    rounds: int, seconds: float, variants: tuple[str, ...], rows: list[str]
) -> dict[str, Figures]:
    """Run every variant, in turns, and return the best rate of each row."""
    found: dict[str, Figures] = {}
    for _ in range(rounds):
        for variant in variants:
            for name, rate in run("image_functions", variant, seconds, *rows).items():
                best = found.setdefault(name, {})
                best[variant] = max(rate, best.get(variant, 0))
    return found


def table(figures: dict[str, Figures]) -> str:
    """Return the rates as a table, the slowest against TensorFlow first."""
    lines = [
        "| pictures per second of processor time | of | in a map over | evenfeed | tf.data |",
        "|---" * 5 + "|",
    ]
    for name in sorted(figures, key=lambda name: ratio(figures[name])):
        function, kind, form = name.split("|")
        mine, theirs = figures[name]["evenfeed"], figures[name].get("tf.data")
        told = "-" if theirs is None else f"{number(theirs)} ({number(mine / theirs)} x)"
        over = "pictures" if form == "each" else "batches"
        lines.append(f"| {function} | {kind} | {over} | {number(mine)} | {told} |")
    return "\n".join(lines) + "\n"


def ratio(rates: Figures) -> float:
    """Return how many times TensorFlow's rate evenfeed reaches."""
    return rates["evenfeed"] / rates.get("tf.data", 1)


def report(figures: dict[str, Figures]) -> int:
    """Say which rows are slower than they must be."""
    low = [
        f"{name}: {ratio(rates):.2f}, must be {LEAST}"
        for name, rates in figures.items()
        if ratio(rates) < LEAST
    ]
    print("\n".join(low) or "every row is as fast as it must be, or faster")
    return int(bool(low))


if __name__ == "__main__":
    sys.exit(main())
