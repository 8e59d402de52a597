"""A pass that ended holds nothing that the next one needs, though its iterator is kept and errors were raised."""

import gc

import pytest

import evenfeed as tf

Dataset = tf.data.Dataset


def refused(number, _):
    if int(number) % 4 == 3:
        raise ValueError("a function fails")
    return True


def test_a_cache_that_was_not_read_to_its_end_is_written_by_the_next_pass(tmp_path):
    longer = Dataset.zip((Dataset.range(12), Dataset.counter())).take_while(refused)
    dataset = Dataset.zip((Dataset.range(10), longer.cache(str(tmp_path / "cache"))))
    kept, passes = [], []
    for _ in range(3):
        iterator = iter(dataset.ignore_errors())
        kept.append(iterator)
        passes.append([(int(a), int(b)) for a, (b, _) in iterator])
    assert passes[0] == [(n, n) for n in (0, 1, 2, 4, 5, 6, 8, 9)]
    assert passes[1:] == [passes[0]] * 2
    assert not list(tmp_path.glob("*.lock"))


def test_a_generator_is_closed_when_another_dataset_ends_the_pass():
    closed = []

    def generator():
        try:
            yield from range(100)
        finally:
            closed.append(True)

    numbers = Dataset.from_generator(generator, output_signature=tf.TensorSpec([], tf.int64))
    iterator = iter(Dataset.zip((Dataset.range(3), numbers)))
    assert len(list(iterator)) == 3
    assert closed == [True]


@pytest.fixture
def uncollected():
    """Collect no garbage, as between two collections."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
def test_a_pass_that_was_abandoned_after_an_error_gives_up_its_cache(tmp_path):
    def picky(x):
        if int(x) == 1:
            raise ValueError("a function fails")
        return x

    dataset = Dataset.range(5).map(picky).cache(str(tmp_path / "cache"))

    def begin():
        iterator = iter(dataset)
        next(iterator)
        with pytest.raises(ValueError, match="a function fails"):
            next(iterator)
        return int(next(iterator))

    assert begin() == 2
    assert begin() == 2
    assert [int(x) for x in dataset.ignore_errors()] == [0, 2, 3, 4]
