import struct

import pytest

from evenfeed.formats.tfrecord.framing import header_of, walked


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
