"""Runs `fit` of a Keras model on four replicas with arrays, with a Dataset and with TensorFlow; writes README.md's table.

`--quick` only shows that it runs: one short round, without TensorFlow, nothing written.
"""

import argparse
import sys
from statistics import median

from run import PEERS, machine, number, run, write

BEGIN, END = "<!-- made by keras_fit.py -->\n", "<!-- end of keras_fit.py -->\n"
ARRAYS, DATASET = "Keras on JAX, arrays", "Keras on JAX, Dataset"
LEAST = 0.95  # of the rate with arrays, which are in memory already


def main() -> int:
    """Run all variants; return 1 if a figure is lower than it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round without TensorFlow")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6.0)
    asked = parser.parse_args()
    if asked.quick:
        print(table(measured(1, 0.01, ("jax",))))
        return 0
    if not PEERS.exists():
        sys.exit("the peers are not installed: run `make bench`")
    rates = measured(asked.rounds, asked.seconds, ("jax", "tensorflow"))
    text = "\n".join((machine("tensorflow-cpu"), table(rates)))
    print(text)
    write(text, BEGIN, END)
    return int(rates[DATASET] < LEAST * rates[ARRAYS])


def measured(rounds: int, seconds: float, variants: tuple[str, ...]) -> dict[str, float]:
    """Run every variant, in turns, and return the median of each rate."""
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for variant in variants:
            for name, rate in run("keras_fit", variant, seconds).items():
                found.setdefault(name, []).append(rate)
    return {name: median(rates) for name, rates in found.items()}


def table(rates: dict[str, float]) -> str:
    """Return what was measured, as a table."""
    lines = ["| fit, 4 replicas, global batch 256 | rows/s | of arrays |", "|---|---|---|"]
    lines += [
        f"| {name} | {number(rate)} | {rate / rates[ARRAYS]:.2f} |" for name, rate in rates.items()
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
