import difflib
import random
import subprocess
import sys

import pytest

from evenfeed.core import lazy

LATER = {"difflib", "hashlib", "logging", "pprint", "random", "secrets", "numpy.typing"}


def test_a_lazy_module_has_the_names_of_the_module():
    assert lazy.difflib.get_close_matches is difflib.get_close_matches
    assert not hasattr(lazy.difflib, "no_such_name")


def test_only_what_does_not_change_is_kept(monkeypatch):
    assert lazy.random.random is random.random
    monkeypatch.setattr(random, "a_setting", 1, raising=False)
    assert lazy.random.a_setting == 1
    monkeypatch.setattr(random, "a_setting", 2)
    assert lazy.random.a_setting == 2


@pytest.mark.slow
def test_importing_evenfeed_does_not_load_lazy_modules():
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
