from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.grouping import Batch
from evenfeed.plan.ordering import Shuffle
from evenfeed.plan.sources import Range
from evenfeed.runtime.run import Run, with_own_shuffles


def test_every_run_has_a_number_of_its_own():
    node = Shuffle(Range(0, 5), 2, (7, 8))
    assert [Run(node).seed(node) for _ in range(3)] == [(7, 8, 0), (7, 8, 1), (7, 8, 2)]


def test_a_fixed_shuffle_has_one_seed():
    node = Shuffle(Range(0, 5), 2, (7, 8), reshuffle=False)
    assert [Run(node).seed(node) for _ in range(3)] == [(7, 8, 0)] * 3


def test_a_run_takes_up_the_seeds_of_another():
    node = Shuffle(Shuffle(Range(0, 5), 2, (1,)), 2, (7, 8))
    one, two = Run(node), Run(node)
    assert one.state() == [[7, 8, 0], [1, 0]]
    two.restore(one.state())
    assert (two.seed(node), two.seed(node.child)) == ((7, 8, 0), (1, 0))


def test_a_shuffle_in_two_places_becomes_two():
    node = Shuffle(Range(0, 5), 2, (1,))
    plan = Batch(Concatenate(Zip((0,), (node,)), Zip((0,), (node,))), 2)
    own = with_own_shuffles(plan)
    assert own == plan
    first, second = (zipped.parts[0] for zipped in own.child.children)
    assert first is node
    assert second is not node
    assert second.passes is node.passes
    run = Run(own)
    assert (run.seed(first), run.seed(second)) == ((1, 0), (1, 1))


def test_a_plan_whose_shuffles_stand_in_one_place_stays_as_it_is():
    plan = Zip((0, 0), (Shuffle(Range(0, 5), 2, (1,)), Shuffle(Range(0, 5), 2, (1,))))
    assert with_own_shuffles(plan) is plan
