"""The demo learns, shows who got what, and after Ctrl-C continues with the very next batch."""

import io
import re
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# A program without types, as users write them.
train_digits: Any = import_module("evenfeed.demo.train_digits")

DEMO = [sys.executable, "-m", "evenfeed", "demo"]


def output_of(*arguments: str, folder: Path) -> str:
    done = subprocess.run(
        [*DEMO, *arguments], capture_output=True, text=True, timeout=280, check=False, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines_with(word: str, text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(word)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> str:
    return output_of(folder=tmp_path_factory.mktemp("demo"))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_demo_learns_to_read_digits(whole: str) -> None:
    (accuracy,) = re.findall(r"^test accuracy: ([\d.]+)%$", whole, re.MULTILINE)
    assert float(accuracy) >= 95


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_demo_shows_what_each_replica_got(whole: str) -> None:
    assert "step 1: a batch of 64 rows on 4 replicas" in whole
    assert "step 23: a batch of 29 rows on 4 replicas" in whole
    counts = [int(count) for count in re.findall(r"replica \d got +(\d+) rows: ", whole)]
    assert counts == [16, 16, 16, 16, 8, 8, 8, 5]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_log_has_one_plain_line_for_each_epoch(whole: str) -> None:
    pattern = r"epoch +\d+: loss [\d.]+, accuracy [\d.]+%, \d+ steps/s, [\d,]+ rows/s, ETA \d+ s"
    lines = lines_with("epoch", whole)
    assert len(lines) == 20
    assert all(re.fullmatch(pattern, line) for line in lines)
    assert "\r" not in whole


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_demo_ends_with_four_commands(whole: str) -> None:
    said = whole.partition("\nTry next:\n")[2].splitlines()
    comments, commands = said[::2], said[1::2]
    assert [line.startswith("  # ") for line in comments] == [True] * 4
    assert "demo --resume" in comments[0]
    assert "demo --epochs 200" in commands[0]
    assert "demo --workers 2 --kill" in commands[1]
    assert f"cp {train_digits.__file__} " in commands[2]
    assert "run --workers 2 --replicas 2 " in commands[3]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_stopped_demo_continues_as_if_it_had_not_been_stopped(whole: str, tmp_path: Path) -> None:
    running = subprocess.Popen(DEMO, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    assert running.stdout is not None
    for line in running.stdout:
        if line.startswith("step 1:"):  # it compiles now, so that the signal comes in time
            running.send_signal(signal.SIGINT)
            break
    rest, _ = running.communicate(timeout=200)
    assert running.returncode == 0
    assert "test accuracy" not in rest
    (step,) = re.findall(r"^stopped after step (\d+) of 460, and saved", rest, re.MULTILINE)
    assert 1 <= int(step) < 460

    resumed = output_of("--resume", folder=tmp_path)
    assert resumed.startswith(f"resumed after step {step} of 460\n")
    # The same loss to the last digit: the same rows, in the same order, with the same augmentation.
    for word in ("epoch 20", "test accuracy"):
        assert figures(lines_with(word, resumed)) == figures(lines_with(word, whole))


def figures(lines: list[str]) -> str:
    (line,) = lines
    return line.partition(" steps/s")[0].rpartition(", ")[0] or line


def test_every_row_comes_once_in_each_epoch() -> None:
    training, test = train_digits.datasets(epochs=2)
    assert len(training) == 2 * 23
    batches = [len(labels) for _, labels in training]
    assert batches == ([64] * 22 + [29]) * 2
    assert sum(len(labels) for _, labels in test) == 1797 - 1437


def test_the_lines_of_the_demo_count_as_user_code() -> None:
    training, _ = train_digits.datasets(epochs=1)
    assert re.search(r"random_map\(shifted\) +\S*train_digits\.py:\d+", training.explain())


def test_a_resumed_iterator_has_the_rows_that_were_left() -> None:
    training, _ = train_digits.datasets(epochs=2)
    first = iter(training)
    for _ in range(22):
        next(first)
    again = iter(train_digits.datasets(epochs=2)[0])
    again.set_state(first.get_state())
    left = list(again)
    assert len(left) == 46 - 22
    for one, other in zip(left, first, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])


def test_a_saved_model_is_the_same_when_loaded(tmp_path: Path) -> None:
    model = train_digits.initial_params()
    path = str(tmp_path / "state.npz")
    train_digits.save(path, model, {"step": 3})
    loaded, position = train_digits.load(path, train_digits.initial_params())
    assert position == {"step": 3}
    for name, value in model.items():
        np.testing.assert_array_equal(loaded[name], value)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_a_live_bar_too(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    with train_digits.Progress(None, {"step": 0, "epochs": 2}, 8) as progress:
        for _ in range(3):
            progress.update(32.0, 48.0, 64.0)
        progress.bar.refresh()  # it redraws itself ten times a second
    shown = terminal.getvalue()
    assert re.search(
        r"\repoch  1\|.*\|ETA \d\d:\d\d, loss 0\.500, accuracy 75\.0%, \d+ steps/s", shown
    )
    assert "\nepoch" not in shown  # an epoch has four steps


def test_resuming_without_a_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="does not exist: start without --resume"):
        train_digits.load(str(tmp_path / "none.npz"), {})


def test_the_demo_refuses_zero_epochs(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        train_digits.parsed(["evenfeed demo", "--epochs", "0"])
    assert "--epochs must be at least 1, but got 0" in capsys.readouterr().err


def test_a_file_that_is_not_a_state_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    for content in (b"", b"junk", b"PK\3\4 junk"):
        path.write_bytes(content)
        with pytest.raises(SystemExit, match="is not a state that this program saved"):
            train_digits.load(str(path), {})


def test_a_state_needs_a_folder_before_training_starts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        train_digits.parsed(["demo", "--file", "no/such/folder/state.npz"])
    assert "--file must be in an existing folder" in capsys.readouterr().err
