import numpy as np
import pytest
from tests.plans import all_nodes

import evenfeed as tf
from evenfeed.core.specs import NoneTensorSpec, TensorSpec
from evenfeed.dataset import Dataset, plan_of
from evenfeed.runtime.explain_text import label_of, method_for, rate_text, size_text, spec_text


def double(x):
    return x * 2


def wide(key, x):
    return x


A = Dataset.range(12)


@pytest.mark.parametrize(
    ("dataset", "label"),
    [
        (A, "range(0, 12)"),
        (Dataset.range(2, 9, 3), "range(2, 9, 3)"),
        (Dataset.from_tensor_slices([1, 2]), "from_tensor_slices()"),
        (Dataset.from_tensors(1), "from_tensors()"),
        (Dataset.counter(), "counter(0)"),
        (A.map(double), "map(double)"),
        (A.map(double, 4, deterministic=True), "map(double, deterministic=True)"),
        (A.random_map(wide, seed=3), "random_map(wide)"),
        (A.shuffle(5, seed=3), "shuffle(5)"),
        (A.shuffle(5, reshuffle_each_iteration=False), "shuffle(5, reshuffle=False)"),
        (A.repeat(), "repeat()"),
        (A.repeat(3), "repeat(3)"),
        (A.shard(4, 1), "shard(4, 1)"),
        (A.batch(3), "batch(3)"),
        (A.batch(3, drop_remainder=True), "batch(3, drop_remainder=True)"),
        (A.batch(3).rebatch([1, 2]), "rebatch((1, 2))"),
        (A.prefetch(None), "prefetch(AUTOTUNE)"),
        (A.prefetch(2), "prefetch(2)"),
        (A.cache(), "cache()"),
        (A.cache("there"), "cache('there')"),
        (A.filter(lambda x: x > 1), "filter(<lambda>)"),
        (A.flat_map(Dataset.range), "flat_map(range)"),
        (A.take_while(lambda x: x < 1), "take_while(<lambda>)"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_label_is_the_call_that_made_the_node(dataset, label):
    assert label_of(plan_of(dataset), []) == label


def test_steps_that_are_read_are_named():
    assert label_of(plan_of(Dataset.zip(A, A)), [1, 4]) == "zip(step 1, step 4)"
    assert label_of(plan_of(A.map(double)), [1]) == "map(step 1, double)"


def test_every_node_is_a_method_of_datasets():
    others = {"Held", "WindowPart", "WithKeys", "AssertCardinality", "OwnRows", "OwnBatches"}
    kinds = {kind for kind in all_nodes() if kind.__name__ not in others}
    unknown = {kind for kind in kinds if not hasattr(Dataset, method_for(kind))}
    assert unknown == set()


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 elements"),
        (1, "1 element"),
        (60_000, "60,000 elements"),
        (-1, "endless"),
        (-2, "length unknown"),
    ],
)
def test_sizes_are_words(size, text):
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (TensorSpec([], "int64"), "() int64"),
        (TensorSpec([3], "float32"), "(3,) float32"),
        (TensorSpec([None, 2], tf.string), "(?, 2) string"),
        (TensorSpec(None, tf.bfloat16), "(...) bfloat16"),
        ((TensorSpec([2, 2], "uint8"), TensorSpec([], "int32")), "((2, 2) uint8, () int32)"),
        ({"a": (TensorSpec([], "bool"), NoneTensorSpec())}, "{'a': (() bool, None)}"),
        (tf.data.DatasetSpec(TensorSpec([], "int64")), "dataset"),
    ],
)
def test_specs_are_short(spec, text):
    assert spec_text(spec) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (0.25, "0.25 rows/s"),
        (7.0, "7 rows/s"),
        (999.4, "999 rows/s"),
        (999.9, "1 k rows/s"),
        (12_345, "12.3 k rows/s"),
        (np.float64(4.1e6), "4.1 M rows/s"),
        (2e9, "2 G rows/s"),
    ],
)
def test_rates_have_three_digits(rate, text):
    assert rate_text(rate, "rows") == text
