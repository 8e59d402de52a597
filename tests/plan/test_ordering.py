import pytest
from tests.saying import error_saying
from tests.unknown import UnknownSize

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import TensorSpec
from evenfeed.plan.ordering import Repeat, Shard, Shuffle, Skip, Take
from evenfeed.plan.sources import Range

ENDLESS = Repeat(Range(0, 3), -1)


@pytest.mark.parametrize(
    ("child", "count", "size"),
    [
        (Range(0, 3), 2, 6),
        (Range(0, 3), 1, 3),
        (Range(0, 3), 0, 0),
        (Range(0, 3), -1, -1),
        (Range(0, 3), -5, -1),
        (Range(0, 0), 4, 0),
        (Range(0, 0), -1, 0),
        (ENDLESS, 2, -1),
        (ENDLESS, 0, 0),
        (Range(0, 2**40), 2**40, 2**80),
        (UnknownSize(), 3, -2),
        (UnknownSize(), -1, -1),
        (UnknownSize(), 0, 0),
    ],
)
def test_a_repeat_has_the_size_times_the_count(child, count, size):
    assert Repeat(child, count).size == size


@pytest.mark.parametrize(
    ("child", "count", "taken", "left"),
    [
        (Range(0, 5), 2, 2, 3),
        (Range(0, 5), 0, 0, 5),
        (Range(0, 5), 5, 5, 0),
        (Range(0, 5), 9, 5, 0),
        (Range(0, 5), -1, 5, 0),
        (Range(0, 5), -7, 5, 0),
        (ENDLESS, 4, 4, -1),
        (ENDLESS, -1, -1, 0),
        (ENDLESS, 0, 0, -1),
        (UnknownSize(), 3, -2, -2),
        (UnknownSize(), 0, 0, -2),
        (UnknownSize(), -1, -2, 0),
    ],
)
def test_sizes_of_take_and_skip(child, count, taken, left):
    assert Take(child, count).size == taken
    assert Skip(child, count).size == left


@pytest.mark.parametrize("size", range(8))
@pytest.mark.parametrize("num_shards", [1, 2, 3, 7, 9])
def test_a_shard_has_its_part_of_the_elements(size, num_shards):
    for index in range(num_shards):
        expected = len(range(index, size, num_shards))
        assert Shard(Range(0, size), num_shards, index).size == expected


def test_a_shard_of_an_unknown_size_has_an_unknown_size():
    assert Shard(ENDLESS, 3, 2).size == -1
    assert Shard(UnknownSize(), 3, 2).size == -2


@pytest.mark.parametrize("num_shards", [0, -1])
def test_no_shards_are_an_error(num_shards):
    what = f"num_shards must be at least 1, but got {num_shards}."
    fix = "pass for example shard(num_shards=4, index=0) for the first of four shards."
    with error_saying(InvalidArgumentError, what, fix=fix):
        Shard(Range(0, 3), num_shards, 0)


@pytest.mark.parametrize("index", [-1, 2, 3])
def test_an_index_outside_the_shards_is_an_error(index):
    what = f"index must be at least 0 and less than num_shards (2), but got {index}."
    fix = "pass for example shard(num_shards=4, index=0) for the first of four shards."
    with error_saying(InvalidArgumentError, what, fix=fix):
        Shard(Range(0, 3), 2, index)


@pytest.mark.parametrize("buffer_size", [0, -1, -3])
def test_a_buffer_of_nothing_is_an_error(buffer_size):
    what = f"buffer_size must be at least 1, but got {buffer_size}."
    fix = "pass the number of elements to draw from, or the dataset's cardinality() for all."
    with error_saying(InvalidArgumentError, what, fix=fix):
        Shuffle(Range(0, 3), buffer_size, (1,))


@pytest.mark.parametrize("child", [Range(0, 3), ENDLESS, UnknownSize()])
def test_a_shuffle_has_the_size_of_its_child(child):
    assert Shuffle(child, 2, (1,)).size == child.size


@pytest.mark.parametrize("child", [Range(0, 3), UnknownSize()])
def test_an_unknown_cardinality_is_a_buffer_of_all(child):
    assert Shuffle(child, -2, (1,)).size == child.size


def test_an_endless_dataset_cannot_be_shuffled_as_a_whole():
    what = "An infinite dataset cannot be shuffled as a whole."
    fix = "pass the number of elements to draw from, or call shuffle before repeat."
    with error_saying(InvalidArgumentError, what, fix=fix):
        Shuffle(ENDLESS, -2, (1,))


@pytest.mark.parametrize(
    "node",
    [
        Repeat(Range(0, 3), 2),
        Take(Range(0, 3), 2),
        Skip(Range(0, 3), 2),
        Shard(Range(0, 3), 2, 1),
        Shuffle(Range(0, 3), 2, (1,)),
    ],
)
def test_the_elements_are_the_childs(node):
    assert node.element_spec == TensorSpec([], "int64")


def test_the_identity_of_a_shuffle_does_not_affect_equality():
    one, two = Shuffle(Range(0, 3), 2, (1,)), Shuffle(Range(0, 3), 2, (1,))
    assert one == two
    assert one.identity is not two.identity
    assert Shuffle(Range(0, 3), 2, (2,)) != one
