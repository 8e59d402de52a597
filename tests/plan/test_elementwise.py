from tests.unknown import UnknownSize

from evenfeed.core.specs import TensorSpec
from evenfeed.plan.elementwise import Enumerate
from evenfeed.plan.grouping import Batch
from evenfeed.plan.sources import Range


def test_an_element_stands_behind_its_number():
    node = Enumerate(Batch(Range(0, 3), 2), 5)
    assert node.size == 2
    assert node.element_spec == (TensorSpec([], "int64"), TensorSpec([None], "int64"))


def test_numbers_make_no_size_known():
    assert Enumerate(UnknownSize(), 0).size == -2
