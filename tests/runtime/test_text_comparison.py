"""Functions that compare text run on Blocks, and mean the same where they do not."""

import subprocess
import sys

import numpy as np
import pytest
from tests import chores

import evenfeed as tf

Dataset = tf.data.Dataset
WORDS = ["cat", "dog", "Hündin", ""]


@pytest.fixture
def words():
    return Dataset.from_tensor_slices(WORDS)


def needs_values(text):
    return text == "Hündin" if len(text) else text == "cat"


WAYS = {
    "traced": lambda words: words.map(lambda t: t == "Hündin"),
    "per element": lambda words: words.map(needs_values),
    "vectorize=False": lambda words: words.map(lambda t: t == "Hündin", vectorize=False),
    "threads": lambda words: words.map(needs_values, num_parallel_calls=2),
    "random_map": lambda words: words.random_map(lambda _, t: t == "Hündin", seed=1),
    "random_map with NumPy": lambda words: words.random_map(
        lambda _, t: t == "Hündin", seed=1, generator="numpy"
    ),
    "scan": lambda words: words.scan(np.int32(0), lambda s, t: (s, t == "Hündin")),
    "batched": lambda words: words.batch(2).map(lambda t: t == "Hündin").unbatch(),
    "in a list": lambda words: words.map(lambda t: t in ["Hündin", "bird"]),
}


@pytest.mark.parametrize("way", WAYS)
def test_text_is_compared_alike_whatever_way_a_function_runs(words, way):
    found = WAYS[way](words)
    assert found.element_spec == tf.TensorSpec([], tf.bool)
    assert [bool(x) for x in found] == [False, False, True, False]


@pytest.mark.slow
def test_text_is_compared_in_a_process(words):
    found = words.map(chores.is_huendin, num_parallel_calls=1, processes=True)
    assert [bool(x) for x in found] == [False, False, True, False]


@pytest.mark.parametrize(
    "predicate",
    [
        lambda t, n: t == "cat",
        lambda t, n: t != "cat",
        lambda t, n: tf.equal("cat", t),
        lambda t, n: tf.not_equal(t, b"cat"),
        lambda t, n: (t == "cat") | (n > 2),
        lambda t, n: ~(t == "cat"),
        lambda t, n: (t == ["cat", "dog"]).any(),
    ],
)
def test_a_filter_on_text_runs_on_blocks(predicate):
    pairs = Dataset.from_tensor_slices((WORDS, np.arange(4)))
    found = pairs.filter(predicate)
    assert "vectorised" in str(found.explain())
    expected = [w for n, w in enumerate(WORDS) if _holds(predicate, w, n)]
    assert [t.numpy().decode() for t, _ in found] == expected


def _holds(predicate, word, number):
    return bool(predicate(tf.constant(word), np.array(number)))


def test_lines_of_a_file_are_compared_without_being_cut_up(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("cat\ndog\n\nHündin\ncat\ncats\n")
    lines = tf.data.TextLineDataset(str(path))
    assert [t.numpy() for t in lines.filter(lambda t: t == "cat")] == [b"cat", b"cat"]
    assert [t.numpy() for t in lines.filter(lambda t: t == "")] == [b""]
    assert len(list(lines.filter(lambda t: t != "Hündin"))) == 5


def test_a_comparison_is_a_part_like_any_other(words):
    found = words.map(lambda t: {"text": t, "is": t == "dog", "twice": (t == "dog") * 2})
    assert found.element_spec["is"] == tf.TensorSpec([], tf.bool)
    assert [int(e["twice"]) for e in found] == [0, 2, 0, 0]


def test_a_text_of_the_closure_may_be_a_tensor(words):
    wanted = tf.constant("dog")
    assert [t.numpy() for t in words.filter(lambda t: wanted == t)] == [b"dog"]


def test_shapes_that_never_fit_are_unequal_as_a_whole():
    pair = Dataset.from_tensors(["a", "b"])
    assert [bool(x) for x in pair.map(lambda t: t == ["a", "b", "c"])] == [False]
    assert [bool(x) for x in pair.map(lambda t: t != ["a", "b", "c"])] == [True]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"Cannot compare.*\(2,\) and \(3,\)"):
        list(pair.map(lambda t: tf.equal(t, ["a", "b", "c"])))


def test_a_filter_on_text_alone_loads_no_jax():
    program = (
        "import sys, evenfeed as tf\n"
        "words = tf.data.Dataset.from_tensor_slices(['cat', 'dog'])\n"
        "print([t.numpy() for t in words.filter(lambda t: t == 'dog')], 'jax' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[b'dog'] False\n"
