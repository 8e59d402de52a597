"""Lines of words in memory: a Python tokenizer, unbatch, batch 1024, shuffle 100, batch 8. Rates are in tokens."""

import random
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from timing import main, rate

LINES, WORDS, LENGTH, BUFFER, BATCH = 10_000, 5000, 1024, 100, 8
VOCABULARY = {f"w{number}": number for number in range(WORDS)}
PATTERN = re.compile(r"\w+")


def lines() -> list[str]:
    """Return lines of 5 to 59 words."""
    source = random.Random(0)
    words = list(VOCABULARY)
    return [" ".join(source.choices(words, k=source.randrange(5, 60))) for _ in range(LINES)]


def tokenized(line: bytes) -> Any:
    """Return the ids of the words of a line."""
    found = [VOCABULARY.get(word, 0) for word in PATTERN.findall(line.decode())]
    return np.array(found, np.int32)


def batches(rows: Any) -> Any:
    """Make batches of rows of tokens."""
    return rows.unbatch().batch(LENGTH, True).shuffle(BUFFER).batch(BATCH, True)


def evenfeed(seconds: float) -> dict[str, float]:
    """Call the tokenizer in a map."""
    import evenfeed as tf

    spec = tf.TensorSpec([None], tf.int32)
    data = tf.data.Dataset.from_tensor_slices(lines()).repeat()
    return rate(batches(data.map(tokenized, output_signature=spec)), np.size, seconds, 4)


def tensorflow(seconds: float) -> dict[str, float]:
    """Call the tokenizer by numpy_function."""
    import tensorflow as tf

    def ids(line: Any) -> Any:
        return tf.ensure_shape(tf.numpy_function(tokenized, [line], tf.int32), [None])

    data = tf.data.Dataset.from_tensor_slices(lines()).repeat()
    return rate(batches(data.map(ids)), lambda batch: int(tf.size(batch)), seconds, 4)


def limit(seconds: float) -> dict[str, float]:
    """Do it in a loop of plain Python."""
    encoded = [line.encode() for line in lines()]
    source = random.Random(0)

    def rows() -> Iterator[Any]:
        held, count = list[Any](), 0
        while True:
            for line in encoded:
                held.append(tokenized(line))
                count += len(held[-1])
                if count >= LENGTH:
                    flat = np.concatenate(held)
                    yield flat[:LENGTH]
                    held, count = [flat[LENGTH:]], count - LENGTH

    def found() -> Iterator[Any]:
        buffer, batch = list[Any](), list[Any]()
        for row in rows():
            if len(buffer) < BUFFER:
                buffer.append(row)
                continue
            place = source.randrange(BUFFER)
            batch.append(buffer[place])
            buffer[place] = row
            if len(batch) == BATCH:
                yield np.stack(batch)
                batch = []

    return rate(found(), np.size, seconds, 4)


VARIANTS = {"evenfeed": evenfeed, "limit": limit, "tf.data": tensorflow}

if __name__ == "__main__":
    main(VARIANTS)
