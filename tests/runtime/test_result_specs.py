"""The dtype and the shape of results do not depend on how a function runs."""

import operator

import numpy as np
import pytest

import evenfeed as tf

IMAGES = np.arange(4 * 2 * 2 * 3, dtype=np.uint8).reshape(4, 2, 2, 3)
DATA = tf.data.Dataset.from_tensor_slices


def needing_values(function):
    """Return a function that computes the same, but cannot be traced."""

    def branching(*parts):
        return function(*parts) if int(np.asarray(parts[0]).ravel()[0]) >= 0 else None

    return branching


def _in_place(x):
    x = x * 1
    x /= 2
    return x


FUNCTIONS = {
    "x / 255": lambda x: x / 255,
    "x / 255 - list": lambda x: x / 255.0 - [0.5, 0.4, 0.3],
    "tuple * x": lambda x: (1, 2, 3) * x,
    "x + list of floats": lambda x: operator.add(x, [0.5, 0.4, 0.3]),
    "x * array": lambda x: x * np.array([0.5, 0.4, 0.3]),
    "x / x[0, 0, 0]": lambda x: x / (x[0, 0, 0] + 1),
    "mean": lambda x: x.mean(),
    "sum": lambda x: x.sum(),
    "argmax": lambda x: x.argmax(),
    "astype(float)": lambda x: x.astype(float) * 2,
    "comparison": lambda x: x > [1, 2, 3],
    "power": lambda x: x**0.5,
    "in place": _in_place,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float32", "float64", "float16"])
def test_a_function_that_does_not_trace_has_the_dtype_of_one_that_does(name, dtype):
    function, source = FUNCTIONS[name], DATA(IMAGES.astype(dtype))
    traced = source.map(function)
    others = {
        "untraced": source.map(needing_values(function)),
        "vectorize=False": source.map(function, vectorize=False),
        "threads": source.map(needing_values(function), num_parallel_calls=2),
    }
    assert "per element" not in traced.explain()
    for way, other in others.items():
        assert other.element_spec.dtype == traced.element_spec.dtype, way
        pairs = zip(traced.as_numpy_iterator(), other.as_numpy_iterator(), strict=True)
        for expected, found in pairs:
            assert found.dtype == expected.dtype == traced.element_spec.dtype, way
            np.testing.assert_allclose(found, expected, rtol=1e-2 if dtype == "float16" else 1e-5)


def scaled(x):
    return needing_values(lambda x: x / 255)(x)


def test_processes_have_the_same_dtype():
    ds = DATA(IMAGES).map(scaled, num_parallel_calls=1, processes=True)
    assert ds.element_spec.dtype == tf.float32
    assert {x.dtype for x in ds} == {tf.float32}


def test_every_transformation_has_the_same_dtype():
    source, group = DATA(IMAGES), np.int64(0)
    made = {
        "flat_map": source.flat_map(lambda x: DATA(x / 255 - [0.5, 0.4, 0.3])),
        "interleave": source.interleave(lambda x: DATA(x / 255 - [0.5, 0.4, 0.3])),
        "scan": source.scan(
            tf.zeros([2, 2, 3]),
            lambda state, x: (state + scaled(x), needing_values(lambda x: x / 2)(x)),
        ),
        "group_by_window": source.group_by_window(
            lambda _: group, lambda _, rows: rows.map(scaled).batch(2), window_size=2
        ),
        "flat_map of windows": source.window(2).flat_map(lambda rows: rows.map(scaled)),
    }
    for name, ds in made.items():
        assert ds.element_spec.dtype == tf.float32, name
        assert {np.asarray(x).dtype for x in ds} == {np.dtype("float32")}, name
    total = source.reduce(tf.zeros([2, 2, 3]), lambda state, x: state + scaled(x))
    assert total.dtype == np.float32
    kept = source.filter(lambda x: bool((x / 255 - [0.0, 0.0, 0.0]).dtype == np.float32))
    assert len(list(kept)) == 4
    assert len(list(source.take_while(lambda x: (scaled(x)).dtype == tf.float32))) == 4


def test_what_python_functions_return_promotes_too():
    def decoded(x):
        pixels = tf.py_function(lambda image: image.numpy(), [x], tf.uint8)
        return pixels / 255, tf.numpy_function(lambda image: image, [x], tf.uint8) * 0.5

    first, second = DATA(IMAGES).map(decoded).element_spec
    assert first.dtype == second.dtype == tf.float32


def loaded(x):
    return tf.py_function(lambda image: image.numpy() / 255, [x], tf.float32)


def set_shape(x, shape):
    x.set_shape(shape)
    return x


PROMISES = {
    "ensure_shape": (lambda x: tf.ensure_shape(loaded(x), [2, 2, 3]), (2, 2, 3)),
    "ensure_shape in part": (lambda x: tf.ensure_shape(loaded(x), [None, 2, 3]), (None, 2, 3)),
    "set_shape": (lambda x: set_shape(loaded(x), (2, 2, 3)), (2, 2, 3)),
    "reshape": (lambda x: tf.reshape(loaded(x), [4, 3]), (4, 3)),
    "reshape with -1": (lambda x: tf.reshape(loaded(x), [-1, 3]), (None, 3)),
    "reshape as a method": (lambda x: loaded(x).reshape(4, 3), (4, 3)),
    "reshape to a number": (lambda x: tf.reshape(loaded(x), 12), (12,)),
    "arithmetic": (lambda x: set_shape(loaded(x), (2, 2, 3)) / 2 - [0.5, 0.4, 0.3], (2, 2, 3)),
    "broadcasting": (lambda x: tf.ensure_shape(loaded(x), [None, 2, 3]) + 1.0, (None, 2, 3)),
    "of a tensor": (lambda x: tf.reshape(loaded(x), [4, 3]) * 2.0, (4, 3)),
    "twice": (
        lambda x: tf.ensure_shape(tf.ensure_shape(loaded(x), [2, None, None]), [None, 2, 3]),
        (2, 2, 3),
    ),
    "nothing": (loaded, (None, None, None)),
}


@pytest.mark.parametrize("rows", [4, 0])
@pytest.mark.parametrize("name", PROMISES)
def test_what_a_function_says_of_shapes_is_in_the_spec(name, rows):
    function, expected = PROMISES[name]
    if name in ("nothing", "reshape as a method") and not rows:
        return  # without elements, the rank of a Python result is unknown
    ds = DATA(IMAGES[:rows]).map(function)
    assert ds.element_spec == tf.TensorSpec(expected, tf.float32)
    assert len(list(ds)) == rows


def test_a_traced_function_may_set_shapes_too():
    ds = DATA(IMAGES).map(lambda x: set_shape(x / 255, [2, 2, 3]))
    assert ds.element_spec.shape == (2, 2, 3)
    with pytest.raises(ValueError, match="cannot have the shape"):
        DATA(IMAGES).map(lambda x: set_shape(x / 255, [2, 2, 4]))


SHAPES_OF_ARGUMENTS = {
    "set_shape": lambda x: set_shape(loaded(x), x.shape),
    "set_shape of a list": lambda x: set_shape(loaded(x), [x.shape[0]]),
    "set_shape of a part": lambda x: set_shape(loaded(x), x.shape[:1]),
    "ensure_shape": lambda x: tf.ensure_shape(loaded(x), x.shape),
    "it needs values": lambda x: set_shape(loaded(x), x.shape)[: len(x)] * 1.0,
    "reshape": lambda x: tf.reshape(loaded(x), x.shape),
}


@pytest.mark.parametrize("lengths", [[3, 5], [1, 2], [2, 1], [0, 3], []])
@pytest.mark.parametrize("name", SHAPES_OF_ARGUMENTS)
def test_the_shape_of_an_argument_is_open_where_its_lengths_are(name, lengths):
    if name == "it needs values" and not lengths:
        return  # its output spec is unknown
    rows = tf.data.Dataset.from_generator(
        lambda: map(np.ones, lengths), output_signature=tf.TensorSpec([None], tf.float32)
    )
    mapped = rows.map(SHAPES_OF_ARGUMENTS[name])
    assert mapped.element_spec.dtype == tf.float32
    assert not any(mapped.element_spec.shape or ())
    assert [x.shape for x in mapped] == [(length,) for length in lengths]


def test_the_shape_of_an_argument_with_known_lengths_is_in_the_spec():
    assert DATA(IMAGES).map(SHAPES_OF_ARGUMENTS["set_shape"]).element_spec.shape == (2, 2, 3)


@pytest.mark.parametrize("lengths", [[3, 1], [0, 2]])
def test_lengths_that_follow_a_value_may_be_set_as_a_shape(lengths):
    def counted(n):
        row = tf.zeros([n])
        return set_shape(loaded(row), row.shape)

    assert [x.shape for x in DATA(lengths).map(counted)] == [(length,) for length in lengths]


def test_lengths_that_follow_values_are_not_in_the_spec():
    rows = DATA((IMAGES.reshape(4, 12), np.array([2, 3, 4, 6])))
    by_value = rows.map(lambda x, n: x.reshape(int(n), -1))
    assert by_value.element_spec.shape == (None, None)
    assert [len(x) for x in by_value] == [2, 3, 4, 6]
    by_tensor = rows.map(lambda x, n: tf.reshape(x, [n, -1]))
    assert [x.shape for x in by_tensor] == [(2, 6), (3, 4), (4, 3), (6, 2)]


def test_a_broken_promise_is_an_error():
    ds = DATA([1, 2]).map(lambda n: tf.ensure_shape(np.zeros(int(n)), [1]))
    assert ds.element_spec.shape == (1,)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\(2,\)"):
        list(ds)


def test_lists_meet_tensors_outside_of_functions():
    assert (tf.constant([1.0, 2.0]) - [0.5, 0.25]).tolist() == [0.5, 1.75]
    assert ([2, 3] * tf.constant([1, 2])).dtype == np.int32
    assert (tf.constant([1, 2]) == [1, 3]).tolist() == [True, False]
    assert (tf.constant([1.0, 2.0]) > (1, 1)).tolist() == [False, True]
    assert (tf.constant([[1.0, 2.0]]) @ [[1], [2]]).tolist() == [[5.0]]


RANKS = [1, [2, 3], [[4]]]


def of_any_rank(values=RANKS, dtype=tf.int32):
    return tf.data.Dataset.from_generator(lambda: iter(values), dtype)


OF_RANKS = {
    "itself": (lambda x: x, [None]),
    "arithmetic": (lambda x: x + 1, [None]),
    "twice": (lambda x: (x, {"a": x}), [None, None]),
    "with a constant": (lambda x: (x, tf.constant([1])), [None, 1]),
    "flat": (lambda x: tf.reshape(x, [-1]), [1]),
    "a sum": (tf.reduce_sum, [0]),
    "its shape": (tf.shape, [1]),
}


@pytest.mark.parametrize("name", OF_RANKS)
@pytest.mark.parametrize("values", [RANKS, []], ids=["elements", "none"])
def test_a_rank_is_known_where_it_does_not_follow_that_of_an_element(values, name):
    function, ranks = OF_RANKS[name]
    mapped = of_any_rank(values).map(function)
    assert [spec.shape.rank for spec in tf.nest.flatten(mapped.element_spec)] == ranks
    assert len(list(mapped)) == len(values)


def test_elements_of_any_rank_come_out_as_they_are():
    for values, dtype in (
        (RANKS, tf.int32),
        ([[1.5], 2.5, []], tf.float32),
        (["a", ["b", "c"]], tf.string),
    ):
        mapped = of_any_rank(values, dtype).map(lambda x: x).map(lambda x: (x, x))
        expected = [np.shape(value) for value in values]
        assert [np.shape(x) for x, _ in mapped] == expected
        scanned = of_any_rank(values, dtype).scan(0, lambda s, x: (s + 1, x))
        assert [np.shape(x) for x in scanned] == expected


def test_a_function_that_needs_the_rank_of_the_first_element_has_its_spec():
    def first(x):
        if np.ndim(x) != 1:
            raise ValueError("one axis is needed")
        return x[0] if int(x[0]) < 9 else x[-1]

    assert of_any_rank([[1, 2], [3]]).map(first).element_spec == tf.TensorSpec([], tf.int32)


def test_a_look_at_other_ranks_changes_no_variable():
    counter = tf.Variable(0)

    def counted(x):
        counter.assign_add(1)
        return x

    assert len(list(of_any_rank().map(counted))) == 3
    assert int(counter) == 3


def test_results_of_any_length_are_checked_for_their_rank_and_dtype():
    wrong = {5: np.zeros([1, 1], np.int64), 6: np.array([b"a"], object)}

    def grown(x):
        return wrong.get(int(x), np.arange(int(x)))

    spec = tf.TensorSpec([None], tf.int64)
    rows = tf.data.Dataset.range(8).map(grown, output_signature=spec)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"of shape \(1, 1\) where"):
        list(rows)
    assert [len(row) for row in rows.ignore_errors()] == [0, 1, 2, 3, 4, 7]


def test_a_part_of_an_element_keeps_its_shape_in_a_function_that_does_not_trace():
    function = needing_values(lambda x: (x, 2 * x + 1, {"a": -x}))
    assert [spec.shape for spec in tf.nest.flatten(DATA(IMAGES).map(function).element_spec)] == [
        (2, 2, 3),
        (2, 2, 3),
        (2, 2, 3),
    ]


def test_lengths_that_meet_a_part_of_an_element_may_vary():
    mapped = DATA([1, 2, 3]).map(lambda x: x + np.zeros(int(x), np.int32))
    assert mapped.element_spec.shape == (None,)
    assert [row.tolist() for row in mapped] == [[1], [2, 2], [3, 3, 3]]


def test_a_function_that_wants_one_length_is_traced_for_it():
    seeds = tf.data.Dataset.range(5).batch(2)
    drawn = seeds.map(lambda seed: tf.random.stateless_normal([3], seed))
    assert drawn.element_spec == tf.TensorSpec([3], tf.float32)
    assert "per element" not in drawn.explain()
    iterator = iter(drawn)
    for seed in ([0, 1], [2, 3]):
        expected = tf.random.stateless_normal([3], seed)
        np.testing.assert_allclose(next(iterator), expected, rtol=1e-5)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"seed must have shape \[2\]"):
        next(iterator)


def test_the_length_of_a_result_is_unknown_if_several_lengths_are_accepted():
    def doubled(row):
        if row.shape[0] not in (2, 3):
            raise ValueError("two or three")
        return tf.concat([row, row], 0)

    dataset = tf.data.Dataset.range(5).batch(3).map(doubled)
    assert dataset.element_spec == tf.TensorSpec([None], tf.int64)
    assert [row.tolist() for row in dataset] == [[0, 1, 2, 0, 1, 2], [3, 4, 3, 4]]
