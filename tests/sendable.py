"""Datasets that another process can be sent, and the program of that process.

Their functions stand at the top of a module, where the other process finds them by name.
"""

import pickle
import sys
from typing import Any

import numpy as np

import evenfeed as tf
from evenfeed.core.errors import EvenfeedError
from evenfeed.dataset import Dataset, plan_of
from evenfeed.runtime.fingerprint import fingerprint


def plus_one(x):
    return x + 1


def doubled_if_large(x):
    return x * 2 if x > 2 else x


def stops_at_two(x):
    if int(x) == 2:
        raise StopIteration
    return np.int64(x)


def counted(variable, x):
    variable.assign_add(1)
    return x


def counts_two(variable, x):
    return counted(variable, x) if int(x) == 2 else x


def reads(variable, x):
    return x, variable.value()


def shouted(text):
    return text + b"!"


def is_odd(x):
    return x % 2 == 1


def is_low(x):
    return x < 4


def parity(x):
    return x % 2


def itself(x):
    return x


def added_up(state, x):
    return state + x, state


def pairs(key, group):
    return group.batch(2)


def two(key):
    return 2


def length(row):
    return tf.shape(row)[0]


def augmented(key, x):
    return x


def one_by_one(shards):
    return shards.flat_map(itself)


def rows():
    for count in range(1, 6):
        yield [count] * count


def datasets(folder: str) -> dict[str, Dataset]:
    """Return a dataset for each step that has something to send."""
    numbers = Dataset.range(9)
    numbers.save(folder, shard_func=parity)
    made = Dataset.from_generator(rows, output_signature=tf.TensorSpec([None], tf.int32))
    options = tf.data.Options()
    options.deterministic = False
    return {
        "map": numbers.map(plus_one),
        "map per element": numbers.map(doubled_if_large),
        "map in threads": numbers.map(doubled_if_large, num_parallel_calls=2),
        "map of text": Dataset.from_tensor_slices(["a", "b"]).map(shouted),
        "random_map": numbers.random_map(augmented, seed=1),
        "filter": numbers.filter(is_odd),
        "take_while": numbers.take_while(is_low),
        "flat_map": numbers.flat_map(Dataset.range),
        "interleave": numbers.interleave(Dataset.range, cycle_length=2),
        "scan": numbers.scan(np.int64(0), added_up),
        "group_by_window": numbers.group_by_window(parity, pairs, 2),
        "group_by_window by key": numbers.group_by_window(parity, pairs, window_size_func=two),
        "bucket_by_sequence_length": made.bucket_by_sequence_length(length, [3], [2, 2]),
        "rejection_resample": numbers.map(parity).rejection_resample(itself, [0.5, 0.5], seed=1),
        "from_generator": made,
        "padded_batch": made.padded_batch(2),
        "window": numbers.window(2).flat_map(itself),
        "cache": numbers.cache(),
        "prefetch": numbers.prefetch(2),
        "ignore_errors": numbers.ignore_errors(),
        "unbatch": numbers.batch(2).unbatch(),
        "rebatch": numbers.batch(2).rebatch(3),
        "unique": numbers.unique(),
        "random": Dataset.random(seed=1).take(5),
        "counter": Dataset.counter().take(5),
        "choose": Dataset.choose_from_datasets([numbers, numbers], numbers.map(parity)),
        "sample": Dataset.sample_from_datasets([numbers, numbers], [0.5, 0.5]),
        "shuffle": numbers.shuffle(3).repeat(2),
        "options": numbers.with_options(options),
        "assert_cardinality": numbers.apply(tf.data.experimental.assert_cardinality(9)),
        "load": Dataset.load(folder),
        "load with reader_func": Dataset.load(folder, reader_func=one_by_one),
        "snapshot": numbers.snapshot(folder, shard_func=parity, reader_func=one_by_one).take(4),
    }


def plain(value: Any) -> Any:
    """Return an element as values that == compares."""
    if isinstance(value, (np.ndarray, np.generic)):
        return str(value.dtype), value.shape, value.tolist()
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if isinstance(value, Dataset):
        return list(map(plain, value))
    return tuple(map(plain, value)) if isinstance(value, tuple) else value


def read(dataset: Dataset, state: Any = None, most: int = 30) -> list[Any]:
    """Return elements from a state on, the class of an error in its place."""
    iterator, found = iter(dataset), []
    if state is not None:
        iterator.set_state(state)
    while len(found) < most:
        try:
            found.append(plain(next(iterator)))
        except StopIteration:
            break
        except (ValueError, EvenfeedError) as error:
            found.append(type(error).__name__)
    return found


def main() -> None:
    """Read datasets and states from a file; write what they are here."""
    with open(sys.argv[1], "rb") as file:
        sent = pickle.load(file)
    told = [
        (fingerprint(plan_of(dataset)), read(dataset), read(dataset, state))
        for dataset, state in map(pickle.loads, sent)
    ]
    with open(sys.argv[2], "wb") as file:
        pickle.dump(told, file)


if __name__ == "__main__":
    main()
