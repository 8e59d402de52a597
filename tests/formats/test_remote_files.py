"""Remote storage that is slow, fails, or changes: the right data or an error that says what happened, never a hang."""

import io
import subprocess
import sys
from pathlib import Path

import pytest
from tests.every_format import FORMATS
from tests.faulty import storage

import evenfeed as tf
from evenfeed.formats.bytes import retries
from evenfeed.formats.bytes.filesystems import matching, open_file, size_of
from evenfeed.formats.bytes.retries import retried

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("programs") / "stalled_source.py"
LINES = b"".join(b"line %d\n" % number for number in range(50_000))  # read in several pieces
# Readers that open their files themselves.
LOCAL = ["array_record", "saved", "saved GZIP"]


@pytest.fixture
def store(monkeypatch):
    monkeypatch.setattr(retries, "_FIRST_PAUSE", 0.001)
    with storage() as found:
        yield found


def lines(path):
    return [line.numpy() for line in tf.data.TextLineDataset(path)]


def rows(dataset):
    return [str(element) for element in dataset.as_numpy_iterator()]


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in LOCAL])
def test_every_format_is_read_through_failures_and_short_reads(store, tmp_path, name):
    path = str(tmp_path / "file")
    FORMATS[name].write(path, range(8))
    far = store.write("far", Path(path).read_bytes())
    store.every, store.most = 2, 7
    assert rows(FORMATS[name].read([far])) == rows(FORMATS[name].read([path]))
    assert store.ranges > 4


@pytest.mark.parametrize(
    "error",
    [OSError("reset"), TimeoutError(), ConnectionError(), EOFError("early"), Exception("502")],
)
def test_a_read_that_fails_is_tried_again(store, error):
    path = store.write("a", LINES)
    store.errors = [error] * 4
    assert open_file(path).read() == LINES
    assert store.ranges == 5


def test_a_read_that_keeps_failing_names_file_byte_and_attempts(store):
    path = store.write("a", LINES)
    file = open_file(path)
    file.read(1 << 17)
    store.errors = [OSError("the disk is on fire")] * 100
    what = (
        r"faulty://a cannot be read at byte 131072: the disk is on fire \(attempts: 5 in 0\.\d s\)"
    )
    with pytest.raises(tf.errors.UnavailableError, match=what) as caught:
        file.read(1 << 17)
    assert (caught.value.file, caught.value.offset) == (path, 1 << 17)
    assert "EVENFEED_READ_ATTEMPTS=10" in str(caught.value)
    store.errors = []
    assert file.read() == LINES[1 << 17 :]  # nothing is lost


@pytest.mark.parametrize("error", [FileNotFoundError(), PermissionError(), ValueError("no")])
def test_an_error_that_stays_is_not_tried_again(store, error):
    file = open_file(store.write("a", LINES))
    store.errors = [error]
    with pytest.raises(type(error)):
        file.read()
    assert store.ranges == 1


def test_the_environment_sets_attempts_and_seconds(store, monkeypatch):
    path = store.write("a", LINES)
    monkeypatch.setenv("EVENFEED_READ_ATTEMPTS", "2")
    monkeypatch.setenv("EVENFEED_READ_SECONDS", "0.05")
    store.stalled = 2
    what = r"at byte 0: no answer within 0.05 seconds \(attempts: 2 in"
    with pytest.raises(tf.errors.DeadlineExceededError, match=what):
        open_file(path).read()
    store.stalled = 1
    assert open_file(path).read() == LINES  # the first attempt is given up, the second answers
    monkeypatch.setenv("EVENFEED_READ_ATTEMPTS", "none")
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="EVENFEED_READ_ATTEMPTS must be a pos"
    ):
        open_file(path)


def test_sizes_and_listings_are_tried_again():
    failures = [OSError("busy"), OSError("busy")]

    def call():
        if failures:
            raise failures.pop()
        return "found"

    assert retried("x", None, call) == "found"


def test_a_state_knows_its_files_though_storage_fails(store):
    paths = [store.write(f"{number}", LINES) for number in range(3)]
    store.every = 5
    iterator = iter(tf.data.TextLineDataset(paths))
    next(iterator)
    state = iterator.get_state()
    store.write("1", LINES.upper())
    with pytest.raises(tf.errors.DataLossError, match="faulty://1"):
        iter(tf.data.TextLineDataset(paths)).set_state(state)


def test_names_and_sizes_are_found(store):
    path = store.write("a", LINES)
    assert matching("faulty://*") == [path]
    assert size_of(path) == len(LINES)
    with pytest.raises(tf.errors.NotFoundError, match="faulty://b does not exist"):
        open_file("faulty://b")


@pytest.mark.parametrize(
    ("after", "what"),
    [
        (
            LINES[:400_000],
            "faulty://a was truncated from .* to 400000 bytes while it was being read",
        ),
        (LINES.upper(), "faulty://a was replaced while it was being read"),
        (LINES * 2, "faulty://a was replaced while it was being read"),
        (b"", "faulty://a was truncated from .* to 0 bytes while it was being read"),
    ],
)
def test_a_file_that_changes_while_it_is_read_is_data_loss(store, after, what):
    iterator = iter(tf.data.TextLineDataset(store.write("a", LINES)))
    next(iterator)
    store.write("a", after)
    with pytest.raises(tf.errors.DataLossError, match=what):
        list(iterator)


def test_a_file_that_is_shorter_than_its_size_is_data_loss(store):
    path = store.write("a", LINES)
    file = open_file(path)
    content, number = store.files["a"]
    store.files["a"] = content[:1000].ljust(len(content)), number
    assert file.read(10) == LINES[:10]
    store.most = -1  # from now on, no range has any bytes
    with pytest.raises(tf.errors.DataLossError, match="it ends at byte 65536, but its size is"):
        file.read(1 << 17)


@pytest.mark.parametrize("name", ["webdataset", "parquet"])
def test_rows_by_position_come_from_the_version_that_was_indexed(store, tmp_path, name):
    content = []
    for first in (0, 100):
        FORMATS[name].write(str(tmp_path / "file"), range(first, first + 8))
        content.append((tmp_path / "file").read_bytes())
    path = store.write(f"changed-{name}", content[0])
    dataset = FORMATS[name].read([path])
    assert len(rows(dataset)) == 8
    store.write(f"changed-{name}", content[1])
    with pytest.raises(tf.errors.DataLossError, match="was replaced"):
        rows(dataset)


def test_a_local_tar_file_that_is_replaced_between_two_reads_is_data_loss(tmp_path):
    path = tmp_path / "a.tar"
    FORMATS["webdataset"].write(str(path), range(8))
    iterator = iter(FORMATS["webdataset"].read([str(path)]))
    next(iterator)
    FORMATS["webdataset"].write(str(tmp_path / "b.tar"), range(100, 108))
    (tmp_path / "b.tar").rename(path)
    with pytest.raises(tf.errors.DataLossError, match="was replaced while it was being read"):
        list(iterator)


def test_lines_and_places_of_a_remote_file_are_those_of_a_local_one(store):
    file, local = open_file(store.write("a", LINES)), io.BytesIO(LINES)
    for _ in range(9):
        assert file.readline() == local.readline()
    assert file.readline(3) == local.readline(3)
    assert file.tell() == local.tell()
    for place, whence in ((70_000, 0), (5, 1), (-10, 2), (0, 0)):
        assert file.seek(place, whence) == local.seek(place, whence)
        assert file.read(70) == local.read(70)
    assert list(file) == list(local)
    assert file.read(5) == b""


@pytest.mark.slow
@pytest.mark.parametrize("way", ["lines", "parquet", "ahead"])
def test_a_stalled_source_blocks_neither_ctrl_c_nor_the_exit(way):
    said = subprocess.run(
        [sys.executable, str(PROGRAM), way],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT}/src"},
    )
    assert (said.returncode, said.stdout) == (3, "ended\n"), said.stderr
