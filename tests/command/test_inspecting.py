"""`evenfeed inspect`: every format is recognised, described, and read by the code that is proposed."""

import gzip
import json
import os
import re
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tests.every_format import FORMATS, ROWS

import evenfeed as tf
from evenfeed.command.main import main

# Fixed-length records have nothing to be recognised by, and a file of pages is part of a saved dataset.
RECOGNISED = [name for name in FORMATS if not name.startswith(("fixed", "saved"))]
ENDINGS = {"csv": ".csv", "array_record": ".array_record"}


def inspected(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["inspect", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def made_by(code: str) -> Any:
    """Run the proposed code, and return its dataset."""
    names: dict[str, Any] = {"tf": tf}
    exec(code, names)
    return names["dataset"]


def written(folder: Path, name: str) -> str:
    path = str(folder / f"data{ENDINGS.get(name.split(maxsplit=1)[0], '')}")
    FORMATS[name].write(path, range(ROWS))
    return path


@pytest.mark.parametrize("name", RECOGNISED)
def test_every_format_is_recognised_and_counted_and_read_by_the_proposed_code(
    name, tmp_path, capsys
):
    path = written(tmp_path, name)
    (report,) = inspected(capsys, path)
    assert report["rows"] == ROWS
    assert report["format"] in {"records": ["tfrecord"], "lines": ["text"]}.get(
        name.split()[0], [name.split()[0]]
    )
    assert report["compression"] == (
        name.split()[1] if name.split()[1:] in (["GZIP"], ["ZLIB"]) else ""
    )
    dataset = made_by(report["code"])
    rows = dataset.unbatch() if name.startswith("csv") else dataset
    assert len(list(rows)) == report["rows"]


def examples(path: Path, rows: list[dict[str, Any]]) -> str:
    with tf.io.TFRecordWriter(str(path)) as writer:
        for row in rows:
            writer.write(example(row).SerializeToString())
    return str(path)


def example(row: dict[str, Any]) -> Any:
    features = {name: feature(values) for name, values in row.items()}
    return tf.train.Example(features=tf.train.Features(feature=features))


def feature(values: list[Any]) -> Any:
    if values and isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if values and isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def test_the_features_of_examples_are_described_and_parsed_by_the_proposed_code(tmp_path, capsys):
    picture = tf.io.encode_png(np.zeros((4, 6, 3), np.uint8)).numpy()
    rows = [
        {"label": [n], "box": [0.5, 1.5], "words": [b"a"] * (n + 1), "image": [picture]}
        for n in range(3)
    ]
    (report,) = inspected(capsys, examples(tmp_path / "x.tfrecord", rows))
    assert report["holds"] == "tf.train.Example"
    found = {f["name"]: (f["dtype"], f["shape"], f["values"]) for f in report["features"]}
    assert found == {
        "box": ("float32", "(2,)", "0.5 to 1.5"),
        "image": ("string", "()", "PNG of 6 x 4"),
        "label": ("int64", "()", "0 to 2"),
        "words": ("string", "(None,)", "'a'"),
    }
    parsed = list(made_by(report["code"]))
    assert [row["label"].item() for row in parsed] == [0, 1, 2]
    assert [tf.sparse.to_dense(row["words"]).shape[0] for row in parsed] == [1, 2, 3]


def test_the_docs_show_what_is_printed(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [
        {
            "label": [n % 10],
            "box": [float(n + k) for k in range(4)],
            "words": [b"even", b"feed"][: 1 + n % 2],
        }
        for n in range(50)
    ]
    examples(Path("train.tfrecord"), rows)
    assert main(["inspect", "train.tfrecord"]) == 0
    docs = Path(__file__).parents[2] / "docs" / "command_line.md"
    assert f"$ evenfeed inspect train.tfrecord\n{capsys.readouterr().out}```" in docs.read_text()


def test_a_feature_that_some_records_lack_is_proposed_with_any_length(tmp_path, capsys):
    path = examples(tmp_path / "x.tfrecord", [{"a": [1], "b": [2]}, {"a": [3]}])
    (report,) = inspected(capsys, path)
    assert "'b': tf.io.VarLenFeature(tf.int64)" in report["code"]
    assert len(list(made_by(report["code"]))) == 2


def test_the_feature_lists_of_sequence_examples_are_found(tmp_path, capsys):
    path = tmp_path / "x.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for length in (1, 3):
            message = tf.train.SequenceExample()
            message.context.feature["id"].int64_list.value.append(length)
            for step in range(length):
                added = message.feature_lists.feature_list["x"].feature.add()
                added.float_list.value.extend([float(step), 0.0])
            writer.write(message.SerializeToString())
    (report,) = inspected(capsys, str(path))
    assert report["holds"] == "tf.train.SequenceExample"
    shapes = [sequence["x"].shape for _, sequence in made_by(report["code"])]
    assert [tuple(shape) for shape in shapes] == [(1, 2), (3, 2)]


def test_records_that_are_no_examples_are_bytes(tmp_path, capsys):
    path = tmp_path / "x"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(b"\xff\x00")
    (report,) = inspected(capsys, str(path))
    assert [(f["dtype"], f["values"]) for f in report["features"]] == [("string", "2 bytes")]


def test_a_directory_is_read_by_kind_and_saved_datasets_on_their_own(tmp_path, capsys):
    for number in range(5):
        (tmp_path / f"{number}.txt").write_text("one\ntwo\n")
    for number in range(2):
        tf.data.Dataset.range(number + 1).save(str(tmp_path / f"saved{number}"))
    (tmp_path / "_SUCCESS").write_text("")
    reports = inspected(capsys, str(tmp_path))
    assert sorted((r["format"], r["rows"]) for r in reports) == [
        ("saved", 1),
        ("saved", 2),
        ("text", 10),
    ]
    (text,) = [r for r in reports if r["format"] == "text"]
    assert "gfile.glob" in text["code"]
    assert len(list(made_by(text["code"]))) == 10


def test_the_page_has_the_pictures_and_escapes_the_texts(tmp_path, capsys):
    picture = tf.io.encode_png(np.zeros((4, 6, 3), np.uint8)).numpy()
    path = examples(tmp_path / "x.tfrecord", [{"image": [picture], "text": [b"<b>"]}])
    page = tmp_path / "page.html"
    assert main(["inspect", path, "--html", str(page)]) == 0
    content = page.read_text()
    assert content.count('<img alt="" src="data:image/png;base64,') == 1
    assert "<b>" not in content
    assert "&lt;b&gt;" in content


def test_the_rows_to_show_are_shown_as_one_line_each(tmp_path, capsys):
    (tmp_path / "x.csv").write_text("a,b\n1,x\n2,y\n3,z\n")
    assert main(["inspect", str(tmp_path / "x.csv"), "--rows", "2"]) == 0
    said = capsys.readouterr().out
    assert re.findall(r"^  a: .*$", said, re.MULTILINE) == ["  a: 1, b: 'x'", "  a: 2, b: 'y'"]
    assert "CSV, 3 rows, 16 bytes" in said


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "x does not exist"), (b"\x00\x01\x02", "a format that evenfeed does not know")],
)
def test_a_mistake_is_said_without_a_traceback(tmp_path, capsys, content, said):
    path = tmp_path / "x"
    if content is not None:
        path.write_bytes(content)
    assert main(["inspect", str(path)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("evenfeed inspect: ")
    assert said in error
    assert "Traceback" not in error
    assert "  at:  " not in error


def test_nulls_are_filled_in_and_the_code_says_so(tmp_path, capsys):
    table = pyarrow.table({"n": [1, None], "s": [None, "b"], "x": [1.5, 2.5]})
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    (report,) = inspected(capsys, str(tmp_path / "x.parquet"))
    assert report["sample"] == [{"n": 1, "s": "", "x": 1.5}, {"n": 0, "s": "b", "x": 2.5}]
    assert "fill_null={'s': '', 'n': 0}" in report["code"]
    assert len(list(made_by(report["code"]))) == 2


def test_the_delimiter_of_a_table_is_found(tmp_path, capsys):
    (tmp_path / "x.csv").write_text('a;"b;c"\n1;"x, y"\n')
    (report,) = inspected(capsys, str(tmp_path / "x.csv"))
    assert report["sample"] == [{"a": 1, "b;c": "x, y"}]
    assert len(list(made_by(report["code"]))) == 1


def test_files_that_cannot_be_read_are_told_and_the_others_shown(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("one\n")
    (tmp_path / "b.bin").write_bytes(b"\0\1")
    (tmp_path / "c.parquet").write_bytes(b"PAR1")
    (tmp_path / "d.png").write_bytes(b"")
    (tmp_path / "e.parquet.gz").write_bytes(gzip.compress(b"PAR1"))
    os.mkfifo(tmp_path / "f")
    (tmp_path / "around").symlink_to(tmp_path)
    assert main(["inspect", str(tmp_path), str(tmp_path / "missing"), "--json"]) == 1
    said = capsys.readouterr()
    assert [report["format"] for report in json.loads(said.out)] == ["text"]
    for words in (
        "b.bin: a format that evenfeed does not know",
        "c.parquet is damaged",
        "d.png: is empty",
        "e.parquet.gz: is a Parquet file that was compressed with GZIP",
        "f: is not a regular file",
        "missing does not exist",
    ):
        assert words in said.err


def lines(path: Path, *texts: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{text}\n" for text in texts))
    return str(path)


def features_of(report: dict[str, Any]) -> list[str]:
    return [feature["name"] for feature in report["features"]]


DIFFERENT = {
    "csv": (["a,b", "1,2"], ["a,c", "1,x"]),
    "jsonl": (['{"a": 1, "b": 2}'], ['{"a": 1, "c": "x"}']),
}


@pytest.mark.parametrize("ending", DIFFERENT)
def test_files_with_different_columns_are_shown_apart(ending, tmp_path, capsys):
    for number, content in enumerate([*DIFFERENT[ending], DIFFERENT[ending][0]]):
        lines(tmp_path / f"{number}.{ending}", *content)
    first, second = inspected(capsys, str(tmp_path))
    assert [Path(path).name[0] for path in first["paths"]] == ["0", "2"]
    assert (features_of(first), first["rows"]) == (["a", "b"], 2)
    assert (features_of(second), second["rows"]) == (["a", "c"], 1)
    assert len(list(made_by(first["code"]))) >= 1


def test_parquet_columns_that_no_tensor_holds_are_left_out_with_a_word(tmp_path, capsys):
    table = pyarrow.table(
        {
            "n": [1, 2],
            "price": pyarrow.array([Decimal("1.5"), None]),
            "list": [[1], None],
            "when": pyarrow.array([datetime(2024, 1, 1), None]),
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "x.parquet")
    (report,) = inspected(capsys, str(tmp_path / "x.parquet"))
    assert features_of(report) == ["n", "when"]
    assert report["notes"] == [
        "Left out: price (decimal128(2, 1)).",
        "Left out: list (it has nulls).",
    ]
    assert len(list(made_by(report["code"]))) == 2


def test_json_fields_with_nulls_are_left_out_with_a_word(tmp_path, capsys):
    path = lines(
        tmp_path / "x.jsonl", '{"a": 1, "b": null, "c": {"d": 1}}', '{"a": 2, "c": {"d": 2}}'
    )
    (report,) = inspected(capsys, path)
    assert report["notes"] == ["Left out: b (nothing, null)."]
    assert report["sample"][0] == {"a": 1, "['c']['d']": 1}
    assert len(list(made_by(report["code"]))) == 2


@pytest.mark.parametrize(
    "content", [['{"a": null}'], ['{"a": 1}', "no JSON"]], ids=["nulls", "a bad line"]
)
def test_json_that_is_no_table_is_shown_as_text(content, tmp_path, capsys):
    assert main(["inspect", lines(tmp_path / "x.jsonl", *content), "--json"]) == 1
    said = capsys.readouterr()
    (report,) = json.loads(said.out)
    assert [row[""] for row in report["sample"]] == content
    assert "x.jsonl" in said.err


def test_a_csv_file_without_a_header_keeps_its_first_row(tmp_path, capsys):
    (report,) = inspected(capsys, lines(tmp_path / "x.csv", "5.1,3,setosa", "4.9,3,setosa"))
    assert (report["rows"], features_of(report)) == (2, ["column_0", "column_1", "column_2"])
    assert report["notes"] == ["There is no header: the first line looks like the others."]
    assert made_by(report["code"]).unbatch().as_numpy_iterator().next()["column_1"] == 3
    for header in (["a,b", "x,y"], ["id,2020", "1,5"], ["a"], ["1,2"]):
        (report,) = inspected(capsys, lines(tmp_path / "y.csv", *header))
        assert report["notes"] == []


def test_the_rows_before_a_damaged_one_are_shown(tmp_path, capsys):
    path = examples(tmp_path / "x.tfrecord", [{"a": [1]}, {"a": [2]}])
    Path(path).write_bytes(Path(path).read_bytes()[:-1])
    assert main(["inspect", path, "--json"]) == 1
    said = capsys.readouterr()
    (report,) = json.loads(said.out)
    assert (report["rows"], report["sample"]) == (None, [{"a": [1]}])
    assert "is damaged" in report["problem"]
    assert "is damaged" in said.err


def test_arrays_of_numpy_are_shown_row_by_row(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.zeros((5, 3), np.float32))
    np.savez(tmp_path / "y.npz", image=np.zeros((2, 4, 4), np.uint8), label=np.arange(2))
    one, several = inspected(capsys, str(tmp_path))
    assert (one["rows"], one["features"][0]["shape"]) == (5, "(3,)")
    assert (several["rows"], features_of(several)) == (2, ["image", "label"])
    assert len(list(made_by(one["code"]))) == 5
    assert len(list(made_by(several["code"]))) == 2
    np.save(tmp_path / "x.npy", np.array([{}], object))
    assert main(["inspect", str(tmp_path / "x.npy")]) == 1
    assert "x.npy cannot be read" in capsys.readouterr().err


def test_a_text_that_begins_like_compressed_data_is_text(tmp_path, capsys):
    for content in ("x", "x^2 + 1"):
        (report,) = inspected(capsys, lines(tmp_path / "x.txt", content))
        assert (report["compression"], report["sample"]) == ("", [{"": content}])


def test_a_damaged_file_is_an_error_that_names_it(tmp_path, capsys):
    path = examples(tmp_path / "x.tfrecord", [{"a": [1]}])
    content = bytearray(Path(path).read_bytes())
    content[-1] ^= 1
    Path(path).write_bytes(content)
    assert main(["inspect", path]) == 1
    assert "x.tfrecord" in capsys.readouterr().err


def test_an_empty_file_has_no_rows(tmp_path, capsys):
    (tmp_path / "empty.txt").write_bytes(b"")
    (report,) = inspected(capsys, str(tmp_path / "empty.txt"))
    assert (report["rows"], report["sample"]) == (0, [])


def test_pictures_in_folders_are_found_by_a_pattern_and_their_labels_by_keras(tmp_path, capsys):
    for number in range(6):
        path = tmp_path / ("cats" if number % 2 else "dogs") / f"{number}.png"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(tf.io.encode_png(np.zeros((4, 6, 3), np.uint8)).numpy())
    (report,) = inspected(capsys, str(tmp_path))
    assert f"tf.io.gfile.glob('{tmp_path}/*/*.png')" in report["code"]
    assert f"tf.keras.utils.image_dataset_from_directory('{tmp_path}')" in report["code"]
    assert len(list(made_by(report["code"]))) == 6
