"""Feeds global arrays to the eight devices of all processes, and trains on them.

Each process compares its blocks with arrays made by hand.
"""

import itertools
import json
import sys
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from mesh_training import on_all_meshes

import evenfeed as tf

ROWS, SIZE = 20, 8
PADDED = tf.distribute.InputOptions(pad_partial_batches=True)


def specs(names: tuple[str, ...]) -> Any:
    """Yield every way to split two dimensions over some of the axes, in any order."""
    orders = itertools.chain.from_iterable(
        itertools.permutations(names, count) for count in range(len(names) + 1)
    )
    for axes in orders:
        for cut in range(len(axes) + 1):
            yield PartitionSpec(axes[:cut] or None, axes[cut:] or None)


def check(dataset: Any, expected: list[Any], sharding: NamedSharding) -> None:
    """Compare the steps on this process's devices with padded batches."""
    found = list(dataset)
    assert len(found) == len(expected)
    for (array, valid), batch in zip(found, expected, strict=True):
        whole = np.zeros((SIZE, 8), batch.dtype)
        whole[: len(batch)] = batch
        assert array.sharding == sharding
        assert array.shape == whole.shape
        for shard in array.addressable_shards:
            np.testing.assert_array_equal(shard.data, whole[shard.index])
        for shard in valid.addressable_shards:
            marks = np.arange(SIZE) < len(batch)
            np.testing.assert_array_equal(shard.data, marks[shard.index])


def check_specs(mesh: Mesh) -> int:
    values = np.arange(ROWS * 8).reshape(ROWS, 8)
    dataset = tf.data.Dataset.from_tensor_slices(values).batch(SIZE)
    expected = [values[start : start + SIZE] for start in range(0, ROWS, SIZE)]
    every = list(specs(mesh.axis_names))
    for spec in every:
        sharding = NamedSharding(mesh, spec)
        check(dataset.distribute(sharding, options=PADDED), expected, sharding)
    return len(every)


def resumed(mesh: Mesh) -> Any:
    """Return the state after a step of a shuffled dataset without positions. Another iterator continues from it."""
    dataset = tf.data.Dataset.range(32).shuffle(32, seed=7).filter(lambda x: x >= 0).batch(8)
    global_rows = dataset.distribute(NamedSharding(mesh, PartitionSpec(mesh.axis_names[0])))
    steps, again = iter(global_rows), iter(global_rows)
    next(steps)
    state = json.loads(json.dumps(steps.get_state()))
    again.set_state(state)
    for one, other in zip(steps, again, strict=True):
        for a, b in zip(one.addressable_shards, other.addressable_shards, strict=True):
            np.testing.assert_array_equal(a.data, b.data)
    total = jax.jit(lambda x: x.sum(), out_shardings=NamedSharding(mesh, PartitionSpec()))
    steps = iter(global_rows)
    return state, sum(int(total(x)) for x in steps)


def of_lanes(mesh: Mesh) -> Any:
    """Return the state of lanes after a step, and the sum of all rows. Some lanes end before the others."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.LANES
    options.experimental_distribute.num_lanes = 4
    dataset = tf.data.Dataset.range(32).filter(lambda x: x < 20).batch(8).with_options(options)
    steps = iter(dataset.distribute(NamedSharding(mesh, PartitionSpec("rows")), options=PADDED))
    everywhere = NamedSharding(mesh, PartitionSpec())
    total = jax.jit(lambda x, valid: (x * valid).sum(), out_shardings=everywhere)
    found = int(total(*next(steps)))
    state = steps.get_state()
    return state["at"], found + sum(int(total(*step)) for step in steps)


def of_function(mesh: Mesh) -> Any:
    """Return which dataset this process made, and the sum of all."""

    def make(context: Any) -> Any:
        made.append((context.num_input_pipelines, context.input_pipeline_id))
        return tf.data.Dataset.range(4).map(lambda x: x + 100 * context.input_pipeline_id).batch(4)

    made: list[Any] = []
    rows = NamedSharding(mesh, PartitionSpec("rows"))
    (array,) = tf.distribute.global_batches(make, rows)
    total = jax.jit(lambda x: x.sum(), out_shardings=NamedSharding(mesh, PartitionSpec()))
    return made, array.shape, int(total(array))


def main() -> None:
    tf.distribute.MultiWorkerMirroredStrategy()  # joins the cluster
    devices = np.array(jax.devices())
    mixed = devices[[5, 0, 3, 6, 1, 4, 7, 2]]
    seen: dict[str, Any] = {}
    seen["specs"] = [
        check_specs(Mesh(mixed.reshape(2, 2, 2), ("a", "b", "c"))),
        check_specs(Mesh(devices.reshape(4, 2), ("a", "b"))),
    ]
    seen["state"], seen["total"] = resumed(Mesh(mixed.reshape(4, 2), ("rows", "b")))
    seen["lanes"] = of_lanes(Mesh(mixed.reshape(4, 2), ("rows", "b")))
    # The first axis is inside of a process, or over all processes: then all hold the same rows.
    seen["apart"] = of_function(Mesh(devices, ("rows",)))
    within = np.sort([d.id for d in jax.local_devices()]).size
    same = Mesh(devices.reshape(-1, within), ("copies", "rows"))
    seen["alike"] = of_function(same)
    text = str(
        tf.data.Dataset.range(8)
        .batch(8)
        .distribute(NamedSharding(same, PartitionSpec("rows")))
        .explain()
    )
    seen["explained"] = [line.strip() for line in text.splitlines() if "this process reads" in line]
    seen["training"] = on_all_meshes(sys.argv[1])
    sys.stdout.write(f"seen {json.dumps(seen)}\n")


if __name__ == "__main__":
    main()
