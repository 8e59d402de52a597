"""Datasets that a function makes of an element, read at once for many elements by a template."""

import numpy as np
import pytest
from tests.plans import through_json

import evenfeed as tf
from evenfeed.dataset import plan_of
from evenfeed.runtime.functions import finding_templates as templates

Dataset = tf.data.Dataset
MATRIX = np.arange(400, dtype=np.float32).reshape(40, 10)
NUMBERS = np.arange(40)
TEXTS = np.array([[b"a", b"bc", b""]] * 40, object)
NEVER = -1


def rows():
    return Dataset.from_tensor_slices(MATRIX)


def numbers():
    return Dataset.range(40)


def pairs():
    return Dataset.from_tensor_slices((MATRIX, NUMBERS))


def named():
    return Dataset.from_tensor_slices({"a": MATRIX, "b": NUMBERS})


def lengths():
    return numbers().map(lambda n: tf.range(n % 5), vectorize=False)


def generated():
    return Dataset.from_generator(lambda: range(40), output_signature=tf.TensorSpec([], tf.int64))


FUNCTIONS = {
    "rows": (rows, Dataset.from_tensor_slices),
    "rows of several parts": (
        pairs,
        lambda row, _: Dataset.from_tensor_slices({"u": row, "v": row}).enumerate(5),
    ),
    "short batches": (named, lambda d: Dataset.from_tensor_slices(d["a"]).batch(3)),
    "full batches": (
        named,
        lambda d: Dataset.from_tensor_slices(d["a"]).batch(3, drop_remainder=True),
    ),
    "one element, repeated": (pairs, lambda row, n: Dataset.from_tensors((row, n)).repeat(3)),
    "beside a constant": (numbers, lambda n: Dataset.from_tensors((n, [1, 2])).repeat(2)),
    "range": (numbers, Dataset.range),
    "range down": (numbers, lambda n: Dataset.range(n, 0, -2, output_type=tf.int32)),
    "the same for all": (numbers, lambda _: Dataset.range(4).skip(1).prefetch(1)),
    "zip": (
        numbers,
        lambda n: Dataset.zip(
            (Dataset.range(7), Dataset.from_tensors(n).repeat(5), Dataset.range(n))
        ),
    ),
    "map and filter": (
        rows,
        lambda row: (
            Dataset.from_tensor_slices(row)
            .map(lambda x: x * 2)
            .filter(lambda x: x % 3 == 0)
            .take(4)
        ),
    ),
    "a map that captures": (
        pairs,
        lambda row, n: Dataset.range(3).map(lambda x: (x * n, row[x] + 1)).batch(2),
    ),
    "a filter that captures": (
        numbers,
        lambda n: Dataset.zip((Dataset.range(n), Dataset.range(9))).filter(lambda x, y: x + n > 9),
    ),
    "shard and concatenate": (
        rows,
        lambda row: (
            Dataset.from_tensor_slices(row)
            .shard(3, 1)
            .concatenate(Dataset.from_tensor_slices(row).take(2))
        ),
    ),
    "rows of all lengths": (lengths, Dataset.from_tensor_slices),
    "text": (lambda: Dataset.from_tensor_slices(TEXTS), Dataset.from_tensor_slices),
    "text, whole": (
        lambda: Dataset.from_tensor_slices(TEXTS[:, 0]),
        lambda text: Dataset.from_tensors(text).repeat(2),
    ),
    "of a generator": (generated, lambda n: Dataset.from_tensors(n).repeat(3)),
    "windows": (
        lambda: numbers().window(5, shift=1, drop_remainder=True),
        lambda window: window.batch(5),
    ),
    "windows that end short": (lambda: numbers().window(5, shift=2), lambda w: w.batch(5)),
    "windows with gaps": (lambda: numbers().window(4, shift=9, stride=2), lambda window: window),
    "windows of two columns": (
        lambda: pairs().window(3, shift=1),
        lambda a, b: Dataset.zip((a.batch(3), b.batch(3))),
    ),
    "windows of a dict": (
        lambda: named().window(3, shift=2, drop_remainder=True),
        lambda d: Dataset.zip({"a": d["a"].batch(2), "b": d["b"].skip(1).batch(2)}),
    ),
    "windows of text": (
        lambda: Dataset.from_tensor_slices(TEXTS[:, 1]).window(3, shift=1, drop_remainder=True),
        lambda window: window.batch(3),
    ),
    "windows of a generator": (
        lambda: generated().window(5, shift=1, drop_remainder=True),
        lambda window: window.batch(5, drop_remainder=True),
    ),
    "numbered windows": (
        lambda: numbers().window(5, shift=2).enumerate(3),
        lambda n, window: window.batch(5).map(lambda part: part + n),
    ),
    "some of the windows beside numbers": (
        lambda: Dataset.zip({"w": pairs().window(4, shift=1).skip(2).take(19), "n": numbers()}),
        lambda d: d["w"][1].batch(4).map(lambda part: part * d["n"]),
    ),
    "beside others": (
        lambda: Dataset.zip(numbers().window(3), generated().window(4)),
        Dataset.concatenate,
    ),
}
WAYS = {
    "flat_map": lambda dataset, function: dataset.flat_map(function),
    "interleave": lambda dataset, function: dataset.interleave(function, cycle_length=3),
    "interleave blocks": lambda dataset, function: dataset.interleave(
        function, cycle_length=4, block_length=3, num_parallel_calls=2
    ),
}


def one_by_one(monkeypatch):
    monkeypatch.setattr(templates, "TRIED_AFTER", NEVER)
    monkeypatch.setattr(templates, "COMPUTED_AFTER", NEVER)


def at_once(monkeypatch):
    monkeypatch.setattr(templates, "TRIED_AFTER", 0)
    monkeypatch.setattr(templates, "COMPUTED_AFTER", 1)


def is_template(dataset):
    return plan_of(dataset).function.kept.template is not None


def assert_same(one, two):
    for left, right in zip(one, two, strict=True):
        parts = zip(tf.nest.flatten(left), tf.nest.flatten(right), strict=True)
        for a, b in ((np.asarray(a), np.asarray(b)) for a, b in parts):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_datasets_read_at_once_have_the_elements_of_those_read_one_by_one(name, way, monkeypatch):
    source, function = FUNCTIONS[name]
    one_by_one(monkeypatch)
    expected = list(WAYS[way](source(), function))
    at_once(monkeypatch)
    dataset = WAYS[way](source(), function)
    assert_same(dataset, expected)
    assert is_template(dataset)
    assert_same(dataset.shuffle(1).take(9), expected[:9])


RESTORED = ["short batches", "rows of all lengths"]
RESTORED += ["windows with gaps", "windows of two columns", "numbered windows"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", RESTORED)
def test_a_position_inside_a_dataset_is_restored(name, way, monkeypatch):
    source, function = FUNCTIONS[name]
    at_once(monkeypatch)
    dataset = WAYS[way](source(), function)
    expected = list(dataset)
    iterator = iter(dataset)
    for done in range(1, 12):
        next(iterator)
        state = through_json(iterator.get_state())
        for tried in (0, NEVER):
            monkeypatch.setattr(templates, "TRIED_AFTER", tried)
            restored = iter(WAYS[way](source(), function))
            restored.set_state(state)
            assert_same([next(restored) for _ in range(6)], expected[done : done + 6])


def test_parts_that_share_memory_cannot_be_written_to(monkeypatch):
    at_once(monkeypatch)
    source = rows().map(lambda row: row + 1)
    for function in (
        lambda row: Dataset.from_tensor_slices((row, row)),
        lambda row: Dataset.zip((Dataset.from_tensors(row), Dataset.from_tensors(row))),
    ):
        dataset = source.flat_map(function)
        for one, two in dataset.take(20):
            assert not (np.asarray(one).flags.writeable and np.asarray(two).flags.writeable)
        assert is_template(dataset)


def calls_of(function):
    """Return how often a function is called for 30 elements, beside the calls that are undone."""
    calls = []

    def counted(x):
        calls.append(x)
        return function(x)

    list(Dataset.range(30).flat_map(counted))
    return len(calls)


@pytest.mark.parametrize(
    "function",
    [
        lambda n: Dataset.range(2),
        lambda n: Dataset.range(3 if n > 4 else 2),
        lambda n: Dataset.from_tensors(n + 1),
    ],
    ids=["changes a list", "branches", "computes"],
)
def test_a_function_that_needs_each_element_is_called_for_each(function):
    assert calls_of(function) == 30


def test_a_function_that_prints_is_called_for_each_element(capsys):
    def loud(n):
        print("called")  # noqa: T201 - what the test is about
        return Dataset.range(2)

    dataset = Dataset.range(30).flat_map(loud)
    capsys.readouterr()
    list(dataset)
    assert capsys.readouterr().out.count("called") == 30
    assert not is_template(dataset)


def test_values_that_change_between_calls_are_not_kept():
    class Counter:
        n = 0

    counter = Counter()

    def counted(_):
        counter.n += 1
        n = counter.n
        return Dataset.range(1).map(lambda x: x + n)

    dataset = Dataset.range(20).flat_map(counted)
    found = [int(x) for x in dataset]
    assert len(set(found)) == 20
    assert not is_template(dataset)


def test_datasets_with_a_random_order_of_their_own_are_opened_one_by_one():
    dataset = Dataset.range(30).flat_map(lambda n: Dataset.range(5).shuffle(5))
    list(dataset)
    assert not is_template(dataset)


def test_an_element_that_fails_keeps_its_place(monkeypatch):
    table = np.arange(10)

    def picked(row):
        return Dataset.from_tensor_slices(row).map(lambda x: tf.gather(table, x))

    numbers = np.arange(40).reshape(10, 4) % 10
    numbers[4, 2] = 99

    def read():
        found, iterator = [], iter(Dataset.from_tensor_slices(numbers).flat_map(picked))
        for _ in range(40):
            try:
                found.append(int(next(iterator)))
            except tf.errors.InvalidArgumentError as error:
                found.append(error.__notes__[0].partition(" element ")[0])
        return found

    one_by_one(monkeypatch)
    expected = read()
    at_once(monkeypatch)
    assert read() == expected


PULLED = {
    "elements": (lambda source: source, lambda n: Dataset.from_tensors(n).repeat(2)),
    "numbered windows": (
        lambda source: source.window(3, shift=1).enumerate(),
        lambda _, window: window.batch(2),
    ),
    "beside windows": (
        lambda source: Dataset.zip(Dataset.range(99).window(2), source),
        lambda window, n: window.map(lambda part: part + n),
    ),
}


@pytest.mark.parametrize("of", PULLED)
@pytest.mark.parametrize("way", WAYS)
def test_a_generator_is_not_pulled_ahead(way, of, monkeypatch):
    prepare, function = PULLED[of]
    pulled = []

    def generate():
        for n in range(50):
            pulled.append(n)
            yield n

    def counts():
        pulled.clear()
        source = Dataset.from_generator(generate, output_signature=tf.TensorSpec([], tf.int64))
        iterator = iter(WAYS[way](prepare(source), function))
        found = []
        for _ in range(40):
            next(iterator)
            found.append(len(pulled))
        return found

    one_by_one(monkeypatch)
    expected = counts()
    at_once(monkeypatch)
    assert counts() == expected


def test_functions_that_round_differently_for_many_elements_are_read_at_once(monkeypatch):
    at_once(monkeypatch)
    for seed in range(8):
        rows = np.random.default_rng(seed).random((3, 10)).astype(np.float32)
        dataset = Dataset.from_tensor_slices(rows).flat_map(
            lambda row: Dataset.from_tensor_slices(row).map(lambda y: tf.sin(y) / row[1])
        )
        found = np.array([float(x) for x in dataset])
        np.testing.assert_allclose(found, (np.sin(rows) / rows[:, 1:2]).ravel(), rtol=1e-5)
        assert is_template(dataset)


def test_long_datasets_are_not_held_in_memory():
    dataset = Dataset.range(10).flat_map(lambda n: Dataset.from_tensors(n).repeat(10**9))
    assert [int(x) for x in dataset.take(5)] == [0] * 5
    counted = Dataset.range(10**12, 10**12 + 9).flat_map(Dataset.range).take(3)
    assert [int(x) for x in counted] == [0, 1, 2]


def test_keys_of_whole_blocks_make_the_same_groups():
    table = np.arange(100) % 3

    def key(x):
        return tf.gather(table, x)

    def read(numbers, **how):
        dataset = Dataset.from_tensor_slices(numbers).map(lambda x: x, **how)
        iterator = iter(dataset.group_by_window(key, lambda k, group: group.batch(4), 4))
        found = []
        while (batch := next_or_error(iterator)) is not None:
            found.append(batch)
        return found

    def next_or_error(iterator):
        try:
            return np.asarray(next(iterator)).tolist()
        except StopIteration:
            return None
        except tf.errors.InvalidArgumentError as error:
            return error.__notes__[0].partition(" with ")[0]

    numbers = np.arange(100)
    numbers[41] = 1000
    found = read(numbers)
    assert found == read(numbers, vectorize=False)
    assert "while finding the key of element 41" in found
    assert sorted(x for batch in found if isinstance(batch, list) for x in batch) == [
        x for x in range(100) if x != 41
    ]


def test_a_function_that_cannot_be_called_with_placeholders_is_called_once_for_each_element():
    seen, count = [], [0]

    def opened(n):
        count[0] += 1
        seen.append("begun")
        seen.append(int(n))  # a placeholder has no value
        return Dataset.range(2)

    assert len(list(Dataset.range(6).flat_map(opened))) == 12
    assert seen == [part for n in range(6) for part in ("begun", n)]
    assert count == [6]
