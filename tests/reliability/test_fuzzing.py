"""Damaged input of every kind is read or refused: no crash, no hang, no undocumented exception, no silent change."""

import os

import pytest
from tests.reliability.fuzz import REFUSED, fuzz, run_group
from tests.reliability.parsers import Parser, parsers

ALONE = ["file: parquet", "file: arrow", "file: arrow stream", "file: array_record"]


@pytest.fixture
def environment(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", os.environ.get("TF_CONFIG", "{}"))


def test_every_parser_reads_or_refuses_damaged_input(tmp_path, environment):
    for name, make in parsers(tmp_path).items():
        if (
            name not in ALONE
        ):  # tests/formats/test_damaged_files.py runs them in processes of their own
            found = run_group(make(), name, 0)
            assert found.total() == 100
            assert found[REFUSED] or name in ("file: lines", "tensor", "base64 and JSON"), name


def test_a_wrong_result_is_reported_with_its_seed_and_input():
    def wrong(content: bytes) -> None:
        raise AssertionError("wrong rows")

    with pytest.raises(AssertionError, match="wrong rows") as caught:
        run_group(Parser([b"seed"], wrong), "lines", 7)
    assert "parser 'lines', seed 7, input 0: b'" in caught.value.__notes__[0]


@pytest.mark.slow
def test_a_process_that_fails_is_reported_with_its_seed():
    with pytest.raises(AssertionError, match="no such parser failed in the group with seed 3"):
        fuzz("no such parser", 3, 1)
