"""Progress of long work: a bar on a terminal, lines elsewhere, and nothing if it is short or turned off."""

import io
import threading
from types import SimpleNamespace

import pytest

import evenfeed as tf
from evenfeed.core.concurrency import progress
from evenfeed.core.concurrency.progress import LongWork, advance


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves by hand."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress, "_settings", progress._Settings())
    monkeypatch.delenv(progress.SETTING, raising=False)
    return now


@pytest.fixture
def lines(monkeypatch):
    """What is written to a stderr that is a file."""
    written = io.StringIO()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=written))
    return written


@pytest.fixture
def terminal(monkeypatch):
    """What is written to a stderr that is a terminal of 80 columns."""
    written = Terminal()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=written))
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    return written


def work(clock, seconds, total=100, unit="elements", what="Saving to x"):
    """Do a hundredth of the work in each of a hundred steps."""
    with LongWork(what, total, unit) as shown:
        for _ in range(100):
            clock[0] += seconds / 100
            shown.add(1)


def test_work_of_less_than_two_seconds_shows_nothing(clock, lines):
    work(clock, 1.9)
    assert not lines.getvalue()


def test_lines_come_every_ten_seconds_and_at_the_end(clock, lines):
    work(clock, 25)
    assert lines.getvalue().splitlines() == [
        "Saving to x:   8% of 100 elements, 23 s left",
        "Saving to x:  48% of 100 elements, 13 s left",
        "Saving to x:  88% of 100 elements, 3 s left",
        "Saving to x: 100 elements in 25 s",
    ]


def test_an_unknown_total_shows_how_much_is_done(clock, lines):
    work(clock, 150, total=None)
    first, *_, last = lines.getvalue().splitlines()
    assert first == "Saving to x: 2 elements, 3 s"
    assert last == "Saving to x: 100 elements in 2 min 30 s"


def test_bytes_are_shown_with_a_prefix(clock, lines):
    with LongWork("Indexing 3 files", 4_000_000_000) as shown:
        clock[0] += 3
        shown.add(1_234_567_890)
    assert lines.getvalue().splitlines() == [
        "Indexing 3 files:  31% of 4 GB, 7 s left",
        "Indexing 3 files: 1.23 GB in 3 s",
    ]


def test_a_terminal_gets_a_bar_that_is_drawn_over_and_fits_its_width(clock, terminal):
    work(clock, 4, what="Indexing " + 20 * "long ")
    *pictures, last = terminal.getvalue().split(progress._ERASE)[1:]
    assert len(pictures) > 10
    assert all(len(picture) < 80 and "\n" not in picture for picture in pictures)
    assert last == "Indexing " + 20 * "long " + ": 100 elements in 4 s\n"


def test_the_bar_shows_the_part_that_is_done(clock, terminal):
    work(clock, 4)
    assert "Saving to x: [############............]  50% of 100 elements, 2 s left" in (
        terminal.getvalue()
    )


def test_it_can_be_turned_off(clock, lines, monkeypatch):
    monkeypatch.setenv("EVENFEED_PROGRESS", "0")
    work(clock, 60)
    assert not lines.getvalue()


def test_a_silenced_process_shows_nothing(clock, lines):
    progress.silence()
    work(clock, 60)
    assert not lines.getvalue()


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_passes_through_and_leaves_an_empty_line(clock, terminal, error):
    def interrupted():
        with LongWork("Saving to x", 10, "elements") as shown:
            clock[0] += 3
            shown.add(1)
            raise error

    with pytest.raises(error):
        interrupted()
    assert terminal.getvalue().endswith(progress._ERASE)
    before = len(terminal.getvalue())
    work(clock, 4)  # the line is free again
    assert len(terminal.getvalue()) > before


def test_work_inside_of_other_work_is_shown_until_it_ends(clock, lines):
    with LongWork("Saving to x", 10, "elements") as outer:
        work(clock, 3, unit="B", what="Indexing 1 file")
        outer.add(5)
    assert [line.partition(":")[0] for line in lines.getvalue().splitlines()] == [
        *["Indexing 1 file"] * 2,
        *["Saving to x"] * 2,
    ]


def test_advance_counts_for_the_work_of_its_thread_alone(clock, lines):
    with LongWork("Indexing 1 file", 1000) as shown:
        other = threading.Thread(target=advance, args=(500,))
        other.start()
        other.join()
        advance(100)
        clock[0] += 3
        shown.add(0)
    advance(1)  # no work: does nothing
    assert "10% of 1 kB" in lines.getvalue()


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_a_missing_or_closed_stderr_stops_no_work(clock, monkeypatch, stream):
    if stream is not None:
        stream.close()
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    work(clock, 5)


@pytest.fixture
def at_once(monkeypatch, lines):
    """What is written if everything counts as long work."""
    monkeypatch.setattr(progress, "_QUIET_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_LINE_SECONDS", 0.0)
    monkeypatch.delenv(progress.SETTING, raising=False)
    return lines


def test_saving_a_dataset_shows_its_elements(at_once, tmp_path):
    tf.data.Dataset.range(1000).save(tmp_path / "saved")
    *during, last = at_once.getvalue().splitlines()
    assert during[0].startswith(f"Saving to {tmp_path / 'saved'}:   0% of 1,000 elements")
    assert last.startswith(f"Saving to {tmp_path / 'saved'}: 1,000 elements in ")


def test_the_first_shuffle_of_records_shows_how_much_is_indexed(at_once, tmp_path):
    paths = [str(tmp_path / name) for name in "ab"]
    for path in paths:
        with tf.io.TFRecordWriter(path) as writer:
            writer.write(b"x" * 484)
    records = tf.data.TFRecordDataset(paths).shuffle(10)
    assert len(list(records)) == 2
    shown = at_once.getvalue().splitlines()
    assert [line.partition(",")[0] for line in shown[:2]] == [
        "Indexing 2 files:  50% of 1 kB",
        "Indexing 2 files: 100% of 1 kB",
    ]
    assert shown[2].startswith("Indexing 2 files: 1 kB in ")


@pytest.mark.parametrize("scheme", ["", "memory:/"])
def test_copying_a_file_shows_its_bytes(at_once, tmp_path, scheme):
    source = f"{scheme}{tmp_path}/a"
    with tf.io.gfile.GFile(source, "wb") as file:
        file.write(b"x" * 2_500_000)
    tf.io.gfile.copy(source, str(tmp_path / "b"))
    assert (tmp_path / "b").stat().st_size == 2_500_000
    shown = at_once.getvalue().splitlines()
    assert shown[0].startswith(f"Copying {source}:  42% of 2.5 MB")
    assert shown[-1].startswith(f"Copying {source}: 2.5 MB in ")
