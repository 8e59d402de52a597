import dataclasses
import gc
import json
import pickle
import tracemalloc
from collections import OrderedDict, defaultdict, namedtuple
from itertools import islice

import attrs
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.plans import elements
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.dataset import Dataset, plan_of
from evenfeed.plan.combining import Concatenate
from evenfeed.plan.elementwise import Enumerate
from evenfeed.plan.grouping import Batch
from evenfeed.plan.ordering import Repeat, Shard, Shuffle, Skip, Take
from evenfeed.plan.sources import Range

Pair = namedtuple("Pair", "y x")


@attrs.define
class Record:
    b: object
    a: object


@dataclasses.dataclass
class Plain:
    b: object
    a: object


def test_methods_add_one_node_each():
    dataset = Dataset.range(1, 9, 2).repeat(3).batch(4, drop_remainder=True)
    assert plan_of(dataset) == Batch(Repeat(Range(1, 9, 2), 3), 4, drop_remainder=True)
    assert plan_of(Dataset.range(5).repeat()) == Repeat(Range(0, 5), -1)
    assert plan_of(Dataset.range(9).take(5).skip(2)) == Skip(Take(Range(0, 9), 5), 2)
    assert plan_of(Dataset.range(9).shard(3, 1)) == Shard(Range(0, 9), 3, 1)
    assert plan_of(Dataset.range(9).enumerate(4)) == Enumerate(Range(0, 9), 4)
    assert plan_of(Dataset.range(9).concatenate(Dataset.range(2))) == Concatenate(
        Range(0, 9), Range(0, 2)
    )
    assert plan_of(Dataset.range(5, output_type="int32")) == Range(0, 5, dtype=tf.int32)


def test_a_shuffle_has_the_seed_that_it_was_given():
    node = plan_of(Dataset.range(9).shuffle(4, seed=7))
    assert node == Shuffle(Range(0, 9), 4, node.seed)
    assert node.reshuffle
    assert node.seed == plan_of(Dataset.range(9).shuffle(4, seed=7)).seed
    assert node.seed != plan_of(Dataset.range(9).shuffle(4, seed=8)).seed
    fixed = Dataset.range(9).shuffle(4, reshuffle_each_iteration=False)
    assert not plan_of(fixed).reshuffle
    assert plan_of(Dataset.range(9).shuffle(4, reshuffle_each_iteration=None)).reshuffle


def test_a_shuffle_without_seeds_differs_between_datasets():
    seeds = {plan_of(Dataset.range(9).shuffle(4)).seed for _ in range(50)}
    assert len(seeds) == 50


def test_the_parts_of_a_zip_keep_their_structure():
    a, b = Dataset.range(2), Dataset.from_tensor_slices({"x": [5, 6]})
    first = next(iter(Dataset.zip({"b": a, "a": (b, a)})))
    assert first == {"b": 0, "a": ({"x": 5}, 0)}
    assert list(first) == ["b", "a"]
    assert next(iter(Dataset.zip(datasets=(a, a)))) == (0, 0)
    assert next(iter(Dataset.zip(Pair(a, a)))) == Pair(0, 0)


def test_elements_of_two_shapes_come_one_after_the_other():
    rows = Dataset.from_tensor_slices(np.zeros((2, 3)))
    dataset = rows.concatenate(Dataset.from_tensor_slices(np.ones((2, 4))))
    assert dataset.element_spec == tf.TensorSpec([None], "float64")
    assert [len(row) for row in dataset] == [3, 3, 4, 4]
    assert sorted(len(row) for row in dataset.shuffle(4)) == [3, 3, 4, 4]
    assert [batch.shape for batch in dataset.batch(2)] == [(2, 3), (2, 4)]


def test_an_iterator_goes_on_where_another_stopped():
    def make():
        return Dataset.range(20).shuffle(7, seed=3).batch(3).repeat(2)

    dataset = make()
    whole = [batch.tolist() for batch in dataset]
    one, two = iter(make()), iter(make())
    first = [next(one).tolist() for _ in range(9)]
    two.set_state(json.loads(json.dumps(one.get_state())))
    assert first + [batch.tolist() for batch in two] == whole


def test_a_shuffle_copies_no_rows_into_a_buffer():
    array = np.zeros((200_000, 16))
    iterator = iter(Dataset.from_tensor_slices(array).shuffle(200_000, seed=1))
    tracemalloc.start()
    next(iterator)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < array.nbytes / 4


def test_a_dataset_can_be_pickled_and_its_passes_start_from_0():
    dataset = Dataset.range(30).shuffle(30, seed=1)
    first = [int(x) for x in dataset]
    assert [int(x) for x in pickle.loads(pickle.dumps(dataset))] == first


def test_a_method_leaves_the_dataset_as_it_was():
    dataset = Dataset.range(4)
    dataset.batch(2)
    assert [int(x) for x in dataset] == [0, 1, 2, 3]


def test_a_dataset_knows_the_line_of_every_step():
    first = Dataset.range(4)
    second = first.batch(2)
    assert plan_of(second).origin.line == plan_of(second).child.origin.line + 1
    assert plan_of(second).origin.filename == __file__


def test_arrays_are_not_copied():
    array = np.arange(12.0).reshape(4, 3)
    for element in Dataset.from_tensor_slices(array):
        assert np.shares_memory(element, array)
    for batch in Dataset.from_tensor_slices(array).batch(2):
        assert np.shares_memory(batch, array)
    assert np.shares_memory(next(iter(Dataset.from_tensors(array))), array)


@pytest.mark.parametrize("make", [Dataset.from_tensor_slices, Dataset.from_tensors])
@pytest.mark.parametrize("batch", [False, True])
def test_an_array_cannot_be_changed_through_an_element(make, batch):
    array = np.zeros((4, 3))
    dataset = make(array).batch(2) if batch else make(array)
    with pytest.raises(ValueError, match="read-only"):
        next(iter(dataset))[0] = 7
    assert array.flags.writeable
    assert not array.any()


def test_text_cannot_be_changed_through_an_element():
    array = np.array([b"a", b"b"], object)
    with pytest.raises(ValueError, match="read-only"):
        next(iter(Dataset.from_tensor_slices(array)))[()] = b"c"


def test_an_array_may_go_while_the_dataset_lives():
    dataset = Dataset.from_tensor_slices(np.arange(1000))
    gc.collect()
    assert int(sum(dataset)) == 499_500


@given(elements())
def test_slices_of_a_structure_have_its_structure(value):
    dataset = Dataset.from_tensor_slices(value)
    for element in dataset:
        tf.nest.assert_same_structure(element, dataset.element_spec)
    assert len(dataset) == dataset.cardinality() == len(list(dataset))


@pytest.mark.parametrize(
    "value",
    [
        ([1, 2], [3, 4]),
        {"b": [1, 2], "a": [3, 4]},
        OrderedDict([("b", [1, 2]), ("a", [3, 4])]),
        defaultdict(list, {"b": [1, 2], "a": [3, 4]}),
        Pair([1, 2], [3, 4]),
        Record([1, 2], [3, 4]),
        Plain([1, 2], [3, 4]),
        ({"b": ([1, 2],)}, Pair([3, 4], None)),
    ],
)
def test_elements_have_the_type_and_the_order_of_what_they_were_made_of(value):
    element = next(iter(Dataset.from_tensor_slices(value)))
    assert type(element) is type(value)
    assert repr(tf.nest.map_structure(lambda leaf: 0, element)) == repr(
        tf.nest.map_structure(lambda leaf: 0, Dataset.from_tensor_slices(value).element_spec)
    )
    if isinstance(value, dict):
        assert list(element) == ["b", "a"]


@pytest.mark.parametrize(
    ("value", "spec", "expected"),
    [
        (np.array([1, 2], ">i4"), tf.TensorSpec([], "int32"), [1, 2]),
        (jnp.arange(3, dtype="int16"), tf.TensorSpec([], "int16"), [0, 1, 2]),
        ([jnp.float32(1.5), 2.5], tf.TensorSpec([], "float32"), [1.5, 2.5]),
        (["ä", "b\0"], tf.TensorSpec([], "string"), ["ä".encode(), b"b\0"]),
        ([True, False], tf.TensorSpec([], "bool"), [True, False]),
        ([2**40], tf.TensorSpec([], "int64"), [2**40]),
        ([], tf.TensorSpec([], "float32"), []),
        (np.zeros((0, 3), "uint8"), tf.TensorSpec([3], "uint8"), []),
        ([[], []], tf.TensorSpec([0], "float32"), [[], []]),
        (np.ma.array([1, 2]), tf.TensorSpec([], "int64"), [1, 2]),
    ],
)
def test_slices_of_many_kinds_of_values(value, spec, expected):
    dataset = Dataset.from_tensor_slices(value)
    assert dataset.element_spec == spec
    assert [element.tolist() for element in dataset] == expected
    assert all(spec.is_compatible_with(element) for element in dataset)


def test_one_element_may_be_a_scalar_or_hold_none():
    (element,) = Dataset.from_tensors({"a": "x", "b": None})
    assert (element["a"].item(), element["b"]) == (b"x", None)
    (batch,) = Dataset.from_tensors((1, None)).batch(5)
    assert (batch[0].tolist(), batch[1]) == ([1], None)


def test_a_list_of_a_hundred_thousand_numbers_is_accepted():
    numbers = list(range(100_000))
    assert [int(x) for x in Dataset.from_tensor_slices(numbers)] == numbers


def test_an_infinite_repeat_continues_but_ends_if_empty():
    assert [int(x) for x in islice(Dataset.range(2).repeat(), 5)] == [0, 1, 0, 1, 0]
    assert list(Dataset.range(0).repeat()) == []
    assert list(Dataset.range(3).batch(4, drop_remainder=True).repeat()) == []
    assert list(Dataset.from_tensor_slices([]).repeat().batch(3)) == []


@given(st.integers(0, 12), st.integers(1, 14), st.booleans())
def test_batches_hold_every_element_once_and_in_order(size, batch_size, drop):
    batches = list(Dataset.range(size).batch(batch_size, drop))
    kept = size - size % batch_size if drop else size
    assert [x for batch in batches for x in batch.tolist()] == list(range(kept))
    assert all(len(batch) == batch_size for batch in batches[:-1])


def test_numpy_values_of_text_are_bytes():
    value = {"b": ["x", "y"], "a": [1, 2], "c": None}
    first, _ = Dataset.from_tensor_slices(value).as_numpy_iterator()
    assert first == {"b": b"x", "a": 1, "c": None}
    assert type(first["b"]) is bytes
    (batch,) = Dataset.from_tensor_slices(["x", "y"]).batch(2).as_numpy_iterator()
    assert batch.tolist() == [b"x", b"y"]


def test_a_dataset_is_true_and_prints_as_tensorflows_does():
    assert Dataset.range(0)
    assert repr(Dataset.range(3).batch(2)) == (
        "<_BatchDataset element_spec=TensorSpec(shape=(None,), dtype=tf.int64, name=None)>"
    )


def test_a_length_that_is_not_known_is_an_error():
    with error_saying(
        TypeError,
        "The dataset has no len(): its length is infinite.",
        fix="call cardinality(), which has a value for both cases.",
    ):
        len(Dataset.range(3).repeat())
    assert Dataset.range(3).repeat().cardinality() == tf.data.INFINITE_CARDINALITY


@pytest.mark.parametrize(
    ("call", "kind", "what", "fix"),
    [
        (
            lambda: Dataset.range(*[]),
            ValueError,
            "range takes one to three integers, but got 0 arguments.",
            "call range(stop), …",
        ),
        (
            lambda: Dataset.range(1, 2, 3, 4),
            ValueError,
            "range takes one to three integers, but got 4 arguments.",
            "call …",
        ),
        (
            lambda: Dataset.range(2.5),
            TypeError,
            "an argument of range must be a whole number, but got 2.5 of type float.",
            "pass an int …",
        ),
        (
            lambda: Dataset.range(0, 5, 0),
            InvalidArgumentError,
            "The step of a range must not be 0.",
            "pass a positive step …",
        ),
        (
            lambda: Dataset.range(3).batch(0),
            InvalidArgumentError,
            "batch_size must be at least 1, but got 0.",
            "pass the number …",
        ),
        (
            lambda: Dataset.range(3).batch("2"),
            TypeError,
            "batch_size must be a whole number, but got '2' of type str.",
            "pass an int as batch_size.",
        ),
        (
            lambda: Dataset.range(3).repeat(1.5),
            TypeError,
            "count must be a whole number, but got 1.5 of type float.",
            "pass an int as count.",
        ),
        (
            lambda: Dataset.range(3).take("2"),
            TypeError,
            "count must be a whole number, but got '2' of type str.",
            "pass an int as count.",
        ),
        (
            lambda: Dataset.range(3).shard(0, 0),
            InvalidArgumentError,
            "num_shards must be at least 1, but got 0.",
            "pass for example shard(num_shards=4, index=0) …",
        ),
        (
            lambda: Dataset.range(3).shuffle(0),
            InvalidArgumentError,
            "buffer_size must be at least 1, but got 0.",
            "pass the number of elements …",
        ),
        (
            lambda: Dataset.zip([Dataset.range(3)]),
            TypeError,
            "zip expects datasets, but got …",
            "pass datasets, …",
        ),
        (
            lambda: Dataset.zip(Dataset.range(3), datasets=Dataset.range(2)),
            TypeError,
            "zip got datasets both by position and as `datasets`.",
            "pass all of them by position, zip(a, b), or all by name, …",
        ),
        (
            lambda: Dataset.zip(Dataset.range(3), datasets=()),
            TypeError,
            "zip got datasets both by position and as `datasets`.",
            "pass all of them …",
        ),
        (
            lambda: Dataset.zip(*()),
            TypeError,
            "zip got no datasets.",
            "pass all of them …",
        ),
        (
            lambda: Dataset.zip(()),
            InvalidArgumentError,
            "zip needs at least one dataset.",
            "pass datasets, …",
        ),
        (
            lambda: Dataset.range(3).concatenate(Dataset.range(3, output_type="int32")),
            TypeError,
            "Concatenated datasets must have compatible elements, …",
            "give both datasets the same dtypes …",
        ),
        (
            lambda: Dataset.from_tensor_slices(3),
            ValueError,
            "from_tensor_slices cannot slice a scalar.",
            "pass arrays …",
        ),
        (
            lambda: Dataset.from_tensor_slices(([1, 2], [1])),
            ValueError,
            "All components must have the same first dimension, but they have (2, 1).",
            "cut the components …",
        ),
        (
            lambda: Dataset.from_tensor_slices(()),
            ValueError,
            "The elements of a dataset must contain at least one tensor.",
            "pass an array, …",
        ),
        (
            lambda: Dataset.from_tensors(None),
            InvalidArgumentError,
            "The elements of a dataset must contain at least one tensor.",
            "pass an array, …",
        ),
        (
            lambda: Dataset.from_tensors([[1], [2, 3]]),
            ValueError,
            "[[1], [2, 3]] is not rectangular: …",
            "pad the parts …",
        ),
        (
            lambda: Dataset([1, 2]),
            TypeError,
            "Dataset() cannot be called with a value of type list.",
            "call Dataset.from_tensor_slices(value) …",
        ),
        (
            lambda: iter(Dataset.range(0)).get_next(),
            tf.errors.OutOfRangeError,
            "The data has ended.",
            "iterate …",
        ),
    ],
)
def test_errors_name_the_users_line_and_what_to_type(call, kind, what, fix):
    with pytest.raises(kind) as caught:
        call()
    line = call.__code__.co_firstlineno
    said, at, mend = str(caught.value).split("\n")
    for text, expected in ((said, what), (mend, f"  fix: {fix}")):
        assert text.startswith(expected.removesuffix("…"))
    assert at == f"  at:  tests/test_dataset.py:{line}"
    assert caught.type is kind


def test_a_number_beyond_64_bits_is_an_error():
    with error_saying(ValueError, "an argument of range does not fit into 64 bits: …"):
        Dataset.range(2**63)
    with error_saying(ValueError, "batch_size does not fit into 64 bits: …"):
        Dataset.range(3).batch(2**63)


def test_whole_numbers_of_other_libraries_are_numbers():
    dataset = Dataset.range(np.int32(6)).repeat(jnp.int32(2)).batch(np.uint8(5))
    assert dataset.cardinality() == 3


def test_name_arguments_are_accepted_and_ignored():
    dataset = Dataset.range(3, name="a").repeat(1, name="b").batch(3, name="c")
    assert dataset.element_spec == tf.TensorSpec([None], "int64")
    assert next(iter(Dataset.from_tensors(1, name="d"))) == 1
    assert len(Dataset.from_tensor_slices([1], name="e")) == 1


def test_two_iterators_over_one_dataset_are_independent():
    dataset = Dataset.range(4)
    one, two = iter(dataset), iter(dataset)
    assert [int(next(one)) for _ in range(3)] == [0, 1, 2]
    assert int(next(two)) == 0
    assert [int(x) for x in one] == [3]
    assert [int(x) for x in two] == [1, 2, 3]


def test_a_dataset_is_not_an_iterator():
    with pytest.raises(TypeError, match="not an iterator"):
        next(Dataset.range(3))
