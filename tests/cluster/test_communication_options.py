"""`CommunicationOptions`: values and errors. tests/oracle holds TensorFlow's answers."""

import pytest
from tests.saying import error_saying

from evenfeed.cluster.communication_options import communication_options
from evenfeed.distribute.experimental import CommunicationImplementation, CommunicationOptions


def test_a_strategy_keeps_a_copy():
    given = CommunicationOptions(timeout_seconds=3)
    kept = communication_options(given)
    given.timeout_seconds = 5.0
    assert (kept.timeout_seconds, communication_options(None)) == (3.0, CommunicationOptions())


@pytest.mark.parametrize("seconds", [-1, "3", float("nan"), True])
def test_a_time_that_is_none_is_refused(seconds):
    with error_saying(
        ValueError,
        f"timeout_seconds must be a number of seconds, but got {seconds!r}.",
        fix="pass timeout_seconds=1.0 for one second.",
    ):
        CommunicationOptions(timeout_seconds=seconds)


@pytest.mark.parametrize("given", ["fast", 7, None])
def test_an_unknown_implementation_is_refused(given):
    with error_saying(
        ValueError,
        f"There is no communication implementation {given!r}.",
        fix="pass AUTO, RING or NCCL of…",
    ):
        CommunicationOptions(implementation=given)


def test_names_may_be_written_in_letters_of_any_case():
    found = CommunicationOptions(implementation="Nccl").implementation
    assert found is CommunicationImplementation.NCCL
