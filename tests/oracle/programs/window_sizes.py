"""group_by_window: how often window_size_func is asked, and what its failures leave behind."""

import numpy as np


def window_size_func(tf, ask):
    data = tf.data.Dataset

    def asked_for(numbers, size_of, passes=1):
        """Return the keys in the order in which they were asked for, and the groups of the last pass."""
        keys = []

        def size(key):
            keys.append(int(key))
            return size_of(key, keys)

        def window_size(key):
            return tf.reshape(tf.numpy_function(size, [key], tf.int64), [])

        dataset = data.from_tensor_slices(tf.constant(numbers, tf.int64)).group_by_window(
            lambda x: x % 3, lambda key, group: group.batch(10), window_size_func=window_size
        )
        found = []
        keys.clear()
        for _ in range(passes):
            found = _groups(tf, dataset)
        return keys, found

    numbers = list(range(12))
    return {
        "a group is filled twice": ask(lambda: asked_for(numbers, lambda key, _: np.int64(2))),
        "sizes of keys": ask(lambda: asked_for(numbers, lambda key, _: np.int64(key + 1))),
        "another size each time": ask(
            lambda: asked_for(numbers, lambda _, keys: np.int64(len(keys)))
        ),
        "each pass asks again": ask(lambda: asked_for(numbers[:6], lambda key, _: np.int64(1), 2)),
        "a key that comes back": ask(
            lambda: asked_for([0, 1, 0, 0, 1, 0, 0, 3], lambda _, keys: np.int64(len(keys)))
        ),
        "a size of 0 at first": ask(
            lambda: asked_for(numbers, lambda _, keys: np.int64(min(len(keys) - 1, 2)))
        ),
    }


def _groups(tf, dataset):
    """Return the groups, and "failed" where reading fails."""
    iterator, found = iter(dataset), []
    for _ in range(20):
        try:
            found.append(next(iterator).numpy().tolist())
        except StopIteration:
            break
        except tf.errors.InvalidArgumentError:
            found.append("failed")
    return found
