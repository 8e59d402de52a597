"""Every thread is started where it is known, and told to stop when a program ends (`core/concurrency/threads.py`)."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "evenfeed"

STARTS = re.compile(
    r"threading\.Thread\(|ThreadPoolExecutor\(|threading\.Timer\(|start_new_thread\("
)

# The home of all threads; and two programs of their own, which leave by os._exit and load little.
KNOWN = {
    "core/concurrency/threads.py",
    "cluster/survival/coordination_proxy.py",
    "runtime/processes/child.py",
}


def test_threads_are_started_in_one_place():
    found = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if STARTS.search(path.read_text())
    }
    assert found == KNOWN
