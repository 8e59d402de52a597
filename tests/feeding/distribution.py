"""Shared by the tests of this folder: strategies, distributed datasets, and the plain values of their steps."""

import threading
from typing import Any

import numpy as np

import evenfeed as tf


def strategy_of(count: int) -> tf.distribute.MirroredStrategy:
    return tf.distribute.MirroredStrategy([f"CPU:{index}" for index in range(count)])


def distributed(dataset: Any, count: int, **options: Any) -> tf.distribute.DistributedDataset:
    chosen = tf.distribute.InputOptions(**options)
    return strategy_of(count).experimental_distribute_dataset(dataset, chosen)


def numbers(values: Any) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(np.asarray(values, np.int32))


def parts_of(step: Any) -> list[Any]:
    values = step.values if isinstance(step, tf.distribute.PerReplica) else (step,)
    return [part.tolist() for part in values]


def with_policy(dataset: tf.data.Dataset, policy: str) -> tf.data.Dataset:
    options = tf.data.Options()
    policies = tf.data.experimental.AutoShardPolicy
    options.experimental_distribute.auto_shard_policy = getattr(policies, policy)
    return dataset.with_options(options)


def feeding_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "evenfeed-feed"]


def with_lanes(dataset, lanes):
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.LANES
    if lanes is not None:
        options.experimental_distribute.num_lanes = lanes
    return dataset.with_options(options)
