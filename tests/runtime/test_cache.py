import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.resuming import assert_resumes, rows_of
from tests.unknown import Watched, slices

import evenfeed as tf
from evenfeed.core import dtypes
from evenfeed.core.errors import (
    AlreadyExistsError,
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from evenfeed.core.specs import UNKNOWN, NoneTensorSpec
from evenfeed.plan.buffering import Cache
from evenfeed.plan.sources import FromGenerator, Range
from evenfeed.plan.windows import Held
from evenfeed.runtime.caches.cache import KeepElements
from evenfeed.runtime.caches.cache_files import store_of
from evenfeed.runtime.caches.kept_passes import kept_here
from evenfeed.runtime.operators.sources import PullElements

INT = tf.TensorSpec([], tf.int32)
WATCHED = Held((tf.TensorSpec([], tf.int64), NoneTensorSpec()), ([], None), 0)


class Kept:
    """A cached source that counts how often it was started."""

    def __init__(self, make, filename="", child=None, size=UNKNOWN, is_promised=False):
        self.make = make
        self.size = size
        self.is_promised = is_promised
        self.starts = 0
        self.completed = []
        self.node = Cache(child or WATCHED, str(filename))

    def operator(self, number=0, epoch=0, **known):
        """Return the operator of a numbered run, which may know a stored pass."""
        kept = known.get("kept", kept_here(self.node))
        return KeepElements(OneRound(self, [number, epoch], kept), store_of(self.node))

    def rows(self, most=2):
        return [
            row if isinstance(row, type) else row[0][2] for row in rows_of(self.operator(), most)
        ]


class OneRound:
    """The input of a cache: its passes differ by run and epoch."""

    def __init__(self, source, origin, kept):
        self.size = source.size
        self.is_promised = source.is_promised
        self._source = source
        self._origin = origin
        self._kept = kept

    def kept(self):
        return self._kept

    def origin(self):
        return self._origin

    def start(self, origin):
        self._source.starts += 1
        return self._source.make(*origin)

    def complete(self, origin):
        self._source.completed.append(origin)


@pytest.fixture(params=["memory", "files"])
def place(request, tmp_path):
    return "" if request.param == "memory" else tmp_path / "kept"


def test_a_whole_pass_is_kept(place):
    kept = Kept(lambda *_: Watched(1, 2, 3), place)
    assert [kept.rows(), kept.rows(1), kept.rows(5)] == [[1, 2, 3]] * 3
    assert kept.starts == 1


def test_a_pass_that_was_not_read_to_its_end_is_not_kept(place):
    kept = Kept(lambda *_: Watched(1, 2, 3), place)
    operator = kept.operator()
    operator.read(1)
    operator.close()
    assert kept.rows() == [1, 2, 3]
    assert kept.starts == 2


@pytest.mark.parametrize("most", [1, 3])
def test_the_last_element_completes_a_pass_of_known_size(place, most):
    kept = Kept(lambda *_: Watched(1, 2, 3), place, size=3)
    operator = kept.operator()
    read = 0
    while read < 3:
        read += operator.read(most).length
    assert kept.rows() == [1, 2, 3]  # the pass is complete before a read returns None
    assert kept.starts == 1
    assert operator.read(1) is None


def test_a_pass_with_an_element_that_fails_is_not_complete_before_its_end(place):
    kept = Kept(lambda *_: Watched(1, ValueError(), 3), place, size=3)
    assert [kept.rows(), kept.rows()] == [[1, ValueError, 3], [1, 3]]


@pytest.mark.parametrize("read", [2, 3])  # with and without the error
def test_a_pass_that_fails_behind_its_promised_size_fails_again_when_it_is_resumed(place, read):
    kept = Kept(lambda *_: Watched(1, 2, ValueError("too many")), place, size=2, is_promised=True)
    reader = kept.operator()
    start = reader.state()
    for _ in range(2):
        assert reader.read(1).length == 1
    if read == 3:
        with pytest.raises(ValueError, match="too many"):
            reader.read(1)
    again = kept.operator(kept=None)
    again.restore(start)
    assert [row if isinstance(row, type) else row[0][2] for row in rows_of(again, 1)] == [
        1,
        2,
        ValueError,
    ]
    assert kept.rows() == [1, 2]


def test_a_pass_that_kept_its_promise_is_read_from_memory_when_it_is_resumed():
    kept = Kept(lambda *_: Watched(1, 2), size=2, is_promised=True)
    reader = kept.operator()
    start = reader.state()
    assert len(rows_of(reader, 1)) == 2
    again = kept.operator(kept=None)
    again.restore(start)
    assert [row[0][2] for row in rows_of(again, 1)] == [1, 2]
    assert kept.starts == 1


def test_an_iterator_that_goes_back_meets_the_error_of_a_wrong_promise_again():
    dataset = tf.data.Dataset.range(5).apply(tf.data.experimental.assert_cardinality(3)).cache()
    iterator = iter(dataset)
    start = iterator.get_state()
    assert [int(next(iterator)) for _ in range(3)] == [0, 1, 2]
    iterator.set_state(start)
    assert [int(next(iterator)) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(FailedPreconditionError, match="3 elements, but it has more"):
        next(iterator)


def test_a_random_order_is_kept_from_its_last_element_on():
    dataset = tf.data.Dataset.range(10).shuffle(10).cache()
    iterator = iter(dataset)
    first = [int(next(iterator)) for _ in range(10)]
    assert [int(x) for x in dataset] == first


def test_elements_that_fail_are_not_kept(place):
    kept = Kept(lambda *_: Watched(1, ValueError(), 3), place)
    assert [kept.rows(), kept.rows()] == [[1, ValueError, 3], [1, 3]]


def test_an_empty_pass_is_kept_too(place):
    kept = Kept(lambda *_: Watched(), place)
    assert [kept.rows(), kept.rows()] == [[], []]
    assert kept.starts == 1


def test_nobody_can_write_into_what_is_kept(place):
    kept = Kept(lambda *_: slices(np.arange(3)), place, Range(0, 3))
    for _ in range(2):
        block = kept.operator()
        column = block.read(3).columns[0]
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 7
        while block.read(3) is not None:
            pass


@given(values=st.lists(st.one_of(st.integers(0, 9), st.just("x")), max_size=7), full=st.booleans())
def test_a_position_is_found_again_with_and_without_what_was_kept(values, full):
    def kept():
        node = FromGenerator(lambda: iter(values), INT)
        return Kept(lambda *_: PullElements(node))

    assert_resumes(lambda: kept().operator(), 1, 3)
    warm = kept()
    if full:
        warm.rows()
        before = warm.starts
        assert_resumes(warm.operator, 1, 3)
        assert warm.starts == before


ORDERS = {0: [1, 2, 3], 1: [3, 2, 1], 2: [2, 1, 3]}


def shuffling(filename=""):
    """Return a source with a different order in each run and epoch."""
    return Kept(lambda number, epoch: Watched(*ORDERS[(number + epoch) % 3]), filename)


def all_of(operator):
    return [row[0][2] for row in rows_of(operator, 1)]


def part_of(operator, count=1):
    return [operator.read(1).columns[0][0] for _ in range(count)]


def test_a_position_is_one_of_its_own_pass():
    first, second = shuffling(), shuffling()
    reader = first.operator(0)
    assert part_of(reader) == [1]
    assert all_of(second.operator(1)) == [3, 2, 1]
    there = second.operator(0, kept=None)
    there.restore(json.loads(json.dumps(reader.state())))
    assert all_of(there) == [2, 3]
    assert all_of(second.operator(2)) == [3, 2, 1]


def test_what_is_read_is_decided_before_anything_is():
    kept = shuffling()
    early = kept.operator(0)
    assert all_of(kept.operator(1)) == [3, 2, 1]
    assert all_of(early) == [1, 2, 3]
    assert all_of(kept.operator(2)) == [3, 2, 1]


def test_rounds_behind_one_that_was_not_complete_are_read_anew():
    kept = shuffling()
    assert [part_of(kept.operator(0, epoch)) for epoch in range(3)] == [[1], [3], [2]]
    assert kept.completed == []


def test_a_run_is_told_that_its_pass_is_complete_wherever_it_was_read_from(place):
    kept = shuffling(place)
    assert all_of(kept.operator(1)) == [3, 2, 1]
    assert all_of(kept.operator(1, kept=None)) == [3, 2, 1]
    assert all_of(kept.operator(2, kept=None)) == [2, 1, 3]
    assert kept.completed == [[1, 0], [1, 0], [2, 0]]
    assert kept.starts == 2


def test_a_pass_that_is_kept_elsewhere_is_read_again_and_kept_here(place):
    kept = shuffling(place)
    assert all_of(kept.operator(0, kept=[2, 0])) == [2, 1, 3]
    assert all_of(kept.operator(1)) == [2, 1, 3]
    assert kept.starts == 1


def test_other_iterators_are_told_at_once_which_pass_is_kept():
    kept = shuffling()
    assert part_of(kept.operator(0, kept=[2, 0])) == [2]
    assert all_of(kept.operator(1)) == [2, 1, 3]


COLUMNS = [
    np.arange(6).reshape(3, 2),
    np.linspace(0, 1, 3, dtype=np.float32),
    np.array([b"a", b"", b"long text"], object),
    np.array([[b"a", b"b"]] * 3, object),
    np.array([True, False, True]),
    np.arange(3).astype(dtypes.bfloat16),
    np.zeros((3, 0)),
    None,
    [np.arange(2), np.arange(0), np.arange(3)],
    [np.array([b"x"], object), np.array([], object), np.array([b"y", b"z"], object)],
]

FIRSTS = [None if c is None else c[0] if isinstance(c, list) else c for c in COLUMNS]


def test_files_hold_columns_of_every_kind(tmp_path):
    kinds = [NoneTensorSpec() if c is None else tf.TensorSpec(None, c.dtype) for c in FIRSTS]
    kept = Kept(
        lambda *_: slices(*COLUMNS), tmp_path / "kept", Held(tuple(kinds), tuple(COLUMNS), 3)
    )
    one, two = rows_of(kept.operator(), 2), rows_of(kept.operator(), 2)
    assert one == two
    assert kept.starts == 1
    assert len(one) == 3


def test_many_blocks_become_few(tmp_path, monkeypatch):
    monkeypatch.setattr("evenfeed.runtime.caches.cache._CHUNK_BYTES", 64)
    monkeypatch.setattr("evenfeed.formats.pages.page_files._PAGE_BYTES", 64)
    for filename in ("", tmp_path / "kept"):
        kept = Kept(lambda *_: Watched(*range(40)), filename)
        assert kept.rows(1) == kept.rows(7) == kept.rows(60) == list(range(40))


def test_two_datasets_share_one_file(tmp_path):
    assert Kept(lambda *_: Watched(1, 2), tmp_path / "kept").rows() == [1, 2]
    other = Kept(lambda *_: Watched(8, 9), tmp_path / "kept")
    assert other.rows() == [1, 2]
    assert other.starts == 0


def test_only_one_iterator_writes_a_file(tmp_path):
    kept = Kept(lambda *_: Watched(1, 2), tmp_path / "kept")
    writing = kept.operator()
    writing.read(1)
    with pytest.raises(AlreadyExistsError, match="Another iterator is writing"):
        kept.operator().read(1)
    del writing
    assert kept.rows() == [1, 2]
    assert sorted(os.listdir(tmp_path)) == ["kept.cache"]


def test_the_lock_of_a_process_that_is_gone_is_no_lock(tmp_path):
    (tmp_path / "kept.cache.lock").write_text("999999999")
    assert Kept(lambda *_: Watched(1, 2), tmp_path / "kept").rows() == [1, 2]


def test_a_missing_folder_is_an_error(tmp_path):
    kept = Kept(lambda *_: Watched(1), tmp_path / "none" / "kept")
    with pytest.raises(NotFoundError, match="There is no directory"):
        kept.operator().read(1)


def test_files_of_other_elements_are_refused(tmp_path):
    Kept(lambda *_: Watched(1), tmp_path / "kept").rows()
    other = Kept(lambda *_: Watched(1), tmp_path / "kept", FromGenerator(list, INT))
    with pytest.raises(InvalidArgumentError, match="holds other elements"):
        other.operator().read(1)


@pytest.mark.parametrize("end", [0, 1, 40, -1])
def test_a_file_that_was_cut_is_an_error(tmp_path, end):
    kept = Kept(lambda *_: Watched(1), tmp_path / "kept")
    kept.rows()
    file = tmp_path / "kept.cache"
    file.write_bytes(file.read_bytes()[:end])
    with pytest.raises(DataLossError, match=r"kept\.cache is damaged"):
        kept.operator().read(1)


def test_elements_that_no_file_holds_are_refused(tmp_path):
    cached = tf.data.Dataset.range(4).window(2).cache(tmp_path / "kept")
    with pytest.raises(InvalidArgumentError, match="Files hold tensors"):
        next(iter(cached))
    assert os.listdir(tmp_path) == []
