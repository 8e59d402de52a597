"""Gives the tests eight replicas on any machine, before anything starts JAX's backend."""

import gc
import os
import signal

# JAX looks at every frame of an error that is raised while it traces; under pytest these are many.
os.environ.setdefault("JAX_TRACEBACK_FILTERING", "off")

import hypothesis

import evenfeed as tf

REPLICAS = 8

# The tests import these as tests.plans; looked through for doctests they would be there twice.
collect_ignore = ["plans"]
collect_ignore_glob = ["*/programs/*"]  # tests start these in processes of their own

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * REPLICAS
)

# A shell lets what it starts in the background ignore Ctrl-C, and so would the programs that tests send it to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The machine that runs the tests may be busy: a slow example is no fault of the code's.
hypothesis.settings.register_profile("here", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_collection_finish() -> None:
    """Leave modules and collected tests out of garbage collection: tests collect garbage often."""
    gc.collect()
    gc.freeze()
