"""Meshes over all devices, and the feeds of several processes that share them, all in this process."""

import jax
import numpy as np
from jax.sharding import Mesh
from tests.feeding.workers import InMemory, worker_of

from evenfeed.core.batch_split import Share
from evenfeed.core.structure import DATA, flatten
from evenfeed.dataset import plan_of
from evenfeed.distribute import InputOptions
from evenfeed.feeding.meshes.mesh_feeds import GlobalFeed
from evenfeed.feeding.step_sources import StepSource
from evenfeed.replicas.array_layouts import layout_of

PADDED = InputOptions(pad_partial_batches=True)


def mesh_of(shape, names, order=None):
    devices = np.array(jax.devices()[: int(np.prod(shape))])
    return Mesh(devices[order or range(len(devices))].reshape(shape), names)


def feeds(datasets, sharding, options=None, kind=GlobalFeed):
    """Return the feeds of processes that own equally many devices each, all in this process: one for each dataset."""
    processes = len(datasets)
    memory = InMemory(processes)
    each = 8 // processes
    found = []
    for process, dataset in enumerate(datasets):
        plan = plan_of(dataset)
        layout = layout_of(
            plan.element_spec, sharding, process_of=lambda d: d.id // each, here=process
        )
        worker = worker_of(Share(process, processes), memory)
        found.append(kind(plan, layout, options or InputOptions(), worker))
    return found


def host_steps(feed: StepSource):
    steps = feed._steps()
    found = []
    while True:
        try:
            found.append(steps.read())
        except StopIteration:
            steps.close()
            return found


def plain(steps):
    return [[np.asarray(leaf).tolist() for leaf in flatten(step, DATA)] for step in steps]
