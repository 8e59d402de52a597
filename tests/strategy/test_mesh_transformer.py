"""Examples: a small transformer on a mesh with data, fsdp and tensor axes, and one with a sequence axis."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import evenfeed as tf

WORDS, WIDTH, HEADS, LENGTH = 32, 16, 4, 8
RATE = 0.1
TOKENS = np.random.default_rng(1).integers(0, WORDS, (24, LENGTH + 1))

# Kernels are split over fsdp, which gathers them for each use, and over tensor, which splits the computation.
SPECS = {
    "embedding": P("tensor", "fsdp"),
    "attention": P("fsdp", None, "tensor", None),
    "joined": P("tensor", None, "fsdp"),
    "up": P("fsdp", "tensor"),
    "down": P("tensor", "fsdp"),
}


def parameters():
    draw = np.random.default_rng(2).normal
    shapes = {
        "embedding": (WORDS, WIDTH),
        "attention": (WIDTH, 3, HEADS, WIDTH // HEADS),
        "joined": (HEADS, WIDTH // HEADS, WIDTH),
        "up": (WIDTH, 4 * WIDTH),
        "down": (4 * WIDTH, WIDTH),
    }
    return {name: draw(0, 0.2, shape).astype(np.float32) for name, shape in shapes.items()}


def loss_of(weights, inputs, labels, split):
    """Return the mean loss of predicting the next word. `split` says over which axes values are split."""
    x = split(weights["embedding"][inputs], "activations")
    q, k, v = jnp.einsum("btd,dchk->cbthk", x, weights["attention"])
    scores = jnp.einsum("bthk,bshk->bhts", q, k) / np.sqrt(WIDTH // HEADS)
    mask = jnp.tril(jnp.ones((inputs.shape[1],) * 2, bool))
    mixed = jnp.einsum("bhts,bshk->bthk", jax.nn.softmax(jnp.where(mask, scores, -1e9)), v)
    x = split(x + jnp.einsum("bthk,hkd->btd", mixed, weights["joined"]), "activations")
    hidden = split(jax.nn.gelu(x @ weights["up"]), "hidden")
    x = split(x + hidden @ weights["down"], "activations")
    logits = x @ weights["embedding"].T
    picked = jax.nn.log_softmax(logits) * jax.nn.one_hot(labels, WORDS)
    return -picked.sum(-1).mean()


def dataset():
    return tf.data.Dataset.from_tensor_slices((TOKENS[:, :-1], TOKENS[:, 1:])).batch(8)


@functools.cache
def expected():
    """Return the losses of one device, and the trained parameters."""

    @jax.jit
    def step(weights, inputs, labels):
        loss, gradients = jax.value_and_grad(loss_of)(weights, inputs, labels, lambda x, _: x)
        return loss, jax.tree.map(lambda w, g: w - RATE * g, weights, gradients)

    weights, losses = parameters(), []
    for inputs, labels in dataset():
        loss, weights = step(weights, inputs, labels)
        losses.append(float(loss))
    return losses, weights


def check(losses, weights):
    single, trained = expected()
    np.testing.assert_allclose(losses, single, rtol=1e-4)
    for name, value in trained.items():
        np.testing.assert_allclose(weights[name], value, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("data_axes", "splits"),
    [
        (("data", "fsdp"), {"activations": P(), "hidden": P(None, None, "tensor")}),
        (("data",), {"activations": P("fsdp"), "hidden": P("fsdp", None, "tensor")}),
    ],
    ids=["rows over data and fsdp", "rows over data"],
)
def test_a_strategy_trains_with_data_fsdp_and_tensor_axes(data_axes, splits):
    mesh = Mesh(np.array(jax.devices()).reshape(2, 2, 2), ("data", "fsdp", "tensor"))
    strategy = tf.distribute.MeshStrategy(
        mesh, data_axes, variable_sharding=lambda name, _: SPECS[name]
    )
    with strategy.scope():
        weights = {
            name: tf.Variable(value, name=name, aggregation=tf.VariableAggregation.MEAN)
            for name, value in parameters().items()
        }

    def split(x, kind):
        return jax.lax.with_sharding_constraint(x, splits[kind])

    @tf.function
    def step(inputs, labels):
        values = {name: variable.value() for name, variable in weights.items()}
        loss, gradients = jax.value_and_grad(loss_of)(values, inputs, labels, split)
        for name, variable in weights.items():
            variable.assign_sub(RATE * gradients[name])  # the mean over the replicas
        return loss

    losses = [
        float(strategy.reduce("MEAN", strategy.run(step, args=batch), axis=None))
        for batch in strategy.experimental_distribute_dataset(dataset())
    ]
    check(losses, {name: variable.numpy() for name, variable in weights.items()})
    up = weights["up"].value()
    assert {shard.data.shape for shard in up.addressable_shards} == {(WIDTH // 2, 2 * WIDTH)}


@pytest.mark.parametrize(
    ("names", "tokens", "specs", "splits"),
    [
        (
            ("data", "fsdp", "tensor"),
            P(("data", "fsdp")),
            SPECS,
            {"activations": P(("data", "fsdp")), "hidden": P(("data", "fsdp"), None, "tensor")},
        ),
        (
            ("data", "sequence"),
            P("data", "sequence"),
            {},
            {"activations": P("data", "sequence"), "hidden": P("data", "sequence")},
        ),
    ],
    ids=["data, fsdp and tensor", "data and sequence"],
)
def test_jit_trains_on_global_batches(names, tokens, specs, splits):
    shape = (2, 2, 2) if len(names) == 3 else (2, 4)
    mesh = Mesh(np.array(jax.devices()).reshape(shape), names)
    rows = NamedSharding(mesh, tokens)
    kept = {name: NamedSharding(mesh, specs.get(name, P())) for name in parameters()}

    def split(x, kind):
        return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, splits[kind]))

    @functools.partial(
        jax.jit, in_shardings=(kept, rows, rows), out_shardings=(None, kept), donate_argnums=0
    )
    def step(weights, inputs, labels):
        loss, gradients = jax.value_and_grad(loss_of)(weights, inputs, labels, split)
        return loss, jax.tree.map(lambda w, g: w - RATE * g, weights, gradients)

    weights, losses = jax.device_put(parameters(), kept), []
    for inputs, labels in dataset().distribute(rows):
        loss, weights = step(weights, inputs, labels)
        losses.append(float(loss))
    check(losses, weights)
