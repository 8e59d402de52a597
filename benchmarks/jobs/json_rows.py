"""A JSON Lines file of a number, a float, text and four floats, in batches of 1024."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from timing import main, rate

ROWS, BATCH = 100_000, 1024


def written(folder: str) -> str:
    """Write the file, and return its name."""
    values = np.random.default_rng(0).random((ROWS, 5)).round(6).tolist()
    lines = [
        json.dumps({"id": row, "x": x, "name": f"name {row % 99}", "v": v})
        for row, (x, *v) in enumerate(values)
    ]
    Path(folder, "rows.jsonl").write_text("\n".join(lines) + "\n")
    return f"{folder}/rows.jsonl"


def evenfeed(seconds: float) -> dict[str, float]:
    """Write it in one line."""
    import evenfeed as tf

    with tempfile.TemporaryDirectory() as folder:
        rows = tf.data.Dataset.from_json_lines(written(folder))
        return rate(rows.batch(BATCH).repeat(), lambda batch: len(batch["id"]), seconds)


def limit(seconds: float) -> dict[str, float]:
    """Let pyarrow read the file, to NumPy."""
    from pyarrow import json as arrow_json

    def batches(name: str) -> Iterator[Any]:
        while True:
            for table in arrow_json.open_json(name):
                numbers = [table.column(key).to_numpy() for key in ("id", "x")]
                text = table.column("name").to_numpy(zero_copy_only=False)
                yield [*numbers, text, table.column("v").flatten().to_numpy()]

    with tempfile.TemporaryDirectory() as folder:
        return rate(batches(written(folder)), lambda batch: len(batch[0]), seconds)


VARIANTS = {"evenfeed": evenfeed, "limit": limit}

if __name__ == "__main__":
    main(VARIANTS)
