import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.resuming import assert_resumes

import evenfeed as tf
from evenfeed.formats.json_lines import JsonFile
from evenfeed.runtime.operators.files import ReadFiles

J = tf.data.Dataset.from_json_lines
S = tf.TensorSpec
WANTED = {"x": S([], tf.int32), "in": {"s": S([], tf.string)}, "v": S([None], tf.float32)}
GOOD = "".join(
    json.dumps({"x": n, "in": {"s": f"t{n}"}, "v": [n, 0.5], "more": None}) + "\n\n"
    for n in range(5)
)
BAD = [
    ('{"x": 1, "in": {"s": "a"}, "v": [1]}', None),
    ('{"x": 1.5, "in": {"s": "a"}, "v": []}', "'x' must be int32, but is '1.5'"),
    ('{"x": true, "in": {"s": "a"}, "v": []}', "'x' must be int32, but is 'true'"),
    ('{"x": 3000000000, "in": {"s": "a"}, "v": []}', "'x' must be int32, but is '3000000000'"),
    ('{"x": 1, "in": {"s": null}, "v": []}', "'in.s' must be string, but is 'null'"),
    ('{"x": 1, "in": {}, "v": []}', "'in.s' is missing"),
    ('{"x": 1, "in": 3, "v": []}', "'in.s' is missing"),
    ('{"x": 1, "in": {"s": "a"}, "v": [[1]]}', "'v' must be float32 of shape (None,), but is '[[1]]'"),
    ('{"x": 1, "in": {"s": "a"}, "v": "abc"}', "'v' must be float32 of shape (None,), but is '\"abc\"'"),
    ('{"x": 1, "in": {"s": "\\ud800"}, "v": []}', "'in.s' must be string, but is"),
    ('{"x": 1', "it is not valid JSON"),
    ("[1]", "'in.s' is missing"),
    ("[" * 100_000, "it is not valid JSON"),
    ('{"x": 2, "in": {"s": "b"}, "v": [1, 2]}', None),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working directory, so that files have short names."""
    monkeypatch.chdir(tmp_path)
    Path("good.jsonl").write_text(GOOD)
    Path("good.gz").write_bytes(gzip.compress(GOOD.encode()))
    Path("bad.jsonl").write_text("\n".join(line for line, _ in BAD))
    return tmp_path


@pytest.mark.parametrize(("name", "kind"), [("good.jsonl", None), ("good.gz", "GZIP")])
def test_lines_are_elements(folder, name, kind):
    dataset = J(name, WANTED, kind)
    assert dataset.element_spec == WANTED
    assert dataset.cardinality() == tf.data.UNKNOWN_CARDINALITY
    (batch,) = dataset.batch(9)
    assert batch["x"].tolist() == [0, 1, 2, 3, 4]
    assert batch["x"].dtype == np.int32
    assert batch["in"]["s"].tolist() == [b"t0", b"t1", b"t2", b"t3", b"t4"]
    assert batch["v"].tolist() == [[n, 0.5] for n in range(5)]
    assert "from_json_lines(1 file)" in dataset.explain()


def test_what_is_in_the_lines_is_found_out(folder):
    lines = ['{"a": 1, "b": 1, "c": true, "d": "x", "e": [[1], []], "f": {"g": 0.5}}'] * 2
    lines[1] = lines[1].replace('"b": 1', '"b": 2.5')
    Path("guess.jsonl").write_text("\n".join(lines))
    assert J("guess.jsonl").element_spec == {
        "a": S([], tf.int64),
        "b": S([], tf.float64),
        "c": S([], tf.bool),
        "d": S([], tf.string),
        "e": S([None, None], tf.int64),
        "f": {"g": S([], tf.float64)},
    }
    Path("numbers.jsonl").write_text("1\n2\n")
    assert [int(n) for n in J(["numbers.jsonl", "numbers.jsonl"])] == [1, 2, 1, 2]


@pytest.mark.parametrize(
    "text",
    ["", "\n", "{", '{"a": null}', '{"a": 1}\n{}', '{"a": []}', "1\ntrue", '{"a": [{}]}', "\xff"],
)
def test_what_lines_do_not_tell_must_be_said(folder, text):
    Path("x.jsonl").write_bytes(text.encode("latin-1"))
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=r"(?s)x\.jsonl.*pass output_signature"
    ):
        J("x.jsonl")


def test_what_is_wrong_is_said_with_the_line(folder):
    iterator = iter(J("bad.jsonl", WANTED))
    for number, (_, said) in enumerate(BAD, 1):
        if said is None:
            assert int(next(iterator)["x"]) in (1, 2)
            continue
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            next(iterator)
        assert f"bad.jsonl, line {number}: " in caught.value.message
        assert said in caught.value.message
    assert list(iterator) == []


def test_bytes_that_are_no_text_are_said(folder):
    Path("x.jsonl").write_bytes(b'"a"\n"b\xff"\n"c"\n')
    dataset = J("x.jsonl", S([], tf.string))
    with pytest.raises(tf.errors.InvalidArgumentError, match="line 2: byte 2 is not valid UTF-8"):
        list(dataset)
    assert [text.item() for text in dataset.ignore_errors()] == [b"a", b"c"]


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_reading_resumes_anywhere_also_behind_errors(folder, compression):
    Path("bad.gz").write_bytes(gzip.compress(Path("bad.jsonl").read_bytes()))
    names = ["good.gz", "bad.gz"] if compression else ["good.jsonl", "bad.jsonl"]
    files = [JsonFile(name, compression, WANTED) for name in names]
    assert_resumes(lambda: ReadFiles(files), 1, 4)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    st.lists(
        st.tuples(st.integers(-9, 9), st.text(max_size=3), st.lists(st.integers(0, 3), max_size=3))
    )
)
def test_what_was_written_comes_back(folder, rows):
    lines = [json.dumps({"n": n, "t": t, "v": v}) for n, t, v in rows]
    Path("any.jsonl").write_text("\n".join(lines))
    spec = {"n": S([], tf.bfloat16), "t": S([], tf.string), "v": S([None], tf.uint8)}
    found = [(float(r["n"]), r["t"].item().decode(), r["v"].tolist()) for r in J("any.jsonl", spec)]
    assert found == rows


@pytest.mark.parametrize(
    "wanted", [3, {}, {"a": 1}, {1: S([], tf.int8)}, S(None, tf.int8), [S([], tf.int8)]]
)
def test_signatures_are_dicts_of_specs(wanted):
    with pytest.raises(TypeError, match="output_signature must be a dict of TensorSpecs"):
        J("x", wanted)
