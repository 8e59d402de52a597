from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenfeed.formats.tables.thrift import BYTES, I32, I64, list_of, struct_in, struct_of

NODE = struct_of({1: I32, 4: BYTES, 5: I32})


def table_of(path):
    content = path.read_bytes()
    return content[-8 - int.from_bytes(content[-8:-4], "little") : -8]


def test_the_wanted_fields_of_a_table_are_found(tmp_path):
    pq.write_table(pa.table({"a": range(300), "b": ["x"] * 300}), tmp_path / "file")
    found = struct_in(table_of(tmp_path / "file"), {2: list_of(NODE), 3: I64})
    assert found[3] == 300
    assert [node[4] for node in found[2]] == [b"schema", b"a", b"b"]
    assert [node.get(5) for node in found[2]] == [2, None, None]


def test_fields_that_nobody_wants_are_passed_over():
    # 1: true, 2: a byte, 3: 8 bytes, 4: a map of numbers to text, 5: a set of two bools, 6: an i64
    data = b"\x11\x13\x07\x17" + bytes(8) + b"\x1b\x01\x58\x02\x03abc\x1a\x21\x01\x02\x16\x06\x00"
    assert struct_in(data, {6: I64}) == {6: 3}
    assert struct_in(data, {}) == {}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x15", "ends in the middle of a value"),
        (b"\x38\x05ab", "ends in the middle of a value"),
        (b"\x16\x02\x00", "wrong type"),
        (b"\x15\x02\x05\x02\x04\x00", "appears twice"),
        (b"\x3d\x00", "type 13 is unknown"),
        (b"\x15" + b"\xff" * 11, "too long"),
        (b"\x29\xf6\xff\xff\x03\x00", "65535 values does not fit"),
        (b"\x29\x15\x00\x00", "wrong type 5"),
        (b"\x3c" * 99, "nested too deep"),
    ],
)
def test_what_is_no_struct_says_why(data, why):
    with pytest.raises(ValueError, match=why):
        struct_in(data, {1: I32, 2: list_of(I64)})


@given(st.binary(max_size=60))
def test_any_bytes_are_a_struct_or_a_value_error(data):
    with suppress(ValueError):
        struct_in(data, {1: I32, 2: list_of(NODE)})
