"""Flips bits of the footer of a Parquet file, one after the other, and reads the file each time.

    flip_bits.py FILE FIRST STEP

Prints how often the file was read and how often it was rejected. Prints nothing if pyarrow kills the process.
"""

import sys
from datetime import date
from pathlib import Path

import evenfeed as tf

FILTERS = [
    None,
    [("i", ">", 2), ("s", "<", "text 5")],
    [("d", ">", date(2020, 1, 3)), ("f", "<", 2)],
]


def main(path: Path, first: int, step: int) -> None:
    """Read the file with each of the bits flipped."""
    whole = path.read_bytes()
    begin = 8 * (len(whole) - 8 - int.from_bytes(whole[-8:-4], "little"))
    refused = []
    for bit in range(begin + first, 8 * len(whole), step):
        content = bytearray(whole)
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        refused.append(sum(_is_refused(path, asked) for asked in FILTERS) > 0)
    sys.stdout.write(f"{refused.count(False)} {refused.count(True)}\n")


def _is_refused(path: Path, asked: object) -> bool:
    try:
        rows = tf.data.Dataset.from_parquet(path, filter=asked, fill_null={"n": 0})
        for _ in rows.take(20).as_numpy_iterator():
            pass
    except tf.errors.OpError as error:
        if str(path) not in str(error):
            raise
        return True
    return False


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
