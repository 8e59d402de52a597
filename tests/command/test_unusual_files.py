"""`evenfeed inspect` on files with odd names and on damaged ones: what it says about them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

import evenfeed as tf
from evenfeed.command.main import main


def inspected(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> tuple[Any, str]:
    assert main(["inspect", *arguments, "--json"]) == code
    said = capsys.readouterr()
    return json.loads(said.out), said.err


def test_a_file_whose_name_is_a_pattern_is_that_file(tmp_path, capsys):
    for name in ("log[1].txt", "log1.txt", "a*.txt", "ab.txt"):
        (tmp_path / name).write_text(f"{name}\n")
    for name in ("log[1].txt", "a*.txt"):
        (report,), _ = inspected(capsys, 0, str(tmp_path / name))
        assert report["sample"] == [{"": name}]


def test_the_page_of_a_file_whose_name_is_not_utf_8_can_be_written(tmp_path, capsys):
    path = tmp_path / "bad\udcff.txt"
    path.write_text("x\n")
    page = tmp_path / "page.html"
    inspected(capsys, 0, str(path), "--html", str(page))
    assert r"bad\udcff.txt" in page.read_text()


def test_the_range_of_numbers_leaves_out_nan_and_says_so(tmp_path, capsys):
    np.save(tmp_path / "some.npy", np.array([np.nan, 1.0, 3.0]))
    np.save(tmp_path / "only.npy", np.array([np.nan]))
    reports, _ = inspected(capsys, 0, str(tmp_path))
    assert [r["features"][0]["values"] for r in reports] == ["NaN", "1 to 3, NaN"]


def test_a_picture_that_cannot_be_opened_is_named_and_the_others_shown(tmp_path, capsys):
    (tmp_path / "a.png").write_bytes(tf.io.encode_png(np.zeros((2, 2, 3), np.uint8)).numpy())
    (tmp_path / "b.jpg").write_bytes(b"\xff\xd8\xff" + bytes(50))
    (report,), said = inspected(capsys, 1, str(tmp_path))
    assert report["rows"] == 2
    assert said == f"evenfeed inspect: {tmp_path / 'b.jpg'}: cannot be opened as a picture.\n"


def test_the_damaged_one_of_several_files_is_named_alone(tmp_path, capsys):
    for name in ("a", "b"):
        with tf.io.TFRecordWriter(str(tmp_path / name)) as writer:
            writer.write(b"\xff\0")
    (tmp_path / "b").write_bytes((tmp_path / "b").read_bytes()[:-1])
    _, said = inspected(capsys, 1, str(tmp_path))
    assert str(tmp_path / "b") in said
    assert str(tmp_path / "a") not in said


@pytest.mark.parametrize("format_", ["parquet", "arrow"])
def test_files_are_shown_apart_if_a_later_one_has_more_columns(format_, tmp_path, capsys):
    for name, columns in (("a", {"x": [1]}), ("b", {"x": [2], "y": ["t"]}), ("c", {"x": [3]})):
        table = pa.table(columns)
        if format_ == "parquet":
            pq.write_table(table, tmp_path / name)
        else:
            feather.write_feather(table, str(tmp_path / name), "uncompressed")
    reports, _ = inspected(capsys, 0, str(tmp_path))
    features = {tuple(f["name"] for f in r["features"]): r["rows"] for r in reports}
    assert features == {("x",): 2, ("x", "y"): 1}


@pytest.mark.parametrize("content", ['[{"a": 1}, {"a": 2}]', '{\n "a": 1\n}'])
def test_a_json_document_is_text_and_the_report_says_why(content, tmp_path, capsys):
    (tmp_path / "x.json").write_text(content)
    (report,), _ = inspected(capsys, 0, str(tmp_path / "x.json"))
    assert report["format"] == "text"
    assert "x.json is not JSON Lines" in report["notes"][0]


def test_a_byte_order_mark_in_a_column_name_is_noted(tmp_path, capsys):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n", encoding="utf-8-sig")
    (report,), _ = inspected(capsys, 0, str(tmp_path / "x.csv"))
    assert "begins with a byte order mark" in report["notes"][0]


def test_a_damaged_array_is_not_taken_for_one_of_objects(tmp_path, capsys):
    path = Path(tmp_path / "x.npy")
    np.save(path, np.zeros(1000))
    path.write_bytes(path.read_bytes()[:500])
    assert main(["inspect", str(path)]) == 1
    assert "copy the file again if it is damaged" in capsys.readouterr().err
