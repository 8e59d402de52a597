"""Feeds damaged input to every parser: files, records, lines, images, states, TF_CONFIG, messages between workers.

Each input gives a result or one of the documented errors: no crash, no hang, no other exception. Where the format has
checksums, a result is the one of the undamaged input.

Usage: python -m tests.reliability.fuzz INPUTS [SEED] [PARSER ...]

Each parser runs in a process of its own. If that is killed or hangs, the seed of the last hundred inputs is printed;
`python -m tests.reliability.fuzz --one PARSER SEED` runs those again.
"""

import faulthandler
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.formats.programs.damage_files import damaged
from tests.reliability.parsers import Parser, parsers

GROUP = 100  # inputs per seed
SECONDS = 60.0  # for one group
OK, REFUSED = "read", "refused"


def mutated(parser: Parser, chance: random.Random) -> bytes:
    """Return a damaged input: bytes changed, cut, inserted, repeated, spliced with another input, or all random."""
    content = chance.choice(parser.seeds)
    if chance.random() < 0.05:
        return chance.randbytes(chance.randrange(200))
    if chance.random() < 0.1:
        other = chance.choice(parser.seeds)
        content = (
            content[: chance.randrange(len(content) + 1)] + other[chance.randrange(len(other)) :]
        )
    if chance.random() < 0.1:
        start = chance.randrange(len(content) + 1)
        content = (
            content[:start]
            + content[max(0, start - 16) : start] * chance.randrange(1, 9)
            + content[start:]
        )
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        content = damaged(content or b"\0", chance)
    return content


def run_group(parser: Parser, name: str, seed: int) -> Counter[str]:
    """Read a hundred inputs; count what came of them."""
    chance, found = random.Random(f"{name} {seed}"), Counter[str]()
    for number in range(GROUP):
        content = mutated(parser, chance)
        try:
            parser.read(content)
            found[OK] += 1
        except parser.errors:
            found[REFUSED] += 1
        except Exception as error:
            error.add_note(f"parser {name!r}, seed {seed}, input {number}: {content!r}")
            raise
    return found


def _serve(name: str, first: int, groups: int) -> None:
    """Read groups of inputs, and print the counts after each."""
    faulthandler.enable()
    with tempfile.TemporaryDirectory() as folder:
        parser = parsers(Path(folder))[name]()
        for seed in range(first, first + groups):
            faulthandler.dump_traceback_later(SECONDS, exit=True)
            found = run_group(parser, name, seed)
            sys.stdout.write(f"{seed} {found[OK]} {found[REFUSED]}\n")
            sys.stdout.flush()


def fuzz(name: str, first: int, groups: int) -> Counter[str]:
    """Run a parser in a process of its own, and count what came of its inputs."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.reliability.fuzz", "--one", name, str(first), str(groups)],
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
    if done.returncode:
        last = lines[-1][0] + 1 if lines else first
        raise AssertionError(f"{name} failed in the group with seed {last}:\n{done.stderr[-4000:]}")
    return Counter({OK: sum(line[1] for line in lines), REFUSED: sum(line[2] for line in lines)})


def main(inputs: int, first: int, names: list[str]) -> None:
    """Share the inputs among the parsers, and print a line for each."""
    with tempfile.TemporaryDirectory() as folder:
        made = {name: make() for name, make in parsers(Path(folder)).items()}
    names = names or list(made)
    weights = sum(made[name].weight for name in names)
    total, begin = Counter[str](), time.monotonic()
    failed: list[str] = []
    for name in names:
        groups = max(1, round(inputs * made[name].weight / weights / GROUP))
        try:
            found = fuzz(name, first, groups)
        except AssertionError as error:
            failed.append(name)
            sys.stdout.write(f"{error}\n")
            continue
        total += found
        sys.stdout.write(f"{name}: {found.total():,} inputs, {found[REFUSED]:,} refused\n")
        sys.stdout.flush()
    seconds = time.monotonic() - begin
    sys.stdout.write(
        f"{total.total():,} inputs over {len(names)} parsers, {total[REFUSED]:,} refused, seeds from {first}, "
        f"{seconds:.0f} s; failed: {failed or 'none'}\n"
    )
    sys.exit(bool(failed))


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        _serve(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    else:
        main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0, sys.argv[3:])
