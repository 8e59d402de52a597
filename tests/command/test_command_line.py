"""The `evenfeed` command: what it says before anything is installed, and after a mistake."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evenfeed.command import run_workers
from evenfeed.command.main import main


@pytest.mark.parametrize("missing", ["optax", "tqdm"])
def test_the_demo_names_the_extra_that_it_needs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delitem(sys.modules, "evenfeed.demo.train_digits", raising=False)
    assert main(["demo"]) == 1
    said = capsys.readouterr().err
    assert f"evenfeed demo needs {missing}" in said
    assert "pip install 'evenfeed[demo]'" in said


def test_the_demo_has_its_own_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["demo", "--help"])
    assert exit_.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith("usage: evenfeed demo [-h] [--epochs EPOCHS]")
    assert "--kill " in said


def test_an_unknown_argument_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--nonsense", "run", "x.py"], ["demo", "--nonsense"]):
        with pytest.raises(SystemExit):
            main(arguments)
        assert "unrecognized arguments: --nonsense" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--workers", "x", "y.py"],
        ["run", "--restarts", "0", "y.py"],
        ["run", "--grace", "-1", "y.py"],
        ["run", "--grace", "nan", "y.py"],
        ["run", "--dashboard-port", "65536", "y.py"],
        ["inspect", "--rows", "x", "y"],
        ["inspect", "--rows", "-1", "y"],
        ["bench", "--seconds", "x"],
        ["demo", "--workers", "1.5"],
    ],
)
def test_a_wrong_number_is_refused_in_the_words_of_the_user(
    capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    assert f"argument {arguments[1]}: must be" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "command", "port"),
    [
        (["-m", "pkg.train", "--lr", "1", "-h"], ["-m", "pkg.train", "--lr", "1", "-h"], None),
        (["--", "-m", "pkg.train"], ["-m", "pkg.train"], None),
        (["--", "train.py", "--lr", "1"], ["train.py", "--lr", "1"], None),
        (["train.py", "-m", "x", "--dashboard"], ["train.py", "-m", "x", "--dashboard"], None),
        (["--dashboard", "train.py"], ["train.py"], 0),
        (["--dashboard-port", "0", "train.py"], ["train.py"], 0),
        (["--dashboard", "--dashboard-port", "80", "train.py"], ["train.py"], 80),
    ],
)
def test_run_starts_a_script_or_a_module_with_its_own_arguments(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], command: list[str], port: int | None
) -> None:
    launched: list[Any] = []
    monkeypatch.setattr(run_workers, "launch", lambda *given: launched.extend(given) or 0)
    assert main(["run", "--workers", "2", *arguments]) == 0
    assert (launched[0], launched[1], launched[-1]) == (command, 2, port)


def test_a_mistake_in_the_arguments_shows_how_to_use_that_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for arguments, used in (
        (["run"], "usage: evenfeed run "),
        (["run", "--min-workers", "2", "x.py"], "usage: evenfeed run "),
        (["demo", "--kill"], "usage: evenfeed demo "),
        (["demo", "--workers", "2", "--nope"], "usage: evenfeed demo "),
    ):
        with pytest.raises(SystemExit) as exit_:
            main(arguments)
        assert exit_.value.code == 2
        assert capsys.readouterr().err.startswith(used)


def test_a_text_that_the_terminal_cannot_print_is_escaped(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("größe,b\n1,2\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "evenfeed", "inspect", str(tmp_path / "x.csv")],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert r"gr\xf6\xdfe  int32" in done.stdout


def test_the_help_names_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    said = capsys.readouterr().out
    assert "train a classifier of handwritten digits" in said
    assert "run a program in several workers" in said


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_a_shell_can_complete_the_commands(capsys: pytest.CaptureFixture[str], shell: str) -> None:
    assert main(["completion", shell]) == 0
    said = capsys.readouterr().out
    assert "inspect" in said
    assert "doctor" in said
