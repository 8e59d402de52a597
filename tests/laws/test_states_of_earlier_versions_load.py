"""States, saved datasets, snapshots and cache files that earlier versions wrote still load.

`tests/laws/earlier` holds what they wrote. To record the current version as well, run
`python -m tests.laws.test_states_of_earlier_versions_load NAME` with a new name, and commit the folder.
"""

import json
import shutil
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from tests.feeding.distribution import with_policy
from tests.feeding.workers import InMemory, all_pieces, on_all, worker_of

import evenfeed as tf
from evenfeed.core.batch_split import Share
from evenfeed.dataset import plan_of
from evenfeed.feeding.reading import BatchReading

EARLIER = Path(__file__).parent / "earlier"
VERSIONS = sorted(path.name for path in EARLIER.iterdir()) if EARLIER.exists() else []
MOST = 12  # elements are read of each dataset

Dataset = tf.data.Dataset


def numbers(count: int = 11) -> Dataset:
    return Dataset.range(count)


def mixed(count: int = 11) -> Dataset:
    return numbers(count).shuffle(5, seed=3)


def doubled(x: Any) -> Any:
    return x * 2


def in_python(x: Any) -> Any:
    return np.int64(int(x) + 1)


DATASETS: dict[str, Callable[[], Dataset]] = {
    "range": numbers,
    "shuffle": mixed,
    "map": lambda: mixed().map(doubled),
    "map in python": lambda: numbers().map(in_python, vectorize=False).skip(2),
    "batch": lambda: numbers().batch(3),
    "batch without rest": lambda: numbers().batch(3, drop_remainder=True),
    "shuffle, batch": lambda: mixed().batch(3),
    "shuffle, batch, repeat": lambda: mixed().batch(3).repeat(3),
    "batch, shuffle": lambda: numbers(31).batch(3).shuffle(4, seed=1),
    "batch, shuffle, repeat": lambda: mixed().batch(3).shuffle(4, seed=1).repeat(),
    "batch, skip": lambda: numbers().batch(2).skip(1),
    "batch, take": lambda: numbers().batch(2).take(4),
    "batch, shard": lambda: numbers(30).batch(2).shard(3, 1),
    "batch, map": lambda: numbers().map(doubled).batch(2).map(doubled),
    "batch, enumerate": lambda: numbers().batch(2).enumerate(),
    "batch, batch": lambda: numbers(12).batch(2).batch(3),
    "batch, unbatch": lambda: mixed().batch(4).unbatch(),
    "batch, unbatch, batch": lambda: mixed().batch(4).unbatch().batch(3),
    "batch, filter": lambda: numbers(20).batch(2).filter(lambda x: x[0] > 4),
    "filter, filter": lambda: (
        numbers(30).filter(lambda x: x > 4).filter(lambda x: x % 2 == 0).filter(lambda x: x != 8)
    ),
    "filter, map, map": lambda: (
        numbers(30).filter(lambda x: x > 4).map(doubled).map(lambda x: x - 1).map(doubled)
    ),
    "batch, prefetch": lambda: numbers().batch(2).prefetch(2),
    "batch, cache": lambda: mixed().batch(2).cache().repeat(2),
    "batch, zip": lambda: Dataset.zip((numbers().batch(2), mixed(8).batch(2))),
    "batch, concatenate": lambda: numbers().batch(3).concatenate(mixed().batch(2)),
    "batch, rebatch": lambda: numbers().batch(4).rebatch(3),
    "batch, choose": lambda: Dataset.choose_from_datasets(
        [numbers().batch(2), numbers().batch(3)], Dataset.range(2).repeat(4)
    ),
    "padded": lambda: numbers().padded_batch(3).skip(1),
    "window": lambda: numbers().window(3).flat_map(lambda w: w.batch(2)),
    "flat_map": lambda: numbers(3).flat_map(lambda x: Dataset.range(9).batch(2).shuffle(3, seed=2)),
    "interleave": lambda: numbers(4).interleave(
        lambda x: Dataset.range(5).batch(2).skip(1), cycle_length=2
    ),
    "generator": lambda: Dataset.from_generator(
        lambda: iter(range(9)), output_signature=tf.TensorSpec((), tf.int64)
    ).batch(2),
    "scan": lambda: numbers().scan(np.int64(0), lambda s, x: (s + x, s + x)).batch(2),
    "random_map": lambda: (
        numbers().random_map(lambda key, x: jax.random.bits(key), seed=4).batch(2).skip(1)
    ),
    "unique": lambda: numbers(4).repeat(2).unique().batch(3),
    "sample": lambda: Dataset.sample_from_datasets(
        [numbers(9).batch(2), numbers(9).batch(2)], seed=3
    ),
    "group_by_window": lambda: numbers(12).group_by_window(
        lambda x: x % 2, lambda key, group: group.batch(3), window_size=3
    ),
}


def plain(element: Any) -> list[Any]:
    return [np.asarray(part).tolist() for part in tf.nest.flatten(element)]


def distributed(dataset: Dataset) -> Any:
    return tf.distribute.get_strategy().experimental_distribute_dataset(dataset)


def read(dataset: Any) -> dict[str, Any]:
    """Return the first elements of a dataset, and the state before each."""
    iterator = iter(dataset)
    states, elements = [iterator.get_state()], list[Any]()
    for element in islice(iterator, MOST):
        elements.append(plain(element))
        states.append(iterator.get_state())
    return {"elements": elements, "states": states}


def record(name: str) -> None:
    folder = EARLIER / name
    folder.mkdir(parents=True)
    found = {key: read(make()) for key, make in DATASETS.items()}
    found["distributed"] = read(distributed(mixed().batch(4).shuffle(3, seed=1)))
    (folder / "states.json").write_text(json.dumps(found))
    written().save(str(folder / "saved"))
    list(written().snapshot(str(folder / "snapshot"), compression=None))
    list(written().cache(str(folder / "cache")))


def written() -> Dataset:
    return Dataset.from_tensor_slices({"x": np.arange(5), "s": ["a", "", "b", "c", "d"]})


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", [*DATASETS, "distributed"])
def test_an_iterator_goes_on_where_an_earlier_version_stopped(version, name):
    recorded = json.loads((EARLIER / version / "states.json").read_text())[name]
    elements = recorded["elements"]
    data = distributed(mixed().batch(4).shuffle(3, seed=1)) if name == "distributed" else None
    for passed, state in list(enumerate(recorded["states"]))[1::3]:
        iterator = iter(DATASETS[name]() if data is None else data)
        iterator.set_state(state)
        again = json.loads(json.dumps(iterator.get_state()))
        for start in (state, again):
            iterator.set_state(start)
            rest = [plain(element) for element in islice(iterator, MOST - passed)]
            assert rest == elements[passed:], passed


@pytest.mark.parametrize("version", VERSIONS)
def test_what_an_earlier_version_wrote_is_read(version, tmp_path):
    shutil.copytree(EARLIER / version, tmp_path, dirs_exist_ok=True)
    expected = [plain(element) for element in written()]
    assert [plain(e) for e in Dataset.load(str(tmp_path / "saved"))] == expected
    snapshot = written().snapshot(str(tmp_path / "snapshot"), compression=None)
    assert [plain(element) for element in snapshot] == expected
    assert len(list((tmp_path / "snapshot").iterdir())) == 1  # nothing was written again
    assert [plain(element) for element in written().cache(str(tmp_path / "cache"))] == expected


# Positions of two workers that share rows. Since then, a state is one position of all workers.
OF_TWO_WORKERS: dict[str, Callable[[], Dataset]] = {
    "shuffle, batch": lambda: mixed(31).batch(4),
    "filter, map, batch, repeat": lambda: (
        numbers(31).filter(lambda x: x != 5).map(twice, vectorize=False).batch(4).repeat(2)
    ),
    "map in python, batch": lambda: numbers(31).map(twice, vectorize=False).batch(4),
}


def twice(x: Any) -> Any:
    return np.int64(int(x) * 2)


@pytest.mark.parametrize("name", OF_TWO_WORKERS)
def test_two_workers_go_on_where_an_earlier_version_stopped(name):
    recorded = json.loads((EARLIER / "2026-11-17" / "two_workers.json").read_text())[name]

    def rest_of(worker: int, at: int, memory: InMemory) -> list[Any]:
        plan = plan_of(with_policy(OF_TWO_WORKERS[name](), "DATA"))
        reading = BatchReading(plan, worker_of(Share(worker, 2), memory))
        steps = reading.steps()
        steps.restore(reading.saving.part_of(recorded[worker]["states"][at]))
        rows = all_pieces(steps, 1, len(recorded[worker]["steps"]) - at)
        return [piece for (piece,) in rows]

    for at in (0, 1, 4, 7):
        memory = InMemory(2)
        found = on_all(2, lambda worker, at=at, memory=memory: rest_of(worker, at, memory))
        assert found == [own["steps"][at:] for own in recorded]


def test_there_is_something_of_an_earlier_version():
    assert VERSIONS


if __name__ == "__main__":
    record(sys.argv[1])
