import dataclasses
import inspect

import pytest

from evenfeed.core.callsite import Origin
from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import Repeat
from evenfeed.plan.sources import Range


def test_nodes_with_equal_fields_are_equal_whatever_their_origin():
    one = Batch(Repeat(Range(0, 5), 2), 3)
    two = Batch(Repeat(Range(0, 5), 2), 3)
    assert one == two
    assert hash(one) == hash(two)
    assert one.origin != two.origin


@pytest.mark.parametrize(
    "other",
    [
        Range(0, 6),
        Range(0, 5, 2),
        Range(0, 5, dtype=Range(0, 1).dtype.newbyteorder(">")),
        Repeat(Range(0, 5), 1),
    ],
)
def test_nodes_with_different_fields_are_not_equal(other):
    assert Range(0, 5) != other


def test_a_node_keeps_the_line_it_was_made_for_when_it_is_changed():
    node = Range(0, 5)
    line = inspect.currentframe().f_lineno - 1
    assert node.origin == Origin(__file__, line)
    assert dataclasses.replace(node, stop=7).origin == Origin(__file__, line)
    assert Range(0, 5, origin=Origin("<stdin>", 1)).origin == Origin("<stdin>", 1)


def test_a_node_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Range(0, 5).stop = 7


def test_a_nodes_repr_does_not_show_its_origin():
    assert repr(Batch(Range(0, 5), 2)) == (
        "Batch(child=Range(start=0, stop=5, step=1, dtype=dtype('int64')), "
        "batch_size=2, drop_remainder=False)"
    )


def test_the_base_class_cannot_be_instantiated():
    with pytest.raises(TypeError, match="abstract"):
        Node()


def test_a_plan_is_walked_parents_first_and_each_node_once():
    one, two = Range(0, 1), Range(0, 2)
    zipped = Zip((0, 0), (Batch(one, 2), two))
    plan = Concatenate(zipped, zipped)
    assert plan.children == (zipped, zipped)
    assert zipped.children == (Batch(one, 2), two)
    assert list(zipped.walk()) == [zipped, Batch(one, 2), one, two]
    assert list(plan.walk()) == [plan, zipped, Batch(one, 2), one, two]
    assert list(plan.bottom_up()) == [one, Batch(one, 2), two, zipped, plan]
