"""Workers that split the rows of one random order, also through caches, flat_map and zip."""

import jax
import pytest
from tests.feeding import model
from tests.feeding.distribution import with_policy
from tests.feeding.workers import InMemory, all_pieces, on_all, reading

import evenfeed as tf
from evenfeed.core.batch_split import Share
from evenfeed.dataset import plan_of
from evenfeed.runtime.elements import ElementIterator

Dataset = tf.data.Dataset
ROWS = 23


def mixed(seed=None, buffer=5):
    return Dataset.range(ROWS).shuffle(buffer, seed=seed)


def inner_orders(seed):
    return lambda _: Dataset.range(6).shuffle(6, seed=seed)


def twice(dataset, join):
    return join(dataset, dataset)


def pairs(one, two):
    return Dataset.zip(one, two).map(lambda x, y: 100 * x + y)


def with_chance(key, x):
    return x + jax.random.randint(key, (), 0, 7)


# The seed of the random nodes in these; None for a random one.
DATASETS = {
    "cache": lambda s, _: mixed(s).cache(),
    "map below cache": lambda s, _: mixed(s).map(lambda x: x + 1).cache(),
    "map that is called below cache": lambda s, _: mixed(s).map(abs, vectorize=False).cache(),
    "take below cache": lambda s, _: mixed(s).take(13).cache(),
    "filter below cache": lambda s, _: mixed(s).filter(lambda x: x % 3 > 0).cache(),
    "zip below cache": lambda s, _: pairs(mixed(s), Dataset.range(ROWS)).cache(),
    "rounds below cache": lambda s, _: mixed(s).repeat(2).cache(),
    "random keys below cache": lambda s, _: (
        Dataset.range(ROWS).random_map(with_chance, seed=s).cache()
    ),
    "cache below cache": lambda s, _: mixed(s).cache().map(lambda x: x + 1).cache(),
    "shuffle above cache": lambda s, _: mixed(s).cache().shuffle(6, seed=s),
    "rounds above cache": lambda s, _: mixed(s).cache().repeat(2),
    "take above cache": lambda s, _: mixed(s).cache().take(11),
    "skip above cache": lambda s, _: mixed(s).cache().skip(3),
    "shard above cache": lambda s, _: mixed(s).cache().shard(2, 0),
    "windows above cache": lambda s, _: mixed(s).cache().window(3, 2).flat_map(lambda rows: rows),
    "rows of cached batches": lambda s, _: mixed(s).batch(4).cache().unbatch(),
    "cache in files": lambda s, folder: mixed(s).cache(str(folder / "kept")),
    "snapshot": lambda s, folder: mixed(s).snapshot(str(folder)),
    "cache above snapshot": lambda s, folder: mixed(s).snapshot(str(folder)).cache(),
    "zip of caches": lambda s, _: pairs(mixed(s).cache(), mixed(s, 4).cache()),
    "cache beside itself": lambda s, _: twice(mixed(s).cache(), pairs),
    "cache behind itself": lambda s, _: twice(mixed(s).cache(), Dataset.concatenate),
    "shuffle beside itself": lambda s, _: twice(mixed(s), pairs),
    "concatenate": lambda s, _: mixed(s).cache().concatenate(mixed(s, 9)),
    "sample": lambda s, _: Dataset.sample_from_datasets([mixed(s), mixed(s, 6).cache()], seed=s),
    "sample below cache": lambda s, _: Dataset.sample_from_datasets(
        [mixed(s), Dataset.range(9)], seed=s
    ).cache(),
    "choose": lambda s, _: Dataset.choose_from_datasets(
        [mixed(s).cache(), mixed(s)], Dataset.range(2).repeat(9)
    ),
    "random numbers below cache": lambda s, _: Dataset.random(s).take(9).cache(),
    "flat_map": lambda s, _: Dataset.range(4).flat_map(inner_orders(s)),
    "flat_map of a given dataset": lambda s, _: twice(
        mixed(s), lambda given, _: Dataset.range(3).flat_map(lambda _: given)
    ),
    "flat_map of a given cache": lambda s, _: twice(
        mixed(s).cache(), lambda given, _: Dataset.range(3).flat_map(lambda _: given)
    ),
    "flat_map of caches": lambda s, _: Dataset.range(3).flat_map(
        lambda _: Dataset.range(6).shuffle(6, seed=s).cache().repeat(2)
    ),
    "interleave": lambda s, _: Dataset.range(4).interleave(inner_orders(s), cycle_length=2),
    "groups": lambda s, _: Dataset.range(ROWS).group_by_window(
        lambda x: x % 3, lambda _, rows: rows.shuffle(4, seed=s), window_size=4
    ),
}
BATCHES = {
    "batches": lambda d: d.batch(6),
    "rounds of batches": lambda d: d.batch(6).repeat(2),
    "cached batches": lambda d: d.batch(6).cache().repeat(2),
    "mixed batches": lambda d: d.batch(6).shuffle(3, seed=2),
    "batches over rounds": lambda d: d.repeat().batch(6).take(9),
    "batches that are mapped": lambda d: d.batch(6).map(lambda x: x),
}

of_datasets = pytest.mark.parametrize("dataset", DATASETS.values(), ids=DATASETS)
of_batches = pytest.mark.parametrize("batches", BATCHES.values(), ids=BATCHES)


class Cluster:
    """Some workers in threads, and the dataset that each of them made."""

    def __init__(self, make, workers, folder):
        # Made one after the other, because JAX traces their functions.
        self.datasets = [
            with_policy(make(_own(folder, worker)), "DATA") for worker in range(workers)
        ]
        memory, self.workers = InMemory(workers), workers
        self.readings = on_all(
            workers,
            lambda w: reading(self.datasets.__getitem__, Share(w, workers, 1), memory),
        )

    def one_pass(self):
        """Return the steps of all workers, and their shared random state."""
        steps = on_all(self.workers, lambda worker: self.readings[worker].steps())
        runs = [own.state()["at"][0]["run"] for own in steps]
        assert all(run == runs[0] for run in runs)
        return on_all(self.workers, lambda worker: all_pieces(steps[worker], 1)), runs[0]


def _own(folder, worker):
    (folder / str(worker)).mkdir()
    return folder / str(worker)


def shared(batches):
    """Return the steps of two workers over these batches."""
    whole = [batch.tolist() for batch in batches]
    assert len(whole) > 1
    return [model.by_data(whole, 2, 1, worker) for worker in range(2)]


@of_batches
@of_datasets
def test_workers_share_the_batches_that_one_would_have(tmp_path, dataset, batches):
    cluster = Cluster(lambda folder: batches(dataset(4, folder)), 2, tmp_path)
    alone = batches(dataset(4, _own(tmp_path, "alone")))
    for _ in range(2):
        assert cluster.one_pass()[0] == shared(alone)


@of_datasets
def test_workers_share_an_order_that_nobody_gave_a_seed(tmp_path, dataset):
    cluster = Cluster(lambda folder: dataset(None, folder).batch(6), 2, tmp_path)
    alone = plan_of(dataset(None, _own(tmp_path, "alone")).batch(6))
    for _ in range(2):
        found, run = cluster.one_pass()
        assert found == shared(ElementIterator(alone, begun=run))


@of_datasets
@pytest.mark.parametrize("count", [1, ROWS * ROWS])
def test_a_worker_may_look_at_the_dataset_alone(tmp_path, dataset, count):
    cluster = Cluster(lambda folder: dataset(4, folder).batch(6), 2, tmp_path)
    for worker in (1, 0):
        for _, _batch in zip(range(count), cluster.datasets[worker], strict=False):
            pass
        found, run = cluster.one_pass()
        alone = plan_of(dataset(4, _own(tmp_path, f"beside {worker}")).batch(6))
        assert found == shared(ElementIterator(alone, begun=run))
