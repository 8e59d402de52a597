"""Trains a Flax model on all devices, is stopped twice, and goes on at the exact batch, with Orbax's own manager.

Model, optimizer and the position of the data are one step of Orbax's: both are there or neither is.
Needs `pip install flax 'evenfeed[checkpoint]'`.
"""

import os
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import nnx
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import evenfeed as tf
from evenfeed.train.experimental import RestoreIterator, SaveIterator

STEPS, EVERY = 60, 5


class Model(nnx.Module):
    """Two layers."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.hidden = nnx.Linear(2, 16, rngs=rngs)
        self.out = nnx.Linear(16, 1, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.out(jnp.tanh(self.hidden(x)))[:, 0]


@nnx.jit
def train_step(model: Model, optimizer: nnx.Optimizer, x: jax.Array, y: jax.Array) -> jax.Array:
    def loss_of(model: Model) -> jax.Array:
        return optax.sigmoid_binary_cross_entropy(model(x), y).mean()

    loss, gradients = nnx.value_and_grad(loss_of)(model)
    optimizer.update(model, gradients)
    return loss


def train(folder: str, stop_at: int) -> tuple[float, nnx.State]:
    """Continue from the latest checkpoint in a folder. Return the last loss, and the weights."""
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    dataset = tf.data.Dataset.from_tensor_slices(points()).shuffle(512, seed=1).repeat().batch(64)
    iterator = iter(dataset.distribute(NamedSharding(mesh, P("data"))))

    model = Model(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(0.03), wrt=nnx.Param)
    trained = nnx.state((model, optimizer))
    nnx.update((model, optimizer), jax.device_put(trained, NamedSharding(mesh, P())))

    options = ocp.CheckpointManagerOptions(save_interval_steps=EVERY, max_to_keep=2)
    loss = float("nan")
    with ocp.CheckpointManager(os.path.abspath(folder), options=options) as manager:
        start = manager.latest_step() or 0
        if start:
            like = ocp.args.StandardRestore(nnx.state((model, optimizer)))
            found = manager.restore(
                start, args=ocp.args.Composite(model=like, data=RestoreIterator(iterator))
            )
            nnx.update((model, optimizer), found.model)
        print(f"starts at step {start}")
        for step in range(start + 1, stop_at + 1):
            loss = float(train_step(model, optimizer, *next(iterator)))
            state = ocp.args.StandardSave(nnx.state((model, optimizer)))
            manager.save(step, args=ocp.args.Composite(model=state, data=SaveIterator(iterator)))
    return loss, nnx.state(model)


def points() -> tuple[np.ndarray, np.ndarray]:
    """Return points, and whether they lie in a circle."""
    x = np.random.default_rng(0).uniform(-1, 1, (512, 2)).astype(np.float32)
    return x, (np.square(x).sum(axis=1) < 0.5).astype(np.float32)


def main() -> None:
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as parts:
        expected, weights = train(whole, stop_at=STEPS)
        for stop_at in (17, 43, STEPS):  # each is a new program as far as the checkpoint knows
            loss, found = train(parts, stop_at)
    print(f"loss after {STEPS} steps: never stopped {expected:.6f}, stopped twice {loss:.6f}")
    assert loss == expected
    assert jax.tree.all(jax.tree.map(np.array_equal, found, weights))


if __name__ == "__main__":
    main()
