import collections
import contextlib
import io
import logging
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import evenfeed as tf
from evenfeed.tensors.printing import summary, tensor_repr, tensor_text

Point = collections.namedtuple("Point", "x y")


def printed(*inputs, **options):
    stream = io.StringIO()
    tf.print(*inputs, output_stream=stream, **options)
    jax.effects_barrier()
    return stream.getvalue()


# Recorded from TensorFlow 2.21.
@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1, "0.1"),
        (1.0, "1"),
        (1e-7, "1e-07"),
        (float("nan"), "nan"),
        (-float("inf"), "-inf"),
        (1 / 3, "0.333333343"),
        (1e10, "1e+10"),
        (123456789.0, "123456792"),
        (1e6, "1e+06"),
        (-0.0, "-0"),
        (100000.5, "100000.5"),
        (16777216.0, "16777216"),
        (True, "1"),
        (65, "65"),
        ("a b", "a b"),
        ("a\nb", "a\nb"),
        (
            ["a", 'q"q', "q'q", "\n", "\\", "é", "\x00\x7f"],
            r'["a" "q\"q" "q\'q" ... "\\" "é" "\000\177"]',
        ),
        ([0.1, 1.0, 2.5], "[0.1 1 2.5]"),
        ([True, False], "[1 0]"),
        ([], "[]"),
        ([["a"], ["b"]], '[["a"]\n ["b"]]'),
    ],
)
def test_a_tensor_is_written_as_tensorflow_writes_it(value, text):
    assert printed(tf.constant(value)) == text + "\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float64(1 / 3), "0.33333333333333331"),
        (np.float64(1e10), "10000000000"),
        (np.float16(0.1), "0.0999755859"),
        (np.array(0.1, tf.bfloat16), "0.100097656"),
        (np.array([1, 2], tf.int4), "[1 2]"),
        (np.array([2**40]), "[1099511627776]"),
        (np.complex64(1 + 2j), "(1+2j)"),
        (np.array(["a"]), '["a"]'),
        (np.array(b"\xff", object), r"\xff"),
        (np.array([b"\xff"], object), r'["\xff"]'),
    ],
)
def test_a_numpy_array_is_written_as_a_tensor(value, text):
    assert printed(value) == text + "\n"


@pytest.mark.parametrize(
    ("shape", "summarize", "text"),
    [
        ((6,), 3, "[0 1 2 3 4 5]"),
        ((7,), 3, "[0 1 2 ... 4 5 6]"),
        ((10,), 1, "[0 ... 9]"),
        ((10,), 0, "[ ...]"),
        ((10,), -1, "[0 1 2 3 4 5 6 7 8 9]"),
        ((10,), None, "[0 1 2 ... 7 8 9]"),
        ((2, 2), 3, "[[0 1]\n [2 3]]"),
        ((7, 2), 3, "[[0 1]\n [2 3]\n [4 5]\n ...\n [8 9]\n [10 11]\n [12 13]]"),
        ((2, 2, 2), 3, "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]"),
        (
            (3, 3, 3),
            1,
            "[[[0 ... 2]\n  ...\n  [6 ... 8]]\n\n ...\n\n [[18 ... 20]\n  ...\n  [24 ... 26]]]",
        ),
        ((0,), 3, "[]"),
        ((0, 2), 3, "[]"),
        ((2, 0), 3, "[\n ...]"),
        ((2, 0, 3), 3, "[\n\n ...]"),
        ((8, 8), 0, "[\n ...]"),
    ],
)
def test_a_long_axis_shows_its_ends(shape, summarize, text):
    assert printed(jnp.arange(np.prod(shape)).reshape(shape), summarize=summarize) == text + "\n"


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        ((), ""),
        ((1, 2.5, "s", None, tf.constant(1), True, b"x"), "1 2.5 s None 1 True b'x'"),
        (([1, 2, 3],), "[1, 2, 3]"),
        (([tf.constant(1), "a"],), "[1, 'a']"),
        (((tf.constant([0, 1]), tf.constant([2, 3])),), "([0 1], [2 3])"),
        (((1,),), "(1,)"),
        (({"b": 1, "a": [tf.constant([1, 2]), "x"]},), "{'a': [[1 2], 'x'], 'b': 1}"),
        (({2: 1, 1: tf.constant(2)},), "{1: 2, 2: 1}"),
        ((Point(tf.constant(1), tf.constant([2, 3])),), "Point(x=1, y=[2 3])"),
        (
            ([[tf.constant(1), (tf.constant(2), {"k": tf.constant([3.5])})], 4],),
            "[[1, (2, {'k': [3.5]})], 4]",
        ),
        (("{} %s", tf.constant(1)), "{} %s 1"),
        ((["{}", tf.constant(1)],), "['{}', 1]"),
        (([np.arange(2), 1],), "[[0 1], 1]"),
        ((object,), "<class 'object'>"),
    ],
)
def test_structures_are_written_around_their_tensors(inputs, text):
    assert printed(*inputs) == text + "\n"


def test_a_long_structure_breaks_where_tensorflow_breaks_it():
    lines = printed(
        {f"key{index}": tf.constant([index, index]) for index in range(12)}
    ).splitlines()
    assert lines[:3] == ["{'key0': [0 0],", " 'key1': [1 1],", " 'key10': [10 10],"]


def test_an_unknown_value_is_written_by_its_repr():
    class Shown:
        def __repr__(self):
            return "PerReplica:{...}"

    assert printed(Shown(), [Shown()]) == "PerReplica:{...} [PerReplica:{...}]\n"
    assert printed(jax.random.key(0)).startswith("Array((), dtype=key<fry>)")


def test_a_value_that_reads_as_a_tensor_is_written_as_one():
    class Held:
        def __jax_array__(self):
            return jnp.arange(2)

    assert printed(Held()) == "[0 1]\n"


def test_sep_and_end_can_be_set():
    assert printed(1, tf.constant(2), sep="|", end="<end>") == "1|2<end>"


def test_the_default_is_standard_error(capsys):
    tf.print("x", tf.constant(1))
    assert capsys.readouterr() == ("", "x 1\n")
    tf.print("x", output_stream=sys.stdout)
    assert capsys.readouterr() == ("x\n", "")


def test_a_file_is_appended_to(tmp_path):
    path = tmp_path / "log.txt"
    tf.print(tf.constant(1), "a", output_stream=f"file://{path}")
    tf.print(2, output_stream=f"file://{path}")
    assert path.read_text() == "1 a\n2\n"


def test_a_level_or_a_function_of_logging_takes_the_text(caplog):
    with caplog.at_level(logging.INFO):
        tf.print("loss", tf.constant(0.5), output_stream=logging.INFO)
        tf.print("50 %", output_stream=logging.warning)
    assert [record.getMessage() for record in caplog.records] == ["loss 0.5", "50 %"]


@pytest.mark.parametrize("stream", ["x", "log(info)", object()])
def test_a_stream_that_cannot_be_written_to(stream):
    with pytest.raises(ValueError, match="print cannot write to"):
        tf.print(1, output_stream=stream)


def test_a_file_needs_a_path():
    with pytest.raises(tf.errors.InvalidArgumentError, match="needs a path after file://"):
        tf.print(1, output_stream="file://")


def test_a_compiled_function_prints_each_time_that_it_runs():
    stream = io.StringIO()

    @jax.jit
    def step(x):
        tf.print("x", x, {"a": [x, np.arange(2)]}, tf.constant("s"), output_stream=stream)
        return x

    for start in (0.0, 5.0):
        step(start + jnp.arange(2.0))
        jax.effects_barrier()
    assert stream.getvalue().splitlines() == [
        "x [0 1] {'a': [[0 1], [0 1]]} \"s\"",
        "x [5 6] {'a': [[5 6], [0 1]]} \"s\"",
    ]


def test_a_compiled_function_prints_concrete_values_each_time():
    stream = io.StringIO()
    step = jax.jit(lambda x: (tf.print("epoch", tf.constant(3), output_stream=stream), x)[1])
    for _ in range(3):
        step(1.0)
        jax.effects_barrier()
    assert stream.getvalue() == "epoch 3\n" * 3


def test_text_is_unquoted_only_as_the_only_input():
    text = tf.constant('a\n"b')
    assert printed(text) == 'a\n"b\n'
    assert printed("x", text) == 'x "a\\n\\"b"\n'
    assert printed(text, "") == '"a\\n\\"b" \n'


def test_a_compiled_function_prints_to_the_standard_error_of_the_time_it_runs():
    step = jax.jit(tf.print)
    for _ in range(2):
        with contextlib.redirect_stderr(io.StringIO()) as stream:
            step(1.5)
            jax.effects_barrier()
        assert stream.getvalue() == "1.5\n"


def test_print_works_under_vmap_and_grad():
    stream = io.StringIO()
    jax.vmap(lambda x: tf.print("v", x, output_stream=stream))(jnp.arange(2))
    jax.grad(lambda x: (tf.print("g", x, output_stream=stream), x)[1])(2.0)
    jax.effects_barrier()
    assert sorted(stream.getvalue().splitlines()) == ["g 2", "v 0", "v 1"]


def test_its_name_is_print():
    assert tf.print.__name__ == "print"


# Recorded from TensorFlow 2.21: str(tensor) and repr(tensor).
@pytest.mark.parametrize(
    ("value", "text", "representation"),
    [
        (3.0, "tf.Tensor(3.0, shape=(), dtype=float32)", "shape=(), dtype=float32, numpy=3.0"),
        (
            [1, 2],
            "tf.Tensor([1 2], shape=(2,), dtype=int32)",
            "shape=(2,), dtype=int32, numpy=array([1, 2], dtype=int32)",
        ),
        (
            [[0.7], [0.7]],
            "tf.Tensor(\n[[0.7]\n [0.7]], shape=(2, 1), dtype=float32)",
            "shape=(2, 1), dtype=float32, numpy=\narray([[0.7],\n       [0.7]], dtype=float32)",
        ),
        (
            [["a"]],
            "tf.Tensor([[b'a']], shape=(1, 1), dtype=string)",
            "shape=(1, 1), dtype=string, numpy=array([[b'a']], dtype=object)",
        ),
        (
            "é",
            r"tf.Tensor(b'\xc3\xa9', shape=(), dtype=string)",
            r"shape=(), dtype=string, numpy=b'\xc3\xa9'",
        ),
        (True, "tf.Tensor(True, shape=(), dtype=bool)", "shape=(), dtype=bool, numpy=True"),
        (
            np.array(0.1, tf.bfloat16),
            "tf.Tensor(0.100098, shape=(), dtype=bfloat16)",
            "shape=(), dtype=bfloat16, numpy=0.10009765625",
        ),
        (
            np.zeros((2, 0), np.float32),
            "tf.Tensor([], shape=(2, 0), dtype=float32)",
            "shape=(2, 0), dtype=float32, numpy=array([], shape=(2, 0), dtype=float32)",
        ),
        (
            np.arange(2000, dtype=np.int32),
            "tf.Tensor([   0    1    2 ... 1997 1998 1999], shape=(2000,), dtype=int32)",
            None,
        ),
    ],
)
def test_the_text_of_a_tensor_is_tensorflows(value, text, representation):
    tensor = tf.constant(value)
    assert tensor_text(tensor) == text
    if representation is not None:
        assert tensor_repr(tensor) == f"<tf.Tensor: {representation}>"


def test_the_text_of_a_tracer_is_jaxs():
    texts = []
    jax.jit(lambda x: texts.extend([tensor_text(x), tensor_repr(x)]))(1.0)
    assert all("float32[]" in text for text in texts)


TEXT = st.text() | st.binary()
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
NUMBERS = hnp.arrays(
    hnp.scalar_dtypes().filter(lambda dtype: dtype.kind in "biufc" and dtype.itemsize <= 16),
    hnp.array_shapes(min_dims=0, min_side=0),
)
INPUTS = st.recursive(
    LEAVES | NUMBERS,
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
)


@given(st.lists(INPUTS, max_size=3), st.integers(-1, 4))
def test_print_takes_anything(inputs, summarize):
    assert printed(*inputs, summarize=summarize).endswith("\n")


@given(hnp.arrays(st.sampled_from([np.float32, np.float64]), (1,)))
def test_the_digits_of_a_float_round_trip(array):
    text = summary(array).strip("[]")
    np.testing.assert_array_equal(array.dtype.type(text), array[0])


def test_a_program_without_stderr_prints_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    tf.print("unseen")
