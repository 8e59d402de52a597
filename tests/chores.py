"""Functions for processes to run: they are found by name, so they stand in a module of their own."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from evenfeed.core import dtypes


def tenfold(x):
    return x * 10


def picky(x):
    if x in (2, 5, 6):
        raise KeyError(int(x))
    return x * 10


def slow_now_and_then(x):
    time.sleep(0.03 if x % 4 == 0 else 0)
    return picky(x)


def slow_at_first(x):
    time.sleep(0.1 if x == 0 else 0)
    return x


def noisy(generator, x):
    return x + generator.normal()


def process(_):
    return np.int64(os.getpid())


def loaded(_):
    return " ".join(sys.modules)


def endless_from_1(x):
    while x > 0:
        time.sleep(0.01)
    return x


def of_many_kinds(x):
    text = np.array([b"a", b"\x00\xff" * int(x)], object)
    ragged = np.arange(int(x), dtype=np.int16)
    big = np.full((300, 300), x, dtypes.bfloat16)
    return {"a": (x, None), "b": text, "c": ragged, "d": big, "e": np.zeros((0, 3), bool)}


def fatal(x):
    """Ends its process in three ways, the first of them in the middle of other elements."""
    match int(x):
        case 7:
            os.kill(os.getpid(), signal.SIGSEGV)
        case 20:
            os._exit(3)
        case 21:
            sys.exit(4)
    return x


def closes_everything(x):
    """Closes all files of its process at one element, as a daemon does."""
    if int(x) == 3:
        os.closerange(3, 256)
    return x


def killed_once(mark, x):
    if x == 3 and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def writes_into(x):
    x[0] = 99
    return x


class Crossing(ValueError):  # noqa: N818
    """An error that cannot be made again from its text."""

    def __init__(self, one, two):
        super().__init__(f"{one} meets {two}")


def crosses(x):
    raise Crossing(int(x), "the road")


def blames(x):
    try:
        picky(x)
    except KeyError as error:
        raise RuntimeError("no luck") from error
    return x


def plus_one_without_label(x, label):
    return x + (label is None)


def is_huendin(text):
    return text == "Hündin"


def progress_setting(x):
    return int(os.environ["EVENFEED_PROGRESS"]) + x
