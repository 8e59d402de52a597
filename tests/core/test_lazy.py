import difflib
import subprocess
import sys

import pytest

from evenfeed.core import lazy

LATER = {"difflib", "hashlib", "logging", "pprint", "random", "secrets", "numpy.typing"}


def test_a_door_leads_to_the_modules_own_names():
    assert lazy.difflib.get_close_matches is difflib.get_close_matches
    assert not hasattr(lazy.difflib, "no_such_name")


@pytest.mark.slow
def test_importing_evenfeed_leaves_the_doors_closed():
    program = f"""
import sys, numpy
before = set(sys.modules)
import evenfeed
print(*sorted((set(sys.modules) - before) & {LATER}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == []
