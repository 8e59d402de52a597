"""Replicas: arrays on their devices share no memory with the user."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tests.mirroring import context, each, mirrored, number, parts, run, without_x64

import evenfeed as tf
from evenfeed.replicas.device_shards import shards
from evenfeed.replicas.mesh import Replicas, replicas_of
from evenfeed.strategy.strategy import Strategy

DEVICES = jax.local_devices(backend="cpu")
ALIGNMENT = 64  # bytes; XLA uses memory with this alignment directly if it can


def aligned(shape, dtype=np.float32):
    """Return zeros in memory that XLA could share."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(shape)


def seen(array):
    """Return the view of the user's array that a dataset passes on."""
    view = array.view()
    view.flags.writeable = False
    return view


@pytest.mark.parametrize("count", range(1, 9))
def test_a_batch_does_not_share_memory_with_the_user(count):
    mine = aligned((count * 1024, 16))
    placed = Replicas.on(DEVICES[:count]).put_sharded(seen(mine), "x")
    jax.block_until_ready(placed)
    mine[:] = 1
    assert not np.asarray(placed).any()


@pytest.mark.parametrize("replica", range(8))
def test_a_part_does_not_share_memory_with_the_user(replica):
    mine = aligned((1024, 16))
    placed = Replicas.on(DEVICES).put(seen(mine), replica, "x")
    jax.block_until_ready(placed)
    mine[:] = 1
    assert not np.asarray(placed).any()


@pytest.mark.parametrize("names", [["CPU:0"], ["CPU:1"], ["CPU:0", "CPU:1"], ["CPU:2", "CPU:0"]])
@pytest.mark.parametrize("rows", [1024, 1023], ids=["even", "uneven"])
@pytest.mark.parametrize("make", ["from_tensors", "from_tensor_slices"])
def test_what_a_step_has_brought_stays_when_the_user_writes(names, rows, make):
    mine = aligned((rows, 16))
    strategy = tf.distribute.MirroredStrategy(names)
    dataset = getattr(tf.data.Dataset, make)(mine)
    if make == "from_tensor_slices":
        dataset = dataset.batch(rows)
    step = next(iter(strategy.experimental_distribute_dataset(dataset)))
    parts = jax.block_until_ready(strategy.experimental_local_results(step))
    mine[:] = 1
    assert sum(part.shape[0] for part in parts) == rows
    assert not any(np.asarray(part).any() for part in parts)


def test_an_array_of_our_own_is_not_copied_first():
    own = aligned((1024, 16))
    before = jax.device_put(own, DEVICES[0]).unsafe_buffer_pointer() == own.ctypes.data
    after = Replicas.on(DEVICES[:1]).put(own, 0, "x").unsafe_buffer_pointer() == own.ctypes.data
    assert after == before


def test_a_scalar_is_put_too():
    mine = aligned(())
    placed = Replicas.on(DEVICES[:1]).put(seen(mine), 0, "x")
    mine[...] = 1
    assert (placed.shape, float(placed)) == ((), 0.0)


def test_each_part_lies_on_the_device_of_its_replica():
    replicas = Replicas.on(DEVICES[2::-1])
    assert replicas.count == 3
    for index, device in enumerate(replicas.devices):
        assert replicas.put(np.zeros(2), index, "x").devices() == {device}
    rows = replicas.put_sharded(np.arange(6, dtype=np.int32), "x").addressable_shards
    assert {shard.device: shard.data.tolist() for shard in rows} == {
        DEVICES[2]: [0, 1],
        DEVICES[1]: [2, 3],
        DEVICES[0]: [4, 5],
    }


def test_the_mesh_has_the_devices_in_order():
    replicas = Replicas.on(DEVICES[2::-1])
    assert replicas.mesh.axis_names == ("replica",)
    assert list(replicas.mesh.devices) == DEVICES[2::-1]


def test_text_stays_on_the_host():
    text = np.array([b"a", b"b"], object)
    assert Replicas.on(DEVICES[:1]).put(text, 0, "x") is text


@without_x64
def test_64_bits_arrive_where_x64_is_on():
    replicas = Replicas.on(DEVICES[:2])
    assert replicas.arriving(np.dtype("int64")) == np.dtype("int32")
    with jax.enable_x64(True):
        assert replicas.arriving(np.dtype("int64")) == np.dtype("int64")
        assert replicas.put_sharded(np.array([2**40, 1]), "x").tolist() == [2**40, 1]


def test_an_array_that_lies_on_its_replicas_device_is_not_touched():
    replicas = Replicas.on(DEVICES[:2])
    there = replicas.to_replica(np.arange(3), 1)
    assert there.committed
    assert there.devices() == {DEVICES[1]}
    assert replicas.to_replica(there, 1) is there
    assert replicas.to_replica(there, 0).devices() == {DEVICES[0]}
    loose = jax.numpy.arange(3)  # JAX would compute with it on any device
    assert replicas.to_replica(loose, 0).committed


@pytest.mark.parametrize("devices", [[0, 1, 2], [2, 0, 1], [1]])
def test_shards_come_in_the_order_of_the_rows(devices):
    replicas = Replicas.on([DEVICES[number] for number in devices])
    rows = np.arange(2 * len(devices))
    found = shards(jax.device_put(rows, replicas.sharding))
    assert [part.tolist() for part in found] == rows.reshape(-1, 2).tolist()
    assert [next(iter(part.devices())).id for part in found] == devices


def test_shards_of_another_mesh_come_in_the_order_of_the_rows():
    mesh = jax.sharding.Mesh(np.array(DEVICES[:2])[::-1], ("other",))
    cut = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("other"))
    found = shards(jax.device_put(np.arange(4), cut))
    assert [part.tolist() for part in found] == [[0, 1], [2, 3]]


@pytest.mark.parametrize("shape", [(2, 0), (0, 3), (0,)])
def test_empty_parts_of_a_compiled_result_have_their_own_shape(shape):
    strategy = mirrored(2)
    value = each(strategy, lambda r: jnp.zeros(shape))
    found = run("compiled", strategy, lambda x: x * 2, value)
    assert [part.shape for part in strategy.experimental_local_results(found)] == [shape] * 2


# --- several axes -----------------------------------------------------------------------------


def grid(*axes):
    return jax.sharding.Mesh(np.array(DEVICES[:4]).reshape(2, 2), ("outer", "inner")), axes


def step(x, rows):
    def loss(x):
        return (context().all_reduce("SUM", x) ** 2).sum() * (number() + 1.0)

    own = context().all_reduce("SUM", rows.sum())
    return context().all_gather(x, 0), own, jax.grad(loss)(x), jnp.int32(number())


@pytest.mark.parametrize("axes", [("outer", "inner"), ("inner", "outer")])
@pytest.mark.parametrize("way", ["eager", "compiled"])
@pytest.mark.parametrize("uneven", [0, 1])
def test_replicas_may_differ_along_several_axes(axes, way, uneven):
    strategies = [Strategy(Replicas(*grid(*axes))), mirrored(4)]
    found, expected = (
        parts(s, run(way, s, step, *(each(s, make) for make in (own, lambda r: jnp.ones(1 + r * uneven)))))
        for s in strategies
    )  # fmt: skip
    jax.tree.map(np.testing.assert_array_equal, found, expected)


def own(replica):
    return jnp.arange(2.0) + replica


def test_a_replicas_part_is_on_its_device_whatever_the_order_of_the_axes():
    mesh, axes = grid("inner", "outer")
    replicas = Replicas(mesh, axes)
    placed = replicas.put_sharded(np.arange(4.0, dtype=np.float32), "x")
    assert [shard.tolist() for shard in shards(placed)] == [[0], [1], [2], [3]]
    assert [shard.devices() for shard in shards(placed)] == [{d} for d in replicas.devices]
    assert replicas.devices == tuple(DEVICES[k] for k in (0, 2, 1, 3))


def test_replicas_may_have_several_devices():
    replicas = Replicas(*grid("inner"))
    assert replicas.devices == tuple(DEVICES[k] for k in (0, 1))
    assert replicas.device_set == frozenset(DEVICES[:4])
    array = replicas.put_sharded(np.arange(4), "x")
    assert [part.tolist() for part in shards(array)] == [[0, 1], [2, 3]]
    assert [part.device for part in shards(array)] == list(replicas.devices)
    assert replicas.joined(shards(array)).tolist() == [0, 1, 2, 3]
    assert replicas_of(array) is replicas
    others = Replicas(*grid("outer"))
    assert replicas_of(array) is replicas
    assert replicas_of(others.put_sharded(np.arange(4), "x")) is others


@pytest.mark.parametrize("axes", [(), ("other",), ("outer", "outer")])
def test_replicas_differ_along_axes_of_the_mesh(axes):
    with pytest.raises(tf.errors.InvalidArgumentError, match="along some of the mesh axes"):
        Replicas(*grid(*axes))


def test_the_replicas_of_an_array_are_those_of_its_strategy():
    strategy = mirrored(2)
    value = each(strategy, lambda r: jnp.zeros(2))
    assert replicas_of(value.array).mesh == strategy.mesh
    elsewhere = jax.sharding.Mesh(np.array(DEVICES[:2]), ("user",))
    spec = jax.sharding.PartitionSpec("user")
    placed = jax.device_put(jnp.zeros(4), jax.sharding.NamedSharding(elsewhere, spec))
    assert replicas_of(placed) is None
    assert replicas_of(jnp.zeros(2)) is None
