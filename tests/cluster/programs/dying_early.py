"""Connects the workers, one of which dies while they start. The test decides which one, and when."""

import json
import os
import signal
import sys
import threading
import time
from typing import Any

import evenfeed as tf
from evenfeed.cluster import gloo, joining
from evenfeed.strategy import multi_worker

victim, where = int(sys.argv[1]), sys.argv[2]
place = json.loads(os.environ["TF_CONFIG"])["task"]["index"]


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def die(*_: Any) -> None:
    say(f"died {time.time()}")
    os.kill(os.getpid(), signal.SIGKILL)


if place == victim:
    if where == "before joining":
        joining.join_runtime = die
    elif where == "before the exchange":
        gloo.gloo_collectives = die
    else:
        connect = multi_worker.connect

        def die_soon(replicas: Any) -> None:
            threading.Timer(float(where), die).start()
            connect(replicas)

        multi_worker.connect = die_soon

try:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    total = strategy.reduce("SUM", 1.0, axis=None)
    say(f"went on {total}")
except tf.errors.UnavailableError as error:
    say(f"told {time.time()} {error.message}")
