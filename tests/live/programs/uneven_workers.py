"""Reads a pipeline until a file appears. Worker 1 is slow. Started by test_browser.py."""

import json
import os
import sys
import time

import evenfeed as tf

WORKER = json.loads(os.environ["TF_CONFIG"])["task"]["index"]


def decode(x):
    time.sleep(0.01 * WORKER)
    return float(x)


def train(stop, seconds=120):
    end = time.monotonic() + seconds
    for _ in tf.data.Dataset.range(10).map(decode).repeat().batch(4).prefetch(2):
        time.sleep(0.005)
        if os.path.exists(stop) or time.monotonic() > end:
            return


train(sys.argv[1])
