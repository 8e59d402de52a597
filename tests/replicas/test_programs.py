"""Inputs and outputs of a compiled program."""

import dataclasses

import equinox
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from tests.counting import counting, cut, parts

import evenfeed as tf
from evenfeed.replicas.function.staging import live


@pytest.fixture(scope="module")
def strategy():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def test_results_are_tensors_in_their_structure():
    f = tf.function(lambda x: {"a": 1, "b": "text", "c": None, "d": [1.5, (x,)], "e": np.int8(3)})
    result = f(tf.constant(2))
    assert list(result) == ["a", "b", "c", "d", "e"]
    assert (result["a"].dtype, result["e"].dtype) == (np.int32, np.int8)
    assert result["b"].item() == b"text"
    assert result["c"] is None
    assert result["d"][1][0].item() == 2


def test_another_object_cannot_be_returned():
    with pytest.raises(
        TypeError, match=r"returned <object object at .*type object, but a compiled"
    ):
        tf.function(object)()


def test_a_part_of_the_batch_comes_back_parts(strategy):
    value = cut(strategy, np.arange(4.0, dtype=np.float32))
    assert tf.function(lambda x: x.array * 2)(value).tolist() == [0.0, 2.0, 4.0, 6.0]


def test_no_arguments_and_no_result():
    assert tf.function(lambda: None)() is None


def test_empty_and_scalar_tensors():
    f = tf.function(lambda x: x + 1)
    assert f(tf.zeros([0, 3])).shape == (0, 3)
    assert f(tf.constant(1)).shape == ()


def test_python_runs_once_through_run(strategy):
    body = counting(lambda x: x * 2)
    f = tf.function(lambda x: strategy.run(body, args=(x,)))
    for batch in strategy.experimental_distribute_dataset(tf.data.Dataset.range(12).batch(4)):
        f(batch)
    assert body.runs == 1


def test_a_function_given_to_run_is_compiled(strategy):
    body = counting(lambda x: x + 1)
    f = tf.function(body)
    x = cut(strategy, [1.0, 2.0])
    for _ in range(3):
        assert parts(strategy.run(f, args=(x,))) == [[2.0], [3.0]]
    assert body.runs == f.experimental_get_tracing_count() == 1


def test_replicated_parameters_stay_where_they_are(strategy):
    def step(params, x):
        context = tf.distribute.get_replica_context()
        gradient = jax.grad(lambda p: jnp.mean((x @ p["w"]) ** 2))(params)
        gradient = context.all_reduce("MEAN", gradient)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient)

    f = tf.function(lambda params, x: strategy.run(step, args=(params, x)))
    x = cut(strategy, np.ones((4, 3), np.float32))
    params = {"w": jnp.ones((3, 1))}
    params = f(params, x)
    assert isinstance(params["w"], tf.distribute.DistributedValues)
    assert params["w"].array.sharding.is_fully_replicated
    params = f(params, x)
    with jax.transfer_guard("disallow"):
        params = f(params, x)
    pointers = [part.unsafe_buffer_pointer() for part in params["w"].values]
    shards = [s.data.unsafe_buffer_pointer() for s in params["w"].array.addressable_shards]
    assert pointers == shards
    assert f.experimental_get_tracing_count() == 2  # plain arrays first, then replicated values


def test_a_plain_variable_of_a_program_over_replicas_stays_on_one_device(strategy):
    v = tf.Variable(0.0)

    @tf.function
    def f(x):
        v.assign_add(strategy.reduce("SUM", strategy.run(tf.reduce_sum, args=(x,)), axis=None))
        return v.value()

    for expected in (3.0, 6.0):
        result = f(cut(strategy, np.float32([1.0, 2.0])))
        assert result.item() == v.numpy() == expected
        assert len(result.devices()) == len(v.value().devices()) == 1


def test_an_array_of_a_mesh_of_the_users_own_stays_there():
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("data", "model"))
    lies = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data", "model"))
    x = jax.device_put(np.ones((4, 4), np.float32), lies)
    result = tf.function(lambda x: x * 2)(x)
    assert result.sharding.is_equivalent_to(lies, 2)
    assert result.tolist() == np.full((4, 4), 2.0).tolist()


def test_a_large_constant_is_no_part_of_the_code(strategy):
    table = jnp.arange(1000.0)
    f = tf.function(lambda i: table[i])
    assert f(tf.constant(5)).item() == 5.0


def test_parts_that_are_made_across_replicas_lie_on_their_devices(strategy):
    f = tf.function(lambda x: tf.distribute.PerReplica([x, x + 1]))
    value = f(cut(strategy, np.float32([1.0, 2.0])).array)
    assert parts(value) == [[1.0, 2.0], [2.0, 3.0]]
    assert [next(iter(part.devices())).id for part in value.values] == [0, 1]


def test_trees_of_the_users_own_and_optimizers_of_optax_are_arguments(strategy):
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class Model:
        w: jax.Array
        name: str = dataclasses.field(default="line", metadata={"static": True})

    optimizer = optax.adam(0.1)

    def step(model, state, x):
        context = tf.distribute.get_replica_context()
        gradients = jax.grad(lambda m: jnp.mean((x * m.w - 6.0) ** 2))(model)
        updates, state = optimizer.update(context.all_reduce("MEAN", gradients), state)
        return optax.apply_updates(model, updates), state

    f = tf.function(lambda model, state, x: strategy.run(step, args=(model, state, x)))
    model = Model(jnp.float32(0.0))
    state = optimizer.init(model)
    x = cut(strategy, np.float32([1.0, 2.0, 3.0, 4.0]))
    for _ in range(200):
        model, state = f(model, state, x)
    assert model.name == "line"
    assert model.w.values[0].item() == pytest.approx(2.0, abs=0.01)
    assert f.experimental_get_tracing_count() == 2
    alone, own = Model(jnp.float32(0.0)), optimizer.init(Model(jnp.float32(0.0)))
    for _ in range(200):
        gradients = jax.grad(lambda m: jnp.mean((x.array * m.w - 6.0) ** 2))(alone)
        updates, own = optimizer.update(gradients, own)
        alone = optax.apply_updates(alone, updates)
    assert model.w.values[0].item() == pytest.approx(alone.w.item(), rel=1e-4)


@pytest.mark.parametrize("number", [0, 1])
def test_one_replica_runs_on_its_device(number):
    alone = tf.distribute.OneDeviceStrategy(f"CPU:{number}")
    f = tf.function(lambda: alone.run(lambda: jnp.ones(2)))
    assert [device.id for device in f().devices()] == [number]
    assert [device.id for device in alone.run(tf.function(lambda: jnp.ones(2))).devices()] == [
        number
    ]


@pytest.mark.parametrize("weights", [np.arange(4.0, dtype=np.float32), jnp.arange(4.0)])
def test_a_function_of_replicas_closes_over_arrays(strategy, weights):
    step = tf.function(lambda x: strategy.run(lambda x: x @ weights, args=(x,)))
    rows = cut(strategy, np.ones((4, 4), np.float32))
    assert step(rows).array.tolist() == [6.0] * 4


def test_what_all_replicas_hold_goes_from_step_to_step_without_a_transfer(strategy):
    def step(params, x):
        total = tf.distribute.get_replica_context().all_reduce("SUM", jnp.sum(x))
        return {"w": params["w"] + total}

    f = tf.function(lambda params, x: strategy.run(step, args=(params, x)))
    x = cut(strategy, np.float32([1.0, 2.0]))
    params = f({"w": jnp.zeros(2)}, x)  # this call copies them to the devices
    params = f(params, x)
    held = params["w"].array
    with jax.transfer_guard("disallow_explicit"):
        new = f(params, x)
        with pytest.raises(
            RuntimeError, match="Disallowed"
        ):  # the guard fails on a copy to the devices
            f({"w": held.addressable_data(0)}, x)
    assert parts(new["w"]) == [[9.0, 9.0]] * 2
    assert held.sharding == new["w"].array.sharding == strategy.sharding()
    assert held.tolist() == [6.0, 6.0]  # not deleted
    assert f.experimental_get_tracing_count() == 2


def test_arrays_in_the_strategys_shardings_are_used_where_they_lie(strategy):
    rows = jax.device_put(np.arange(4.0, dtype=np.float32), strategy.sharding("replica"))
    whole = jax.device_put(np.float32([2.0]), strategy.sharding())
    f = tf.function(lambda x, w: x * w)
    f(rows, whole)
    with jax.transfer_guard("disallow_explicit"):
        found = f(rows, whole)
    assert found.tolist() == [0.0, 2.0, 4.0, 6.0]


def test_models_of_equinox_are_arguments_and_results(strategy):
    model = equinox.nn.MLP(2, 1, 4, 1, key=jax.random.key(0))  # its activations are leaves too
    x = np.float32([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.5, 1.0]])

    def loss_of(model, x):
        return jnp.mean((jax.vmap(model)(x)[:, 0] - x[:, 0] * x[:, 1]) ** 2)

    def step(model, x):
        loss, gradients = equinox.filter_value_and_grad(loss_of)(model, x)
        context = tf.distribute.get_replica_context()
        loss, gradients = context.all_reduce("MEAN", (loss, gradients))
        return equinox.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, gradients)), loss

    f = tf.function(lambda model, x: strategy.run(step, args=(model, x)))
    alone, rows = model, cut(strategy, x)
    for _ in range(3):
        model, loss = f(model, rows)
        own, gradients = equinox.filter_value_and_grad(loss_of)(alone, x)
        alone = equinox.apply_updates(alone, jax.tree.map(lambda g: -0.1 * g, gradients))
        assert loss.values[0].item() == pytest.approx(own.item(), rel=1e-4)
    assert isinstance(model, equinox.nn.MLP)
    assert model.activation is alone.activation
    assert model.layers[0].weight.array.sharding == strategy.sharding()
    assert f.experimental_get_tracing_count() == 2


def test_a_variable_that_is_collected_while_a_function_is_traced_is_left_out():
    class Collected:
        """A variable that is gone after its first look, as a collected Keras variable is."""

        looks, number = 0, -1

        @property
        def held(self):
            self.looks += 1
            return jnp.zeros(()) if self.looks == 1 else None

    gone = Collected()
    live.add(gone)
    assert tf.function(lambda x: x + 1)(tf.constant(2)).item() == 3
    assert gone.looks == 1
