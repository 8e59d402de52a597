import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.formats.columns import blocks, plain_rows
from tests.saying import error_saying

from evenfeed.core import dtypes
from evenfeed.core.block import Block, concatenated
from evenfeed.core.errors import DataLossError, InvalidArgumentError, NotFoundError
from evenfeed.core.specs import NoneTensorSpec, TensorSpec
from evenfeed.formats.pages import page_files, page_reader
from evenfeed.formats.pages.page_files import PageWriter
from evenfeed.formats.pages.page_reader import PageFile, PageReader
from evenfeed.plan.windows import DatasetSpec

INT = TensorSpec([], dtypes.int64)


@pytest.fixture
def small_pages(monkeypatch):
    monkeypatch.setattr(page_files, "_PAGE_BYTES", 64)


def write(path, specs, written_blocks, compression="", about=None):
    path.unlink(missing_ok=True)
    writer = PageWriter(path, specs, compression)
    for block in written_blocks:
        writer.add(block)
    return PageFile(str(path), writer.finish(about))


def numbers(*values, width=None):
    column = np.array(values) if width is None else np.repeat(np.array(values)[:, None], width, 1)
    return Block((column,), len(values))


@pytest.mark.parametrize("compression", ["", "GZIP"])
@settings(max_examples=60)
@given(parts=blocks(), cuts=st.lists(st.integers(1, 4), max_size=9), data=st.data())
def test_rows_come_back_in_any_order(tmp_path_factory, compression, parts, cuts, data):
    specs, block = parts
    path = tmp_path_factory.mktemp("pages") / "file"
    pieces, at = [], 0
    for cut in [*cuts, block.length]:
        if at < block.length:
            pieces.append(block.cut(at, at + cut))
            at += cut
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_files, "_PAGE_BYTES", data.draw(st.sampled_from([1, 16, 64, 1 << 17])))
        file = write(path, specs, pieces, compression)
    assert file.rows == block.length
    assert file.extent == (0, path.stat().st_size)
    everything = plain_rows(block)
    assert plain_rows(file.open().whole(0, block.length)) == everything
    start = data.draw(st.integers(0, block.length))
    some = PageReader(path).read(start, 3)
    assert (some is None) == (start == block.length)
    if some is not None:
        assert plain_rows(some) == everything[start : start + some.length]
    rows = data.draw(st.lists(st.integers(0, block.length - 1), min_size=1, max_size=12))
    found = PageReader(path).fetch(np.array(rows))
    assert plain_rows(found) == [everything[row] for row in rows]


@pytest.mark.parametrize("width", [1, 3, 5, 40])
@pytest.mark.parametrize("rows", [1, 7, 8, 9, 50])
def test_rows_of_every_length_are_gathered(tmp_path, monkeypatch, width, rows):
    monkeypatch.setattr(page_files, "_PAGE_BYTES", 200)
    specs = [TensorSpec([width], dtypes.int64), NoneTensorSpec(), TensorSpec([], dtypes.int8)]
    wide = np.arange(rows * width).reshape(rows, width)
    block = Block((wide, None, np.arange(rows, dtype=np.int8)), rows)
    reader = write(tmp_path / "file", specs, [block]).open()
    order = np.random.default_rng(1).permutation(rows)
    found = reader.fetch(order)
    np.testing.assert_array_equal(found.columns[0], wide[order], strict=True)
    np.testing.assert_array_equal(found.columns[2], order.astype(np.int8), strict=True)
    assert found.columns[1] is None


def test_an_empty_file_has_no_rows(tmp_path):
    file = write(tmp_path / "file", [INT], [])
    assert file.rows == 0
    assert file.open().read(0, 5) is None


def test_what_is_said_of_a_file_comes_back(tmp_path):
    assert write(tmp_path / "file", [INT], [], about={"a": [1]}).open().about == {"a": [1]}


def test_mapped_rows_cannot_be_written_to(tmp_path, monkeypatch):
    # Other tests of this process may have mapped many files.
    monkeypatch.setattr(page_reader, "many_are_mapped", lambda: False)
    column = write(tmp_path / "file", [INT], [numbers(1, 2, 3)]).open().read(0, 2).columns[0]
    with pytest.raises(ValueError, match="read-only"):
        column[0] = 7


def test_the_same_rows_have_one_fingerprint_wherever_they_are(tmp_path):
    one = write(tmp_path / "one", [INT], [numbers(1, 2), numbers(3)])
    two = write(tmp_path / "two", [INT], [numbers(1), numbers(2, 3)])
    three = write(tmp_path / "three", [INT], [numbers(1, 2, 4)])
    assert one.fingerprint == two.fingerprint != three.fingerprint


def test_a_file_is_sent_without_its_reader(tmp_path):
    file = write(tmp_path / "file", [INT], [numbers(*range(1000))])
    assert file.open() is file.open()
    assert len(pickle.dumps(file)) < 400
    copy = pickle.loads(pickle.dumps(file))
    assert copy == file
    assert copy.open() is not file.open()


def test_a_file_that_is_gone_says_so(tmp_path):
    file = write(tmp_path / "file", [INT], [numbers(1)])
    (tmp_path / "file").unlink()
    with error_saying(
        NotFoundError, f"{tmp_path / 'file'} does not exist.", fix="save the dataset again."
    ):
        file.open()


def test_another_file_of_that_name_is_refused(tmp_path):
    file = write(tmp_path / "file", [INT], [numbers(1)])
    write(tmp_path / "file", [INT], [numbers(2)])
    with pytest.raises(DataLossError, match="it is not the file that was saved"):
        file.open()


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_a_bit_that_flips_anywhere_is_found(tmp_path, small_pages, compression):
    block = Block((np.arange(20), np.array([b"text"] * 20, object)), 20)
    specs = [INT, TensorSpec([], dtypes.string)]
    file = write(tmp_path / "file", specs, [block], compression)
    path, whole = tmp_path / "file", (tmp_path / "file").read_bytes()
    everything = plain_rows(block)
    for place in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            found = plain_rows(PageFile(file.path, file.written).open().whole(0, 20))
        except DataLossError as error:
            assert str(path) in str(error)  # noqa: PT017 - it need not be raised
        else:
            assert found == everything, place  # the bytes between pages are never read
    path.write_bytes(whole)


def test_every_bit_of_the_end_is_looked_at(tmp_path):
    path = tmp_path / "file"
    file = write(path, [INT], [numbers(1, 2)])
    whole = path.read_bytes()
    for bit in range(8 * (len(whole) - 60), 8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        with pytest.raises(DataLossError, match="is damaged"):
            PageFile(file.path, file.written).open()
    path.write_bytes(whole)


@given(st.binary(max_size=200), st.booleans())
def test_no_bytes_crash_the_reader(tmp_path_factory, content, framed):
    path = tmp_path_factory.mktemp("junk") / "file"
    path.write_bytes(b"evenfeed pages 1" + content + b"evenfeed end" if framed else content)
    with pytest.raises(DataLossError, match="is damaged"):
        PageReader(path)


@pytest.mark.parametrize("end", [0, 15, 40, -1, -20, -60])
def test_a_file_that_was_cut_is_refused(tmp_path, end):
    write(tmp_path / "file", [INT], [numbers(*range(100))])
    path = tmp_path / "file"
    path.write_bytes(path.read_bytes()[:end])
    with pytest.raises(DataLossError, match="is damaged"):
        PageReader(path)


def test_a_file_of_another_version_is_refused(tmp_path):
    write(tmp_path / "file", [INT], [numbers(1)])
    path = tmp_path / "file"
    path.write_bytes(path.read_bytes().replace(b"pages 1", b"pages 2"))
    with error_saying(
        DataLossError,
        f"{path} is damaged: it is not an evenfeed page file, or has another version.",
        fix="delete it, and write it again.",
    ):
        PageReader(path)


def test_what_was_not_finished_is_refused(tmp_path, small_pages):
    writer = PageWriter(tmp_path / "file", [INT])
    writer.add(numbers(*range(100)))
    writer.close()
    with pytest.raises(DataLossError, match="is damaged"):
        PageReader(tmp_path / "file")


def test_what_files_cannot_hold_is_refused_before_there_is_a_file(tmp_path):
    with pytest.raises(InvalidArgumentError, match="Files hold tensors"):
        PageWriter(tmp_path / "file", [DatasetSpec(INT)])
    assert not (tmp_path / "file").exists()


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_threads_share_a_reader(tmp_path, monkeypatch, compression):
    monkeypatch.setattr(page_files, "_PAGE_BYTES", 800)
    monkeypatch.setattr("evenfeed.formats.pages.page_reader._BYTES_HELD", 3000)
    reader = write(tmp_path / "file", [INT], [numbers(*range(5000))], compression).open()
    wrong = []

    def look(seed):
        draw = np.random.default_rng(seed)
        for _ in range(40):
            rows = draw.integers(0, 5000, 50)
            if not np.array_equal(reader.fetch(rows).columns[0], rows):
                wrong.append(rows)

    threads = [threading.Thread(target=look, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_one_large_row_among_small_ones_does_not_make_pages_large(tmp_path, monkeypatch):
    monkeypatch.setattr(page_files, "_PAGE_BYTES", 1000)
    rows = [np.zeros(1, np.int64)] * 10 + [np.zeros(500, np.int64)] * 50
    parts = [Block(([row],), 1) for row in rows]
    file = write(tmp_path / "file", [TensorSpec([None], dtypes.int64)], parts)
    assert file.open()._table["raw"].max() < 10_000
    assert plain_rows(file.open().whole(0, 60)) == plain_rows(concatenated(parts))
