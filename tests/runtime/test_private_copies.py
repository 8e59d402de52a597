"""Elements keep the values that a generator or function returned, though it writes to its buffer again."""

from collections import namedtuple

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.runtime.functions.private_copies import keeper, unshared, yielded

Dataset = tf.data.Dataset
Spec = tf.TensorSpec
Pair = namedtuple("Pair", "number image")


def frames():
    buffer = np.zeros(2, np.int64)
    for number in range(6):
        buffer[:] = number
        yield buffer


def scalars():
    buffer = np.zeros((), np.int64)
    for number in range(6):
        buffer[()] = number
        yield buffer


def lists():
    buffer = [[0], [0]]
    for number in range(6):
        buffer[0][0] = buffer[1][0] = number
        yield buffer


def dicts():
    element = {}
    for number in range(6):
        element["a"] = number
        yield element


def pairs():
    for number, frame in enumerate(frames()):
        yield Pair(number, frame[:1])


GENERATORS = {
    "frames": (frames, Spec([2], tf.int64)),
    "views": (lambda: (frame[1:] for frame in frames()), Spec([1], tf.int64)),
    "scalars": (scalars, Spec([], tf.int64)),
    "lists": (lists, Spec([2, 1], tf.int64)),
    "ragged": (lists, Spec([None, None], tf.int64)),
    "dicts": (dicts, {"a": Spec([], tf.int64)}),
    "pairs": (pairs, Pair(Spec([], tf.int64), Spec([1], tf.int64))),
    "in tuples": (
        lambda: ((1, frame) for frame in frames()),
        (Spec([], tf.int64), Spec([2], tf.int64)),
    ),
}
READ = {
    "batch": lambda data: data.batch(3).unbatch(),
    "shuffle": lambda data: data.shuffle(1).batch(6).unbatch(),
    "padded": lambda data: data.padded_batch(3).unbatch(),
    "mapped": lambda data: data.map(lambda *x: x[0] if len(x) == 1 else x).batch(6).unbatch(),
    "prefetch": lambda data: data.prefetch(3),
}


def numbers(dataset):
    """Return the last number in each element."""
    return [int(np.ravel(tf.nest.flatten(element)[-1])[-1]) for element in dataset]


@pytest.mark.parametrize("read", READ.values(), ids=READ)
@pytest.mark.parametrize(("generator", "signature"), GENERATORS.values(), ids=GENERATORS)
def test_a_generator_may_use_its_buffer_again(generator, signature, read):
    data = Dataset.from_generator(generator, output_signature=signature)
    assert numbers(read(data)) == list(range(6))


def writing(buffer, returned):
    def function(x):
        buffer[:] = int(x)
        return returned(buffer)

    return function


def view_kept_by():
    """Return a function that keeps the only view of its buffer, and writes to it."""
    views = []

    def returned(buffer):
        if not views:
            views.append(buffer.copy().reshape(1, 2)[0])
        views[0][:] = buffer
        return views[0]

    return returned


RETURNED = {
    "itself": lambda buffer: buffer,
    "a view": lambda buffer: buffer[1:],
    "a view that is kept": view_kept_by(),
    "in a dict": lambda buffer: {"a": 1, "b": buffer},
    "a list": list,
}


@pytest.mark.parametrize("returned", RETURNED.values(), ids=RETURNED)
def test_a_function_may_use_its_buffer_again(returned):
    function = writing(np.zeros(2, np.int64), returned)
    assert numbers(Dataset.range(6).map(function).batch(3).unbatch()) == list(range(6))


@pytest.mark.parametrize("returned", [RETURNED["itself"], RETURNED["a view"]])
def test_a_function_whose_results_have_any_length_may_use_its_buffer_again(returned):
    function, spec = writing(np.zeros(2, np.int64), returned), Spec([None], tf.int64)
    data = Dataset.range(6).map(function, output_signature=spec)
    assert numbers(data.batch(3).unbatch()) == list(range(6))


@pytest.mark.parametrize("wrapped", [tf.numpy_function, tf.py_function])
def test_a_function_that_is_called_from_tensors_may_use_its_buffer_again(wrapped):
    function = writing(np.zeros(2, np.int64), lambda buffer: buffer)
    data = Dataset.range(6).map(lambda x: wrapped(function, [x], tf.int64))
    assert numbers(data.map(lambda x: x + 0).batch(5).unbatch()) == list(range(6))


def test_what_is_saved_is_what_was_yielded(tmp_path):
    data = Dataset.from_generator(frames, output_signature=Spec([2], tf.int64))
    data.save(str(tmp_path / "saved"))
    assert numbers(Dataset.load(str(tmp_path / "saved"))) == list(range(6))


def test_arrays_that_nobody_else_holds_are_not_copied():
    fresh = [np.zeros(3), np.zeros(3)[1:]]
    assert [unshared(result) is result for result in fresh] == [True, True]
    held = np.zeros(3)
    shared = [held, held[1:]]
    assert [unshared(result) is result for result in shared] == [False, False]


FRESH = {
    "an array": lambda: np.zeros(3),
    "a list": lambda: [1, 2.5, "text"],
    "in a tuple": lambda: (np.zeros(3), 1),
    "in a dict": lambda: {"a": np.zeros(3), "b": b"text"},
    "nested": lambda: ({"a": np.zeros(3)}, [np.zeros(2), (np.zeros(1), 1)]),
}


@pytest.mark.parametrize("make", FRESH.values(), ids=FRESH)
def test_elements_that_a_generator_does_not_keep_are_not_copied(make):
    made = []

    def element():
        new = make()
        made.append(id(new))
        return new

    def elements():
        for _ in range(3):
            yield element()

    passed = list(map(yielded, elements()))
    assert [id(one) for one in passed] == made


KEPT = {
    "an array": lambda: np.zeros(1),
    "a view": lambda: np.zeros(2)[:1],
    "a list": lambda: [0.0],
    "a tuple": lambda: (np.zeros(1), 1),
    "a dict": lambda: {"a": np.zeros(1)},
    "a nested list": lambda: [[0.0]],
}


def write(element):
    """Add 1 to the number in an element, in place."""
    if isinstance(element, np.ndarray):
        element += 1
    elif isinstance(element, dict):
        write(element["a"])
    elif isinstance(element[0], float):
        element[0] += 1
    else:
        write(element[0])


@pytest.mark.parametrize("where", ["itself", "in a tuple", "in a list", "in a dict"])
@pytest.mark.parametrize("make", KEPT.values(), ids=KEPT)
def test_elements_that_a_generator_keeps_are_copied(make, where):
    def elements():
        kept = [make()]
        for _ in range(3):
            if where == "itself":
                yield kept[0]
            elif where == "in a dict":
                yield {"a": kept[0]}
            else:
                yield (kept[0], 1) if where == "in a tuple" else [kept[0], 1]
            write(kept[0])

    found = list(map(yielded, elements()))
    assert [float(np.ravel(tf.nest.flatten(element)[0])[0]) for element in found] == [0, 1, 2]


def test_arrays_without_memory_of_their_own_are_copied():
    memory = np.zeros(3)
    (copied,) = map(yielded, iter([memory[:2]]))
    assert not np.may_share_memory(copied, memory)


def test_generators_of_scalars_need_no_copies():
    scalar = Spec([], tf.int64)
    assert keeper(scalar) is None
    assert keeper((scalar, (scalar, scalar))) is None
    assert keeper({"a": scalar}) is not None
    assert keeper((scalar, Spec([2], tf.int64))) is not None


def test_views_of_bytes_are_not_copied():
    made = [np.frombuffer(b"abc", np.uint8)]
    address = made[0].ctypes.data
    assert [unshared(array) for array in made][0].ctypes.data == address  # noqa: RUF015 - as it is called
    buffer = bytearray(b"abc")
    (kept,) = [unshared(array) for array in [np.frombuffer(buffer, np.uint8)]]
    buffer[0] = 0
    assert kept.tobytes() == b"abc"
