"""Read text files in turn, stop in the middle, and go on in another iterator."""

import json
import tempfile
from pathlib import Path

import evenfeed as tf

with tempfile.TemporaryDirectory() as folder:
    for day in ("monday", "tuesday", "friday"):
        lines = [f"{day},{hour},{hour * 10}" for hour in range(4)]
        Path(folder, f"{day}.csv").write_text("day,hour,count\n" + "\n".join(lines))

    def rows(name):
        """Return the lines of a file behind its header."""
        return tf.data.TextLineDataset(name).skip(1)

    files = tf.data.Dataset.list_files(f"{folder}/*.csv", shuffle=False)
    dataset = files.interleave(rows, cycle_length=2).batch(3)

    iterator = iter(dataset)
    for number in range(2):
        print(number, next(iterator).tolist())
    state = json.dumps(iterator.get_state())  # a text, for a file of your own

    again = iter(dataset)
    again.set_state(json.loads(state))
    for number, batch in enumerate(again, start=2):
        print(number, batch.tolist())
