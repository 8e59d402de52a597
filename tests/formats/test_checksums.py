import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenfeed.formats.checksums import all_masked, are_right, masked


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
