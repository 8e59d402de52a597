"""Every element of a dataset is in exactly one of its shards."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.plans import (
    KINDS,
    PLANS,
    any_failed,
    assert_all_equal,
    events,
    fresh,
    not_addressed,
    ways,
)

from evenfeed.plan.ordering import Shard
from evenfeed.runtime.elements import ElementIterator

MANY = 24


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(data=st.data(), way=ways, shards=st.sampled_from([1, 2, 3, 4, 6, 8]))
def test_shards_partition(kind, data, way, shards):
    plan = data.draw(PLANS[kind])
    with not_addressed(way):
        whole = events(ElementIterator(fresh(plan)), MANY)
        assume(not any_failed(whole))
        for index in range(shards):
            shard = ElementIterator(Shard(fresh(plan), shards, index))
            assert_all_equal(events(shard, MANY // shards), whole[index::shards])
