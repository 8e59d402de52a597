"""MeshStrategy: replicas are the points of the data axes, and have several devices each."""

import copy
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.distribute import InputOptions, MeshStrategy, MirroredStrategy

MEAN = tf.VariableAggregation.MEAN
X = np.random.default_rng(0).normal(size=(24, 4)).astype(np.float32)
Y = X @ np.arange(12, dtype=np.float32).reshape(4, 3)


def mesh_of(shape=(2, 2, 2), names=("data", "fsdp", "tensor")):
    return Mesh(np.array(jax.devices()).reshape(shape), names)


@pytest.fixture(scope="module")
def mesh():
    return mesh_of()


@pytest.fixture(scope="module")
def strategy(mesh):
    return MeshStrategy(mesh)


def trained(strategy, sharding, constrain):
    """Train a layer for some steps. Return its losses, and the variables."""
    with strategy.scope():
        w = tf.Variable(tf.zeros([4, 4]), aggregation=MEAN, sharding=sharding)
        rows = tf.Variable(0, aggregation=tf.VariableAggregation.SUM)
        seen = tf.Variable(
            0.0,
            aggregation=tf.VariableAggregation.SUM,
            synchronization=tf.VariableSynchronization.ON_READ,
        )

    def loss(weights, x, y):
        hidden = constrain(constrain(x, P("fsdp")) @ weights, P("fsdp", "tensor"))
        return jnp.mean((hidden[:, :3] - y) ** 2)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            value = loss(w.value(), x, y)
        (gradient,) = tape.gradient(value, [w])
        context = tf.distribute.get_replica_context()
        w.assign_sub(0.05 * context.all_reduce("mean", gradient))
        rows.assign_add(tf.shape(x)[0])
        seen.assign_add(tf.reduce_sum(x))
        return value, context.replica_id_in_sync_group, x[:, 0]

    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    losses = []
    for x, y in strategy.experimental_distribute_dataset(dataset):
        value, index, column = strategy.run(step, args=(x, y))
        losses.append(float(strategy.reduce("MEAN", value, axis=None)))
        assert [int(i) for i in strategy.experimental_local_results(index)] == [0, 1]
    np.testing.assert_array_equal(strategy.gather(column, axis=0), X[16:, 0])
    return losses, w, rows, seen


def test_training_is_that_of_a_mirrored_strategy(mesh, strategy):
    mirrored = MirroredStrategy(["CPU:0", "CPU:1"])
    losses, w, rows, seen = trained(strategy, P("fsdp", "tensor"), jax.lax.with_sharding_constraint)
    plain, expected, *_ = trained(mirrored, None, lambda x, _: x)
    np.testing.assert_allclose(losses, plain, rtol=1e-5)
    np.testing.assert_allclose(w.numpy(), expected.numpy(), rtol=1e-5)
    assert rows.numpy() == 24
    np.testing.assert_allclose(seen.numpy(), X.sum(), rtol=1e-4)
    value = w.value()
    assert value.sharding == NamedSharding(mesh, P("fsdp", "tensor"))
    assert {shard.data.shape for shard in value.addressable_shards} == {(2, 2)}


@pytest.mark.parametrize(
    ("shape", "names", "data_axes", "sharding"),
    [
        ((2, 2, 2), ("data", "fsdp", "tensor"), ("data", "fsdp"), P("fsdp", "tensor")),
        ((2, 4), ("data", "fsdp"), ("data", "fsdp"), P(("data", "fsdp"))),
        ((1, 8), ("data", "tensor"), ("data",), P(None, "tensor")),
        ((1, 1), ("data", "tensor"), ("data",), P(None, "tensor")),
    ],
    ids=["fsdp over data axes", "no inner axes", "one replica", "one device"],
)
def test_variables_are_split_over_any_axes(shape, names, data_axes, sharding):
    count = int(np.prod(shape))
    mesh = Mesh(np.array(jax.devices()[:count]).reshape(shape), names)
    strategy = MeshStrategy(mesh, data_axes)
    with strategy.scope():
        w = tf.Variable(tf.zeros([8, 8]), aggregation=MEAN, sharding=sharding)
        seen = tf.Variable(
            0.0,
            aggregation=tf.VariableAggregation.SUM,
            synchronization=tf.VariableSynchronization.ON_READ,
        )
    inputs = np.random.default_rng(1).normal(size=(32, 8)).astype(np.float32)

    @tf.function
    def step(x):
        def loss(kernel):
            return jnp.mean((x @ kernel - x) ** 2)

        value, gradient = jax.value_and_grad(loss)(w.value())
        w.assign_sub(gradient)
        seen.assign_add(tf.reduce_sum(x))
        return value

    dataset = tf.data.Dataset.from_tensor_slices(inputs).batch(16)
    losses = [
        strategy.reduce("MEAN", strategy.run(step, args=(x,)), axis=None)
        for x in strategy.experimental_distribute_dataset(dataset)
    ]
    kernel, expected = np.zeros((8, 8), np.float32), []
    for x in inputs.reshape(2, 16, 8):
        error = x @ kernel - x
        expected.append((error**2).mean())
        kernel -= 2 * x.T @ error / error.size
    np.testing.assert_allclose(losses, expected, rtol=1e-4)
    np.testing.assert_allclose(w.numpy(), kernel, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(seen.numpy(), inputs.sum(), rtol=1e-3)
    assert {s.data.size for s in w.value().addressable_shards} == {
        64
        // int(
            np.prod(
                [
                    mesh.shape[a]
                    for p in sharding
                    for a in (p if isinstance(p, tuple) else (p,))
                    if a
                ]
            )
        )
    }
    w.assign_add(tf.ones([8, 8]))
    kernel += 1
    strategy.run(lambda: w.assign_add(tf.ones([8, 8])))  # as plain Python
    np.testing.assert_allclose(w.numpy(), kernel + 1, rtol=1e-4, atol=1e-6)


def test_replicas_are_the_points_of_the_data_axes():
    mesh = mesh_of()
    both = MeshStrategy(mesh, ("fsdp", "data"))
    assert (both.num_replicas_in_sync, both.data_axes) == (4, ("fsdp", "data"))
    dataset = tf.data.Dataset.range(8).batch(8)
    (x,) = both.experimental_distribute_dataset(dataset)
    assert x.array.sharding.spec == P(("fsdp", "data"))
    assert [part.tolist() for part in both.experimental_local_results(x)] == [
        [0, 1],
        [2, 3],
        [4, 5],
        [6, 7],
    ]
    one = MeshStrategy(mesh_of((8,), ("data",)), "data")
    assert one.num_replicas_in_sync == 8
    (x,) = one.experimental_distribute_dataset(dataset)
    assert one.run(tf.function(lambda y: y * 2), args=(x,)).array.tolist() == list(range(0, 16, 2))


def collected(strategy):
    """Return the results of each collective, on each of four replicas."""
    context = tf.distribute.get_replica_context

    @tf.function
    def step(x):
        own = context()
        mean = own.merge_call(lambda s, v: s.reduce("MEAN", v, axis=0), args=(x,))
        gradient = jax.grad(lambda y: (own.all_gather(y, 0) ** 2).sum())(x)
        return own.all_reduce("sum", x), own.all_gather(x, 0), mean, gradient

    dataset = tf.data.Dataset.range(8, output_type=tf.float32).batch(8)
    (x,) = strategy.experimental_distribute_dataset(dataset)
    results = strategy.run(step, args=(x,))
    return [[v.tolist() for v in strategy.experimental_local_results(r)] for r in results]


def test_collectives_work_over_several_data_axes(mesh):
    mirrored = MirroredStrategy([f"CPU:{number}" for number in range(4)])
    assert collected(MeshStrategy(mesh, ("data", "fsdp"))) == collected(mirrored)


def test_constraints_take_a_mesh_or_none(mesh, strategy):
    @tf.function
    def step(x):
        named = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("tensor")))
        return jax.lax.with_sharding_constraint(named * 2, P(("fsdp", "tensor")))

    dataset = tf.data.Dataset.range(8).batch(8)
    (x,) = strategy.experimental_distribute_dataset(dataset)
    assert strategy.run(step, args=(x,)).array.tolist() == list(range(0, 16, 2))
    with jax.set_mesh(mesh):
        assert strategy.run(tf.function(step), args=(x,)).array.tolist() == list(range(0, 16, 2))


def test_as_plain_python_a_replica_runs_on_its_first_device(strategy):
    dataset = tf.data.Dataset.range(4).batch(4)
    (x,) = strategy.experimental_distribute_dataset(dataset)
    total = strategy.run(
        lambda y: tf.distribute.get_replica_context().all_reduce("sum", y), args=(x,)
    )
    assert [part.tolist() for part in total.values] == [[2, 4], [2, 4]]
    with strategy.scope():
        v = tf.Variable([1.0, 2.0], sharding=P("tensor"), aggregation=MEAN)
    strategy.run(lambda: v.assign_add([1.0, 1.0]))
    v.assign_add([1.0, 1.0])
    assert [copy.tolist() for copy in v.values] == [[3.0, 4.0]] * 2
    assert v.value().sharding.spec == P("tensor")
    assert "MirroredVariable" in repr(v)
    no_aggregation = "each assigns a value of its own"
    with strategy.scope():
        plain = tf.Variable([1.0, 2.0])
    with pytest.raises(ValueError, match=no_aggregation):
        strategy.run(lambda: plain.assign([1.0, 1.0]))
    with pytest.raises(ValueError, match=no_aggregation):
        strategy.run(tf.function(lambda y: plain.assign(tf.cast(y, tf.float32))), args=(x,))
    with pytest.raises(ValueError, match=no_aggregation):
        plain.assign(tf.distribute.PerReplica([tf.ones([2]), tf.zeros([2])]))
    strategy.run(tf.function(lambda: plain.assign([3.0, 3.0])))  # the same on all replicas
    plain.scatter_update(tf.IndexedSlices([5.0], [1]))
    assert plain.numpy().tolist() == [3.0, 5.0]


def test_variables_keep_their_sharding_in_loops_and_checkpoints(strategy, tmp_path):
    with strategy.scope():
        w = tf.Variable(tf.zeros([4, 4]), sharding=P("fsdp", "tensor"), aggregation=MEAN)

    @tf.function
    def train(iterator):
        for _ in tf.range(2):
            total = strategy.run(lambda x: (w.assign_add(tf.ones([4, 4])), x)[1], (next(iterator),))
        return strategy.reduce("SUM", total, axis=0)

    steps = iter(strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4)))
    assert int(train(steps)) == 4 + 5 + 6 + 7
    checkpoint = tf.train.Checkpoint(w=w)
    path = checkpoint.save(str(tmp_path / "saved"))
    strategy.run(tf.function(lambda: w.assign(tf.zeros([4, 4]))))  # no argument is per replica
    assert not w.numpy().any()
    checkpoint.restore(path)
    assert (w.numpy() == 2).all()
    assert w.value().sharding.spec == P("fsdp", "tensor")
    with MirroredStrategy(["CPU:0", "CPU:1"]).scope():
        other = tf.Variable(tf.zeros([4, 4]))
    tf.train.Checkpoint(w=other).restore(path)
    assert (other.numpy() == 2).all()


def test_uneven_batches_run_and_padded_ones_too(strategy):
    dataset = tf.data.Dataset.range(7).batch(4)

    @tf.function
    def total(x):
        return tf.distribute.get_replica_context().all_reduce("sum", tf.reduce_sum(x))

    steps = strategy.experimental_distribute_dataset(dataset)
    sums = [strategy.run(total, args=(x,)) for x in steps]
    assert [int(s.values[0]) for s in sums] == [6, 15]
    padded = strategy.experimental_distribute_dataset(
        dataset, InputOptions(pad_partial_batches=True)
    )
    assert [x.array.shape for x, _ in padded] == [(4,)] * 2


def test_a_rule_shards_variables_by_name_and_shape(mesh):
    def rule(name, shape):
        return P(None, "tensor") if len(shape) == 2 and name != "table" else None

    strategy = MeshStrategy(mesh, variable_sharding=rule)
    with strategy.scope():
        kernel = tf.Variable(tf.ones([2, 4]), name="kernel")
        table = tf.Variable(tf.ones([2, 4]), name="table")
        own = tf.Variable(tf.ones([2, 4]), sharding=NamedSharding(mesh, P("fsdp")))
        again = pickle.loads(pickle.dumps(own))
    assert kernel.value().sharding.spec == P(None, "tensor")
    assert table.value().sharding.spec == P()
    assert own.value().sharding.spec == again.value().sharding.spec == P("fsdp")
    twin = copy.deepcopy(kernel)
    assert twin.value().sharding == kernel.value().sharding
    twin.assign_add(tf.ones([2, 4]))
    np.testing.assert_array_equal(kernel.numpy(), np.ones((2, 4)))


@pytest.mark.parametrize(
    ("value", "shape", "sharding", "what"),
    [
        ([4], None, P("rows"), r"the mesh has the axes \['data', 'fsdp', 'tensor'\]"),
        ([4, 4], None, P("fsdp", "fsdp"), "each of them once"),
        ([4], None, P(None, "tensor"), r"its shape is \[4\]"),
        ([4], tf.TensorShape(None), P("tensor"), "its shape is unknown"),
        ([3], None, P("tensor"), "Dimension 0 .* has size 3"),
        ([4], [None], P("tensor"), "Dimension 0 .* has an unknown size"),
    ],
)
def test_shardings_of_variables_that_do_not_suit_are_refused(
    strategy, value, shape, sharding, what
):
    with strategy.scope(), pytest.raises(InvalidArgumentError, match=what):
        tf.Variable(tf.zeros(value), shape=shape, sharding=sharding)


def test_variables_of_unknown_shape_are_whole_on_each_device(mesh):
    with MeshStrategy(mesh, variable_sharding=lambda name, shape: P("tensor")).scope():
        v = tf.Variable([1, 2], shape=tf.TensorShape(None))
    assert v.value().sharding.spec == P()
    assert v.assign(5).numpy() == 5
    with MeshStrategy(mesh).scope():
        v = tf.Variable(tf.zeros([3, 4]), shape=[None, 4], sharding=P(None, "tensor"))
    v.assign(tf.ones([5, 4]))
    assert v.numpy().shape == (5, 4)
    assert v.value().sharding.spec == P(None, "tensor")


def test_a_sharding_needs_a_mesh_and_a_partition_spec(strategy):
    with pytest.raises(InvalidArgumentError, match="no mesh with named axes"):
        tf.Variable([1.0, 2.0], sharding=P("tensor"))
    mirrored = MirroredStrategy(["CPU:0", "CPU:1"])
    with mirrored.scope(), pytest.raises(InvalidArgumentError, match="no mesh with named axes"):
        tf.Variable([1.0, 2.0], sharding=P("replica"))
    with strategy.scope(), pytest.raises(TypeError, match="must be a PartitionSpec"):
        tf.Variable([1.0, 2.0], sharding="tensor")
    on_read = tf.VariableSynchronization.ON_READ
    with strategy.scope(), pytest.raises(InvalidArgumentError, match="names data axes"):
        tf.Variable([1.0, 2.0], sharding=P("data"), synchronization=on_read)


def test_meshes_that_do_not_suit_are_refused(mesh):
    with pytest.raises(TypeError, match=r"must be a jax\.sharding\.Mesh"):
        MeshStrategy(["CPU:0"])
    with pytest.raises(InvalidArgumentError, match="must differ along some of the mesh axes"):
        MeshStrategy(mesh, ("rows",))
    with pytest.raises(InvalidArgumentError, match="must be Auto"):
        MeshStrategy(jax.make_mesh((4, 2), ("data", "tensor")))
    with pytest.raises(TypeError, match="must be a function"):
        MeshStrategy(mesh, variable_sharding=P("tensor"))


def test_a_step_may_call_python(strategy, capfd):
    def doubled(x, method):
        like = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(lambda own: np.asarray(own) * 2, like, x, vmap_method=method)

    @tf.function
    def step(x):
        x = jax.lax.with_sharding_constraint(x, P("fsdp"))
        tf.print("rows", x)
        jax.debug.print("sum {}", x.sum())
        return doubled(x, "sequential"), tf.random.uniform([2])

    dataset = tf.data.Dataset.range(4).batch(4)
    (x,) = strategy.experimental_distribute_dataset(dataset)
    found, drawn = strategy.run(step, args=(x,))
    assert found.array.tolist() == [0, 2, 4, 6]
    assert len(set(drawn.array.tolist())) == 4
    jax.effects_barrier()
    printed = sorted(line for text in capfd.readouterr() for line in text.splitlines())
    assert [line for line in printed if line.startswith(("rows", "sum"))] == [
        "rows [0 1]",
        "rows [2 3]",
        "sum 1",
        "sum 5",
    ]
    with pytest.raises(NotImplementedError, match="without vmap_method"):
        strategy.run(tf.function(lambda y: doubled(y, None)), args=(x,))


@pytest.mark.parametrize("data_axes", ["data", ("data", "fsdp")])
def test_many_steps_run_in_one_program_on_a_mesh(mesh, data_axes):
    strategy = MeshStrategy(mesh, data_axes)
    traces = []

    def losses(together):
        with strategy.scope():
            w = tf.Variable(tf.zeros([4, 4]), aggregation=MEAN, sharding=P("fsdp", "tensor"))

        def step(x):
            traces.append(together)
            value, change = jax.value_and_grad(lambda w: ((x @ w - x) ** 2).sum())(w.value())
            w.assign_sub(0.01 * change)
            return value

        run = tf.function(lambda x: strategy.run(step, args=(x,)))
        steps = iter(strategy.experimental_distribute_dataset(dataset))
        found = strategy.run_steps(step, steps, steps=3) if together else map(run, steps)
        return [np.asarray(x.array).tolist() for x in found], w.numpy().tolist()

    dataset = tf.data.Dataset.from_tensor_slices(X).batch(8)
    text = str(strategy.experimental_distribute_dataset(dataset).explain())
    assert "in one program: up to 128 steps" in text
    for one, many in zip(losses(together=False), losses(together=True), strict=True):
        np.testing.assert_allclose(many, one, rtol=1e-5, atol=1e-6)
    assert traces.count(True) == 1
