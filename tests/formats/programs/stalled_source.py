"""Reads a source that never answers. Ctrl-C comes after a second; then the program ends."""

import signal
import sys
import threading
import time

from tests.faulty import storage

import evenfeed as tf

way = sys.argv[1]
with storage() as store:
    size = 1 << 21
    path = store.write("x", b"0123456789\n" * (size // 11))
    dataset = tf.data.TextLineDataset(path).batch(1000)
    if way == "parquet":
        import io

        import pyarrow as pa
        import pyarrow.parquet as pq

        target = io.BytesIO()
        pq.write_table(pa.table({"x": range(10)}), target)
        dataset = tf.data.Dataset.from_parquet(store.write("y", target.getvalue()))
    iterator = iter(dataset)
    if way == "ahead":  # the thread that reads ahead stalls, and nobody waits for it
        for _ in range(20):
            next(iterator)
        store.stalled = 100
        next(iterator)
        sys.stdout.write("ended\n")
        sys.stdout.flush()
        sys.exit(3)
    store.stalled = 100
    threading.Timer(1.0, signal.raise_signal, [signal.SIGINT]).start()
    begin = time.monotonic()
    try:
        list(iterator)
    except KeyboardInterrupt:
        sys.stdout.write("ended\n")
        sys.stdout.flush()
        assert time.monotonic() - begin < 3
        sys.exit(3)
