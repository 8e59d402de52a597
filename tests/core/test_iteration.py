import numpy as np
import pytest
from tests.saying import error_saying

from evenfeed.core.errors import OutOfRangeError
from evenfeed.core.iteration import Iterator
from evenfeed.core.optional import Optional, OptionalSpec
from evenfeed.core.specs import TensorSpec


class Countdown(Iterator):
    element_spec = TensorSpec([], "int32")

    def __init__(self, left):
        self.left = left

    def __next__(self):
        if self.left == 0:
            raise StopIteration
        self.left -= 1
        return self.left

    def get_state(self):
        return {"left": self.left}

    def set_state(self, state):
        self.left = state["left"]


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


def test_an_optional_has_the_spec_of_its_iterator():
    class Batches(Countdown):
        element_spec = TensorSpec([None], "int32")

        def __next__(self):
            return np.zeros(super().__next__(), np.int32)

    batches = Batches(3)
    full, short, last, none = (batches.get_next_as_optional() for _ in range(4))
    assert (full.get_value().shape, short.get_value().shape, last.get_value().shape) == (
        (2,),
        (1,),
        (0,),
    )
    assert {one.element_spec for one in (full, short, last, none)} == {TensorSpec([None], "int32")}


def test_a_value_that_knows_its_spec_keeps_it_in_an_optional():
    class Nested(Countdown):
        element_spec = (OptionalSpec(TensorSpec([None])), TensorSpec([None]))

        def __next__(self):
            return Optional.from_value([1.0]), np.ones(1, np.float32)

    assert Nested(1).get_next_as_optional().element_spec == (
        OptionalSpec(TensorSpec([1])),
        TensorSpec([None]),
    )
