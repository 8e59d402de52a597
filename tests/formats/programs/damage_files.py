"""Damages a file of each format at random, and reads it each time.

    damage_files.py FOLDER COUNT FORMAT ...

Prints the number of errors for each format. Prints nothing if a library kills the process, or an error is not evenfeed's.
"""

import random
import sys
from pathlib import Path

from tests.every_format import FORMATS, ROWS, written

import evenfeed as tf

_PATTERNS = [b"\xff" * 8, b"\0" * 8, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f"]


def damaged(whole: bytes, chance: random.Random) -> bytes:
    """Return the bytes with some flipped, overwritten, cut off or inserted."""
    content, place = bytearray(whole), chance.randrange(len(whole))
    match chance.randrange(5):
        case 0 | 1:
            for _ in range(chance.choice([1, 1, 2, 8])):
                content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        case 2:
            pattern = chance.choice(_PATTERNS)
            content[place : place + len(pattern)] = pattern
        case 3:
            del content[place:]
        case _:
            content[place:place] = chance.randbytes(chance.randrange(1, 20))
    return bytes(content)


def errors_of(dataset: tf.data.Dataset) -> int:
    """Read to the end; return the number of errors."""
    iterator, errors = iter(dataset), 0
    while errors < 50 * ROWS:
        try:
            next(iterator)
        except StopIteration:
            return errors
        except tf.errors.OpError:
            errors += 1
    raise AssertionError("it fails without end")


def errors_in(name: str, folder: Path, count: int) -> int:
    """Damage and read; return the number of errors."""
    folder.mkdir()
    paths, chance, errors = written(name, folder, 1), random.Random(name), 0
    (path,) = [*folder.glob("*-saved/*/*.pages")] or map(Path, paths)
    whole = path.read_bytes()
    for _ in range(count):
        path.write_bytes(damaged(whole, chance))
        try:
            dataset = FORMATS[name].read(paths)
        except tf.errors.OpError:
            errors += 1
            continue
        errors += errors_of(dataset) + errors_of(dataset.shuffle(20, seed=1).batch(3))
    return errors


if __name__ == "__main__":
    for format_name in sys.argv[3:]:
        found = errors_in(format_name, Path(sys.argv[1]) / format_name, int(sys.argv[2]))
        sys.stdout.write(f"{format_name}: {found}\n")
