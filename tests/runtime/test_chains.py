import pytest

from evenfeed.plan.combining import Concatenate
from evenfeed.plan.ordering import Shuffle
from evenfeed.plan.sources import Range
from evenfeed.runtime.operators.combining import Parts
from evenfeed.runtime.run import Run


def chain(*parts):
    first, *others = parts
    for part in others:
        first = Concatenate(first, part)
    return first


RANGES = [Range(n, n + 1) for n in range(6)]


@pytest.mark.parametrize(
    "plan",
    [
        chain(*RANGES),
        Concatenate(RANGES[0], Concatenate(RANGES[1], chain(*RANGES[2:]))),
        Concatenate(chain(*RANGES[:3]), chain(*RANGES[3:])),
    ],
)
def test_the_parts_of_concatenations_are_one_row(plan):
    parts = Parts(plan, Run(plan))
    assert parts.count == 6
    assert [node for node, _ in parts] == RANGES
    for number in (4, 0, 5, 1, 2):
        assert parts.at(number)[0] is RANGES[number]
    assert parts.at(6) is None


def test_a_part_is_found_among_more_than_anybody_could_list():
    plan = Range(0, 1)
    for _ in range(100):
        plan = Concatenate(plan, plan)
    parts = Parts(plan, Run(plan))
    assert parts.count == 2**100
    assert parts.at(2**99 + 5)[0] == Range(0, 1)
    assert parts.at(2**99 + 6)[0] == Range(0, 1)


def test_a_random_part_knows_its_place():
    mixed = Shuffle(Range(0, 3), 2, (1,))
    plan = Concatenate(Concatenate(mixed, mixed), mixed)
    run = Run(plan)
    assert [own.seed(node) for node, own in Parts(plan, run)] == [(1, 0, n) for n in range(3)]
