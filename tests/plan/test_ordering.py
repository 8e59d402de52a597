import pytest
from tests.unknown import UnknownSize

from evenfeed.core.specs import TensorSpec
from evenfeed.plan.ordering import Repeat
from evenfeed.plan.sources import Range


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
        (Repeat(Range(0, 3), -1), 2, -1),
        (Repeat(Range(0, 3), -1), 0, 0),
        (Range(0, 2**40), 2**40, 2**80),
        (UnknownSize(), 3, -2),
        (UnknownSize(), -1, -1),
        (UnknownSize(), 0, 0),
    ],
)
def test_a_repeat_has_the_size_times_the_count(child, count, size):
    assert Repeat(child, count).size == size


def test_a_repeat_has_the_elements_of_its_child():
    assert Repeat(Range(0, 3), 2).element_spec == TensorSpec([], "int64")
