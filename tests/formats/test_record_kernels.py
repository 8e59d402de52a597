from types import SimpleNamespace

import google_crc32c
import numpy as np
import pytest

from evenfeed.formats.tfrecord import framing, record_kernels
from evenfeed.formats.tfrecord import framing as payloads
from evenfeed.formats.tfrecord.framing import FOOTER, header_of, masked
from evenfeed.formats.tfrecord.record_kernels import has_instructions


def framed(payload):
    return header_of(len(payload)) + payload + FOOTER.pack(masked(payload))


def read(raw):
    """Return the starts and payloads of the records before the first damaged one."""
    places = framing.walked(raw, 0, len(raw), 10_000)
    if len(places) == 1:
        return places.tolist(), [], None
    return places.tolist(), *verified(raw, places[:-1], places[1:])


def verified(raw, starts, stops):
    """Return the payloads, and the index of the first damaged one."""
    column = payloads.payloads_of("file", SimpleNamespace(held=raw, first=0), starts, stops)
    places = [column.origin(row)[1] for row in range(len(column))]
    assert places == starts.tolist()
    return column.tolist(), payloads.first_wrong(column)


def read_plainly(raw):
    with pytest.MonkeyPatch.context() as patch:
        for module in (framing, payloads):
            patch.setattr(module, "is_worth_it", lambda rows: False)
        return read(raw)


@pytest.mark.parametrize("longest", [0, 9, 40, 3000])
def test_records_of_many_lengths_are_those_that_numpy_finds(longest):
    chance = np.random.default_rng(longest)
    lengths = chance.integers(0, longest + 1, 600)
    raw = b"".join(framed(chance.bytes(int(length))) for length in lengths)
    found = read(raw)
    assert found == read_plainly(raw)
    assert len(found[1]) == 600
    assert found[2] is None


@pytest.mark.parametrize("seed", range(40))
def test_a_flipped_bit_is_found_where_numpy_finds_it(seed):
    chance = np.random.default_rng(seed)
    raw = bytearray(b"".join(framed(chance.bytes(int(n))) for n in chance.integers(0, 40, 600)))
    # Odd seeds flip a bit after enough records for compiled code to run; even seeds flip one anywhere.
    place = int(chance.integers(len(raw) // 2 if seed % 2 else 0, len(raw)))
    raw[place] ^= 1 << int(chance.integers(8))
    places, column, wrong = read(bytes(raw))
    assert (places, column, wrong) == read_plainly(bytes(raw))
    assert wrong is not None or len(places) < 601


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("count", [2, 300])
def test_records_are_gathered_in_any_order(alike, count):
    chance = np.random.default_rng(0)
    words = [chance.bytes(12 if alike else int(n)) for n in chance.integers(0, 40, count)]
    raw = bytearray(b"".join(map(framed, words)))
    places = framing.walked(bytes(raw), 0, len(raw), 10_000)
    order = chance.permutation(count)
    starts, stops = places[:-1][order], places[1:][order]
    assert verified(bytes(raw), starts, stops) == ([words[row] for row in order], None)
    raw[stops[count // 2] - 1] ^= 1  # its checksum
    assert verified(bytes(raw), starts, stops)[1] == count // 2


def test_a_checksum_is_the_same_by_table_and_by_instruction():
    data = np.random.default_rng(0).integers(0, 256, 100, np.uint8)
    for start, stop in [(0, 0), (3, 4), (1, 8), (1, 9), (0, 100), (7, 99)]:
        expected = google_crc32c.value(data[start:stop].tobytes())
        assert record_kernels.crc_by_table(data, start, stop) == expected
        if has_instructions():
            assert record_kernels.crc_by_instruction(data, start, stop) == expected
