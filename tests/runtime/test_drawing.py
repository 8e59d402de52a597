"""random_map: random numbers depend only on the seed, the pass and the position of the element."""

import pickle
import subprocess
import sys
from collections import namedtuple

import jax
import numpy as np
import pytest
from tests.plans import STEPS, not_addressed, through_json
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core import dtypes
from evenfeed.dataset import plan_of
from evenfeed.runtime.functions.drawing import generator_of
from evenfeed.runtime.positions.indexing import indexed
from evenfeed.runtime.run import Run

Dataset = tf.data.Dataset
ROWS = 23


def key_bits(key, x):
    return jax.random.key_data(key), x


def key_bits_by_value(key, x):
    return (np.asarray(jax.random.key_data(key)), x) if int(x) >= 0 else None


def first_draws(generator, x):
    return generator.integers(0, 2**32, 2), x


def bits(dataset):
    """Return what was drawn for each element."""
    return {int(x): tuple(drawn.tolist()) for drawn, x in dataset}


def drawn(function=key_bits, seed=5, **how):
    return Dataset.range(ROWS).random_map(function, seed, **how)


WAYS = [
    pytest.param({"function": key_bits}, id="vectorised"),
    pytest.param({"function": key_bits, "vectorize": False}, id="per element"),
    pytest.param({"function": key_bits_by_value}, id="not traceable"),
    pytest.param({"function": first_draws, "generator": "numpy"}, id="numpy"),
]
in_every_way = pytest.mark.parametrize("how", WAYS)


def test_a_key_is_the_same_in_every_way_that_a_function_runs():
    expected = bits(drawn())
    assert len(set(expected.values())) == ROWS
    for how in (
        {"vectorize": False},
        {"vectorize": False, "num_parallel_calls": 4},
        {"vectorize": False, "num_parallel_calls": 4, "deterministic": False},
        {"function": key_bits_by_value},
        {"function": key_bits_by_value, "num_parallel_calls": tf.data.AUTOTUNE},
    ):
        assert bits(drawn(**how)) == expected, how
    with not_addressed(frozenset(STEPS)):
        assert bits(drawn()) == expected


def test_numpy_draws_are_the_same_in_threads_and_in_any_order():
    expected = bits(drawn(first_draws, generator="numpy"))
    for how in ({}, {"deterministic": False}):
        threads = drawn(first_draws, generator="numpy", num_parallel_calls=5, **how)
        assert bits(threads) == expected


def normal(key, x):
    return x + jax.random.normal(key, (3,))


@pytest.mark.parametrize("rows", [1, 2, 9, ROWS])
def test_numbers_do_not_hang_on_how_many_are_made_at_a_time(rows):
    whole = np.stack(list(drawn(normal)))
    batches = drawn(normal).prefetch(2).batch(rows)
    np.testing.assert_allclose(np.concatenate(list(batches)), whole, rtol=1e-6)


def test_numbers_drawn_one_by_one_are_those_of_a_block():
    one_by_one = np.stack(list(drawn(normal, vectorize=False)))
    np.testing.assert_allclose(one_by_one, np.stack(list(drawn(normal))), rtol=1e-6)


@in_every_way
def test_what_stands_behind_does_not_change_a_draw(how):
    expected = bits(drawn(**how))
    parts = [bits(drawn(**how).shard(3, index)) for index in range(3)]
    assert parts[0] | parts[1] | parts[2] == expected
    assert list(parts[1]) == list(range(1, ROWS, 3))
    for behind in (
        lambda d: d.shuffle(7, seed=1),
        lambda d: d.shuffle(ROWS).repeat(1),
        lambda d: d.cache(),
        lambda d: d.filter(lambda _, x: x >= 0),
    ):
        assert bits(behind(drawn(**how))) == expected


@in_every_way
def test_the_position_is_that_where_the_function_stands(how):
    at = list(bits(drawn(**how)).values())
    how = dict(how)
    function = how.pop("function")

    def draws_of(dataset):
        return list(bits(dataset.random_map(function, 5, **how)).values())

    assert draws_of(Dataset.range(50).filter(lambda x: x % 7 == 0)) == at[:8]
    assert draws_of(Dataset.range(ROWS).skip(10)) == at[: ROWS - 10]
    assert draws_of(Dataset.range(ROWS).shard(2, 1)) == at[: ROWS // 2]
    assert draws_of(Dataset.range(ROWS).shuffle(ROWS, seed=1)) == at


@pytest.mark.parametrize(
    "behind",
    [
        lambda d: d,
        lambda d: d.shard(2, 1).take(4),
        lambda d: d.shuffle(5).repeat(3),
        lambda d: d.repeat().enumerate(),
        lambda d: Dataset.zip(d, d.map(lambda words, x: x)),
    ],
)
def test_a_traced_function_stays_addressable(behind):
    plan = plan_of(behind(drawn()))
    _, order = indexed(plan, Run(plan))
    assert order.size == plan.size


def test_the_rows_that_a_shard_leaves_out_are_not_computed():
    shard = drawn(normal).shard(4, 1)
    function = next(n.function for n in plan_of(shard).walk() if type(n).__name__ == "Map")
    list(shard)  # compiles
    before = function.meter.rows
    list(shard)
    assert function.meter.rows - before == len(shard)


@in_every_way
def test_every_pass_and_every_round_has_draws_of_its_own(how):
    dataset = drawn(**how)
    passes = [bits(dataset) for _ in range(3)]
    again = drawn(**how)
    assert [bits(again) for _ in range(3)] == passes
    repeated = [tuple(words.tolist()) for words, _ in drawn(**how).repeat(3)]
    assert len(set(repeated)) == 3 * ROWS
    assert repeated[:ROWS] == list(passes[0].values())
    assert len({one for each in passes for one in each.values()}) == 3 * ROWS


@in_every_way
def test_seeds_decide(how):
    assert bits(drawn(seed=5, **how)) != bits(drawn(seed=6, **how))
    assert bits(drawn(seed=None, **how)) != bits(drawn(seed=None, **how))
    try:
        runs = []
        for _ in range(2):
            tf.random.set_seed(3)
            runs.append([bits(drawn(seed=None, **how)), bits(drawn(seed=5, **how))])
    finally:
        tf.random.set_seed(None)
    assert runs[0] == runs[1]
    assert bits(drawn(seed=5, **how)) not in runs[0]


PROGRAM = """
import evenfeed as tf
import numpy as np
draw = lambda rng, x: rng.integers(1000)
dataset = tf.data.Dataset.range(4).random_map(draw, seed=1, generator="numpy")
print([int(x) for x in dataset.repeat(2)])
import sys
print("jax" in sys.modules)
"""


def test_another_process_draws_the_same_and_numpy_needs_no_jax():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60
    )
    draw = Dataset.range(4).random_map(lambda rng, x: rng.integers(1000), seed=1, generator="numpy")
    assert done.stdout.splitlines() == [str([int(x) for x in draw.repeat(2)]), "False"]


@in_every_way
@pytest.mark.parametrize(
    "make",
    [
        lambda d: d,
        lambda d: d.repeat(),
        lambda d: d.shuffle(6, seed=2).batch(2).unbatch(),
        lambda d: d.filter(lambda words, x: x % 3 == 0),
        lambda d: d.prefetch(3),
    ],
)
def test_a_restored_iterator_draws_the_same(how, make):
    def dataset():
        return make(drawn(num_parallel_calls=3, **how))

    iterator = iter(dataset())
    elements, states = [], []
    for _ in range(5):
        elements += [next(iterator)]
        states += [through_json(iterator.get_state())]
    elements += [next(iterator) for _ in range(2)]
    for done, state in enumerate(states, 1):
        restored = iter(dataset())
        restored.set_state(state)
        for words, x in elements[done:]:
            again, y = next(restored)
            assert (again.tolist(), int(y)) == (words.tolist(), int(x))


def test_two_iterators_do_not_disturb_each_other():
    expected = [list(bits(dataset).items()) for dataset in [drawn()] for _ in range(2)]
    dataset = drawn()
    one, two = iter(dataset), iter(dataset)
    mixed = [(next(one), next(two)) for _ in range(ROWS)]
    found = [[(int(x), tuple(w.tolist())) for w, x in side] for side in zip(*mixed, strict=True)]
    assert found == expected


def test_the_key_is_a_typed_one_whatever_the_default_is():
    def kind(key, x):
        assert jax.dtypes.issubdtype(key.dtype, jax.dtypes.prng_key)
        assert str(jax.random.key_impl(key)) == "threefry2x32"
        return jax.random.uniform(jax.random.split(key)[0])

    expected = [float(x) for x in drawn(kind)]
    with jax.default_prng_impl("rbg"):
        assert [float(x) for x in drawn(kind)] == expected
    assert drawn(kind).element_spec == tf.TensorSpec([], tf.float32)


def test_a_generator_is_philox_with_the_words_as_its_key():
    words = np.array([7, 2**32 - 1], np.uint32)
    expected = np.random.Generator(np.random.Philox(key=7 | (2**32 - 1) << 64))
    np.testing.assert_array_equal(generator_of(words).random(9), expected.random(9))


Pair = namedtuple("Pair", "a b")


@pytest.mark.parametrize("generator", ["jax", "numpy"])
@pytest.mark.parametrize(
    "element",
    [
        [b"x", b"y"],
        {"a": [1, 2], "b": None},
        ([1, 2], [[3.0], [4.0]]),
        Pair([1, 2], {"c": ["x", "y"]}),
        np.array([1, 2], dtypes.bfloat16),
    ],
    ids=str,
)
def test_elements_of_all_kinds_come_as_they_come_to_map(generator, element):
    dataset = Dataset.from_tensor_slices(element)
    spread = type(element) is tuple

    def with_source(source, *parts):
        assert len(parts) == (2 if spread else 1)
        return parts if spread else parts[0]

    made = dataset.random_map(with_source, generator=generator)
    for one, two in zip(made, dataset, strict=True):
        tf.nest.map_structure(np.testing.assert_array_equal, one, two)
        tf.nest.assert_same_structure(one, two)


@in_every_way
def test_of_nothing_comes_nothing(how):
    how = how | {"output_signature": (tf.TensorSpec([2], tf.uint32), tf.TensorSpec([], tf.int64))}
    function = how.pop("function")
    assert list(Dataset.range(0).random_map(function, **how)) == []


def test_what_numpy_draws_may_decide_on_a_shape():
    def some(generator, x):
        return np.arange(generator.integers(1, 9))

    dataset = Dataset.range(40).random_map(some, seed=1, generator="numpy")
    assert dataset.element_spec == tf.TensorSpec([None], tf.int64)
    assert len({len(x) for x in dataset}) > 3
    signed = Dataset.range(4).random_map(
        some, seed=1, generator="numpy", output_signature=tf.TensorSpec([None], tf.int32)
    )
    assert [x.dtype for x in signed] == [np.int32] * 4


def test_whole_numbers_that_are_divided_leave_the_key_alone():
    def halves(key, x):
        return jax.random.uniform(key), x / 2

    dataset = Dataset.range(5, output_type=tf.int32).random_map(halves, seed=1)
    assert dataset.element_spec[1].dtype == tf.float64
    one_by_one = Dataset.range(5, output_type=tf.int32).random_map(halves, seed=1, vectorize=False)
    for (u, half), (v, other) in zip(dataset, one_by_one, strict=True):
        np.testing.assert_array_equal(half, other)
        np.testing.assert_allclose(u, v)


@pytest.mark.parametrize("generator", ["jax", "numpy"])
def test_an_error_names_function_and_element_and_the_rest_has_its_draws(generator):
    def picky(source, x):
        if int(x) == 2:
            raise KeyError("two")
        return (first_draws if generator == "numpy" else key_bits_by_value)(source, x)

    whole = drawn(key_bits_by_value if generator == "jax" else first_draws, generator=generator)
    iterator = iter(drawn(picky, generator=generator))
    found = [next(iterator), next(iterator)]
    with pytest.raises(KeyError, match="two") as caught:
        next(iterator)
    assert "while mapping element 2 with picky, asked for at tests" in caught.value.__notes__[0]
    rest = bits([*found, *iterator])
    assert rest == {x: words for x, words in bits(whole).items() if x != 2}


def test_a_key_cannot_be_an_element():
    with pytest.raises(TypeError, match=r"pass jax\.random\.key_data"):
        Dataset.range(3).random_map(lambda key, x: key)


def test_other_generators_are_refused():
    with error_saying(
        ValueError,
        'generator must be "jax" or "numpy", but got \'torch\'.',
        fix='"jax" passes the function a key for jax.random…',
    ):
        Dataset.range(3).random_map(key_bits, generator="torch")
    with pytest.raises(TypeError, match="Expected a function"):
        Dataset.range(3).random_map(7)


def test_a_dataset_that_draws_can_be_pickled():
    for how in ({}, {"function": first_draws, "generator": "numpy"}):
        dataset = drawn(**how)
        expected = bits(dataset)
        assert (
            bits(pickle.loads(pickle.dumps(dataset))) == expected
        )  # the copy counts its own passes


@pytest.mark.filterwarnings("ignore:.*draws random numbers")
def test_a_function_that_draws_elsewhere_too_is_found():
    shared = np.random.default_rng(1)
    dataset = drawn(lambda key, x: x + shared.integers(10))
    function = plan_of(dataset).function
    assert (function.way, function.why) == ("per element", "it draws random numbers")


def test_a_coin_in_a_map_is_told_of_random_map():
    coin = np.random.default_rng(1)
    with pytest.warns(UserWarning, match="Call random_map instead: it passes the function a key"):
        Dataset.range(3).map(lambda x: x + coin.integers(2))


@pytest.mark.parametrize("generator", ["jax", "numpy"])
def test_a_function_that_takes_the_element_first_is_told_the_order(generator):
    def noisy(element, rng):
        return element["x"] + rng["y"]

    with pytest.raises((AttributeError, TypeError)) as caught:
        list(Dataset.from_tensors({"x": 1.0}).random_map(noisy, generator=generator))
    assert any("function(key, element)" in note for note in caught.value.__notes__)
