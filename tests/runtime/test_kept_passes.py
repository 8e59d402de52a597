"""A run keeps the passes that its caches and snapshots chose, whatever other iterators read meanwhile."""

import json

import pytest

import evenfeed as tf

Dataset = tf.data.Dataset


def mixed(rows=7, seed=3):
    return Dataset.range(rows).shuffle(4, seed=seed)


def opened(windows):
    return windows.flat_map(lambda window: window.batch(3))


def twice(dataset, join):
    return join(dataset, dataset)


def given_to_function(dataset):
    return Dataset.range(3).flat_map(lambda _: dataset)


def failing(x):
    if x == 2:
        raise ValueError("two")
    return x


# All of these have something random below a cache. Each process builds its own.
DATASETS = {
    "overlapping windows": lambda _: opened(mixed(20).cache().window(3, shift=2)),
    "rounds": lambda _: mixed().cache().repeat(3),
    "rounds that are cut short": lambda _: mixed().cache().take(4).repeat(3),
    "a cache behind itself": lambda _: twice(mixed().cache(), Dataset.concatenate).repeat(2),
    "a cache beside itself": lambda _: (
        twice(mixed().cache(), Dataset.zip).map(lambda x, y: 10 * x + y).repeat(2)
    ),
    "a cache below a cache": lambda _: mixed().cache().repeat(2).cache().repeat(2),
    "a cache and what is below it": lambda _: twice(
        mixed(), lambda d, _: d.cache().concatenate(d).repeat(2)
    ),
    "groups": lambda _: (
        mixed()
        .cache()
        .repeat(2)
        .group_by_window(lambda x: x % 2, lambda _, rows: rows.batch(3), window_size=3)
    ),
    "a shuffle of rounds": lambda _: mixed().cache().filter(lambda x: x != 1).repeat(2).shuffle(5),
    "a cache that a function is given": lambda _: given_to_function(mixed().cache()),
    "caches that a function makes": lambda _: Dataset.range(3).flat_map(
        lambda _: Dataset.range(4).shuffle(4).cache().repeat(2)
    ),
    "elements that fail": lambda _: (
        mixed().map(failing, vectorize=False).cache().repeat(2).ignore_errors()
    ),
    "files": lambda folder: mixed().cache(str(folder / "kept")).repeat(2),
    "a snapshot": lambda folder: mixed().snapshot(str(folder)).repeat(2),
}

of_datasets = pytest.mark.parametrize("make", DATASETS.values(), ids=DATASETS)


def whole_pass(dataset):
    """Return the elements of a pass, the state before each, and the state after the last."""
    iterator = iter(dataset)
    found, states = [], [saved(iterator)]
    for element in iterator:
        found.append(element.tolist())
        states.append(saved(iterator))
    return found, states


def saved(iterator):
    return json.loads(json.dumps(iterator.get_state()))


def rest(dataset, state):
    iterator = iter(dataset)
    iterator.set_state(state)
    return [element.tolist() for element in iterator]


def own(folder, name):
    (folder / name).mkdir()
    return folder / name


@of_datasets
def test_a_pass_goes_on_in_another_process(make, tmp_path):
    found, states = whole_pass(make(own(tmp_path, "here")))
    for passed, state in enumerate(states):
        assert rest(make(own(tmp_path, f"there {passed}")), state) == found[passed:]


@of_datasets
def test_a_pass_goes_on_where_other_passes_were_kept_meanwhile(make, tmp_path):
    there = make(own(tmp_path, "there"))
    assert whole_pass(there)[0]  # stores the orders of another pass
    here = make(own(tmp_path, "here"))
    assert len(list(zip(range(2), here, strict=False))) == 2
    found, states = whole_pass(here)
    for passed, state in enumerate(states):
        assert rest(there, state) == found[passed:]
        assert rest(here, state) == found[passed:]


def test_the_next_pass_behind_a_restored_one_reads_what_that_one_kept():
    def make():
        return mixed().cache()

    found, states = whole_pass(make())
    there = make()
    assert rest(there, states[3]) == found[3:]
    assert whole_pass(there)[0] == found


def test_states_stay_small_with_many_caches():
    dataset = mixed()
    for _ in range(12):
        dataset = dataset.cache()
        assert len(list(dataset)) == 7  # each pass is stored before the next dataset is built
    assert len(json.dumps(iter(dataset).get_state())) < 1500
