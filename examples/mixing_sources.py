"""Mixes three sources by weight for a language model: reads each as it is, and stops and goes on exactly.

A curriculum changes the weights after some rows. `repeat` lets the small sources go around as often as needed.
"""

import json
import tempfile
from collections import Counter
from pathlib import Path

import evenfeed as tf

WEIGHTS = {"web": 0.6, "books": 0.3, "code": 0.1}


def written(folder: Path) -> None:
    """Write a text file, a JSON Lines file and a TFRecord file."""
    (folder / "web.txt").write_text("".join(f"page {n}\n" for n in range(500)))
    rows = ({"text": f"chapter {n}", "year": 1900 + n} for n in range(40))
    (folder / "books.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with tf.io.TFRecordWriter(str(folder / "code.tfrecord")) as writer:
        for n in range(20):
            writer.write(f"def f{n}(): ...".encode())


def sources(folder: Path) -> dict[str, tf.data.Dataset]:
    """Return each source as a dataset of texts with its name."""
    read = {
        "web": tf.data.TextLineDataset(str(folder / "web.txt")),
        "books": tf.data.Dataset.from_json_lines(str(folder / "books.jsonl")).map(
            lambda row: row["text"]
        ),
        "code": tf.data.TFRecordDataset(str(folder / "code.tfrecord")),
    }
    return {
        name: rows.shuffle(1000, seed=1).repeat().map(lambda text, name=name: (text, name))
        for name, rows in read.items()
    }


def mixed(folder: Path) -> tf.data.Dataset:
    by_name = sources(folder)
    rows = tf.data.Dataset.sample_from_datasets(
        [by_name[name] for name in WEIGHTS], list(WEIGHTS.values()), seed=7
    )
    # A curriculum: after 600 rows of the mixture, code alone.
    return rows.take(600).concatenate(by_name["code"].take(40)).batch(32)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written(folder)
        dataset = mixed(folder)
        iterator = iter(dataset)
        counts: Counter[str] = Counter()
        for _ in range(10):
            texts, names = next(iterator)
            counts.update(name.decode() for name in names.numpy())
        print("after 320 rows:", dict(counts), "first:", texts[0].numpy().decode())

        saved = json.dumps(iterator.get_state())  # a new program goes on from here
        again = iter(mixed(folder))
        again.set_state(json.loads(saved))
        rest = [[text.decode() for text in texts.numpy()] for texts, _ in again]
        assert rest == [[text.decode() for text in texts.numpy()] for texts, _ in iterator]
        print(f"{sum(map(len, rest))} rows more, the same after a stop; the last: {rest[-1][-1]}")
        assert 320 + sum(map(len, rest)) == 640
        assert abs(counts["web"] / 320 - WEIGHTS["web"]) < 0.1


if __name__ == "__main__":
    main()
