import gc
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.resuming import assert_resumes, rows_of

from evenfeed.core.block import Block
from evenfeed.core.errors import DataLossError
from evenfeed.core.specs import UNKNOWN, TensorSpec
from evenfeed.dataset import Dataset, plan_of
from evenfeed.dataset.file_readers import TextLineDataset
from evenfeed.formats.reader import DataFile, Reader
from evenfeed.plan.files import Files, reads_files
from evenfeed.runtime.build import build
from evenfeed.runtime.operators.files import InTurn, ReadFiles
from evenfeed.runtime.positions.rows import Walk
from evenfeed.runtime.run import Run

INT = TensorSpec([], "int64")


@dataclass(frozen=True)
class Numbers(DataFile):
    """A file of numbers, some of which cannot be read."""

    first: int
    count: int
    told: bool = True
    bad: tuple[int, ...] = ()

    @property
    def rows(self):
        return self.count if self.told else None

    @property
    def extent(self):
        return 0, self.count

    @property
    def fingerprint(self):
        return f"{self.first} {self.count}"

    def open(self):
        return NumbersReader(self)


class NumbersReader(Reader):
    opened = 0

    def __init__(self, file):
        self.path, self.file = file.path, file
        NumbersReader.opened += 1

    def read(self, start, count):
        stop = min(start + count, start + 4, self.file.count)
        if start >= stop:
            return None
        if any(start <= row < stop for row in self.file.bad):
            raise DataLossError("it is damaged")
        return Block((self.file.first + np.arange(start, stop),), stop - start)

    def close(self):
        NumbersReader.opened -= 1


def files(*counts, **how):
    return tuple(Numbers("n", 100 * place, count, **how) for place, count in enumerate(counts))


def expected(*counts):
    return [100 * place + row for place, count in enumerate(counts) for row in range(count)]


def operator(node):
    return build(node, Run(node))


def numbers_of(rows):
    return [row if isinstance(row, type) else row[0][2] for row in rows]


@pytest.mark.parametrize("counts", [(), (0,), (5,), (3, 0, 7), (0, 0, 1)])
def test_files_are_read_one_after_the_other_and_positions_are_found_again(counts):
    def known():
        return operator(Files(files(*counts), INT))

    def unknown():
        return operator(Files(files(*counts, told=False), INT))

    assert type(known()) is Walk
    assert numbers_of(assert_resumes(known)) == expected(*counts)
    if counts:
        assert type(unknown()) is ReadFiles
    assert numbers_of(assert_resumes(unknown)) == expected(*counts)


def test_the_size_is_known_where_all_files_tell():
    assert Files(files(3, 4), INT).size == 7
    assert Files((*files(3), *files(4, told=False)), INT).size == UNKNOWN
    with pytest.raises(ValueError, match="interleaved"):
        Files(files(4, told=False), INT, in_turn=True)


def test_a_file_that_is_read_to_its_end_is_closed():
    NumbersReader.opened = 0
    reading = ReadFiles(files(2, 2, told=False))
    reading.read(1)
    assert NumbersReader.opened == 1
    reading.read(5)
    reading.read(5)
    assert NumbersReader.opened == 1
    reading.close()
    assert NumbersReader.opened == 0


def test_a_row_that_cannot_be_read_is_passed():
    rows = rows_of(operator(Files(files(3, 6, bad=(4,)), INT)), 5)
    assert numbers_of(rows) == [0, 1, 2, 100, 101, 102, 103, DataLossError, 105]


def test_shuffled_rows_that_cannot_be_read_are_passed():
    dataset = Dataset(Files(files(9, bad=(4,)), INT)).shuffle(9).ignore_errors()
    assert sorted(int(x) for x in dataset) == [0, 1, 2, 3, 5, 6, 7, 8]


def test_a_file_of_unknown_rows_that_fails_is_left():
    rows = rows_of(operator(Files(files(9, 2, told=False, bad=(5,)), INT)), 5)
    assert numbers_of(rows) == [0, 1, 2, 3, DataLossError, 100, 101]


@given(st.lists(st.integers(0, 6), max_size=5), st.data())
def test_rows_in_turn_are_those_of_a_round_robin(sizes, data):
    queues = [[sum(sizes[:place]) + row for row in range(size)] for place, size in enumerate(sizes)]
    plain = []
    while any(queues):
        plain += [queue.pop(0) for queue in queues if queue]
    order = InTurn(sizes)
    assert order.size == len(plain)
    assert order.at(np.arange(len(plain))).tolist() == plain
    if plain:
        start = data.draw(st.integers(0, len(plain) - 1))
        count = data.draw(st.integers(1, len(plain) - start))
        assert order.stretch(start, count).tolist() == plain[start : start + count]


def test_the_fingerprint_is_that_of_the_rows():
    def state(node):
        return iter(Dataset(node)).get_state()["plan"]

    moved = tuple(Numbers("elsewhere", 100 * place, 3) for place in range(2))
    assert state(Files(files(3, 3), INT)) == state(Files(moved, INT))
    assert state(Files(files(3, 3), INT)) != state(Files(files(3, 4), INT))
    assert state(Files(files(3, 3), INT)) != state(Files(files(3, 3), INT, in_turn=True))


def test_readers_have_positions_though_they_tell_no_size():
    node = Files(files(3, 4), INT, as_reader=True)
    assert node.size == UNKNOWN
    assert type(operator(node)) is Walk
    dataset = Dataset(node)
    assert [int(x) for x in dataset.skip(2).shard(2, 1).repeat(2)] == [100, 102] * 2
    assert [int(x) for x in dataset.take(4)] == [0, 1, 2, 100]
    assert [int(x) for x, _ in Dataset.zip(dataset, Dataset.range(2))] == [0, 1]
    assert len(list(dataset.shuffle(3).concatenate(dataset))) == 14
    assert dataset.skip(2).cardinality() == UNKNOWN
    assert [int(x) for x in dataset.take(0).repeat()] == []


def test_readers_are_found_in_plans_and_in_what_functions_make():
    reader = Dataset(Files(files(3), INT, as_reader=True))
    inner = Dataset.range(2).flat_map(lambda _: reader.batch(2))
    saved = Dataset(Files(files(3), INT))
    for dataset in (
        reader,
        Dataset.zip(saved, reader),
        inner,
        Dataset.range(2).interleave(lambda _: inner),
    ):
        assert reads_files(plan_of(dataset))
    for dataset in (saved, Dataset.range(3), Dataset.range(2).flat_map(Dataset.range)):
        assert not reads_files(plan_of(dataset))


def test_an_iterator_that_is_forgotten_in_a_circle_closes_its_file(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"line\n" * 1000)
    circle = [iter(TextLineDataset(str(path)))]
    next(circle[0])
    circle.append(circle)  # as a stored exception holds a reference to what raised it
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ResourceWarning)
        del circle
        gc.collect()
    assert not [warning for warning in said if "lines" in str(warning.message)]
