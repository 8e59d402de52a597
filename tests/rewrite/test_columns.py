"""Reading a part of each row: the arrays that rows are taken from are cut."""

import numpy as np
import pyarrow as pa
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest

from evenfeed.data import Dataset
from evenfeed.dataset import plan_of
from evenfeed.plan.node import Node
from evenfeed.plan.sources import TensorSlice
from evenfeed.rewrite.columns import with_columns
from evenfeed.runtime.elements import ElementIterator

VALUES = np.arange(6 * 8).reshape(6, 8)
LAST: list = [(slice(4, 8),), None]


def rows():
    return Dataset.from_tensor_slices((VALUES, np.arange(6)))


def elements(plan: Node):
    return [[np.asarray(part).tolist() for part in element] for element in ElementIterator(plan)]


@pytest.mark.parametrize(
    "dataset",
    [
        rows().batch(2),
        rows()
        .shuffle(6, seed=1, reshuffle_each_iteration=False)
        .repeat(2)
        .skip(1)
        .shard(2, 1)
        .batch(2)
        .prefetch(1),
        rows().concatenate(rows().take(2)).batch(4, drop_remainder=True),
    ],
    ids=["batch", "orders", "concatenate"],
)
def test_batches_have_the_columns_of_the_whole_ones(dataset):
    plan = with_columns(plan_of(dataset), LAST)
    assert plan is not None
    expected = [[np.array(x)[:, 4:].tolist(), y] for x, y in elements(plan_of(dataset))]
    assert elements(plan) == expected
    assert plan.element_spec[0].shape[1:] == [4]


def test_arrays_are_cut_without_a_copy():
    plan = with_columns(plan_of(rows().batch(2)), LAST)
    assert plan is not None
    (source,) = plan.children
    while source.children:
        (source,) = source.children
    assert isinstance(source, TensorSlice)
    (original,) = plan_of(rows()).bottom_up()
    assert isinstance(original, TensorSlice)
    held = source.arrays[0]
    assert isinstance(held, np.ndarray)
    assert np.shares_memory(held, np.asarray(original.arrays[0]))


@pytest.mark.parametrize(
    "dataset",
    [
        rows().map(lambda x, y: (x, y)).batch(2),
        rows().batch(2).map(lambda x, y: (x, y)),
        rows().filter(lambda x, y: y > 2).batch(2),
        rows().cache().batch(2),
        rows().batch(2).batch(2),
        Dataset.from_tensors((VALUES, np.arange(6))),
        Dataset.from_generator(list, output_types=("int64", "int64")).batch(2),
    ],
    ids=["map", "map of batches", "filter", "cache", "two batches", "no rows", "generator"],
)
def test_rows_that_may_be_looked_at_are_read_whole(dataset):
    assert with_columns(plan_of(dataset), LAST) is None


def test_whole_rows_need_no_other_plan():
    assert with_columns(plan_of(rows().batch(2)), [None, None]) is None


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_columns_of_tables_are_cut(tmp_path, kind):
    lists = pa.FixedSizeListArray.from_arrays(VALUES.ravel(), 8)
    table = pa.table({"text": list("abcdef"), "tokens": lists})
    path = str(tmp_path / "table")
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=2)
        dataset = Dataset.from_parquet(path)
    else:
        pf.write_feather(table, path, chunksize=2)
        dataset = Dataset.from_arrow(path)
    plan = plan_of(dataset.shuffle(6, seed=1, reshuffle_each_iteration=False).batch(4))
    narrow = with_columns(plan, [None, (slice(4, 8),)])
    assert narrow is not None
    for whole, part in zip(ElementIterator(plan), ElementIterator(narrow), strict=True):
        np.testing.assert_equal(part, {**whole, "tokens": whole["tokens"][:, 4:]})
    assert narrow.element_spec["tokens"].shape[1:] == [4]


def test_lists_of_varying_lengths_are_read_whole(tmp_path):
    pq.write_table(pa.table({"tokens": [[1], [1, 2]]}), tmp_path / "table")
    plan = plan_of(Dataset.from_parquet(str(tmp_path / "table")).batch(1))
    assert with_columns(plan, [(slice(0, 1),)]) is None
