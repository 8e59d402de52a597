import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.text.text_columns import Texts
from evenfeed.formats.example import example_batches
from evenfeed.formats.example.example_batches import scanned
from evenfeed.formats.example.features import wanted_of

T = tf.train
FIXED = tf.io.FixedLenFeature
WANTED = {
    "n": FIXED([2], tf.int64),
    "x": FIXED([3], tf.float32),
    "s": FIXED([], tf.string),
    "ü": FIXED([2], tf.string),
}
DEFAULTS = {
    "n": FIXED([2], tf.int64, [1, -1]),
    "x": FIXED([3], tf.float32, [0, 1, 2]),
    "s": FIXED([], tf.string, b"none"),
    "ü": FIXED([2], tf.string, [b"a", b"b"]),
}


def texts(*values):
    return T.Feature(bytes_list=T.BytesList(value=values))


def numbers(*values):
    return T.Feature(int64_list=T.Int64List(value=values))


def example(chance, **others):
    """Return the bytes of an example of any length, with features that are not requested, in any order."""
    features = {
        "n": numbers(
            *(int(n) >> int(chance.integers(64)) for n in chance.integers(-(2**63), 2**63 - 1, 2))
        ),
        "x": T.Feature(float_list=T.FloatList(value=chance.random(3))),
        "s": texts(chance.bytes(int(chance.integers(300)))),
        "ü": texts(b"", chance.bytes(int(chance.integers(3)))),
        "more": numbers(*range(int(chance.integers(4)))),
        "label": texts(*[b"abc"] * int(chance.integers(3))),
        **others,
    }
    kept = {name: feature for name, feature in features.items() if feature is not None}
    names = chance.permutation(list(kept)).tolist()
    # protobuf writes a map in an order of its own, another in every process; joined entries keep theirs.
    entries = b"".join(T.Features(feature={n: kept[n]}).SerializeToString() for n in names)
    # Field 1 of a list of bytes is written as field 1 of an Example is.
    return T.BytesList(value=[entries]).SerializeToString()


def examples(count, seed=0, **others):
    chance = np.random.default_rng(seed)
    return [example(chance, **others) for _ in range(count)]


def scan(records, wanted):
    return scanned(Texts.of(records), wanted_of(wanted))


def alone(record, wanted):
    """Return what protobuf finds, as bytes, because floats may be NaN."""
    try:
        found = example_batches._one_by_one(Texts.of([record]), np.arange(1), wanted_of(wanted))
    except InvalidArgumentError:
        return None
    return [as_bytes(column[0]) for column in found]


def as_bytes(value):
    array = np.array(value)
    if array.dtype.kind == "f":
        array[np.isnan(array)] = np.nan  # passing through Python may change the bits of a NaN
    return array.tolist() if array.dtype.kind in "OS" else array.tobytes()


def outcome(records, wanted):
    try:
        found = example_batches.fixed_columns(Texts.of(records), wanted_of(wanted))
        return [column.tolist() for column in found]
    except InvalidArgumentError as error:
        return error.message


def outcome_plainly(records, wanted):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(example_batches, "is_worth_it", lambda rows: False)
        return outcome(records, wanted)


def test_examples_that_differ_are_scanned_alone():
    records = examples(300)
    columns, odd = scan(records, WANTED)
    assert not odd.any()
    assert [column.tolist() for column in columns] == outcome_plainly(records, WANTED)


MISSING = {"n": None, "x": None, "s": T.Feature(), "ü": None}


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_feature_has_its_default_or_is_odd(name):
    records = [*examples(200), *examples(100, **{name: MISSING[name]}), b"", b"\n\x00"]
    _, odd = scan(records, WANTED)
    assert odd.tolist() == [False] * 200 + [True] * 102
    columns, odd = scan(records, DEFAULTS)
    assert not odd.any()
    assert [column.tolist() for column in columns] == outcome_plainly(records, DEFAULTS)


WRONG = {
    "another dtype": {"n": texts(b"1", b"2")},
    "too few": {"n": numbers(1)},
    "too many": {"s": texts(b"1", b"2")},
    "none": {"x": T.Feature(float_list=T.FloatList())},
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_the_first_example_that_is_wrong_is_named(wrong):
    records = examples(300)
    records[270:290] = examples(20, **wrong)
    message = outcome(records, WANTED)
    assert "record 270" in message
    assert message == outcome_plainly(records, WANTED)


def test_examples_written_otherwise_are_read_among_others():
    records = examples(300)
    records[17] += b"\x78\x01"  # an unknown field
    records[18] += examples(1, seed=5)[0]  # two messages: the last one counts
    records[19] += b"\n\x08\n\x06\n\x01n\x12\x01\x1a"  # cut off
    assert "Record 19" in outcome(records, WANTED)
    del records[19]
    _, odd = scan(records, WANTED)
    assert np.flatnonzero(odd).tolist() == [17, 18]
    assert outcome(records, WANTED) == outcome_plainly(records, WANTED)


def damaged(records, chance):
    """Yield each record with bytes changed, removed or inserted."""
    for record in records:
        parts = bytearray(record)
        for _ in range(int(chance.integers(1, 3))):
            place = int(chance.integers(len(parts)))
            match int(chance.integers(8)):
                case 0:
                    del parts[place]
                case 1:
                    parts.insert(place, int(chance.integers(256)))
                case 2 | 3 | 4:
                    parts[place] = int(chance.choice([0, 1, 0x0A, 0x12, 0x1A, 0x7F, 0x80, 0xFF]))
                case _:
                    parts[place] ^= 1 << int(chance.integers(8))
        yield bytes(parts)


@pytest.mark.parametrize("seed", range(8))
def test_what_is_not_odd_is_what_protobuf_finds(seed):
    chance = np.random.default_rng(seed)
    short = examples(400, seed, s=texts(b"abc"))
    records = list(damaged(short, chance))
    columns, odd = scan(records, DEFAULTS)
    assert 50 < odd.sum() < 350
    for row in np.flatnonzero(~odd):
        assert [as_bytes(column[row]) for column in columns] == alone(records[row], DEFAULTS)


def test_features_without_values():
    wanted = {"x": FIXED([0], tf.float32), "n": FIXED([0], tf.int64), "s": FIXED([0], tf.string)}
    records = examples(300, x=T.Feature(float_list=T.FloatList()), n=numbers(), s=texts(), ü=None)
    columns, odd = scan(records, wanted)
    assert not odd.any()
    assert [column.shape for column in columns] == [(300, 0)] * 3


def test_examples_of_one_layout_are_those_of_protobuf_whichever_byte_is_changed():
    record = examples(1)[0]
    length = len(record)
    changed = np.tile(np.frombuffer(record, np.uint8), (8 * length, 1))
    rows = np.arange(8 * length)
    changed[rows, rows // 8] ^= (1 << rows % 8).astype(np.uint8)
    # Each is among others of the layout, which is known when it comes.
    records = [part for row in changed for part in (record, record, row.tobytes())]
    columns, odd = scan(records, WANTED)
    found = [columns[part][2::3].tolist() for part in range(len(columns))]
    expected = [alone(row.tobytes(), WANTED) for row in changed]
    assert not odd[0::3].any()
    for row in np.flatnonzero(~odd[2::3]).tolist():
        mine = [
            as_bytes(np.array(column[row], feature.dtype))
            for column, feature in zip(found, wanted_of(WANTED), strict=True)
        ]
        assert mine == expected[row], row


def test_a_text_keeps_no_other_feature_in_memory():
    (text,) = scan(examples(300), {"s": WANTED["s"]})[0]
    assert len(text.data) == int((text.stops - text.starts).sum())


@pytest.mark.parametrize("is_one_length", [True, False])
@pytest.mark.parametrize("longest", [1 << 12, 1 << 20])
def test_long_examples_are_read_by_loops_and_by_protobuf_alike(monkeypatch, longest, is_one_length):
    pytest.importorskip("numba")
    monkeypatch.setattr(example_batches, "_LONGEST_SCANNED", longest)
    chance = np.random.default_rng(0)
    lengths = np.full(300, 20_000) if is_one_length else chance.integers(100, 40_000, 300)
    images = [chance.bytes(int(length)) for length in lengths]
    records = [
        T.Example(
            features=T.Features(feature={"image": texts(image), "label": numbers(row)})
        ).SerializeToString()
        for row, image in enumerate(images)
    ]
    wanted = {"image": FIXED([], tf.string), "label": FIXED([], tf.int64)}
    found = tf.io.parse_example(records, wanted)
    assert found["image"].tolist() == images
    assert found["label"].tolist() == list(range(300))
