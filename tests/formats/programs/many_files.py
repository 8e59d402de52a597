"""Reads many files under a low limit of open files; with --none-left, when none can be opened."""

import os
import resource
import sys

import evenfeed as tf

paths = sys.argv[1:]
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
if paths[0] == "--none-left":
    lines = tf.data.TextLineDataset(paths[1:])
    list(lines)  # load everything that is needed
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) - 1, most))
    list(lines)

resource.setrlimit(resource.RLIMIT_NOFILE, (64, most))
found = []
records = tf.data.TFRecordDataset(paths)
names = tf.data.Dataset.from_tensor_slices(paths)
found.append(len(set(map(bytes, records.shuffle(10_000).as_numpy_iterator()))))
turns = names.interleave(tf.data.TFRecordDataset, cycle_length=len(paths))
found.append(len(set(map(bytes, turns.as_numpy_iterator()))))
parallel = names.interleave(tf.data.TFRecordDataset, cycle_length=len(paths), num_parallel_calls=8)
found.append(len(set(map(bytes, parallel.prefetch(4).as_numpy_iterator()))))
sys.stdout.write(" ".join(map(str, found)))
