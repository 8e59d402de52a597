import numpy as np
import pytest
from tests.unknown import UnknownSize

from evenfeed.core.shapes import TensorShape
from evenfeed.plan.batching import PaddedBatch
from evenfeed.plan.grouping import Batch
from evenfeed.plan.ordering import Repeat, Shuffle
from evenfeed.plan.sources import Range, Tensor
from evenfeed.runtime.build import build
from evenfeed.runtime.operators.batching import PadBatches
from evenfeed.runtime.positions.rows import Walk
from evenfeed.runtime.run import Run


def built(plan):
    return build(plan, Run(plan))


def test_a_tensor_is_a_block_of_one():
    array = np.arange(3)
    block = built(Tensor((0, 0), [array, None])).read(5)
    assert block.length == 1
    assert block.columns[0].shape == (1, 3)
    assert np.shares_memory(block.columns[0], array)


def test_every_build_starts_at_the_first_element():
    plan = Batch(Range(0, 4), 2)
    assert built(plan).read(1).columns[0].tolist() == [[0, 1]]
    assert built(plan).read(1).columns[0].tolist() == [[0, 1]]


def test_a_node_without_an_operator_is_named():
    with pytest.raises(TypeError, match="no operator runs UnknownSize"):
        built(UnknownSize())


def test_what_can_be_addressed_is_walked_however_many_steps_it_has():
    assert type(built(Repeat(Shuffle(Range(0, 9), 5, (1,)), 3))) is Walk
    assert type(built(Shuffle(Batch(Repeat(Shuffle(Range(0, 9), 5, (1,)), 3), 2), 4, (2,)))) is Walk
    batches = built(PaddedBatch(Range(0, 9), 2, (TensorShape([]),), (np.array(0),)))
    assert type(batches) is PadBatches
    (wide,) = batches.children()
    assert [type(child) for child in wide.children()] == [Walk]
