"""Distributed datasets: the rows of each replica, the specs, and errors."""

import threading
import time
from collections import namedtuple
from itertools import chain

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.feeding.distribution import distributed, numbers, parts_of, strategy_of
from tests.mirroring import without_x64
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError, OutOfRangeError
from evenfeed.feeding.host_steps import cut
from evenfeed.replicas.values import PerReplicaSpec
from evenfeed.runtime.positions.rows import Walk

Dataset = tf.data.Dataset
Pair = namedtuple("Pair", ["x", "y"])


def spec(count, *shape, dtype=tf.int32):
    return PerReplicaSpec(*[tf.TensorSpec(shape, dtype)] * count)


@given(rows=st.integers(0, 40), count=st.integers(1, 8), size=st.integers(1, 20))
def test_the_replicas_get_every_row_once_in_order(rows, count, size):
    steps = list(distributed(numbers(range(rows)).batch(size), count))
    assert len(steps) == -(-rows // size)
    pieces = [piece for step in steps for piece in parts_of(step)]
    assert [row for piece in pieces for row in piece] == list(range(rows))
    assert len(pieces) == count * len(steps)


@given(rows=st.integers(0, 40), count=st.integers(1, 8))
def test_a_batch_is_cut_by_ceiling(rows, count):
    pieces = cut(np.arange(rows), count)
    size = -(-rows // count)
    assert [len(piece) for piece in pieces] == [
        max(0, min(size, rows - i * size)) for i in range(count)
    ]


@pytest.mark.parametrize("count", range(2, 9))
def test_an_even_batch_is_one_array_and_an_uneven_one_is_not(count):
    even, uneven = distributed(numbers(range(3 * count - 1)).batch(2 * count), count)
    assert even.array.tolist() == list(range(2 * count))
    with pytest.raises(InvalidArgumentError, match="their shapes are"):
        uneven.array  # noqa: B018 - the access is the test


def test_a_short_last_batch_leaves_replicas_empty():
    steps = list(distributed(numbers(range(5)).batch(4), 4))
    assert [parts_of(step) for step in steps] == [[[0], [1], [2], [3]], [[4], [], [], []]]


def test_each_part_lies_on_the_device_of_its_replica():
    strategy = tf.distribute.MirroredStrategy(["CPU:3", "CPU:1"])
    devices = list(strategy.mesh.devices)
    for step in strategy.experimental_distribute_dataset(numbers(range(7)).batch(4)):
        assert [part.devices() for part in step.values] == [{device} for device in devices]


def test_one_replica_gets_plain_arrays():
    dataset = distributed(numbers(range(3)).batch(2), 1)
    assert [parts_of(step) for step in dataset] == [[[0, 1]], [[2]]]
    assert all(isinstance(step, jax.Array) for step in dataset)
    assert dataset.element_spec == tf.TensorSpec([None], tf.int32)
    assert [int(x) for x in distributed(numbers([7, 8]), 1)] == [7, 8]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_no_rows_make_no_steps(count):
    dataset = distributed(numbers([]).batch(4), count)
    assert list(dataset) == []
    assert dataset.cardinality == 0


def test_a_batch_without_rows_gives_every_replica_an_empty_part():
    dataset = distributed(Dataset.from_tensors(np.zeros((0, 2), np.float32)), 2)
    assert [part.shape for part in next(iter(dataset)).values] == [(0, 2), (0, 2)]
    assert dataset.element_spec == spec(2, 0, 2, dtype=tf.float32)


def test_structures_are_kept():
    rows = np.arange(4, dtype=np.int32)
    dataset = Dataset.from_tensor_slices({"b": Pair(rows, (rows + 10,)), "a": rows + 20}).batch(4)
    dataset = distributed(dataset, 2)
    step = next(iter(dataset))
    assert list(step) == ["b", "a"]
    assert parts_of(step["b"].x) == [[0, 1], [2, 3]]
    assert parts_of(step["b"].y[0]) == [[10, 11], [12, 13]]
    assert parts_of(step["a"]) == [[20, 21], [22, 23]]
    open_one = spec(2, None)
    assert dataset.element_spec == {"b": Pair(open_one, (open_one,)), "a": open_one}


@pytest.mark.parametrize("rows", [4, 3])
def test_text_is_cut_and_stays_on_the_host(rows):
    text = list("abcd")[:rows]
    (step,) = distributed(Dataset.from_tensor_slices(text).batch(4), 2)
    assert [row.decode() for part in parts_of(step) for row in part] == text
    assert all(isinstance(part, np.ndarray) for part in step.values)
    with pytest.raises(InvalidArgumentError, match="strings, which stay on the host"):
        step.array  # noqa: B018


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_none_part_is_none_for_every_replica(count):
    dataset = distributed(Dataset.from_tensor_slices((np.int32([1, 2, 3]), None)).batch(3), count)
    _, nothing = next(iter(dataset))
    local = strategy_of(count).experimental_local_results(nothing)
    assert local == (None,) * count
    kind = tf.type_spec_from_value(None)
    assert dataset.element_spec[1] == (kind if count == 1 else PerReplicaSpec(*[kind] * count))


def test_iterators_are_independent_and_start_anew():
    dataset = distributed(numbers(range(6)).batch(2), 2)
    first, second = iter(dataset), iter(dataset)
    assert parts_of(next(first)) == [[0], [1]]
    assert parts_of(next(first)) == [[2], [3]]
    assert parts_of(next(second)) == [[0], [1]]
    assert parts_of(next(first)) == [[4], [5]]
    assert parts_of(next(second)) == [[2], [3]]
    assert iter(first) is first


def test_after_the_end_it_stays_ended():
    iterator = iter(distributed(numbers(range(2)).batch(2), 2))
    assert parts_of(iterator.get_next()) == [[0], [1]]
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(iterator)
        with pytest.raises(OutOfRangeError, match="The data has ended"):
            iterator.get_next()
        assert not iterator.get_next_as_optional().has_value()


def test_an_optional_holds_the_step():
    iterator = iter(distributed(numbers(range(2)).batch(2), 2))
    assert parts_of(iterator.get_next_as_optional().get_value()) == [[0], [1]]


def test_the_specs_say_what_comes():
    assert distributed(numbers(range(8)).batch(4), 2).element_spec == spec(2, None)
    assert distributed(numbers(range(8)).batch(4, True), 2).element_spec == spec(2, 2)
    assert distributed(numbers(range(8)).batch(4, True), 3).element_spec == spec(3, None)
    iterator = iter(distributed(numbers(range(8)).batch(4, True), 2))
    assert iterator.element_spec == spec(2, 2)


def test_without_an_end_no_step_is_short_and_even_parts_are_known():
    dataset = Dataset.from_tensors((np.zeros(5, np.int32), np.zeros((4, 3), np.int32))).repeat()
    assert distributed(dataset, 2).element_spec == (spec(2, None), spec(2, 2, 3))


@without_x64
def test_the_spec_follows_x64():
    dataset = distributed(Dataset.range(4).batch(4, True), 2)
    iterator = iter(dataset)
    assert dataset.element_spec == iterator.element_spec == spec(2, 2)
    with jax.enable_x64(True):
        assert dataset.element_spec == spec(2, 2, dtype=tf.int64)
        assert iterator.element_spec == spec(2, 2, dtype=tf.int64)
        assert tf.type_spec_from_value(next(iterator)) == iterator.element_spec


def test_cardinality_counts_global_batches():
    assert distributed(numbers(range(9)).batch(4), 2).cardinality == 3
    endless = distributed(numbers(range(9)).batch(4).repeat(), 2)
    assert endless.cardinality == tf.data.INFINITE_CARDINALITY


def test_scalars_are_refused_when_they_are_distributed():
    strategy = strategy_of(2)
    for dataset in (Dataset.range(4), Dataset.from_tensors((np.zeros(2), 3))):
        with error_saying(
            InvalidArgumentError,
            "An element with a scalar component, …",
            fix="call batch(global_batch_size) on the dataset before you distribute it.",
        ):
            strategy.experimental_distribute_dataset(dataset)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    ("wrap", "what"),
    [
        (lambda x: x, "the element"),
        (lambda x: {"a": x}, "the element's component ['a']"),
        (lambda x: {"a": (np.zeros(len(x)), x)}, "the element's component ['a'][1]"),
        (lambda x: Pair(None, x), "the element's component .y"),
    ],
)
@pytest.mark.parametrize("rows", [2, 3])
@without_x64
def test_an_int64_that_does_not_fit_names_its_part(count, wrap, what, rows):
    large = np.array([1, 2**31, 3])[:rows]
    iterator = iter(distributed(Dataset.from_tensor_slices(wrap(large)).batch(rows), count))
    with error_saying(
        InvalidArgumentError,
        f"2147483648 in {what} does not fit into int32, and JAX runs without 64-bit types.",
        fix="set JAX_ENABLE_X64=1 …",
    ):
        next(iterator)


@without_x64
def test_the_step_after_one_that_does_not_fit_still_comes():
    iterator = iter(distributed(Dataset.from_tensor_slices([2**31, 0, 5, 6]).batch(2), 2))
    with pytest.raises(InvalidArgumentError, match="2147483648 in the element does not fit"):
        next(iterator)
    assert parts_of(next(iterator)) == [[5], [6]]


def test_what_changes_the_data_belongs_before_the_distribution():
    dataset = distributed(numbers(range(4)).batch(2), 2)
    with pytest.raises(
        AttributeError, match=r"no attribute 'batch'. Call batch on the Dataset before"
    ) as no:
        dataset.batch(2)
    assert (no.value.name, no.value.obj) == ("batch", dataset)
    with pytest.raises(AttributeError, match=r"^A DistributedDataset has no attribute 'colour'\.$"):
        dataset.colour  # noqa: B018


@pytest.fixture
def slow_reads(monkeypatch):
    """Make reads slow enough that all threads try to read at the same time."""
    read = Walk.read

    def slowly(self, most):
        time.sleep(0.005)
        return read(self, most)

    monkeypatch.setattr(Walk, "read", slowly)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.usefixtures("slow_reads")
def test_threads_that_share_an_iterator_get_each_step_once(count):
    steps, workers = 400, 8
    iterator = iter(distributed(numbers(range(4 * steps)).batch(4), count))
    got, start = [[] for _ in range(workers)], threading.Barrier(workers)

    def work(mine):
        start.wait()
        mine.extend(iterator)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in got]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    batches = sorted(list(chain(*parts_of(step))) for mine in got for step in mine)
    assert batches == np.arange(4 * steps).reshape(steps, 4).tolist()


@pytest.mark.parametrize("count", [1, 2])
def test_a_dataset_of_unknown_size_ends_where_it_ends(count):
    dataset = distributed(numbers(range(20)).filter(lambda x: x % 3 == 0).batch(4), count)
    assert dataset.cardinality == tf.data.UNKNOWN_CARDINALITY
    assert [row for step in dataset for part in parts_of(step) for row in part] == [
        *range(0, 20, 3)
    ]


def test_batches_of_batches_are_cut_along_the_outer_axis():
    dataset = distributed(numbers(range(16)).batch(2).batch(3), 2)
    assert [[part.shape for part in step.values] for step in dataset] == [
        [(2, 2), (1, 2)],
        [(2, 2), (1, 2)],
        [(1, 2), (1, 2)],
    ]


def test_padded_batches_are_cut():
    ragged = numbers([1, 2, 3]).map(np.arange, vectorize=False).padded_batch(2)
    dataset = distributed(ragged, 2)
    assert [[part.shape for part in step.values] for step in dataset] == [
        [(1, 2), (1, 2)],
        [(1, 3), (0, 3)],
    ]
    assert dataset.element_spec == spec(
        2, None, None, dtype=dataset.element_spec.value_specs[0].dtype
    )


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_known_number_of_steps_is_its_length(count):
    assert len(distributed(numbers(range(10)).batch(4), count)) == 3
    empty = distributed(numbers(range(0)).batch(4), count)
    assert len(empty) == 0
    assert empty, "a dataset is a value, however many steps it has"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (numbers(range(4)).batch(2).repeat(), "infinite"),
        (numbers(range(4)).filter(lambda x: x > 1).batch(2), "unknown until it is read"),
    ],
)
def test_without_a_known_number_of_steps_it_has_no_length(data, kind):
    with pytest.raises(TypeError, match=kind):
        len(distributed(data, 2))


def test_a_list_of_steps_needs_no_length():
    steps = list(distributed(numbers(range(4)).filter(lambda x: x > 1).batch(2), 2))
    assert [parts_of(step) for step in steps] == [[[2], [3]]]
