import pytest
from tests.saying import error_saying

from evenfeed.core.errors import OutOfRangeError
from evenfeed.core.iteration import NextElement
from evenfeed.core.specs import TensorSpec


class Countdown(NextElement):
    element_spec = TensorSpec([], "int32")

    def __init__(self, left):
        self.left = left

    def __next__(self):
        if self.left == 0:
            raise StopIteration
        self.left -= 1
        return self.left


def test_it_is_its_own_iterator():
    countdown = Countdown(2)
    assert iter(countdown) is countdown
    assert list(countdown) == [1, 0]


def test_get_next_says_that_the_data_has_ended():
    countdown = Countdown(1)
    assert countdown.get_next() == 0
    with error_saying(OutOfRangeError, "The data has ended.", fix="iterate with a for loop, …"):
        countdown.get_next()


def test_the_end_of_the_data_is_an_end_of_file_without_a_cause():
    with pytest.raises(EOFError) as caught:
        Countdown(0).get_next()
    assert caught.value.__suppress_context__


def test_an_optional_is_empty_after_the_last_element():
    countdown = Countdown(1)
    last, none, still_none = (countdown.get_next_as_optional() for _ in range(3))
    assert (last.has_value(), none.has_value(), still_none.has_value()) == (True, False, False)
    assert last.get_value() == 0
    assert none.element_spec == TensorSpec([], "int32")
