import pytest
from tests.unknown import UnknownSize

from evenfeed.dataset import Dataset
from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.elementwise import Enumerate
from evenfeed.plan.grouping import Batch
from evenfeed.plan.ordering import Repeat, Shard, Shuffle, Skip, Take
from evenfeed.plan.sources import Range
from evenfeed.plan.windows import Window
from evenfeed.runtime.positions.indexing import indexed
from evenfeed.runtime.positions.rows import Walk
from evenfeed.runtime.run import Run

MIXED = Shuffle(Range(0, 12), 5, (1,))


def walked(plan, epoch=0):
    return Walk(*indexed(plan, Run(plan), epoch))


@pytest.mark.parametrize(
    "plan",
    [
        Range(0, 5),
        Take(Skip(Shard(Repeat(MIXED, 3), 2, 1), 2), 9),
        Enumerate(Repeat(MIXED, -1), 3),
        Zip((0, 0), (MIXED, Enumerate(MIXED, 0))),
        Concatenate(MIXED, Repeat(MIXED, 2)),
        Concatenate(MIXED, Repeat(MIXED, -1)),
        Repeat(Zip((0, 0), (MIXED, Range(0, 12))), 3),
        Shuffle(Repeat(Enumerate(MIXED, 0), -1), 9, (2,)),
        Batch(Range(0, 5), 2),
        Shuffle(Skip(Batch(Repeat(MIXED, 2), 5), 1), 3, (2,)),
        Repeat(Batch(Batch(MIXED, 2, drop_remainder=True), 4), 3),
        Batch(Repeat(MIXED, -1), 7),
    ],
)
def test_what_is_made_of_addressable_rows_is_addressable(plan):
    _, order = indexed(plan, Run(plan))
    assert order.size == plan.size


@pytest.mark.parametrize("below", [UnknownSize(), Window(Range(0, 5), 2, 2, face=Dataset)])
@pytest.mark.parametrize(
    "over",
    [
        lambda below: below,
        lambda below: Repeat(below, 2),
        lambda below: Shuffle(below, 2, (1,)),
        lambda below: Enumerate(below, 0),
        lambda below: Zip((0, 0), (Range(0, 3), below)),
        lambda below: Concatenate(below, below),
        lambda below: Repeat(Zip((0, 0), (MIXED, below)), 2),
    ],
)
def test_what_stands_on_other_rows_is_not(over, below):
    plan = over(below)
    assert indexed(plan, Run(plan)) is None


def test_rows_in_the_middle_are_reached_without_those_before():
    plan = Skip(Repeat(Enumerate(Range(0, 10**9), 0), 10**6), 10**15 - 2)
    assert [column.tolist() for column in walked(plan).read(9).columns] == [
        [10**9 - 2, 10**9 - 1]
    ] * 2


def test_an_endless_plan_repeated_is_itself():
    endless = Repeat(MIXED, -1)
    run = Run(endless)
    once, again = (Walk(*indexed(plan, run)).read(40) for plan in (endless, Repeat(endless, 2)))
    assert once.columns[0].tolist() == again.columns[0].tolist()
