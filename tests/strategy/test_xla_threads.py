"""NPROC: raised before JAX starts, an error after that; and the JAX internals that this relies on."""

import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from evenfeed.cluster.jax_private import backend_started, pool_threads
from evenfeed.strategy.xla_threads import ensure_threads

PROGRAMS = Path(__file__).parent / "programs"
ABOUT_DEVICES = ("NPROC", "XLA_FLAGS", "JAX_NUM_CPU_DEVICES", "JAX_PLATFORMS")

deadlocks = pytest.mark.skipif(
    jax.__version_info__ >= (0, 12), reason="JAX 0.12 runs programs on a pool of their own"
)


def fresh(*command, **environ):
    """Run a program in a new interpreter, without device settings other than `environ`."""
    env = {k: v for k, v in os.environ.items() if k not in ABOUT_DEVICES} | environ
    done = subprocess.run(
        [sys.executable, *command], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


READ_NPROC = """
import os
from evenfeed.strategy.xla_threads import ensure_threads
from evenfeed.cluster.jax_private import backend_started
{first}
ensure_threads()
print(os.environ.get("NPROC"), backend_started())
"""

ASK_FOR_EIGHT = "import jax; jax.config.update('jax_num_cpu_devices', 8)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "environ", "nproc"),
    [
        ("", {}, "None"),
        ("", {"JAX_NUM_CPU_DEVICES": "300"}, "900"),
        ("", {"XLA_FLAGS": "--xla_force_host_platform_device_count=300"}, "900"),
        (ASK_FOR_EIGHT, {"NPROC": "2"}, "24"),
        (ASK_FOR_EIGHT, {"NPROC": "64"}, "64"),
        (ASK_FOR_EIGHT, {"NPROC": "0"}, "24"),
    ],
)
def test_nproc_is_raised_before_jax_starts(first, environ, nproc):
    assert fresh("-c", READ_NPROC.format(first=first), **environ) == [nproc, "False"]


@pytest.mark.slow
def test_an_nproc_that_is_no_number_counts_for_nothing():
    (nproc, _) = fresh("-c", READ_NPROC.format(first=""), NPROC="many", JAX_NUM_CPU_DEVICES="300")
    assert nproc == "900"


STARTED_FIRST = """
import os
import jax
jax.config.update("jax_num_cpu_devices", 8)
jax.devices()
{then}
from evenfeed.strategy.xla_threads import ensure_threads
ensure_threads(1)
ensure_threads(2)
try:
    ensure_threads()
except RuntimeError as error:
    text = str(error)
    assert "NPROC=24" in text and "set_logical_device_configuration" in text, text
    assert "at:  <string>:" in text, text
    print("refused")
"""


@deadlocks
@pytest.mark.slow
@pytest.mark.skipif((os.cpu_count() or 1) >= 16, reason="has threads enough")
@pytest.mark.parametrize("then", ["", 'os.environ["NPROC"] = "32"'], ids=["unset", "set late"])
def test_too_few_threads_are_refused_at_once_where_jax_has_started(then):
    assert fresh("-c", STARTED_FIRST.format(then=then)) == ["refused"]


@pytest.mark.slow
def test_threads_that_were_given_in_time_are_enough():
    assert fresh("-c", STARTED_FIRST.format(then=""), NPROC="16") == []


@pytest.mark.slow
@pytest.mark.parametrize("replicas", [2, 8])
def test_thousands_of_collectives_finish(replicas):
    fresh(str(PROGRAMS / "many_collectives.py"), str(replicas), "2000")


@pytest.mark.slow
def test_steps_that_many_threads_launch_finish():
    fresh(str(PROGRAMS / "many_threads.py"), "4", "6", "1500")


def test_the_devices_of_the_tests_can_meet():
    jax.devices()
    ensure_threads()


def test_jax_still_says_that_its_backend_has_started():
    jax.devices()
    assert backend_started()


@pytest.mark.slow
def test_loading_jax_is_not_starting_it():
    program = (
        "import jax, sys\n"
        "from evenfeed.cluster.jax_private import backend_started\n"
        "jax.config.jax_platforms\n"
        "assert 'jax._src.xla_bridge' in sys.modules\n"
        "print(backend_started())"
    )
    assert fresh("-c", program) == ["False"]


@pytest.mark.slow
@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="threads show their names in /proc"
)
def test_xla_still_names_the_threads_of_its_pool():
    program = (
        "import jax; jax.devices()\n"
        "from evenfeed.cluster.jax_private import pool_threads\n"
        "print(pool_threads())"
    )
    assert fresh("-c", program, NPROC="37") == ["37"]


def test_threads_that_are_not_shown_are_not_counted(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "comm").write_text("python\n")
    (tmp_path / "2").mkdir()
    assert pool_threads(tmp_path) is None
    assert pool_threads(tmp_path / "missing") is None
