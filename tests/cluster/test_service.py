"""What the service makes of what workers say when they are called up."""

from evenfeed.cluster.service import _differing

SAME = {"cluster": ["a", "b"], "version of jax": "1"}


def test_workers_that_know_the_same_may_go():
    assert _differing({0: SAME, 1: dict(SAME)}) is None


def test_the_first_difference_is_told_with_what_each_knows():
    other = {"cluster": ["a", "b"], "version of jax": "2"}
    assert _differing({1: other, 0: SAME, 2: SAME}) == {
        "differs": "version of jax",
        "known": ["1", "2", "1"],
    }


def test_what_an_older_evenfeed_does_not_say_differs():
    older = {"cluster": ["a", "b"]}
    assert _differing({0: SAME, 1: older}) == {"differs": "version of jax", "known": ["1", None]}
    assert _differing({0: older, 1: SAME}) == {"differs": "version of jax", "known": [None, "1"]}
