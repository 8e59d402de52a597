import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenfeed.formats.tfrecord.framing import all_masked, are_right, header_of, masked, walked


def framed(lengths):
    return b"".join(header_of(length) + bytes(length + 4) for length in lengths)


def ends(lengths):
    found = [0]
    for length in lengths:
        found.append(found[-1] + length + 16)
    return found


ALIKE = [5] * 500
CASES = {
    "none": [],
    "one": [3],
    "alike": ALIKE,
    "empty": [0] * 200,
    "one differs": [*ALIKE[:150], 6, *ALIKE],
    "all differ": list(range(300)),
    "in turn": [4, 5] * 300,
    "alike behind others": [*range(100), *ALIKE],
}


@pytest.mark.parametrize("lengths", CASES.values(), ids=CASES.keys())
def test_all_records_are_found(lengths):
    held = framed(lengths)
    assert walked(held, 0, len(held), 10_000).tolist() == ends(lengths)
    for count in (1, 63, 64, 65, 200):
        assert walked(held, 0, len(held), count).tolist() == ends(lengths[:count])


@pytest.mark.parametrize("stop", [0, 15, 20, 21, 64 * 21 - 1, 64 * 21, 100 * 21 + 20])
def test_no_record_ends_behind_the_stop(stop):
    held = framed(ALIKE)
    assert walked(held, 0, stop, 1000).tolist() == ends(ALIKE[: stop // 21])


@pytest.mark.parametrize("row", [0, 1, 63, 64, 65, 300, 499])
@pytest.mark.parametrize("byte", [0, 7, 8, 11])
def test_a_damaged_header_ends_the_walk(row, byte):
    held = bytearray(framed(ALIKE))
    held[21 * row + byte] ^= 1
    assert walked(bytes(held), 0, len(held), 1000).tolist() == ends(ALIKE[:row])


def test_a_length_beyond_all_numbers_ends_the_walk():
    held = framed([3]) + struct.pack("<Q", 2**64 - 1) + bytes(100)
    assert walked(held, 0, len(held), 10).tolist() == [0, 19]


def of_rows(rows):
    return all_masked([row.tobytes() for row in rows])


def test_the_checksum_of_a_known_text():
    # CRC-32C of "123456789" is E3069283; masked by hand.
    crc = 0xE3069283
    assert masked(b"123456789") == ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32
    assert all_masked([b"123456789", b""]).tolist() == [masked(b"123456789"), masked(b"")]


@pytest.mark.parametrize("count", [1, 2, 255, 256, 257, 700])
@pytest.mark.parametrize("length", [1, 5, 150])
def test_records_that_are_right(count, length):
    rows = np.random.default_rng(count).integers(0, 256, (count, length), np.uint8)
    assert are_right(rows, of_rows(rows))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_one_wrong_record_always_shows(data):
    count, length = data.draw(st.integers(1, 300)), data.draw(st.integers(1, 20))
    rows = np.random.default_rng(0).integers(0, 256, (count, length), np.uint8)
    stored = of_rows(rows)
    row = data.draw(st.integers(0, count - 1))
    if data.draw(st.booleans()):
        stored[row] ^= np.uint32(data.draw(st.integers(1, 2**32 - 1)))
    else:
        rows[row, data.draw(st.integers(0, length - 1))] ^= data.draw(st.integers(1, 255))
    assert not are_right(rows, stored)


def test_wrong_records_do_not_hide_each_other():
    rows = np.random.default_rng(1).integers(0, 256, (300, 8), np.uint8)
    stored = of_rows(rows)
    stored ^= np.uint32(1)  # all in the same way
    assert not are_right(rows, stored)
    swapped = rows.copy()
    swapped[[3, 4]] = rows[[4, 3]]
    assert not are_right(swapped, of_rows(rows))
