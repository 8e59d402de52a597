from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.failing import ERROR, outcome

import evenfeed as tf
from evenfeed.core.block import Block, ScratchBlock
from evenfeed.dataset import plan_of
from evenfeed.plan.elementwise import Map
from evenfeed.runtime.build import build
from evenfeed.runtime.functions.arithmetic import column_program
from evenfeed.runtime.functions.arithmetic.joined_functions import JoinedFunctions, _Stage
from evenfeed.runtime.operator import FailedRow
from evenfeed.runtime.operators.elementwise import MapRows
from evenfeed.runtime.run import Run

TABLE = tf.constant(np.arange(100, dtype=np.float32)[::-1].copy())

# From (number, float, text) to the same, with all kinds of columns in between.
CHAINS = {
    "computed": [lambda n, f, s: (n + 1, f * 1.1, s), lambda n, f, s: (n * 3, f - 0.3, s)],
    "both from one": [lambda n, f, s: (n // 2, tf.cast(n, tf.float32) * f, s)],
    "passed on": [lambda n, f, s: (n, f, s)],
    "in a dict": [
        lambda n, f, s: {"a": {"n": n - 1, "twice": n * 2}, "f": f, "s": s},
        lambda x: (x["a"]["n"] + x["a"]["twice"], x["f"], x["s"]),
    ],
    "constants": [
        lambda n, f, s: (n, f, s, tf.constant([1, 2], tf.int64), np.float32(0.1)),
        lambda n, f, s, two, tenth: (n + two[1], f + tenth, s),
    ],
    "a constant instead": [lambda n, f, s: (n, np.float32(2.5), s)],
    "twice the same": [
        lambda n, f, s: (n, n, f, f, s),
        lambda n, same, f, also, s: (n + same, f * also / 3, s),
    ],
    "a column for one": [
        lambda n, f, s: (tf.stack([n, n + 1, n * 2]), f, s),
        lambda n, f, s: (n[1] - n[2], f, s),
    ],
    "another dtype": [
        lambda n, f, s: (tf.cast(n, tf.int32), tf.cast(f, tf.float64), s),
        lambda n, f, s: (tf.cast(n, tf.int64), tf.cast(f / 7, tf.float32), s),
    ],
    "nothing of the text": [lambda n, f, s: (n, f), lambda n, f: (n, f, b"again")],
    "compiled": [lambda n, f, s: (n, tf.sin(f), s)],
    "text": [lambda n, f, s: (n + tf.cast(tf.strings.length(s), tf.int64), f, s)],
    "looked up": [lambda n, f, s: (n, f + TABLE[tf.cast(n % 100, tf.int32)], s)],
}


def source(count=40):
    rng = np.random.default_rng(0)
    texts = [b"x" * (number % 5) for number in range(count)]
    floats = rng.standard_normal(count).astype(np.float32)
    return tf.data.Dataset.from_tensor_slices((np.arange(count), floats, texts))


def mapped(dataset, names):
    for name in names:
        for function in CHAINS[name]:
            dataset = dataset.map(function)
    return dataset


def functions_of(dataset):
    """Return the functions of the maps at the end of a dataset, the first one first."""
    node, found = plan_of(dataset), []
    while isinstance(node, Map):
        found.insert(0, node.function)
        node = node.child
    return found


def same(one, two):
    assert (one.length, len(one.columns)) == (two.length, len(two.columns))
    for a, b in zip(one.columns, two.columns, strict=True):
        first, second = np.asarray(a), np.asarray(b)
        assert (first.dtype, first.shape) == (second.dtype, second.shape)
        # By bits, so that -0.0 is not 0.0.
        is_text = first.dtype == object
        assert first.tolist() == second.tolist() if is_text else first.tobytes() == second.tobytes()


@settings(max_examples=25)
@given(
    names=st.lists(st.sampled_from(list(CHAINS)), min_size=1, max_size=6),
    piece=st.sampled_from([0, 24, 1 << 18]),
    scratch=st.booleans(),
)
def test_functions_in_a_row_give_the_bits_that_they_give_one_after_the_other(names, piece, scratch):
    functions = functions_of(mapped(source(), names))
    block = build(plan_of(source()), Run(plan_of(source()))).read(40)
    expected = block
    for function in functions:
        expected = function.rows(expected)
    before = block.copy()
    kind = ScratchBlock if scratch else Block
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(column_program, "_PIECE_BYTES", piece)
        patch.setattr(column_program, "_STEPS_IN_PIECES", 0)
        for length in (40, 1):
            given_rows = kind(block.cut(0, length).copy().columns, length)
            same(JoinedFunctions(functions).rows(given_rows), expected.cut(0, length))
    same(block, before)


@settings(max_examples=15)
@given(
    names=st.lists(st.sampled_from(list(CHAINS)), min_size=1, max_size=4),
    passed=st.integers(0, 12),
    is_filtered=st.booleans(),
)
def test_elements_specs_and_positions_are_those_of_single_maps(names, passed, is_filtered):
    plain = source().shuffle(9, seed=1, reshuffle_each_iteration=False)
    if is_filtered:
        plain = plain.filter(lambda n, *_: n % 4 != 1)
    dataset, expected = mapped(plain, names), list(plain)
    for function in (function for name in names for function in CHAINS[name]):
        alone = tf.data.Dataset.from_generator(
            lambda held=expected: iter(held), output_signature=plain.element_spec
        )
        plain = alone.map(function)
        expected = list(plain)
    assert dataset.element_spec == plain.element_spec
    iterator, again = iter(dataset), iter(dataset)
    found = list(islice(iterator, passed))
    again.set_state(iterator.get_state())
    found += list(again)
    for one, two in zip(found, expected, strict=True):
        np.testing.assert_equal(tf.nest.flatten(one), tf.nest.flatten(two))


def stages_of(dataset):
    joined = JoinedFunctions(functions_of(dataset))
    joined.rows(build(plan_of(source()), Run(plan_of(source()))).read(3))
    return [len(stage._functions) if isinstance(stage, _Stage) else 1 for stage in joined._stages]


def test_functions_that_numpy_computes_are_joined_and_others_run_alone():
    assert stages_of(mapped(source(), ["computed", "in a dict", "passed on"])) == [5]
    assert stages_of(mapped(source(), ["computed", "compiled", "computed"])) == [2, 1, 2]
    assert stages_of(mapped(source(), ["text", "computed", "looked up", "passed on"])) == [
        1,
        2,
        1,
        1,
    ]


def operators_of(dataset):
    plan = plan_of(dataset)
    operator, count = build(plan, Run(plan)), 0
    while operator.children():
        count += isinstance(operator, MapRows)
        (operator,) = operator.children()
    return count


def test_maps_in_a_row_are_one_operator_unless_one_of_them_can_fail():
    kept = tf.data.Dataset.range(30).filter(lambda x: x > 2)
    thrice = kept.map(lambda x: x + 1).map(lambda x: x * 2).map(lambda x: tf.cast(x, tf.float32))
    assert operators_of(thrice) == 1
    assert operators_of(thrice.map(tf.sin)) == 1
    table = tf.constant(np.arange(50.0))
    assert operators_of(kept.map(lambda x: table[x]).map(lambda x: x + 1)) == 2
    assert operators_of(kept.map(lambda x: x + 1).map(lambda x: int(x) + 1)) == 2


def test_an_error_names_the_line_of_its_own_map():
    table = tf.constant(np.arange(5))

    def looked_up(x):
        return table[x]

    for dataset in (tf.data.Dataset.range(8), tf.data.Dataset.range(8).filter(lambda x: x >= 0)):
        made = dataset.map(lambda x: x + 1).map(looked_up).map(lambda x: x * 2).map(tf.square)
        iterator = iter(made)
        assert [int(x) for x in islice(iterator, 4)] == [4, 16, 36, 64]
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            next(iterator)
        assert "while mapping element 4 with looked_up" in caught.value.__notes__[0]
        assert "test_joined_functions.py" in caught.value.__notes__[0]
        assert outcome(made) == [4, 16, 36, 64, ERROR, ERROR, ERROR, ERROR]


def test_the_rows_before_an_error_pass_through_the_functions_after_it():
    table = tf.constant(np.arange(5))
    dataset = (
        tf.data.Dataset.range(8).map(lambda x: x).map(lambda x: table[x]).map(lambda x: x + 10)
    )
    joined = JoinedFunctions(functions_of(dataset))
    with pytest.raises(FailedRow) as caught:
        joined.rows(Block((np.arange(8),), 8), 0)
    assert caught.value.index == 5
    assert caught.value.before.columns[0].tolist() == [10, 11, 12, 13, 14]


@pytest.fixture
def _seeded():
    tf.random.set_seed(7)
    yield
    tf.random.set_seed(None)


@pytest.mark.usefixtures("_seeded")
def test_a_draw_in_the_chain_has_the_sequence_of_its_place():
    def drawn(before, after):
        dataset = tf.data.Dataset.range(20)
        for _ in range(before):
            dataset = dataset.map(lambda x: x + 0)
        dataset = dataset.map(lambda x: tf.random.uniform([], seed=3))
        for _ in range(after):
            dataset = dataset.map(lambda x: x + 0)
        return [float(x) for x in dataset.batch(6).unbatch()]

    assert drawn(0, 0) == drawn(3, 0) == drawn(0, 3) == drawn(2, 2)


def test_explain_shows_every_map_and_counts_its_rows():
    dataset = tf.data.Dataset.range(1000)
    for _ in range(5):
        dataset = dataset.map(lambda x: x + 1)
    for _ in dataset.batch(100):
        pass
    assert dataset.explain().count("over 1,000 rows") == 5
