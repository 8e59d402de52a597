"""A long run needs no more memory, threads or open files than a short one."""

import sys

import pytest
from tests.reliability.long_run import check_flat, train


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_threads_and_files_stay_flat(tmp_path):
    check_flat(list(train(tmp_path, 6000, parts=6)), megabytes=12)
