import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
import numpy as np
import evenfeed as tf

next(iter(tf.data.Dataset.range(1)))

def faults(count):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(count):
        np.empty(3 << 20, np.uint8).fill(1)
        np.empty(7 << 20, np.uint8).fill(1)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults(1)
print(faults(50))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="about the GNU C library")
def test_the_pages_of_freed_arrays_are_used_again():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    assert int(done.stdout) < 100
