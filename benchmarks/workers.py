"""Measures what a step of two workers costs: evenfeed against JAX by hand; writes README.md's table of it.

`--quick` only shows that it runs: one short round, nothing written.
"""

import argparse
import json
import subprocess
import sys

from run import HERE, machine, write

BEGIN, END = "<!-- made by workers.py -->\n", "<!-- end of workers.py -->\n"
SECONDS_AT_MOST = 600


def main() -> int:
    """Run both workers; return 1 where a figure is worse than it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--seconds", type=float, default=10.0)
    asked = parser.parse_args()
    figures = measured(0.1 if asked.quick else asked.seconds)
    print(table(figures))
    if asked.quick:
        return 0
    write(f"{machine()}\n{table(figures)}", BEGIN, END)
    return report(figures)


def measured(seconds: float) -> dict[str, float]:
    """Start two workers, and return what the first of them prints."""
    command = [sys.executable, "-m", "evenfeed", "run", "--workers", "2", "--replicas", "1"]
    command += [str(HERE / "jobs" / "workers.py"), str(seconds)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=SECONDS_AT_MOST
    )
    found = [line for line in done.stdout.splitlines() if line.startswith("[worker 0] {")]
    if done.returncode or not found:
        sys.exit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    return json.loads(found[-1].removeprefix("[worker 0] "))


def table(figures: dict[str, float]) -> str:
    """Return what was measured, as a table."""
    lines = ["| 2 workers of one replica | ms a step |", "|---|---|"]
    lines += [f"| {name} | {time:.2f} |" for name, time in figures.items()]
    return "\n".join(lines) + "\n"


def report(figures: dict[str, float]) -> int:
    """Say which figures are worse than they must be."""
    hand = figures["by hand"]
    ratios = {name: hand / figures[name] for name in ("variables", "tree")}
    agreeing = figures["size agreed on"] - figures["size known"]
    checks = {
        f"{name}: {ratio:.2f} of by hand, at least 0.95": ratio >= 0.95
        for name, ratio in ratios.items()
    }
    checks[f"to agree takes {1000 * agreeing:.0f} µs of a step, at most 50"] = agreeing <= 0.05
    for check, reached in checks.items():
        print(f"{'yes' if reached else 'NO '} {check}")
    return int(not all(checks.values()))


if __name__ == "__main__":
    sys.exit(main())
