"""`import evenfeed` loads NumPy and ml_dtypes, and nothing else that is not in Python itself.

How long it takes is measured by benchmarks/import_time.py; what it loads decides that, and can be
tested.
"""

import subprocess
import sys

import pytest

OWN = {"evenfeed", "numpy", "ml_dtypes"}

REPORT = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"


def loaded_by(program: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"{program}\n{REPORT}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    names = set(done.stdout.split())
    return {name for name in names if name not in sys.stdlib_module_names and name[0] != "_"}


@pytest.fixture(scope="module")
def bare():
    return loaded_by("pass")  # what a site customisation loads in every interpreter


def test_import_loads_numpy_only(bare):
    assert loaded_by("import evenfeed") - bare == OWN


def test_reading_data_loads_no_jax(bare):
    program = "import evenfeed as tf; print(list(tf.data.Dataset.range(5).batch(2).repeat(2)))"
    assert not {"jax", "jaxlib", "pyarrow"} & loaded_by(program)


def test_listing_devices_loads_no_jax(bare):
    assert "jax" not in loaded_by("import evenfeed as tf; tf.config.list_physical_devices('CPU')")
