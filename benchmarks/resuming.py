"""Measures saving and restoring a position at 90 % of an epoch, against Grain and tf.data; writes README.md's table of it.

`--quick` only shows that it runs: few rows, without the peers, nothing written.
"""

import argparse
import sys

from run import PEERS, machine, run, write

BEGIN, END = "<!-- made by resuming.py -->\n", "<!-- end of resuming.py -->\n"
VARIANTS = ("evenfeed", "Grain", "tf.data")
ROWS, FEW = 100_000, 4_000

Figures = dict[str, dict[str, dict[str, float]]]


def main() -> int:
    """Run all variants, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows without the peers")
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    if asked.quick:
        print(table(measured(1, FEW, VARIANTS[:1])))
        return 0
    if not PEERS.exists():
        sys.exit("the peers are not installed: run `make bench`")
    text = "\n".join(
        (machine("grain", "tensorflow-cpu"), table(measured(asked.rounds, ROWS, VARIANTS)))
    )
    print(text)
    write(text, BEGIN, END)
    return 0


def measured(rounds: int, rows: int, variants: tuple[str, ...]) -> Figures:
    """Run every variant, in turns, and return the lowest of its figures."""
    found: Figures = {}
    for _ in range(rounds):
        for variant in variants:
            figures: dict[str, dict[str, float]] = run("resuming", variant, rows)  # pyright: ignore
            print(variant, figures, file=sys.stderr)
            before = found.get(variant, figures)
            found[variant] = {
                name: {key: min(before[name][key], value) for key, value in part.items()}
                for name, part in figures.items()
            }
    return found


def table(figures: Figures) -> str:
    """Return what was measured, as a table."""
    lines = ["| pipeline | by | save, ms | bytes | restore and next batch, ms |", "|---" * 5 + "|"]
    pipelines = next(iter(figures.values()))
    for pipeline in pipelines:
        for variant, parts in figures.items():
            part = parts[pipeline]
            lines.append(
                f"| {pipeline} | {variant} | {part['save']:.2f} | {part['bytes']:,.0f} | {part['restore']:.0f} |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
