from evenfeed.core.randomness.seeds import AnySeed
from evenfeed.plan.buffering import Cache
from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.flattening import FlatMap
from evenfeed.plan.grouping import Batch
from evenfeed.plan.ordering import Shuffle
from evenfeed.plan.sources import Range
from evenfeed.runtime.run import Run, next_pass


def mixed(*seed, **options):
    return Shuffle(Range(0, 5), 2, seed, **options)


def test_every_run_has_a_number_of_its_own():
    node = mixed(7, 8)
    assert [Run(node).seed(node) for _ in range(3)] == [(7, 8, 0), (7, 8, 1), (7, 8, 2)]


def test_a_look_ahead_has_the_number_of_the_next_run():
    node = mixed(7)
    assert [Run(node, next_pass).seed(node) for _ in range(2)] == [(7, 0), (7, 0)]
    assert Run(node).seed(node) == (7, 0)


def test_a_fixed_shuffle_has_one_seed():
    node = mixed(7, 8, reshuffle=False)
    assert [Run(node).seed(node) for _ in range(3)] == [(7, 8, 0)] * 3


def test_a_run_takes_up_the_seeds_of_another():
    node = Shuffle(mixed(1), 2, (7, 8))
    one, two = Run(node), Run(node)
    assert one.state() == [[[7, 8, 0], [1, 0]], [[], []]]
    two.restore(one.state())
    assert (two.seed(node), two.seed(node.child)) == ((7, 8, 0), (1, 0))


def test_a_run_has_the_seeds_below_a_cache():
    node = mixed(3)
    cache = Cache(node)
    run = Run(Batch(cache, 2))
    assert run.seed(node) == (3, 0)
    assert run.below(cache, 4) == [[[[3, 0]], [[], []]], 4]
    assert run.begun(node, run.below(cache, 4)[0]).seed(node) == (3, 0)


def test_the_round_does_not_matter_to_a_cache_of_one_order():
    for node in (Range(0, 5), mixed(3, reshuffle=False)):
        cache = Cache(node)
        assert Run(cache).below(cache, 4)[1] == 0


def places(node, run):
    """Return the seeds of a shuffle in all its places, along all paths."""
    own = [run.seed(node)] if isinstance(node, Shuffle) else []
    return own + [seed for child, mine in run.children_of(node) for seed in places(child, mine)]


def test_a_shuffle_in_several_places_has_seeds_of_its_own_in_each():
    node = mixed(1)
    pair = Zip((0, 0), (node, Range(0, 5)))
    plan = Batch(Concatenate(Concatenate(pair, pair), Concatenate(pair, pair)), 2)
    assert places(plan, Run(plan)) == [(1, 0, 0), (1, 0, 2), (1, 0, 4), (1, 0, 6)]
    assert places(plan, Run(plan))[0] == (1, 1, 0)


def test_a_fixed_shuffle_is_the_same_in_all_places():
    node = mixed(1, reshuffle=False)
    plan = Zip((0, 0), (node, node))
    assert places(plan, Run(plan)) == [(1, 0)] * 2


def test_shuffles_that_stand_in_one_place_each_have_no_place_in_their_seeds():
    plan = Zip((0, 0), (mixed(1), mixed(2)))
    assert places(plan, Run(plan)) == [(1, 0), (2, 0)]


class Makes:
    output_spec = None
    plan_seen = None

    def __init__(self, make):
        self.make = make


def opened(make, numbers=range(3), node=None):
    """Return the seeds of the shuffles that a function makes for elements with these indices."""
    node = node or FlatMap(Range(0, 9), Makes(make), seed=(5,))
    run = Run(node)
    found = [run.opened(node, 0, number, make) for number in numbers]
    return [inner.seed(plan) for plan, inner in found]


def test_a_dataset_that_a_function_makes_begins_with_its_first_pass():
    assert opened(lambda: mixed(4)) == [(4, 0)] * 3


def test_a_dataset_that_a_function_was_given_has_passes_of_its_own():
    given = mixed(4)
    assert opened(lambda: given) == [(4, 0, 0, number) for number in range(3)]
    fixed = mixed(4, reshuffle=False)
    assert opened(lambda: fixed) == [(4, 0)] * 3


def test_seeds_that_nobody_asked_for_follow_from_the_position():
    given = mixed()
    object.__setattr__(given, "seed", AnySeed((8, 8)))

    def made():
        return Shuffle(Range(0, 5), 2, AnySeed((id(object()), 3)))

    for make in (made, lambda: given):
        node = FlatMap(Range(0, 9), Makes(make), seed=(5,))
        run, again = Run(node), Run(node)
        again.restore(run.state())
        found = [run.opened(node, 0, number, make) for number in range(3)]
        there = [again.opened(node, 0, number, make) for number in (2, 1, 0)]
        seeds = [inner.seed(plan) for plan, inner in found]
        assert len(set(seeds)) == 3
        assert seeds == [inner.seed(plan) for plan, inner in there][::-1]
