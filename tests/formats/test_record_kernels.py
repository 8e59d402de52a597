import numpy as np
import pytest

from evenfeed.formats import framing, payloads
from evenfeed.formats.checksums import masked
from evenfeed.formats.framing import FOOTER, header_of


def framed(payload):
    return header_of(len(payload)) + payload + FOOTER.pack(masked(payload))


def read(raw):
    """Return where records begin and what they hold, up to damage."""
    places = framing.walked(raw, 0, len(raw), 10_000)
    if len(places) == 1:
        return places.tolist(), [], None
    column, wrong = payloads.verified(raw, places[:-1], places[1:])
    return places.tolist(), column.tolist(), wrong


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
    # Behind so many records that compiled code is asked, and in front of it.
    place = int(chance.integers(len(raw) // 2 if seed % 2 else 0, len(raw)))
    raw[place] ^= 1 << int(chance.integers(8))
    places, column, wrong = read(bytes(raw))
    assert (places, column, wrong) == read_plainly(bytes(raw))
    assert wrong is not None or len(places) < 601
