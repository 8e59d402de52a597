"""Which claims the service accepts, and what it tells the workers."""

import pytest

from evenfeed.cluster.meeting import Claim, Meeting, differing

FACTS = {"cluster": ["worker 0 (a:1)", "worker 1 (b:1)"], "version of evenfeed": "1", "x64": False}


def claim(place, **facts):
    return Claim(place, {**FACTS, **facts}, "nonce")


def test_all_may_go_when_all_have_come_and_know_the_same():
    meeting = Meeting(2)
    assert meeting.admit(claim(1)) is None
    assert (meeting.missing, meeting.outcome) == ([0], None)
    assert meeting.admit(claim(0)) is None
    assert meeting.outcome == {"go": True}


def test_what_differs_is_told_to_all():
    meeting = Meeting(3)
    for place, x64 in enumerate((False, True, False)):
        meeting.admit(claim(place, x64=x64))
    assert meeting.outcome == {"differs": "x64", "values": [(False, [0, 2]), (True, [1])]}


def test_what_an_older_evenfeed_does_not_say_differs():
    newer = {**FACTS, "new": "1"}
    assert differing({0: FACTS, 1: newer})["values"] == [(None, [0]), ("1", [1])]
    assert differing({0: newer, 1: FACTS})["values"] == [("1", [0]), (None, [1])]
    assert differing({0: newer, 1: dict(newer)}) is None


def test_a_message_of_what_differs_stays_small():
    many = {place: {**FACTS, "version of jax": f"0.{place}"} for place in range(1000)}
    assert len(differing(many)["values"]) == 5


def test_one_that_left_may_come_again():
    meeting = Meeting(2)
    meeting.admit(claim(1))
    meeting.leave(1)
    assert meeting.missing == [0, 1]
    assert meeting.admit(claim(1)) is None


def test_two_that_say_the_same_of_themselves_are_told_to_all():
    meeting = Meeting(3)
    meeting.admit(claim(1))
    assert meeting.admit(claim(1)) == meeting.outcome == {"twice": 1}


def test_one_that_knows_something_else_cannot_take_the_place_of_another():
    meeting = Meeting(2)
    meeting.admit(claim(1))
    assert meeting.admit(claim(1, x64=True)) == {"taken": 1}
    meeting.admit(claim(0))
    assert meeting.outcome == {"go": True}


@pytest.mark.parametrize("place", [-1, 2, 10**30])
def test_a_place_outside_of_the_cluster_is_refused_and_the_others_do_not_hear_of_it(place):
    meeting = Meeting(2)
    assert meeting.admit(claim(place)) == {"outside": 2}
    assert (meeting.missing, meeting.outcome) == ([0, 1], None)


def test_one_that_comes_when_all_have_begun_is_told():
    meeting = Meeting(1)
    meeting.admit(claim(0))
    assert meeting.admit(claim(0)) == {"begun": 0}
    assert meeting.outcome == {"go": True}


def test_a_claim_is_what_it_was_when_it_arrives():
    sent = claim(1).proven(b"token", "challenge")
    came = Claim.parse(sent.message())
    assert came == sent
    assert came.is_proven(b"token", "challenge")
    assert not came.is_proven(b"other", "challenge")
    assert not came.is_proven(b"token", "another challenge")
    assert not Claim.parse({**sent.message(), "place": 0}).is_proven(b"token", "challenge")
    assert not Claim.parse({**sent.message(), "facts": {**FACTS, "x64": True}}).is_proven(
        b"token", "challenge"
    )


BAD_FACTS = [
    *(5, None, [], "facts", {}),
    {"cluster": 5, "version of evenfeed": "1"},
    {"cluster": [], "version of evenfeed": "1"},
    {"cluster": [["a"]], "version of evenfeed": "1"},
    {"cluster": ["a"]},
    {"cluster": ["a"], "version of evenfeed": None},
    {**FACTS, "more": {}},
    {**FACTS, "more": "x" * 2000},
    {**FACTS, "x" * 2000: 1},
    {**FACTS, **{str(number): 1 for number in range(100)}},
]


@pytest.mark.parametrize("facts", BAD_FACTS, ids=range(len(BAD_FACTS)))
def test_a_claim_with_other_facts_than_a_workers_is_refused(facts):
    with pytest.raises(ValueError, match="not a worker's claim"):
        Claim.parse({"place": 1, "facts": facts, "nonce": "n"})


@pytest.mark.parametrize("place", [None, "1", 1.0, True, [1], {}])
def test_a_claim_with_a_place_that_is_not_a_number_is_refused(place):
    with pytest.raises(ValueError, match="not a worker's claim"):
        Claim.parse({"place": place, "facts": FACTS, "nonce": "n"})


@pytest.mark.parametrize("nonce", [None, 5, "x" * 2000])
def test_a_claim_without_a_nonce_is_refused(nonce):
    with pytest.raises(ValueError, match="not a worker's claim"):
        Claim.parse({"place": 1, "facts": FACTS, "nonce": nonce})
