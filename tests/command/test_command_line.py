"""The `evenfeed` command: what it says before anything is installed, and after a mistake."""

import sys

import pytest

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
    assert capsys.readouterr().out.startswith("usage: evenfeed demo [-h] [--epochs EPOCHS]")


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
