"""Measures `import evenfeed` against `import numpy`, which it contains: at most 1.5 times as long.

Every import runs in a fresh interpreter; the two take turns, so that both meet the same machine, and
the smallest time of each counts. What the interpreter's own start takes is subtracted from both.
The number of rounds may be given as an argument.
"""

import random
import subprocess
import sys
import time

LIMIT = 1.5
PROGRAMS = {
    "nothing": "pass",
    "numpy": "import numpy",
    "optree": "import numpy, optree",
    "evenfeed": "import evenfeed",
}


def main() -> int:
    """Print the times and return 1 where evenfeed takes longer than it may."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    names = [name for name, program in PROGRAMS.items() if works(program)]
    best = dict.fromkeys(names, float("inf"))
    for _ in range(rounds):
        random.shuffle(names)  # so that none always follows the same other
        for name in names:
            best[name] = min(best[name], seconds(PROGRAMS[name]))
    base = best.pop("nothing")
    for name, took in best.items():
        print(f"import {name:9} {1000 * (took - base):6.1f} ms")
    ratio = (best["evenfeed"] - base) / (best["numpy"] - base)
    print(f"evenfeed / numpy: {ratio:.2f} (at most {LIMIT})")
    return int(ratio > LIMIT)


def works(program: str) -> bool:
    """Tell whether the program runs here; optree is only compared where it is installed."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    return done.returncode == 0


def seconds(program: str) -> float:
    """Return how long a fresh interpreter takes for the program."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
