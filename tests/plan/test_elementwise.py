from tests.unknown import UnknownSize

from evenfeed.core.specs import TensorSpec
from evenfeed.plan.combining import Zip
from evenfeed.plan.elementwise import Enumerate, WithKeys
from evenfeed.plan.grouping import Batch
from evenfeed.plan.sources import Range


def test_enumerate_pairs_an_index_with_the_element():
    node = Enumerate(Batch(Range(0, 3), 2), 5)
    assert node.size == 2
    assert node.element_spec == (TensorSpec([], "int64"), TensorSpec([None], "int64"))


def test_enumerate_keeps_an_unknown_size():
    assert Enumerate(UnknownSize(), 0).size == -2


def test_random_words_come_before_the_components_of_an_element():
    words, number = TensorSpec([2], "uint32"), TensorSpec([], "int64")
    assert WithKeys(Range(0, 3), (1,)).element_spec == (words, number)
    pair = Zip((0, 0), (Range(0, 3), Range(0, 3)))
    assert WithKeys(pair, (1,)).element_spec == (words, number, number)
    named = Zip({"a": 0}, (Range(0, 3),))
    assert WithKeys(named, (1,)).element_spec == (words, {"a": number})
    assert WithKeys(pair, (1,)).size == 3
