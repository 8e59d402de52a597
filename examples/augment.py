"""Augmentation that is the same whoever computes it, and a look at how the pipeline runs.

What `random_map` draws follows from the seed, the pass and the element's position. So two workers that
share a dataset, and a run that was stopped and goes on, see the images that one run without a stop sees.
"""

from collections.abc import Iterable

import jax
import jax.numpy as jnp
import numpy as np

import evenfeed as tf


def main() -> None:
    whole = images_of(pipeline())

    for worker in range(2):
        np.testing.assert_allclose(images_of(pipeline(worker)), whole[worker::2], rtol=1e-6)
    print("two workers compute what one computes, each its own half")

    first = iter(pipeline())
    next(first)
    again = iter(pipeline())
    again.set_state(first.get_state())
    np.testing.assert_allclose(images_of(again), whole[4:], rtol=1e-6)
    print("a run that goes on draws what it would have drawn")

    dataset = pipeline()
    assert not np.allclose(images_of(dataset), images_of(dataset))
    print("each pass draws anew\n")

    print(dataset.explain())


def images_of(batches: Iterable[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    return np.concatenate([images for images, _ in batches])


def pipeline(worker: int | None = None) -> tf.data.Dataset:
    images = np.arange(20 * 6 * 6, dtype=np.float32).reshape(20, 6, 6)
    labels = np.arange(20, dtype=np.int32)
    dataset = (
        tf.data.Dataset.from_tensor_slices((images, labels))
        .shuffle(20, seed=7)
        .random_map(augmented, seed=7)
    )
    if worker is not None:
        dataset = dataset.shard(2, worker)
    return dataset.batch(4)


def augmented(key: jax.Array, image: jax.Array, label: jax.Array) -> tuple[jax.Array, jax.Array]:
    flip, crop, light = jax.random.split(key, 3)
    image = jnp.where(jax.random.bernoulli(flip), image[:, ::-1], image)
    top, left = jax.random.randint(crop, (2,), 0, 3)
    image = jax.lax.dynamic_slice(image, (top, left), (4, 4))
    return image * jax.random.uniform(light, minval=0.8, maxval=1.2), label


if __name__ == "__main__":
    main()
