import pickle

import pytest

from evenfeed.plan.combining import Zip
from evenfeed.plan.options import (
    AutoShardPolicy,
    AutotuneOptions,
    Options,
    ThreadingOptions,
    WithOptions,
    options_of,
)
from evenfeed.plan.ordering import Take
from evenfeed.plan.sources import Range

RANGE = Range(0, 3)


def options(**values):
    made = Options()
    for name, value in values.items():
        setattr(made, name, value)
    return made


def test_options_start_unset():
    fresh = Options()
    assert fresh.deterministic is None
    assert fresh.threading.private_threadpool_size is None
    assert fresh.experimental_distribute.auto_shard_policy is AutoShardPolicy.AUTO
    assert fresh == Options()


def test_sections_are_not_shared_between_options():
    one, two = Options(), Options()
    one.threading.private_threadpool_size = 4
    assert two.threading.private_threadpool_size is None
    assert one != two


def test_old_names_are_the_same_options():
    made = options(experimental_deterministic=False)
    made.experimental_threading.max_intra_op_parallelism = 2
    assert made.deterministic is False
    assert made.threading.max_intra_op_parallelism == 2


@pytest.mark.parametrize(
    ("name", "value"),
    [("deterministic", 3), ("deterministic", None), ("threading", AutotuneOptions())],
)
def test_a_value_of_another_type_is_refused(name, value):
    with pytest.raises(TypeError, match=f"{name} must be of type"):
        setattr(Options(), name, value)


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="Options has no option 'no_such'"):
        Options().no_such = 1
    with pytest.raises(AttributeError, match="ThreadingOptions has no option"):
        ThreadingOptions().no_such = 1


def test_a_whole_section_can_be_set():
    threading = ThreadingOptions()
    threading.private_threadpool_size = 3
    assert options(threading=threading).threading.private_threadpool_size == 3


def test_merging_takes_what_the_second_sets():
    first, second = options(deterministic=True, experimental_slack=True), Options()
    first.threading.private_threadpool_size = 2
    second.deterministic = False
    second.threading.max_intra_op_parallelism = 3
    both = first.merge(second)
    assert (both.deterministic, both.experimental_slack) == (False, True)
    assert (both.threading.private_threadpool_size, both.threading.max_intra_op_parallelism) == (
        2,
        3,
    )
    with pytest.raises(TypeError, match="merge expects Options"):
        first.merge(3)


def test_a_default_changes_nothing():
    first, second = Options(), Options()
    first.experimental_distribute.auto_shard_policy = AutoShardPolicy.DATA
    second.experimental_distribute.auto_shard_policy = AutoShardPolicy.AUTO
    policy = first.merge(second).experimental_distribute.auto_shard_policy
    assert policy is AutoShardPolicy.DATA


def test_options_travel_up_a_plan_and_later_ones_win():
    inner = WithOptions(RANGE, options(deterministic=False, experimental_slack=True))
    outer = WithOptions(Take(inner, 2), options(deterministic=True))
    assert options_of(Take(inner, 2)).deterministic is False
    assert options_of(outer).deterministic is True
    assert options_of(outer).experimental_slack is True
    assert options_of(RANGE) == Options()


def test_of_several_datasets_the_last_wins():
    parts = [WithOptions(RANGE, options(deterministic=value)) for value in (True, False)]
    assert options_of(Zip((0, 0), tuple(parts))).deterministic is False


def test_what_a_dataset_returns_cannot_be_changed():
    found = options_of(WithOptions(RANGE, Options()))
    with pytest.raises(ValueError, match="cannot be changed"):
        found.deterministic = True
    with pytest.raises(ValueError, match="cannot be changed"):
        found.threading.private_threadpool_size = 1


def test_changing_the_options_later_does_not_change_the_dataset():
    mine = Options()
    node = WithOptions(RANGE, mine)
    mine.deterministic = True
    mine.threading.private_threadpool_size = 1
    assert options_of(node) == Options()


def test_with_options_accepts_only_options():
    with pytest.raises(TypeError, match="with_options expects Options"):
        WithOptions(RANGE, 3)


def test_options_are_pickled_and_shown():
    made = options(deterministic=True)
    node = WithOptions(RANGE, made)
    assert pickle.loads(pickle.dumps(made)) == made
    assert options_of(pickle.loads(pickle.dumps(node))) == options_of(node)
    assert "deterministic=True" in repr(made)
    assert (node.size, node.element_spec) == (RANGE.size, RANGE.element_spec)
