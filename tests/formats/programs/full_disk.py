"""Simulates a full disk by limiting files to 300,000 bytes, writes to it, and prints what happens."""

import json
import os
import resource
import signal
import sys

import evenfeed as tf

folder, way = sys.argv[1:]
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, most))
COUNT = 100_000


def all_of(dataset: tf.data.Dataset) -> tuple[list[int], list[str]]:
    """Return the elements, and the errors."""
    iterator, found, errors = iter(dataset), list[int](), list[str]()
    while len(errors) < 9:
        try:
            found.append(int(next(iterator)))
        except StopIteration:
            break
        except tf.errors.OpError as error:
            errors.append(f"{type(error).__name__}: {error.message}")
    return found, errors


found, errors = list[int](), list[str]()
numbers = tf.data.Dataset.range(COUNT)
if way == "save":
    try:
        numbers.save(folder)
    except tf.errors.OpError as error:
        errors = [f"{type(error).__name__}: {error.message}"]
else:
    kept = numbers.cache(f"{folder}/kept") if way == "cache" else numbers.snapshot(folder)
    found, errors = all_of(kept)
left = [name for _, _, names in os.walk(folder) for name in names]
sys.stdout.write(json.dumps([found == list(range(COUNT)), errors, left]))
